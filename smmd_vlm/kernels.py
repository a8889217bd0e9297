"""Kernels between numbers: how alike are 7 and 8?

In:  a 1-D tensor of values.   Out: their Gram matrix.   Knows nothing of tokens or models.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def distances(values: Tensor) -> Tensor:
    """(N,) values -> (N, N) absolute differences in float64 (SMMD eq. 2)."""
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"values must be a 1-D tensor of at least 2 numbers, got shape {tuple(values.shape)}")
    values = values.double()
    if not values.isfinite().all():
        raise ValueError(f"values must be finite, got {values[~values.isfinite()].tolist()[:5]}; leave inf and nan tokens out")
    return (values[:, None] - values[None, :]).abs()


def gaussian(values: Tensor, sigmas: Sequence[float] = (2.0,)) -> Tensor:
    """(N,) values -> (N, N) float64, the mean over sigmas of exp(-d^2 / (2 sigma^2)); PSD, ones on the diagonal (SMMD eq. 3-4).

    `sigmas` are in units of the values themselves: 2.0 is the paper's choice for digits.
    """
    sigmas = tuple(float(sigma) for sigma in sigmas)
    if not sigmas or not all(0 < sigma < float("inf") for sigma in sigmas):
        raise ValueError(f"sigmas must be one or more positive finite numbers, got {list(sigmas)}")
    squared = distances(values).square()
    return torch.stack([torch.exp(-squared / (2 * sigma**2)) for sigma in sigmas]).mean(0)


def shuffled(gram: Tensor, seed: int = 42) -> Tensor:
    """(N, N) -> the same kernel on permuted values: a control whose distances mean nothing.

    The permutation moves every index (for N >= 2), so no value keeps its own neighbourhood.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(gram), generator=generator)
    cycle = torch.empty_like(order)
    cycle[order] = order.roll(-1)  # one cycle through all indices: no fixed point
    return gram[cycle][:, cycle]
