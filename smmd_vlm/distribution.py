"""Distribution: what a model holds likely, value by value, where the right answer is a number or a clock time.

`probabilities` are the model's own: with `pruned` (branches too unlikely to follow) and `other` (text that spells none of the
values) they add up to 1. Median, mean, intervals and distances are those given that the answer is one of the values: they
divide by `mass`, which is kept, so that a reader sees how much was left out. On a circle (`period`) they go the short way round.
Standard library only.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

_ROUNDING = 1e-4  # how far from 1 a row's rounded probabilities may add up
_TIE = 1e-9  # of probability: 0.1 + 0.7 reaches 0.8, whatever binary arithmetic says


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """A field of predictions.jsonl; docs/readout.md says what each number means. A bad one is a ValueError."""

    values: tuple[float, ...]  # ascending; for times minutes after 12:00
    probabilities: tuple[float, ...]
    pruned: float
    other: float
    decimals: int = 0  # the values are multiples of 10 ** -decimals
    period: int | None = None  # 720 for times: 0 follows 719

    def __post_init__(self) -> None:
        if len(self.values) != len(self.probabilities):
            raise ValueError(
                f"distribution: expected one probability a value, got {len(self.values)} values and {len(self.probabilities)} probabilities"
            )
        if not all(map(math.isfinite, self.values)) or any(a >= b for a, b in zip(self.values, self.values[1:], strict=False)):
            raise ValueError(f"distribution: expected finite values in ascending order, each once, got {_short(self.values)}")
        parts = (*self.probabilities, self.pruned, self.other)
        if not all(0 <= part <= 1 for part in parts) or abs(math.fsum(parts) - 1) > _ROUNDING:
            raise ValueError(
                f"distribution: expected probabilities, pruned and other between 0 and 1 that add up to 1, got {_short(parts)}, in all {math.fsum(parts):g}"
            )
        if self.decimals < 0:
            raise ValueError(f"distribution: expected decimals >= 0, got {self.decimals}")
        if self.period is not None and not (
            self.period > 0 and all(0 <= value < self.period for value in (*self.values[:1], *self.values[-1:]))
        ):
            raise ValueError(
                f"distribution: expected values from 0 to below the period {self.period}, got {_short(self.values)}"
            )

    @classmethod
    def from_mapping(cls, row: Any) -> Distribution:
        """The object as JSON has it; another shape or type is a ValueError, unknown keys are ignored."""
        if not isinstance(row, Mapping):
            raise ValueError(
                f"distribution: expected an object with values, probabilities, pruned and other, got {type(row).__name__}"
            )
        found: dict[str, Any] = {}
        for name, (kind, needed) in _KINDS.items():
            value = row.get(name)
            if value is None and not needed:
                continue
            items = value if kind is list and isinstance(value, list) else [value]
            numbers = all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in items)
            if not numbers or (kind is list) != isinstance(value, list) or (kind is int and not isinstance(value, int)):
                what = {list: "a list of numbers", int: "a whole number", float: "a number"}[kind]
                raise ValueError(f"distribution: expected {name} as {what}, got {str(value)[:60]}")
            found[name] = tuple(value) if kind is list else value
        return cls(**found)

    @cached_property
    def mass(self) -> float:
        """The probability that the answer is one of the values."""
        return math.fsum(self.probabilities)

    @property
    def mode(self) -> float:
        """The likeliest value; of several the least."""
        return self.values[self.weights.index(max(self.weights))]

    @property
    def median(self) -> float:
        """The value that is least far off on average; of several the least."""
        if self.period is None:
            return _quantile(self.values, self.weights, 0.5)
        distances = self._distances()
        least = min(distances)
        return next(value for value, far in zip(self.values, distances, strict=True) if far <= least + _TIE * self.period)

    @property
    def mean(self) -> float | None:
        """The expected value. On a circle the direction of the mean vector, None where that has no direction (12:00 or 6:00)."""
        if self.period is None:
            return math.fsum(map(math.prod, zip(self.values, self.weights, strict=True)))
        turn = 2 * math.pi / self.period
        x = math.fsum(weight * math.cos(turn * value) for value, weight in zip(self.values, self.weights, strict=True))
        y = math.fsum(weight * math.sin(turn * value) for value, weight in zip(self.values, self.weights, strict=True))
        return None if math.hypot(x, y) < _TIE else round(math.atan2(y, x) / turn, 9) % self.period

    def interval(self, share: float) -> tuple[float, float]:
        """Central interval: from the (1 - share) / 2 quantile to the (1 + share) / 2 quantile, both in it.

        A circle is cut opposite its median; the interval then runs upwards from its first to its second end, maybe past 0.
        """
        if not 0 < share < 1:
            raise ValueError(f"expected a share between 0 and 1, got {share}")
        start = 0 if self.period is None else self.median - self.period / 2
        points = sorted((self._from(start, value), weight) for value, weight in zip(self.values, self.weights, strict=True))
        values, weights = zip(*points, strict=True)
        low, high = (_quantile(values, weights, (1 + side * share) / 2) for side in (-1, 1))
        return (low, high) if self.period is None else ((start + low) % self.period, (start + high) % self.period)

    def covers(self, interval: tuple[float, float], value: float) -> bool:
        """Does the interval hold the value? Ends count."""
        low, high = interval
        return 0 <= self._from(low, value) <= self._from(low, high)

    def weight_in(self, interval: tuple[float, float]) -> float:
        """The probability of the interval, given a value: at least its share, since single values cannot be split."""
        return math.fsum(w for value, w in zip(self.values, self.weights, strict=True) if self.covers(interval, value))

    def probability(self, value: float) -> float:
        """The model's own probability of a value; 0 for one that is not kept."""
        return dict(zip(self.values, self.probabilities, strict=True)).get(value, 0.0)

    def distance(self, a: float, b: float) -> float:
        gap = abs(a - b)
        return gap if self.period is None else min(gap % self.period, -gap % self.period)

    def expected_distance(self, point: float) -> float:
        """E |X - point|, given a value."""
        return math.fsum(w * self.distance(value, point) for value, w in zip(self.values, self.weights, strict=True))

    @property
    def spread(self) -> float:
        """E |X - X'| of two independent draws, given a value."""
        if self.period is not None:
            return math.fsum(map(math.prod, zip(self.weights, self._distances(), strict=True)))
        steps = zip(self.values, self.values[1:], accumulate(self.weights), strict=False)
        return 2 * math.fsum((after - before) * below * (1 - below) for before, after, below in steps)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The probabilities given a value: they add up to 1. Without any mass there is nothing to divide by: a ValueError."""
        if not self.mass > 0:
            raise ValueError("expected a distribution with mass on some value, got none; look at `other` and `pruned`")
        return tuple(probability / self.mass for probability in self.probabilities)

    def _from(self, start: float, value: float) -> float:
        """How far the value lies above `start`, on a circle upwards round."""
        return value - start if self.period is None else (value - start) % self.period

    def _distances(self) -> list[float]:
        """`expected_distance` of every value on the circle, in n log n: sums over its upper and its lower half round."""
        n, period, half = len(self.values), self.period, self.period / 2
        round_ = [*self.values, *(value + period for value in self.values)]
        weight = [0.0, *accumulate([*self.weights, *self.weights])]
        moment = [0.0, *accumulate(map(math.prod, zip(round_, [*self.weights, *self.weights], strict=True)))]
        found = []
        for at, value in enumerate(self.values):
            cut = bisect_right(round_, value + half, at, at + n)
            above = moment[cut] - moment[at] - value * (weight[cut] - weight[at])
            below = (value + period) * (weight[at + n] - weight[cut]) - (moment[at + n] - moment[cut])
            found.append(above + below)
        return found


_KINDS: dict[str, tuple[type, bool]] = {
    "values": (list, True), "probabilities": (list, True), "pruned": (float, True), "other": (float, True),
    "decimals": (int, False), "period": (int, False),
}  # fmt: skip


def _quantile(values: Sequence[float], weights: Sequence[float], share: float) -> float:
    """The least of ascending values at or below which the weights reach `share`."""
    reached = accumulate(weights)
    return next((value for value, sum_ in zip(values, reached, strict=True) if sum_ >= share - _TIE), values[-1])


def _short(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers[:6]) + (", ..." if len(numbers) > 6 else "")
