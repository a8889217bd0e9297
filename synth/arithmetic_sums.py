"""Modules that calculate: the four operations, expressions, equations, divisors, sequences."""

from __future__ import annotations

import math

from synth.arithmetic_numbers import Number, digit_count, write
from synth.arithmetic_problem import Draw, Module, Problem, inner, listed

MIXED_DIGITS = 2  # of a number in an expression, which grows in terms
LETTERS = "nptxyz"


def add(draw: Draw) -> Problem:
    a, b = draw.number(), draw.number()
    return Problem(
        operands=(a, b), same=tuple(sorted((a, b))), answer=a + b,
        wordings=(
            f"What is {write(a)} + {inner(b)}?", f"Calculate {write(a)} + {inner(b)}.",
            f"Add {write(a)} and {write(b)}.", f"What is the sum of {write(a)} and {write(b)}?",
        ),
    )  # fmt: skip


def subtract(draw: Draw) -> Problem:
    a, b = draw.number(), draw.number()
    return Problem(
        operands=(a, b), answer=a - b,
        wordings=(
            f"What is {write(a)} - {inner(b)}?", f"Calculate {write(a)} - {inner(b)}.",
            f"Subtract {write(b)} from {write(a)}.", f"What is {write(a)} minus {write(b)}?",
        ),
    )  # fmt: skip


def add_many(draw: Draw) -> Problem:
    terms = tuple(draw.number() for _ in range(draw.count()))
    return Problem(
        operands=terms, same=tuple(sorted(terms)), answer=sum(terms), length=len(terms),
        wordings=(
            f"What is {write(terms[0])} + {' + '.join(map(inner, terms[1:]))}?", f"Add up {listed(terms)}.",
            f"What is the sum of {listed(terms[:-1])} and {write(terms[-1])}?",
        ),
    )  # fmt: skip


def multiply(draw: Draw) -> Problem:
    a, b = draw.number(), draw.number()
    return Problem(
        operands=(a, b), same=tuple(sorted((a, b))), answer=a * b,
        wordings=(
            f"What is {write(a)} * {inner(b)}?", f"Calculate {write(a)} * {inner(b)}.",
            f"Multiply {write(a)} by {write(b)}.", f"What is the product of {write(a)} and {write(b)}?",
        ),
    )  # fmt: skip


def divide(draw: Draw) -> Problem | None:
    """By a whole number; the quotient is drawn, so it ends."""
    divisor, quotient = draw.integer(), draw.number()
    if abs(divisor) < 2:
        return None
    dividend = quotient * divisor
    return Problem(
        operands=(dividend, divisor), answer=quotient,
        wordings=(
            f"What is {write(dividend)} / {inner(divisor)}?", f"Calculate {write(dividend)} / {inner(divisor)}.",
            f"Divide {write(dividend)} by {write(divisor)}.", f"What is {write(dividend)} divided by {write(divisor)}?",
        ),
    )  # fmt: skip


def mixed(draw: Draw) -> Problem | None:
    """An expression of whole numbers with at least two of + - * /, brackets where the usual order needs them."""
    count = draw.count()
    text, value, numbers, _ = _expression(draw, count)
    if len({character for character in text if character in "+-*/"}) < 2:
        return None
    return Problem(
        operands=numbers, same=(text,), answer=value, length=count,
        wordings=(f"What is {text}?", f"Calculate {text}.", f"What is the value of {text}?"),
    )  # fmt: skip


_SUM, _PRODUCT, _ATOM = range(3)


def _expression(draw: Draw, count: int) -> tuple[str, int, tuple[int, ...], int]:
    """(text, value, its numbers in order, how tightly it binds)"""
    if count == 1:
        number = draw.natural(MIXED_DIGITS)
        return str(number), number, (number,), _ATOM
    if count == 2 and draw.rng.random() < 0.3:
        divisor, quotient = draw.natural(1, least=2), draw.natural(MIXED_DIGITS)
        return f"{divisor * quotient} / {divisor}", quotient, (divisor * quotient, divisor), _PRODUCT
    first = draw.rng.randint(1, count - 1)
    left, a, before, left_binds = _expression(draw, first)
    right, b, behind, right_binds = _expression(draw, count - first)
    operator = draw.rng.choice("+-*")
    binds = _PRODUCT if operator == "*" else _SUM
    left = f"({left})" if left_binds < binds else left
    right = f"({right})" if right_binds <= binds else right
    value = a + b if operator == "+" else a - b if operator == "-" else a * b
    return f"{left} {operator} {right}", value, before + behind, binds


