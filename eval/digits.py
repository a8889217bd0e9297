"""Which digit was read as which: gold and predicted digits at the same place of the same number.

In:  pairs of values.   Out: counts per place and a confusion table. A numeric loss promises that a wrong digit is a near one;
this is where it would show. Places are powers of ten, or the four digits of HH:MM; `–` means that the prediction has none there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from smmd_vlm.numerals import write_number, write_time

NONE = "–"
MOST_PLACES = 9  # leading places of a gold number that are looked at
TIME_PLACES = ("hour tens", "hour units", "minute tens", "minute units")


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Counts of (gold digit, predicted digit), all places together, and of (right, all) at each place."""

    pairs: Counter[tuple[str, str]]
    places: dict[str, tuple[int, int]]

    @property
    def n(self) -> int:
        return self.pairs.total()


def confusion(values: Iterable[tuple[float, float]], *, times: bool) -> Confusion:
    """(gold, predicted) values -> what was read as what; times are minutes after 12:00."""
    pairs: Counter[tuple[str, str]] = Counter()
    right: Counter[str] = Counter()
    all_: Counter[str] = Counter()
    for gold, predicted in values:
        for place, a, b in time_digits(gold, predicted) if times else number_digits(gold, predicted):
            pairs[a, b] += 1
            all_[place] += 1
            right[place] += a == b
    order = TIME_PLACES if times else sorted(all_, key=_power, reverse=True)
    return Confusion(pairs=pairs, places={place: (right[place], all_[place]) for place in order if all_[place]})


def time_digits(gold: float, predicted: float) -> list[tuple[str, str, str]]:
    """(place, gold digit, predicted digit) of HH:MM, seconds dropped."""
    texts = [write_time(int(value) % 720).replace(":", "") for value in (gold, predicted)]
    return list(zip(TIME_PLACES, *texts, strict=True))


def number_digits(gold: float, predicted: float) -> list[tuple[str, str, str]]:
    """The same at the places that the gold number has; signs are another scorer's matter."""
    want, got = _by_place(gold), _by_place(predicted)
    return [(f"10^{power}", digit, got.get(power, NONE)) for power, digit in list(want.items())[:MOST_PLACES]]


def _by_place(value: float) -> dict[int, str]:
    """Power of ten -> digit, the largest first."""
    whole, _, rest = write_number(abs(value)).partition(".")
    return {power: digit for power, digit in zip(range(len(whole) - 1, -len(rest) - 1, -1), whole + rest, strict=True)}


def _power(place: str) -> int:
    return int(place.removeprefix("10^"))
