"""95 % intervals for rates, means and medians, clustered by group where several rows share one image.

Rates:   Wilson's score interval (Wilson 1927), never empty at 0 or 100 %. With clusters, n is divided by the design effect,
         the ratio of the cluster-robust variance to the binomial one (Kish 1965; Miller 2024, arXiv 2411.00640), never below 1:
         clustering may widen an interval, it does not narrow it.
Medians: Woodruff (1952): the interval of the rate at one half, read off the sorted values.
Means:   percentile bootstrap over the groups, fixed seed; over 2,000 groups the same by the normal approximation.
Few groups: the normal quantile is replaced by Student's, with (number of groups - 1) degrees of freedom.
Nothing here covers the noise of training; it says how far the test samples alone could move the number.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
RESAMPLES = 2000
_MANY_GROUPS = 2000


class Interval(NamedTuple):
    low: float
    high: float


def wilson(right: float, n: float, *, confidence: float = CONFIDENCE, z: float | None = None) -> Interval:
    """Score interval of a rate; `n` may be an effective number of samples."""
    if not n > 0 or not 0 <= right <= n:
        raise ValueError(f"wilson needs 0 <= right <= n and n > 0, got right={right!r}, n={n!r}")
    z = NormalDist().inv_cdf((1 + confidence) / 2) if z is None else z
    rate = right / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # at 0 and 100 % the bound is the rate itself; rounding must not push it past
    return Interval(0.0 if right == 0 else max(0.0, centre - half), 1.0 if right == n else min(1.0, centre + half))


def rate_interval(
    verdicts: Sequence[bool], groups: Sequence[Hashable] | None = None, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Interval of the share of true verdicts; None for no rows."""
    values = np.asarray(verdicts, dtype=float)
    if not len(values):
        return None
    codes, n_groups = group_codes(groups, len(values))
    return _rate(values, codes, n_groups, confidence)


def median_interval(
    values: Sequence[float], groups: Sequence[Hashable] | None = None, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Interval of the median; None for no rows."""
    array = np.asarray(values, dtype=float)
    if not len(array):
        return None
    codes, n_groups = group_codes(groups, len(array))
    ordered = np.sort(array)
    # the share at or below the median is not one half when many values tie: the interval is centred on one half all the same
    below = (array <= ordered[(len(ordered) - 1) // 2]).astype(float)
    n = len(array) / _design_effect(below, codes, n_groups)
    low, high = wilson(n / 2, n, z=_quantile(n_groups, len(array), confidence))
    first = max(0, math.floor(low * len(ordered)) - 1)
    last = min(len(ordered) - 1, math.ceil(high * len(ordered)))
    return Interval(float(ordered[first]), float(ordered[last]))


def mean_interval(
    values: Sequence[float], groups: Sequence[Hashable] | None = None, *, confidence: float = CONFIDENCE, seed: int = 0
) -> Interval | None:
    """Interval of the mean; None for no rows or a single group, which says nothing about its own spread."""
    array = np.asarray(values, dtype=float)
    if not len(array):
        return None
    codes, n_groups = group_codes(groups, len(array))
    if n_groups < 2:
        return None
    size = float(np.abs(array).max()) or 1.0  # in units of the largest: squares of huge errors would overflow
    sums = np.bincount(codes, weights=array / size, minlength=n_groups)
    sizes = np.bincount(codes, minlength=n_groups)
    mean = sums.sum() / sizes.sum()
    if n_groups > _MANY_GROUPS:
        spread = math.sqrt(np.square(sums - mean * sizes).sum() * n_groups / (n_groups - 1)) / sizes.sum()
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        return Interval(float(mean - z * spread) * size, float(mean + z * spread) * size)
    drawn = np.random.default_rng(seed).integers(n_groups, size=(RESAMPLES, n_groups))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low) * size, float(high) * size)


def student_quantile(probability: float, freedom: int) -> float:
    """Student's t quantile to about 1 % for 3 degrees of freedom and better above (Hill 1970, by Cornish and Fisher's series);
    exact for 1 and 2."""
    if freedom == 1:
        return math.tan(math.pi * (probability - 0.5))
    if freedom == 2:
        return (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    z = NormalDist().inv_cdf(probability)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * freedom**4)
    )


def _rate(values: np.ndarray, codes: np.ndarray, n_groups: int, confidence: float) -> Interval:
    n = len(values) / _design_effect(values, codes, n_groups)
    return wilson(float(values.mean()) * n, n, z=_quantile(n_groups, len(values), confidence))


def _design_effect(values: np.ndarray, codes: np.ndarray, n_groups: int) -> float:
    """Cluster-robust variance over binomial variance, at least 1; rows per group where every verdict is the same."""
    n, rate = len(values), values.mean()
    if n_groups == n:
        return 1.0
    if rate in (0.0, 1.0) or n_groups < 2:
        return n / n_groups  # nothing to estimate from: count groups, not rows
    residuals = np.bincount(codes, weights=values - rate, minlength=n_groups)
    robust = np.square(residuals).sum() / n**2 * n_groups / (n_groups - 1)
    return float(min(max(1.0, robust / (rate * (1 - rate) / n)), n))


def _quantile(n_groups: int, n: int, confidence: float) -> float:
    probability = (1 + confidence) / 2
    if n_groups == n or n_groups < 2:  # Wilson's own interval needs no correction
        return NormalDist().inv_cdf(probability)
    return student_quantile(probability, n_groups - 1)


def group_codes(groups: Sequence[Hashable] | None, n: int) -> tuple[np.ndarray, int]:
    """Group numbers from 0; a missing group (None or empty) is a group of its own."""
    if groups is None:
        return np.arange(n), n
    if len(groups) != n:
        raise ValueError(f"groups must have one entry a row, got {len(groups)} for {n} rows")
    numbers: dict[Hashable, int] = {}
    codes = np.empty(n, dtype=np.int64)
    for row, group in enumerate(groups):
        key = ("row", row) if group is None or group == "" else ("group", group)
        codes[row] = numbers.setdefault(key, len(numbers))
    return codes, len(numbers)