def equation(draw: Draw) -> Problem | None:
    """a x + b = c x + d in whole numbers, c often 0."""
    solution, a, b = draw.integer(), draw.natural(2), draw.integer()
    c = draw.natural(2) if draw.rng.random() < 0.4 else 0
    d = a * solution + b - c * solution
    if a == c or (a == 1 and b == 0 and c == 0):
        return None
    letter = draw.rng.choice(LETTERS)
    text = f"{_linear(a, b, letter)} = {_linear(c, d, letter)}"
    return Problem(
        operands=(a, b, c, d), answer=solution,
        wordings=(f"Solve {text} for {letter}.", f"If {text}, what is {letter}?", f"What is {letter} in {text}?"),
    )  # fmt: skip


def _linear(slope: int, constant: int, letter: str) -> str:
    if slope == 0:
        return str(constant)
    term = letter if slope == 1 else f"{slope}{letter}"
    return term if constant == 0 else f"{term} {'+' if constant > 0 else '-'} {abs(constant)}"


def remainder(draw: Draw) -> Problem | None:
    a, b = draw.natural(), draw.natural(least=2)
    if a < b:
        return None
    return Problem(
        operands=(a, b), answer=a % b,
        wordings=(
            f"What is the remainder when {a} is divided by {b}?", f"Divide {a} by {b}. What is the remainder?",
            f"What is {a} mod {b}?",
        ),
    )  # fmt: skip


def gcd(draw: Draw) -> Problem | None:
    a, b = _with_common_factor(draw)
    if a == b:
        return None
    return Problem(
        operands=(a, b), same=tuple(sorted((a, b))), answer=math.gcd(a, b),
        wordings=(
            f"What is the greatest common divisor of {a} and {b}?", f"Calculate gcd({a}, {b}).",
            f"What is the highest common factor of {a} and {b}?",
        ),
    )  # fmt: skip


def lcm(draw: Draw) -> Problem | None:
    a, b = _with_common_factor(draw)
    if a == b:
        return None
    return Problem(
        operands=(a, b), same=tuple(sorted((a, b))), answer=math.lcm(a, b),
        wordings=(
            f"What is the least common multiple of {a} and {b}?", f"Calculate lcm({a}, {b}).",
            f"Find the smallest positive number that both {a} and {b} divide.",
        ),
    )  # fmt: skip


def _with_common_factor(draw: Draw) -> tuple[int, int]:
    """Two numbers that share a drawn factor; of two random numbers the greatest common divisor is mostly 1."""
    factor = draw.natural()
    left = draw.reach.digits - digit_count(str(factor)) + 1
    return factor * draw.natural(left), factor * draw.natural(left)


def sequence(draw: Draw) -> Problem | None:
    """Four terms whose differences are equal, or grow equally: the polynomial of least degree goes on."""
    start, step = draw.number(), draw.number()
    bend = draw.integer(1) if draw.rng.random() < 0.4 else 0
    if step == 0:
        return None

    def term(k: int) -> Number:
        return start + k * step + k * (k - 1) // 2 * bend

    shown = tuple(map(term, range(4)))
    return Problem(
        operands=shown, answer=term(4),
        wordings=(
            f"What comes next: {listed(shown)}?", f"What is the next number in {listed(shown)}?",
            f"Which number continues the sequence {listed(shown)}?",
        ),
    )  # fmt: skip


SUMS = {
    "add": Module(add),
    "subtract": Module(subtract),
    "add many": Module(add_many, "terms"),
    "multiply": Module(multiply),
    "divide": Module(divide),
    "mixed": Module(mixed, "terms"),
    "equation": Module(equation),
    "remainder": Module(remainder),
    "gcd": Module(gcd),
    "lcm": Module(lcm),
    "sequence": Module(sequence),
}
