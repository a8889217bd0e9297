"""What a careful reader can see: every number with how far off an honest reading may be.

A number printed beside its mark is exact. Otherwise it is read off the axis, to a twentieth of the distance between two ticks,
and never finer than a pixel and a half or the width of the line; a part of a stack has two ends to read. On a logarithmic axis the same holds in decades.
Sums of readings have the sums of their slacks. An answer is rounded to the power of ten below its slack, never finer than it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from synth.chart_maker import Made

FINEST_PX = Decimal("1.5")
PARTS_OF_A_STEP = 20
_TWO_DIGITS = Context(prec=2, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Seen:
    """An exact number and how far off a reading of it may be; 0 when it is printed or counted."""

    exact: Fraction
    slack: Decimal

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.exact + other.exact, self.slack + other.slack)

    def __sub__(self, other: Seen) -> Seen:
        return Seen(self.exact - other.exact, self.slack + other.slack)

    def over(self, other: Seen) -> Seen:
        """The quotient of two positive readings."""
        quotient = self.exact / other.exact
        worst = (_fraction(self.slack) + quotient * _fraction(other.slack)) / other.exact
        return Seen(quotient, _up(worst))

    def times(self, factor: int | Fraction) -> Seen:
        return Seen(self.exact * factor, _up(_fraction(self.slack) * abs(factor)))

    def surely_above(self, other: Seen) -> bool:
        return self.exact - other.exact > _fraction(self.slack + other.slack)

    @property
    def worth_asking(self) -> bool:
        """Could a reader tell it from nothing at all?"""
        return abs(self.exact) >= 2 * _fraction(self.slack)

    @property
    def readable(self) -> bool:
        """Is the slack small beside it? What is worked out from readings must be, or the answer would be noise."""
        return abs(self.exact) >= 4 * _fraction(self.slack)


def total(numbers: Sequence[Seen]) -> Seen:
    return Seen(sum((n.exact for n in numbers), Fraction(0)), sum((n.slack for n in numbers), Decimal(0)))


def mean(numbers: Sequence[Seen]) -> Seen:
    return total(numbers).times(Fraction(1, len(numbers)))


def median(numbers: Sequence[Seen]) -> Seen:
    ordered = sorted(numbers, key=lambda n: n.exact)
    half = len(ordered) // 2
    middle = ordered[half : half + 1] if len(ordered) % 2 else ordered[half - 1 : half + 1]
    return Seen(mean(middle).exact, max(n.slack for n in ordered))


def seen(made: Made, series: int, place: int) -> Seen | None:
    """The number of one mark as the picture shows it; None when it is missing."""
    value = made.table.series[series].values[place]
    if value is None:
        return None
    return Seen(Fraction(value), Decimal(0) if made.chart.printed[series][place] else mark_slack(made, series, value))


def mark_slack(made: Made, series: int, value: Decimal) -> Decimal:
    """How far off a mark may be read when nothing is printed beside it: both ends of a part that stands on another."""
    slack = axis_slack(made, value)
    return 2 * slack if made.chart.look.stacked and series > 0 else slack


def axis_slack(made: Made, value: Decimal) -> Decimal:
    """How far off a mark that starts at the axis may be read at this value."""
    plot, look = made.chart.plot, made.chart.look
    finest_px = FINEST_PX
    if look.lines:
        stroke_px = Decimal(str(look.line_px)) * int(made.choices["dpi"]) / 100
        finest_px = max(FINEST_PX, round(stroke_px, 2))
    if plot.axis.log:
        low, high = plot.value_px
        decades = math.log10(plot.axis.high / plot.axis.low)
        off = max(float(finest_px) * decades / abs(high - low), 1 / (2 * PARTS_OF_A_STEP))
        return _up(Fraction(value) * Fraction(str(round(10**off - 1, 4))))
    return _up(max(Fraction(plot.axis.step) / PARTS_OF_A_STEP, Fraction(finest_px * plot.value_per_px)))


def round_seen(number: Seen, places: int) -> tuple[Decimal, Decimal]:
    """(what is to be answered, the step it is rounded to).

    A reading is rounded to the power of ten at or below its slack; an exact number to `places` decimals, where it has more.
    """
    step = Decimal(1).scaleb(number.slack.adjusted() if number.slack else -places)
    own = _own_step(number.exact)
    if own is not None and own >= step:
        return _decimal(number.exact, own), own
    return _decimal(number.exact, step), step


def _own_step(number: Fraction) -> Decimal | None:
    """The last place of a number that ends, None for one that does not."""
    for places in range(13):
        if (number * 10**places).denominator == 1:
            return Decimal(1).scaleb(-places)
    return None


def _decimal(number: Fraction, step: Decimal) -> Decimal:
    """Half-even to whole steps; printed without an exponent."""
    steps = Decimal(round(number / Fraction(step)))  # Fraction's round is half-even
    return (steps * step).quantize(min(step, Decimal(1)), rounding=ROUND_HALF_EVEN) + 0


def _fraction(number: Decimal) -> Fraction:
    return Fraction(number)


def _up(number: Fraction) -> Decimal:
    """Two digits, rounded up."""
    return _TWO_DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator)) + 0 if number else Decimal(0)
