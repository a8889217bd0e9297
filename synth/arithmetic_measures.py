"""Modules about the size of numbers: rounding, digits, comparing, sorting, units and spans of time."""

from __future__ import annotations

import math
from fractions import Fraction

from synth.arithmetic_numbers import digit_count, places_of, write
from synth.arithmetic_problem import Draw, Module, Problem, listed

ORDINALS = (
    "",
    "second ",
    "third ",
    "fourth ",
    "fifth ",
    "sixth ",
    "seventh ",
    "eighth ",
    "ninth ",
    "tenth ",
    "eleventh ",
    "twelfth ",
)
DAY_MIN = 24 * 60
# What a digit counts, from the units to the left and from the tenths to the right.
_WHOLE = ("unit", "ten", "hundred", "thousand", "ten thousand", "hundred thousand", "million", "ten million", "hundred million",
          "billion", "ten billion", "hundred billion")  # fmt: skip
_PARTS = ("tenth", "hundredth", "thousandth", "ten-thousandth", "hundred-thousandth", "millionth")
_UNITS = (
    ("kilometre", "metre", 1000), ("metre", "centimetre", 100), ("metre", "millimetre", 1000), ("centimetre", "millimetre", 10),
    ("tonne", "kilogram", 1000), ("kilogram", "gram", 1000), ("litre", "millilitre", 1000), ("litre", "centilitre", 100),
    ("week", "day", 7), ("day", "hour", 24), ("hour", "minute", 60), ("minute", "second", 60), ("year", "month", 12),
)  # fmt: skip


def round_off(draw: Draw) -> Problem | None:
    """To a power of ten that drops a digit; never half-way between two answers."""
    number = draw.number()
    places = places_of(number)
    powers = range(1 - places, digit_count(write(number)) - places)
    if not powers:
        return None
    power = draw.rng.choice(powers)
    step = Fraction(10) ** power
    steps = number / step + Fraction(1, 2)
    if steps.denominator == 1:
        return None
    if power < 0:
        to = "1 decimal place" if power == -1 else f"{-power} decimal places"
    else:
        to = f"the nearest {'whole number' if power == 0 else _WHOLE[power]}"
    return Problem(
        operands=(number, to), answer=math.floor(steps) * step,
        wordings=(f"Round {write(number)} to {to}.", f"What is {write(number)} rounded to {to}?", f"Give {write(number)} to {to}."),
    )  # fmt: skip


def place(draw: Draw) -> Problem | None:
    number = draw.magnitude()
    text = write(number)
    places, digits = places_of(number), digit_count(text)
    if digits < 2:
        return None
    power = draw.rng.randrange(-places, digits - places)
    name = (_PARTS[-power - 1] if power < 0 else _WHOLE[power]) + "s"
    return Problem(
        operands=(number, name), answer=int(text.replace(".", "")[-1 - places - power]),
        wordings=(f"What is the {name} digit of {text}?", f"Which digit of {text} counts {name}?", f"Name the {name} digit of {text}."),
    )  # fmt: skip


def compare(draw: Draw) -> Problem | None:
    a = draw.number()
    b = draw.near(a)
    if a == b:
        return None
    which = draw.rng.choice(("larger", "smaller"))
    return Problem(
        operands=(a, b, which), same=(*sorted((a, b)), which), answer=max(a, b) if which == "larger" else min(a, b),
        wordings=(
            f"Which is {which}: {write(a)} or {write(b)}?", f"Which of {write(a)} and {write(b)} is {which}?",
            f"What is the {which} of {write(a)} and {write(b)}?",
        ),
    )  # fmt: skip


def nearest(draw: Draw) -> Problem | None:
    target = draw.number()
    items = tuple(draw.near(target) for _ in range(draw.count()))
    gaps = sorted(abs(item - target) for item in items)
    if len(set(items)) < len(items) or gaps[0] == gaps[1] or gaps[0] == 0:
        return None
    return Problem(
        operands=(target, *items), same=(target, *sorted(items)), answer=min(items, key=lambda item: abs(item - target)),
        length=len(items),
        wordings=(
            f"Which of {listed(items)} is nearest to {write(target)}?", f"Which number is closest to {write(target)}: {listed(items)}?",
            f"Find the one nearest to {write(target)} among {listed(items)}.",
        ),
    )  # fmt: skip


def kth(draw: Draw) -> Problem | None:
    items = tuple(draw.number() for _ in range(draw.count()))
    if len(set(items)) < len(items):
        return None
    rank, which = draw.rng.randrange(len(items)), draw.rng.choice(("smallest", "largest"))
    name = f"{ORDINALS[rank]}{which}"
    return Problem(
        operands=(name, *items), same=(name, *sorted(items)), answer=sorted(items, reverse=which == "largest")[rank],
        length=len(items),
        wordings=(f"What is the {name} of {listed(items)}?", f"Find the {name} number in {listed(items)}.", f"Which number is the {name}: {listed(items)}?"),
    )  # fmt: skip


def convert(draw: Draw) -> Problem | None:
    """The amount of the larger unit is drawn, so both ends of the conversion end."""
    large, small, factor = draw.rng.choice(_UNITS)
    of_large = draw.magnitude()
    if of_large == 0:
        return None
    ends = [(of_large, large), (of_large * factor, small)]
    if draw.rng.random() < 0.5:
        ends.reverse()
    (amount, source), (answer, target) = ends
    given = f"{write(amount)} {source}{'' if amount == 1 else 's'}"
    return Problem(
        operands=(amount, source, target), answer=answer, unit=f"{target}s",
        wordings=(
            f"How many {target}s are in {given}?", f"Convert {given} to {target}s.", f"What is {given} in {target}s?",
        ),
    )  # fmt: skip


def time(draw: Draw) -> Problem | None:
    """Minutes between two times of one day."""
    span = draw.rng.randint(1, min(60 * draw.reach.hours, DAY_MIN - 1))
    start = draw.rng.randrange(DAY_MIN - span)
    first, last = (f"{minute // 60}:{minute % 60:02d}" for minute in (start, start + span))
    return Problem(
        operands=(first, last), answer=span, unit="min", length=-(-span // 60),
        wordings=(
            f"How many minutes are between {first} and {last}?", f"How many minutes is it from {first} to {last}?",
            f"A train leaves at {first} and arrives at {last}. How many minutes does it take?",
        ),
    )  # fmt: skip


MEASURES = {
    "round": Module(round_off),
    "place": Module(place),
    "compare": Module(compare),
    "nearest": Module(nearest, "terms"),
    "kth": Module(kth, "terms"),
    "convert": Module(convert),
    "time": Module(time, "hours"),
}
