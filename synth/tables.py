"""The numbers behind a chart: a table of exact decimals about an invented subject.

In:  a random stream and what the chart needs (kind of axis, how many series and places, which sort of numbers).
Out: a `Table`. Magnitudes are log-uniform from 1e-3 to 1e9; numbers are rounded to two to four digits of the largest one, as a
publisher would, and rounding is done last, so that what is printed is what is stored. No two numbers of a series are equal.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Literal

from synth.chart_courses import across, along
from synth.chart_words import MONTHS, PLACES, SCALES, SUBJECTS, THINGS, Quantity, Subject, Things

Axis = Literal["category", "year", "month", "number"]
SCALE_WORDS = {0: "", 3: "thousand", 6: "million", 9: "billion"}


@dataclass(frozen=True, kw_only=True)
class Series:
    name: str  # "" for the only one
    values: tuple[Decimal | None, ...]  # None: missing


@dataclass(frozen=True, kw_only=True)
class Table:
    """`values` are in units of the axis: 2.4 where the axis says `million euros` or prints `2.4M`."""

    measure: str  # as in the middle of a sentence
    quantity: Quantity
    unit: str  # "million euros", "%", ""
    scale: int  # decades that a suffix or scale word stands for; 0 when numbers are written out
    axis: Axis
    x_name: str  # "Year", "Country", "Distance (km)"
    x_things: Things | None  # on a category axis
    x: tuple[str, ...]  # as printed
    x_values: tuple[Decimal, ...] | None  # years and numbers
    of: str  # whom a table over time is about when it has one series: "Norway"; "" when nobody is named
    of_things: Things | None
    series_things: Things | None
    series: tuple[Series, ...]
    decimals: int  # places after the point that are kept

    @property
    def step(self) -> Decimal:
        """One unit in the last place."""
        return Decimal(1).scaleb(-self.decimals)

    @property
    def numbers(self) -> list[Decimal]:
        return [value for series in self.series for value in series.values if value is not None]

    @property
    def has_ties(self) -> bool:
        return any(len({v for v in s.values if v is not None}) < sum(v is not None for v in s.values) for s in self.series)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the chart that is to be drawn asks of its table."""

    axis: Axis
    places: int
    series: int
    parts: Literal["none", "stack", "hundred"]  # do the series of one place add up?
    negative: bool = False
    missing: bool = False
    high_base: bool = False  # far from zero with little between them
    wide: bool = False  # over several decades, for a logarithmic axis
    suffix: bool = False  # ticks end in K, M or bn, so numbers are in thousands, millions or billions
    long_names: bool = False


def make_table(rng: random.Random, wanted: Wanted) -> Table:
    magnitude = rng.uniform(-3, 9)
    subject = _subject(rng, wanted, magnitude)
    # The magnitude that was drawn, or, when no subject goes with it, the nearest that this subject allows.
    magnitude = min(max(magnitude, subject.low), subject.high)
    if subject.quantity == "count":
        magnitude = max(magnitude, 1.6)  # so that whole people differ
    kind = rng.choice(subject.things)
    things = THINGS[kind]
    scale, unit = _unit(rng, subject, wanted, magnitude)
    if wanted.axis == "number":
        return _along_a_scale(rng, wanted, magnitude)
    x_things = things if wanted.axis == "category" else None
    others = [each for each in subject.groups if each != kind and not (kind in PLACES and each in PLACES)]
    groups = [THINGS[each] for each in others or ["sector" if kind in PLACES else "country"]]
    series_things = (rng.choice(groups) if x_things else things) if wanted.series > 1 else None
    if series_things and len(series_things.names) < wanted.series:
        series_things = THINGS["sector" if kind in PLACES else "country"]
    x, x_values, x_name = _places(rng, wanted, x_things)
    names = _pick(rng, series_things, wanted.series, wanted.long_names) if series_things else ("",)
    of = "" if x_things or series_things else rng.choice(_names(things, wanted.long_names))
    # The numbers as they stand on the axis: in units of 10^scale, which do not change how many digits they have.
    whole = subject.quantity == "count" and scale == 0
    rows, decimals = _numbers(rng, wanted, "whole" if whole else subject.quantity, magnitude - scale, len(x))
    return Table(
        measure=subject.measure, quantity=subject.quantity, unit=unit, scale=scale, axis=wanted.axis, x_name=x_name, x_things=x_things,
        x=x, x_values=x_values, of=of, of_things=things if of else None, series_things=series_things,
        series=tuple(Series(name=name, values=row) for name, row in zip(names, rows, strict=True)), decimals=decimals,
    )  # fmt: skip


