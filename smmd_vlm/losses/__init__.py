"""The numeric losses by name: `build("smmd", values, sigmas=(2.0,))` -> a module.

A loss: loss(logits (P, N), target (P,), *, log_z (P,) | None, runs | None) -> (P,), unreduced, float32; the caller owns
the denominator, so gradient accumulation cannot change what lambda means. A loss knows values, never tokens.
docs/losses.md is this table in words, with each loss's formula.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from smmd_vlm.losses.base import LOG_Z, RUNS, NumericLoss
from smmd_vlm.losses.digit_entropy import DELLoss
from smmd_vlm.losses.ntil import NTILLoss
from smmd_vlm.losses.ntl import NTLMSELoss, NTLWASLoss
from smmd_vlm.losses.places import PlaceWeighted
from smmd_vlm.losses.smmd import SMMDLoss
from smmd_vlm.losses.soft import DIST2Loss, GaussianCELoss, RestrictedCELoss

__all__ = ["LOG_Z", "LOSSES", "RUNS", "Entry", "NumericLoss", "build", "options"]

_PLACE = ("place", "place_base")


@dataclass(frozen=True)
class Entry:
    """A row of the table; what a loss needs is asked of the built module, for options can change it."""

    factory: Callable[..., NumericLoss]
    paper: str
    own_places: bool = False  # weighs places itself, so takes no `place`


LOSSES: dict[str, Entry] = {
    "smmd": Entry(SMMDLoss, "arXiv 2606.27731"),
    "brier": Entry(partial(SMMDLoss, kernel="identity"), "control of arXiv 2606.27731: its form without distance"),
    "restricted_ce": Entry(RestrictedCELoss, "control of arXiv 2503.02379"),
    "gaussian_ce": Entry(GaussianCELoss, "label smoother of arXiv 2411.02083's code"),
    "ntl_was": Entry(NTLWASLoss, "arXiv 2411.02083"),
    "ntl_mse": Entry(NTLMSELoss, "arXiv 2411.02083"),
    "ntil": Entry(NTILLoss, "arXiv 2505.13077", own_places=True),
    "dist2": Entry(DIST2Loss, "arXiv 2503.02379"),
    "del": Entry(DELLoss, "arXiv 2605.20369", own_places=True),
}


def options(name: str) -> dict[str, Any]:
    """The options of the loss called `name` with their defaults."""
    if name not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {name!r}")
    entry = LOSSES[name]
    fixed = getattr(entry.factory, "keywords", {})
    parameters = inspect.signature(entry.factory).parameters.values()
    own = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in fixed}
    return own if entry.own_places else own | {"place": "even", "place_base": 1.2}


def build(name: str, values: Tensor, **chosen: Any) -> NumericLoss:
    """The loss called `name` over (N,) values; an unknown name or option is a ValueError that lists the valid ones."""
    allowed = options(name)
    unknown = sorted(set(chosen) - set(allowed))
    if unknown:
        takes = f"takes the options {', '.join(allowed)}" if allowed else "takes no options"
        raise ValueError(f"loss {name!r} {takes}, got {', '.join(unknown)}")
    own = {option: value for option, value in chosen.items() if option not in _PLACE}
    loss = LOSSES[name].factory(values, **own)
    place, base = (chosen.get(option, allowed.get(option)) for option in _PLACE)
    return loss if place in (None, "even") else PlaceWeighted(loss, place, base)
