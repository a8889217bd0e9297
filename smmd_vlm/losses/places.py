"""Place weights: any per-position loss, with more weight on a number's leading tokens.

    linear      n, n - 1, ... 1 from the left (public DIST2 code)
    geometric   base^(n - 1), ... base, 1 from the left (NTIL's weighting)
scaled so that the weights of every number average 1: what a number costs in all, and so what the weight of the
numeric term means, does not grow with its length.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from smmd_vlm.losses.base import RUNS, NumericLoss, given
from smmd_vlm.runs import Runs

Place = Literal["even", "linear", "geometric"]


def place_weights(runs: Runs, place: Place, base: float = 1.2) -> Tensor:
    """-> (P,) float32 weights of each position, averaging 1 over each number."""
    if place == "linear":
        weight = (runs.length - runs.index).float()
        return weight * runs.length / runs.total(weight)
    # from the left, base^-index: at most 1 for base >= 1, where base^(n - 1) of a long number would overflow
    weight = base ** -runs.index.float()
    return weight * runs.length / runs.total(weight)


class PlaceWeighted(NumericLoss):
    """`loss` times place_weights."""

    def __init__(self, loss: NumericLoss, place: Place, base: float) -> None:
        if place not in ("linear", "geometric"):
            raise ValueError(f"place must be even, linear or geometric, got {place!r}")
        if not 1 <= base < float("inf"):
            raise ValueError(f"place_base must be a finite number >= 1, got {base!r}")
        super().__init__(loss.values, (*loss.needs, RUNS))
        self.loss, self.place, self.base = loss, place, float(base)

    def forward(self, logits: Tensor, target: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        """(P, N) logits, (P,) target column, runs -> (P,)."""
        weights = place_weights(given(runs, RUNS), self.place, self.base)
        return self.loss(logits, target, log_z=log_z, runs=runs) * weights
