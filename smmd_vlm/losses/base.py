"""What every numeric loss is: a module over fixed values that says what it needs and reduces nothing.

    loss(logits (P, N), target (P,), *, log_z (P,) | None, runs | None) -> (P,) float32 (float64 stays)

A term per number (NTIL's) is spread evenly over its positions, so that the sum over positions is the sum over numbers.
The caller owns the denominator.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from smmd_vlm.runs import Runs

LOG_Z, RUNS = "log_z", "runs"


class NumericLoss(nn.Module):
    """Holds the (N,) values; subclasses give `forward` and, where it is not empty, `needs`.

    needs: LOG_Z, the logarithm of the full softmax's denominator (P,), and RUNS, which positions form one number.
    Buffers are fixed by the values, so they are not part of a checkpoint; they are kept in float64 and used in the
    logits' precision.
    """

    values: Tensor

    def __init__(self, values: Tensor, needs: tuple[str, ...] = ()) -> None:
        super().__init__()
        if values.ndim != 1 or len(values) < 2 or not values.isfinite().all():
            raise ValueError(f"values must be a 1-D tensor of at least 2 finite numbers, got {values.tolist()[:5]}")
        self.needs = frozenset(needs)
        self.register_buffer("values", values.double(), persistent=False)

    def forward(self, logits: Tensor, target: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        raise NotImplementedError


def lifted(logits: Tensor) -> Tensor:
    """Logits in float32 at least: half precision would lose the loss's last digits."""
    return logits if logits.dtype == torch.float64 else logits.float()


def given(what: Tensor | Runs | None, name: str) -> Tensor | Runs:
    """`what`, or one sentence on how to get it."""
    if what is None:
        how = {
            LOG_Z: "log_z=logits.logsumexp(-1) over the whole vocabulary",
            RUNS: "runs=objective.runs(labels)",
        }[name]
        raise ValueError(f"this loss needs {name}, got none; pass {how}")
    return what


def log_probabilities(logits: Tensor, log_z: Tensor | None, normaliser: str) -> Tensor:
    """(P, N) logits -> (P, N) log-probabilities: over the number tokens alone, or over the whole vocabulary by log_z."""
    if normaliser == "restricted":
        return logits.log_softmax(-1)
    return logits - given(log_z, LOG_Z).to(logits)[:, None]


def check_normaliser(normaliser: str) -> tuple[str, ...]:
    """`full` or `restricted` -> what a loss with that normaliser needs."""
    if normaliser not in ("full", "restricted"):
        raise ValueError(f"normaliser must be full or restricted, got {normaliser!r}")
    return (LOG_Z,) if normaliser == "full" else ()
