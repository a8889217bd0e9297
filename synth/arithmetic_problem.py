"""What a module of arithmetic is: it draws problems from a random stream within a reach.

    problem = MODULES["add"].ask(Draw(rng, reach))      # None: these numbers make no good question, draw again

The number of digits is drawn first and the value then, so that short and long numbers are equally frequent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from synth.arithmetic_numbers import Number, digit_count, draw_decimal, draw_whole, write

Grows = Literal["digits", "terms", "hours"]


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How far problems go. `decimal`: chance that a problem's numbers have decimals; `negative`: that a number is negative."""

    digits: int  # most digits of a number in a question
    terms: int  # most numbers in a list or an expression
    hours: int  # longest span of time
    decimal: float
    places: int  # most digits behind the point
    negative: float


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem with all its wordings; numbers among the operands are those that the question shows."""

    operands: tuple[Number | str, ...]
    answer: Number | str
    wordings: tuple[str, ...]
    same: tuple[Number | str, ...] = ()  # operands in an order of their own, where theirs does not matter
    length: int | None = None  # terms or hours, in a module that grows in those
    unit: str | None = None

    @property
    def numbers(self) -> list[Number]:
        return [operand for operand in self.operands if not isinstance(operand, str)]

    @property
    def digits(self) -> int:
        """Digits of the longest number in the question."""
        return max((digit_count(write(number)) for number in self.numbers), default=0)

    @property
    def size(self) -> int:
        """What its module grows in."""
        return self.digits if self.length is None else self.length


@dataclass(frozen=True)
class Module:
    """`ask` draws a problem; `grows` says what is longer in the extrapolation split than ever in training."""

    ask: Callable[[Draw], Problem | None]
    grows: Grows = "digits"


class Draw:
    """Random numbers within a reach, for one problem; whether it has decimals is drawn once."""

    def __init__(self, rng: random.Random, reach: Reach) -> None:
        self.rng, self.reach = rng, reach
        self.places = reach.places if rng.random() < reach.decimal else 0

    def natural(self, most: int | None = None, least: int = 1) -> int:
        """A whole number >= `least` (a digit) of up to `most` digits, or of as many as the reach has."""
        return draw_whole(self.rng, self.rng.randint(1, min(most or self.reach.digits, self.reach.digits)), least)

    def integer(self, most: int | None = None) -> int:
        """A whole number with a sign; may be zero."""
        return self._signed(self.natural(most, least=0))

    def magnitude(self) -> Number:
        """A number >= 0 with up to the problem's decimals."""
        digits = self.rng.randint(1, self.reach.digits)
        return draw_decimal(self.rng, digits, min(self.rng.randint(0, self.places), digits - 1))

    def number(self) -> Number:
        """The same with a sign."""
        return self._signed(self.magnitude())

    def near(self, number: Number) -> Number:
        """A number at a drawn distance from this one, which may be 0: short distances are as frequent as long ones."""
        return number + self.magnitude() * self.rng.choice((1, -1))

    def count(self) -> int:
        """How many terms a list or an expression has, 3 or more."""
        return self.rng.randint(3, self.reach.terms)

    def _signed(self, number: Number) -> Number:
        return -number if self.rng.random() < self.reach.negative else number


def inner(number: Number) -> str:
    """A number behind an operator: a negative one in brackets."""
    return f"({write(number)})" if number < 0 else write(number)


def listed(numbers: Sequence[Number]) -> str:
    return ", ".join(map(write, numbers))
