"""The numeric losses by name: `build("smmd", values, sigmas=(2.0,))` -> a module.

A loss: loss(logits (P, N), target (P,)) -> (P,), unreduced, float32; the caller owns the denominator, so gradient
accumulation cannot change what lambda means. A loss knows values, never tokens.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from torch import Tensor, nn

from smmd_vlm.losses.smmd import SMMDLoss

LOSSES: dict[str, Any] = {
    "smmd": SMMDLoss,
    "brier": partial(SMMDLoss, kernel="identity"),
}


def build(name: str, values: Tensor, **options: Any) -> nn.Module:
    """The loss called `name` over (N,) values; an unknown name or option is a ValueError that lists the valid ones."""
    if name not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {name!r}")
    signature = inspect.signature(LOSSES[name])
    fixed = getattr(LOSSES[name], "keywords", {})
    allowed = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY and p.name not in fixed]
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        raise ValueError(f"loss {name!r} takes the options {', '.join(allowed)}, got {', '.join(unknown)}")
    return LOSSES[name](values, **options)
