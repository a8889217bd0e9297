"""Modules whose answer holds no number: what training on numbers should leave unharmed."""

from __future__ import annotations

from synth.arithmetic_numbers import Number, write
from synth.arithmetic_problem import Draw, Module, Problem

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (100, "hundred"))


def which(draw: Draw) -> Problem | None:
    a, b = _pair(draw)
    if a == b:
        return None
    wanted = draw.rng.choice(("larger", "smaller"))
    return Problem(
        operands=(a, b, wanted), same=(*sorted((a, b)), wanted), answer="first" if (a > b) == (wanted == "larger") else "second",
        wordings=(
            f"Which is {wanted}, the first or the second: {write(a)} or {write(b)}?",
            f"Is the first or the second number {wanted}: {write(a)}, {write(b)}?",
        ),
    )  # fmt: skip


def order(draw: Draw) -> Problem | None:
    a, b = _pair(draw)
    if a == b:
        return None
    relation, sign = draw.rng.choice((("less", "<"), ("greater", ">")))
    return Problem(
        operands=(a, b, relation), same=tuple(sorted((a, b))), answer=_truth((a < b) == (relation == "less")),
        wordings=(f"True or false: {write(a)} is {relation} than {write(b)}.", f"True or false: {write(a)} {sign} {write(b)}."),
    )  # fmt: skip


def divisible(draw: Draw) -> Problem:
    """True half of the time; otherwise something is left over."""
    divisor, quotient = draw.natural(2, least=2), draw.natural()
    rest = draw.rng.randrange(1, divisor) if draw.rng.random() < 0.5 else 0
    number = divisor * quotient + rest
    return Problem(
        operands=(number, divisor), answer=_truth(not rest),
        wordings=(f"True or false: {number} is divisible by {divisor}.", f"True or false: {divisor} divides {number}."),
    )  # fmt: skip


def parity(draw: Draw) -> Problem:
    number = draw.natural()
    return Problem(
        operands=(number,), answer="odd" if number % 2 else "even",
        wordings=(f"Is {number} even or odd?", f"Is {number} an odd or an even number?"),
    )  # fmt: skip


def weekday(draw: Draw) -> Problem:
    today, count = draw.rng.randrange(len(DAYS)), draw.natural()
    days = f"{count} day{'' if count == 1 else 's'}"
    return Problem(
        operands=(DAYS[today], count), answer=DAYS[(today + count) % len(DAYS)],
        wordings=(f"Today is {DAYS[today]}. What day is it in {days}?", f"Which weekday comes {days} after a {DAYS[today]}?"),
    )  # fmt: skip


def month(draw: Draw) -> Problem:
    now, count = draw.rng.randrange(len(MONTHS)), draw.natural()
    months = f"{count} month{'' if count == 1 else 's'}"
    return Problem(
        operands=(MONTHS[now], count), answer=MONTHS[(now + count) % len(MONTHS)],
        wordings=(f"It is {MONTHS[now]}. What month is it in {months}?", f"Which month comes {months} after {MONTHS[now]}?"),
    )  # fmt: skip


def spell(draw: Draw) -> Problem:
    number = draw.natural(least=0)
    return Problem(
        operands=(number,), answer=in_words(number),
        wordings=(f"Write {number} in words.", f"Spell out the number {number}."),
    )  # fmt: skip


def in_words(number: int) -> str:
    """0 <= number < 10^12 as it is spoken, without `and`: two hundred seven, twelve thousand thirty-four."""
    for scale, name in _SCALES:
        if number >= scale:
            count, rest = divmod(number, scale)
            return f"{in_words(count)} {name}" + (f" {in_words(rest)}" if rest else "")
    if number < len(_SMALL):
        return _SMALL[number]
    tens, unit = divmod(number, 10)
    return _TENS[tens] + (f"-{_SMALL[unit]}" if unit else "")


def _pair(draw: Draw) -> tuple[Number, Number]:
    """Two numbers in either order, mostly different, the one at a drawn distance from the other."""
    a = draw.number()
    b = draw.near(a)
    return (a, b) if draw.rng.random() < 0.5 else (b, a)


def _truth(holds: bool) -> str:
    return "true" if holds else "false"


WORDS = {
    "which": Module(which),
    "order": Module(order),
    "divisible": Module(divisible),
    "parity": Module(parity),
    "weekday": Module(weekday),
    "month": Module(month),
    "spell": Module(spell),
}
