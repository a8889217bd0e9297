"""Kernels between numbers: how alike are 7 and 8?

In:  a 1-D tensor of values.   Out: their Gram matrix.   Knows nothing of tokens or models.

Every kernel here is positive semi-definite with entries >= 0 and ones on the diagonal, so that D - K (D the row sums) is
positive semi-definite too. One exception, and it is not ours: `squash`, the released code's map of distances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def distances(values: Tensor) -> Tensor:
    """(N,) values -> (N, N) absolute differences in float64 (SMMD eq. 2)."""
    values = _checked(values)
    return (values[:, None] - values[None, :]).abs()


def chords(values: Tensor, period: float) -> Tensor:
    """(N,) values -> (N, N) straight-line distances on a circle of circumference `period`, float64.

    Near values are as far apart as on the line, `period` - 1 and 0 are neighbours. A value outside 0 <= v < period
    has no place on the circle: infinitely far from everything but its equals. Chords rather than arcs: a Gaussian of chord
    lengths is positive semi-definite for every sigma, one of arc lengths is not.
    """
    if not 0 < period < float("inf"):
        raise ValueError(f"period must be a positive finite number, got {period!r}")
    gaps = distances(values)
    values = values.double()
    off = (values < 0) | (values >= period)
    chord = period / math.pi * torch.sin(math.pi * gaps / period).abs()
    return chord.masked_fill((off[:, None] | off[None, :]) & (gaps > 0), float("inf")).masked_fill(gaps == 0, 0.0)


def squash(gaps: Tensor, factor: float) -> Tensor:
    """(N, N) distances -> the same brought into [1, factor], 0 stays 0: d -> 1 + (d - least) (factor - 1) / (most - least).

    What ntloss and the released SMMD code do (factor 9); the SMMD paper does not mention it. The identity on digits, and
    nearly flat on 0..999: K(9) = .868. No metric in general, so the kernel need not be positive semi-definite.
    """
    if not 1 < factor < float("inf"):
        raise ValueError(f"squash must be a finite number > 1 or null, got {factor!r}")
    away = gaps > 0
    if not away.any():
        return gaps
    least, most = gaps[away].min(), gaps[away].max()
    if most == least:
        return gaps
    return torch.where(away, 1 + (gaps - least) * (factor - 1) / (most - least), gaps)


def gaussian(values: Tensor, sigmas: Sequence[float] = (2.0,)) -> Tensor:
    """(N,) values -> (N, N) float64, the mean over sigmas of exp(-d^2 / (2 sigma^2)) (SMMD eq. 3-4).

    `sigmas` are in units of the values themselves: 2.0 is the paper's choice for digits.
    """
    return gaussian_of(distances(values), sigmas)


def gaussian_of(gaps: Tensor, sigmas: Sequence[float]) -> Tensor:
    """(N, N) distances -> (N, N) the Gaussian kernel of them, averaged over sigmas."""
    return _mixture(lambda sigma: torch.exp(-gaps.square() / (2 * sigma**2)), sigmas)


def laplace_of(gaps: Tensor, sigmas: Sequence[float]) -> Tensor:
    """(N, N) distances -> (N, N) exp(-d / sigma), averaged over sigmas."""
    return _mixture(lambda sigma: torch.exp(-gaps / sigma), sigmas)


def spanning_sigmas(values: Tensor, smallest: float = 2.0, ratio: float = 3.0) -> tuple[float, ...]:
    """Bandwidths smallest, ratio * smallest, ... up to a third of the values' range: (2,) for digits, (2, 6, 18) for 0..59.

    With sigma 2 alone everything beyond 6 is equally far; a clock's minutes and a thousand tokens need wider kernels too.
    """
    values = _checked(values)
    widest = max(float(values.max() - values.min()) / 3, smallest)
    sigmas = [smallest]
    while sigmas[-1] * ratio <= widest:
        sigmas.append(sigmas[-1] * ratio)
    return tuple(sigmas)


def random_values(values: Tensor, seed: int = 42) -> Tensor:
    """(N,) values -> (N,) float64 uniform over the same range: a control whose kernel is PSD and means nothing.

    Differs: the released control raises a +-1 Gram matrix to the fifth power; its negative entries make degrees
    negative and D - K indefinite.
    """
    values = _checked(values)
    generator = torch.Generator().manual_seed(seed)
    share = torch.rand(len(values), generator=generator, dtype=torch.float64)
    return values.min() + share * (values.max() - values.min())


def shuffled(gram: Tensor, seed: int = 42) -> Tensor:
    """(N, N) -> the same kernel on permuted values: a control whose distances mean nothing.

    The permutation moves every index (for N >= 2), so no value keeps its own neighbourhood.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(gram), generator=generator)
    cycle = torch.empty_like(order)
    cycle[order] = order.roll(-1)  # one cycle through all indices: no fixed point
    return gram[cycle][:, cycle]


def _checked(values: Tensor) -> Tensor:
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"values must be a 1-D tensor of at least 2 numbers, got shape {tuple(values.shape)}")
    values = values.double()
    if not values.isfinite().all():
        raise ValueError(f"values must be finite, got {values[~values.isfinite()].tolist()[:5]}; leave inf and nan tokens out")
    return values


def _mixture(kernel: Callable[[float], Tensor], sigmas: Sequence[float]) -> Tensor:
    sigmas = tuple(float(sigma) for sigma in sigmas)
    if not sigmas or not all(0 < sigma < float("inf") for sigma in sigmas):
        raise ValueError(f"sigmas must be one or more positive finite numbers, got {list(sigmas)}")
    return torch.stack([kernel(sigma) for sigma in sigmas]).mean(0)