def _subject(rng: random.Random, wanted: Wanted, magnitude: float) -> Subject:
    """A subject that goes with the kind of chart and, but for shares, with the magnitude."""
    if wanted.parts == "hundred":
        fitting = [each for each in SUBJECTS if each.measure.startswith("share of") and each.groups]
    elif wanted.parts == "stack":
        fitting = [
            each
            for each in SUBJECTS
            if each.quantity in ("money", "count", "amount") and not each.measure.startswith("average")
        ]
        fitting = [each for each in fitting if each.groups]
    elif wanted.negative:
        fitting = [each for each in SUBJECTS if each.quantity == "signed"]
    elif wanted.suffix or wanted.wide:
        fitting = [each for each in SUBJECTS if each.quantity in ("money", "count", "amount")]
    elif rng.random() < 0.25:
        fitting = [each for each in SUBJECTS if each.quantity == "percent"]
    else:
        fitting = [each for each in SUBJECTS if each.quantity not in ("percent", "signed")]
    within = [each for each in fitting if each.low <= magnitude <= each.high]
    return rng.choice(within or fitting)


def _unit(rng: random.Random, subject: Subject, wanted: Wanted, magnitude: float) -> tuple[int, str]:
    """(decades in the unit, the unit in words)."""
    unit = rng.choice(subject.units)
    scale = 0
    if subject.quantity in ("money", "count", "amount", "signed") and unit != "degrees Celsius":
        fitting = [decades for decades in (3, 6) if decades <= magnitude - 0.3]
        if fitting and (wanted.suffix or rng.random() < 0.4):
            scale = fitting[-1] if wanted.suffix else rng.choice(fitting)
    if subject.quantity in ("money", "signed") and unit != "degrees Celsius" and magnitude < 0.5:
        # Nobody earns 0.002 euros a year, but 0.002 billion: the number stays, the unit grows.
        return 0, f"{rng.choice(('million', 'billion'))} {unit}"
    word = SCALE_WORDS[scale]
    if not unit:
        return scale, f"{word}s" if word else ""
    return scale, f"{word} {unit}" if word else unit


def _places(
    rng: random.Random, wanted: Wanted, things: Things | None
) -> tuple[tuple[str, ...], tuple[Decimal, ...] | None, str]:
    if things is not None:
        names = _pick(rng, things, wanted.places, wanted.long_names)
        return names, None, things.singular.capitalize()
    if wanted.axis == "month":
        start = rng.randrange(len(MONTHS) - min(wanted.places, 12) + 1)
        months = MONTHS[start : start + wanted.places]
        short = rng.random() < 0.5
        return tuple(month[:3] if short else month for month in months), None, "Month"
    gap = rng.choice((1, 1, 1, 1, 2, 5)) if wanted.places <= 12 else 1
    start = rng.randint(1900 if gap > 1 else 1960, 2030 - gap * (wanted.places - 1))
    years = [start + gap * k for k in range(wanted.places)]
    return tuple(map(str, years)), tuple(map(Decimal, years)), "Year"


def _names(things: Things, long_names: bool) -> list[str]:
    fitting = [name for name in things.names if long_names or len(name) <= 14]
    return fitting or list(things.names)


def _pick(rng: random.Random, things: Things, count: int, long_names: bool) -> tuple[str, ...]:
    names = _names(things, long_names)
    if len(names) < count:
        names = list(things.names)
    if things.ordered:
        start = rng.randrange(len(names) - count + 1) if len(names) > count else 0
        return tuple(names[start : start + count])
    return tuple(rng.sample(names, min(count, len(names))))


