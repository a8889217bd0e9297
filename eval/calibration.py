"""Does a model know what it does not know? Distributions of a predictions file, each beside its gold value -> calibration.

Coverage:  how often the central 80 % and 95 % intervals hold the gold, beside the probability that the model gives them
           (`expected_coverage`): single values cannot be split, so an interval holds at least its share.
CRPS:      E |X - gold| - E |X - X'| / 2 (Gneiting and Raftery 2007, eq. 21), in the answer's unit, for times in minutes the
           short way round (Grimit et al. 2006); of a point mass it is the absolute error.
Decoders:  the greedy answer, and mode, median and mean of the distribution: share right, mean error.
ECE:       |confidence - share right| of the mode, over ten equal bins of confidence, weighted (Guo et al. 2017, eq. 5).

Intervals, CRPS and decoders are given that the answer is one of the values; how much mass that leaves out is reported.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.intervals import mean_interval, rate_interval

if TYPE_CHECKING:
    from smmd_vlm.distribution import Distribution

SHARES = {"80": 0.8, "95": 0.95}
DECODERS = ("greedy", "mode", "median", "mean")
PARTS = ("mass", "pruned", "other")  # of the probability
BINS = 10
HALF = 0.5  # of the mass: below it the values say little about the answer


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A distribution with mass on some value, its gold value, and the error of the greedy answer (None: it was not read)."""

    distribution: Distribution
    gold: float
    greedy_error: float | None

    @cached_property
    def decoded(self) -> dict[str, float | None]:
        """Mode, median and mean; None for the mean of a circle without a direction."""
        return {name: getattr(self.distribution, name) for name in DECODERS if name != "greedy"}

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        return {name: self.distribution.interval(share) for name, share in SHARES.items()}

    @cached_property
    def crps(self) -> float:
        return self.distribution.expected_distance(self.gold) - self.distribution.spread / 2

    @property
    def confidence(self) -> float:
        """The model's own probability of the mode."""
        return max(self.distribution.probabilities)

    def covered(self, share: str) -> bool:
        return self.distribution.covers(self.intervals[share], self.gold)

    def held(self, share: str) -> float:
        """The probability that the model gives the interval, given a value."""
        return self.distribution.weight_in(self.intervals[share])

    def error(self, decoder: str) -> float | None:
        """How far off, None where the decoder says no number."""
        if decoder == "greedy":
            return self.greedy_error
        value = self.decoded[decoder]
        return None if value is None else self.distribution.distance(value, self.gold)

    def right(self, decoder: str) -> bool:
        """No error; a mean is right when the gold is what it rounds to."""
        error = self.error(decoder)
        return error is not None and error < (0.5 * 10**-self.distribution.decimals if decoder == "mean" else 1e-9)

    def to_row(self) -> dict[str, Any]:
        """What scores.jsonl keeps."""
        intervals = {f"interval_{name}": list(interval) for name, interval in self.intervals.items()}
        parts = {name: getattr(self.distribution, name) for name in PARTS}
        return {**self.decoded, **intervals, "crps": self.crps, "confidence": self.confidence, **parts}


def calibration(
    readings: Sequence[Reading],
    groups: Sequence[Hashable],
    *,
    given: Sequence[tuple[Distribution, Hashable]],
    without: int,
) -> dict[str, Any]:
    """What the readings add up to: report.json's `calibration` (docs/formats.md), `groups` as in eval.intervals.

    given: every row's distribution with its group, also those that make no reading: without mass on any value, or with a
    gold that is no number. without: rows that have none.
    """
    found: dict[str, Any] = {"n": len(readings), "without": without, "unread": len(given) - len(readings)}
    intervals: dict[str, list[float] | None] = {}

    def mean(name: str, values: Sequence[float], of: Sequence[Hashable] = groups, *, rate: bool = False) -> None:
        interval = (rate_interval if rate else mean_interval)(values, of)
        found[name] = float(np.mean(values)) if len(values) else None
        intervals[name] = None if interval is None else list(interval)

    for name in PARTS:
        mean(name, [getattr(distribution, name) for distribution, _ in given], [group for _, group in given])
    found["below_half"] = sum(distribution.mass < HALF for distribution, _ in given)
    for share in SHARES:
        mean(f"coverage_{share}", [reading.covered(share) for reading in readings], rate=True)
        mean(f"expected_coverage_{share}", [reading.held(share) for reading in readings])
    mean("crps", [reading.crps for reading in readings])
    fair = [
        (reading, group)
        for reading, group in zip(readings, groups, strict=True)
        if all(reading.error(decoder) is not None for decoder in DECODERS)
    ]
    found["errors_over"] = len(fair)
    for decoder in DECODERS:
        mean(f"exact_{decoder}", [reading.right(decoder) for reading in readings], rate=True)
        mean(f"error_{decoder}", [reading.error(decoder) for reading, _ in fair], [group for _, group in fair])
    mean("confidence", [reading.confidence for reading in readings])
    found["bins"] = reliability(readings)
    gaps = [each["n"] * abs(each["confidence"] - each["right"]) for each in found["bins"]]
    found["ece"] = sum(gaps) / len(readings) if readings else None
    return found | {"intervals": intervals}


def reliability(readings: Sequence[Reading]) -> list[dict[str, float]]:
    """The occupied bins of confidence, ascending: n, mean confidence, share of modes that are right."""
    bins: dict[int, list[Reading]] = {}
    for reading in readings:
        bins.setdefault(min(int(reading.confidence * BINS), BINS - 1), []).append(reading)
    return [
        {
            "low": place / BINS,
            "high": (place + 1) / BINS,
            "n": len(some),
            "confidence": float(np.mean([reading.confidence for reading in some])),
            "right": float(np.mean([reading.right("mode") for reading in some])),
        }
        for place, some in sorted(bins.items())
    ]


def summary_line(part: dict[str, Any]) -> str:
    """What the numbers are over, and how much probability they leave out."""
    return (
        f"{part['n']} distributions scored; rows without one: {part['without']}, with one that says nothing or has no gold number: "
        f"{part['unread']}. Mean probability on values {part['mass']:.1%}, pruned {part['pruned']:.2%}, other text {part['other']:.2%}; "
        f"rows with less than half on values: {part['below_half']}. Mean errors over the {part['errors_over']} rows that every decoder reads"
    )


def metric_rows(part: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(metric, value, 95 % interval) as text, in the order of reading."""
    shown = []
    for name in _ROWS:
        value, interval = part[name], part["intervals"].get(name)
        show = "{:.4g}".format if name == "crps" or name.startswith("error_") else "{:.1%}".format
        if value is not None:
            shown.append((name, show(value), f"{show(interval[0])} to {show(interval[1])}" if interval else "–"))
    return shown


_ROWS = (
    *(f"{kind}_{share}" for share in SHARES for kind in ("coverage", "expected_coverage")),
    "crps",
    *(f"{what}_{decoder}" for what in ("exact", "error") for decoder in DECODERS),
    "confidence",
    "ece",
)
