"""The value axis: where it begins and ends, its ticks, how numbers are written on it. Decimals throughout.

axis = linear_axis([Decimal(12), Decimal(87)], from_zero=True, ticks=5)      -> 0, 20, 40, 60, 80, 100
axis.fraction(Decimal(25))                                                   -> 0.25
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

_NICE = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
SUFFIXES = {0: "", 3: "K", 6: "M", 9: "B"}
MINUS = "\u2212"


@dataclass(frozen=True, kw_only=True)
class ValueAxis:
    low: Decimal
    high: Decimal
    ticks: tuple[Decimal, ...]
    log: bool = False

    @property
    def step(self) -> Decimal:
        """Between two ticks of a linear axis."""
        return self.ticks[1] - self.ticks[0]

    def fraction(self, value: Decimal) -> float:
        """0 at `low`, 1 at `high`."""
        if self.log:
            low = math.log10(self.low)
            return (math.log10(value) - low) / (math.log10(self.high) - low)
        return float((value - self.low) / (self.high - self.low))


def linear_axis(
    numbers: Sequence[Decimal],
    *,
    from_zero: bool,
    ticks: int,
    headroom: float = 0.0,
    open_end: bool = False,
    most: Decimal | None = None,
) -> ValueAxis:
    """An axis over the numbers with about `ticks` ticks; `headroom` is a share of the span left free at the far ends.

    With `open_end` the axis stops after the last number, not at a tick. It never goes past `most` (100 for shares).
    """
    low, high = min(numbers), max(numbers)
    if from_zero:
        low, high = min(low, Decimal(0)), max(high, Decimal(0))
    room = (high - low or abs(high) or Decimal(1)) * Decimal(str(headroom))
    if not from_zero or low < 0:
        low -= room
    if not from_zero or high > 0:
        high += room
    if high == low:
        high = low + 1
    step = _nice_step((high - low) / ticks)
    bottom = _to_step(low, step, ROUND_FLOOR)
    top = _to_step(high, step, ROUND_CEILING)
    end = high + (high - low) * Decimal("0.04") if open_end and high > 0 else top
    if most is not None:
        end = min(end, most) if most >= max(numbers) else end
    marks, at = [], bottom
    while at <= end:
        marks.append(_plain(at))
        at += step
    return ValueAxis(low=_plain(bottom), high=_plain(_to_step(end, step / 100, ROUND_CEILING)), ticks=tuple(marks))


def log_axis(numbers: Sequence[Decimal]) -> ValueAxis:
    """Whole decades around positive numbers, one tick a decade."""
    low, high = math.floor(math.log10(min(numbers)) - 0.05), math.ceil(math.log10(max(numbers)) + 0.05)
    decades = tuple(_plain(Decimal(1).scaleb(power)) for power in range(low, high + 1))
    return ValueAxis(low=decades[0], high=decades[-1], ticks=decades, log=True)


def _nice_step(least: Decimal) -> Decimal:
    unit = Decimal(1).scaleb(least.adjusted())
    return next(step * unit for step in _NICE if step * unit >= least)


def _to_step(value: Decimal, step: Decimal, rounding: str) -> Decimal:
    return (value / step).to_integral_value(rounding=rounding) * step


def _plain(number: Decimal) -> Decimal:
    number = number.normalize() + 0
    return number.quantize(Decimal(1)) if number.as_tuple().exponent > 0 else number


@dataclass(frozen=True, kw_only=True)
class NumberStyle:
    """How numbers are written on a chart."""

    form: str  # plain, comma, space, suffix, scientific
    before: str = ""  # a currency sign
    after: str = ""  # "%", "K", "M"
    minus: str = "-"

    def ticks(self, axis: ValueAxis) -> list[str]:
        if self.form == "scientific":
            digits = max(
                (len(str(abs(int(tick.normalize().scaleb(-tick.normalize().as_tuple().exponent)))))) for tick in axis.ticks
            )
            return [self._scientific(tick, max(digits - 1, 1)) for tick in axis.ticks]
        if axis.log:
            return [self.write(tick) for tick in axis.ticks]
        decimals = max(0, *(-tick.as_tuple().exponent for tick in axis.ticks))
        return [self.write(tick, decimals) for tick in axis.ticks]

    def write(self, number: Decimal, decimals: int | None = None) -> str:
        """The number with all its digits, or with `decimals` places (no fewer than it has)."""
        digits = format(abs(number), ",f" if decimals is None else f",.{decimals}f")
        if self.form == "space":
            digits = digits.replace(",", "\u00a0")
        elif self.form != "comma":
            digits = digits.replace(",", "")
        return f"{self.minus if number < 0 else ''}{self.before}{digits}{self.after}"

    def _scientific(self, number: Decimal, digits: int) -> str:
        mantissa, _, exponent = format(abs(number), f".{digits}e").partition("e")
        power = int(exponent) if number else 0
        return f"{self.minus if number < 0 else ''}{self.before}{mantissa}e{'+' if power >= 0 else '-'}{abs(power)}{self.after}"