def _numbers(
    rng: random.Random, wanted: Wanted, quantity: str, magnitude: float, places: int
) -> tuple[list[tuple[Decimal | None, ...]], int]:
    """Rounded numbers, one row a series, and how many decimals they keep."""
    ordered = wanted.axis != "category"
    if wanted.parts == "hundred":
        decimals = rng.choice((0, 0, 1))
        columns = [_shares(rng, wanted.series, decimals) for _ in range(places)]
        return [tuple(column[k] for column in columns) for k in range(wanted.series)], decimals
    if quantity == "percent":
        top = rng.uniform(8, 96)
        decimals = rng.choice((0, 1, 1, 2)) if top < 60 else rng.choice((0, 0, 1))
    else:
        top = 10**magnitude
        decimals = _decimals(rng, top, whole=quantity == "whole")
    first = [
        along(rng, places, high_base=wanted.high_base)
        if ordered
        else across(rng, places, wide=wanted.wide, high_base=wanted.high_base)
        for _ in range(wanted.series)
    ]
    if wanted.wide and ordered:
        span = rng.uniform(2.2, 4)
        first = [[10 ** (span * (value - 1)) for value in row] for row in first]
    sizes = [rng.uniform(0.35, 1) for _ in first]
    if wanted.parts == "stack":
        sizes = [rng.uniform(0.5, 1) / wanted.series for _ in first]
    if wanted.high_base:
        sizes = [rng.uniform(0.8, 1) for _ in first]
    sizes[rng.randrange(len(sizes))] = 1.0 if wanted.parts == "none" else 1.0 / wanted.series
    rows = [[top * size * value for value in row] for row, size in zip(first, sizes, strict=True)]
    if wanted.negative:
        shift = rng.uniform(0.2, 0.6) * top
        rows = [[value - shift for value in row] for row in rows]
    rounded = [_distinct([_rounded(value, decimals) for value in row], decimals, not wanted.negative) for row in rows]
    if wanted.missing:
        for row in rounded:
            if places > 4 and rng.random() < 0.7:
                row[rng.randrange(1, places - 1)] = None
    return [tuple(row) for row in rounded], decimals


def _decimals(rng: random.Random, top: float, *, whole: bool) -> int:
    """Places kept: two to four digits of the largest number; people are counted whole."""
    digits = rng.choice((2, 3, 3, 4))
    decimals = digits - 1 - math.floor(math.log10(top))
    if whole:
        return 0 if top < 1e6 else max(min(decimals, 0), -3)
    return decimals if decimals >= 0 or top >= 1e6 else 0  # large numbers are given to the last one, up to six digits


def _rounded(value: float, decimals: int) -> Decimal:
    """To `decimals` places, or, below zero, to tens, thousands ...; always written without an exponent."""
    number = Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN)
    return plain(number)


def plain(number: Decimal) -> Decimal:
    """The same number with an exponent of at most zero, so that it prints as digits."""
    return number.quantize(Decimal(1)) if number.as_tuple().exponent > 0 else number + 0


def _distinct(values: list[Decimal], decimals: int, positive: bool) -> list[Decimal | None]:
    """Equal or vanishing values (and, where all are to be positive, negative ones) moved by single steps until all differ."""
    step, seen, out = Decimal(1).scaleb(-decimals), set(), []
    for value in values:
        while value in seen or value == 0 or (positive and value < 0):
            value = plain(value + step)
        seen.add(value)
        out.append(value)
    return out


def _shares(rng: random.Random, parts: int, decimals: int) -> list[Decimal]:
    """Random shares of 100, none below 4, that add up to 100 exactly."""
    weights = [rng.uniform(0.25, 1) ** 1.5 for _ in range(parts)]
    total, steps = sum(weights), 100 * 10**decimals
    floor = 4 * 10**decimals
    whole = [floor + int((steps - parts * floor) * weight / total) for weight in weights]
    whole[max(range(parts), key=weights.__getitem__)] += steps - sum(whole)
    return [Decimal(each).scaleb(-decimals) for each in whole]


def _along_a_scale(rng: random.Random, wanted: Wanted, magnitude: float) -> Table:
    scale = rng.choice(SCALES)
    measure, unit = rng.choice(scale.measures)
    magnitude = min(max(magnitude, -2.0), 4.0)
    at = [plain((scale.start + scale.step * k).normalize()) for k in range(wanted.places)]
    things = THINGS["sample"] if wanted.series > 1 else None
    names = _pick(rng, things, wanted.series, False) if things else ("",)
    rows, decimals = _numbers(rng, wanted, "amount", magnitude, len(at))
    return Table(
        measure=measure, quantity="amount", unit=unit, scale=0, axis="number", x_name=f"{scale.name.capitalize()} ({scale.unit})",
        x_things=None, x=tuple(format(value, "f") for value in at), x_values=tuple(at), of="", of_things=None, series_things=things,
        series=tuple(Series(name=name, values=row) for name, row in zip(names, rows, strict=True)), decimals=decimals,
    )  # fmt: skip
