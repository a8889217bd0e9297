"""Exact numbers: drawn by their digits, written as plain decimals, never a float.

A number is an int, or a Fraction whose decimal form ends. Its digits are those that are written: 0.05 has three, 1.50 is 1.5 and has two.
"""

from __future__ import annotations

import random
from fractions import Fraction

Number = int | Fraction


def write(number: Number) -> str:
    """The whole decimal form: no exponent, no zero at the end, no `-0`; a number whose decimals never end is a ValueError."""
    if number.denominator == 1:
        return str(number.numerator)
    rest, places = number.denominator, {2: 0, 5: 0}
    for prime in places:
        while rest % prime == 0:
            rest //= prime
            places[prime] += 1
    if rest != 1:
        raise ValueError(f"expected a number whose decimals end, got {number}; round it first")
    behind = max(places.values())
    digits = str(abs(number.numerator) * 10**behind // number.denominator).rjust(behind + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-behind]}.{digits[-behind:]}"


def digit_count(text: str) -> int:
    return sum(character.isdigit() for character in text)


def places_of(number: Number) -> int:
    """Digits behind the point."""
    return len(write(number).partition(".")[2])


def draw_whole(rng: random.Random, digits: int, least: int = 0) -> int:
    """Uniform among the whole numbers of exactly so many digits; `least` of a number of one digit."""
    return rng.randrange(10 ** (digits - 1) if digits > 1 else least, 10**digits)


def draw_decimal(rng: random.Random, digits: int, places: int) -> Number:
    """Uniform among the numbers >= 0 of exactly so many digits, `places` (less than `digits`) of them behind the point."""
    whole = draw_whole(rng, digits - places)
    if not places:
        return whole
    behind = 10 * rng.randrange(10 ** (places - 1)) + rng.randint(1, 9)  # not 0 at the end, or it would not be written
    return Fraction(whole * 10**places + behind, 10**places)
