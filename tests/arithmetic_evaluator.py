"""Answers of arithmetic questions, worked out from their text alone: the slow twin of synth/arithmetic_*.py, of which it uses nothing.

module, answer = solve("What is 12 + 30?")      # ("add", Fraction(42)); words for the modules whose answers are words

Exactly one pattern must match a question, so its text decides what is asked.
"""

import ast
import datetime
import operator
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

NUMBER = r"-?\d+(?:\.\d+)?"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
ORDINALS = ["", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"]
# Each unit in the smallest of its kind.
UNITS = {
    "millimetre": ("length", 1), "centimetre": ("length", 10), "metre": ("length", 1000), "kilometre": ("length", 10**6),
    "gram": ("mass", 1), "kilogram": ("mass", 1000), "tonne": ("mass", 10**6),
    "millilitre": ("volume", 1), "centilitre": ("volume", 10), "litre": ("volume", 1000),
    "second": ("time", 1), "minute": ("time", 60), "hour": ("time", 3600), "day": ("time", 86400), "week": ("time", 604800),
    "month": ("calendar", 1), "year": ("calendar", 12),
}  # fmt: skip
POWERS = {
    "unit": 0, "ten": 1, "hundred": 2, "thousand": 3, "ten thousand": 4, "hundred thousand": 5, "million": 6, "ten million": 7,
    "hundred million": 8, "billion": 9, "ten billion": 10, "hundred billion": 11,
    "tenth": -1, "hundredth": -2, "thousandth": -3, "ten-thousandth": -4, "hundred-thousandth": -5, "millionth": -6,
}  # fmt: skip
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def numbers(text):
    return [Fraction(each) for each in re.findall(NUMBER, text)]


def value(node):
    if isinstance(node, ast.Constant):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value(node.operand)
    assert isinstance(node, ast.BinOp)
    return OPERATORS[type(node.op)](value(node.left), value(node.right))


def expression(text):
    return value(ast.parse(text, mode="eval").body)


def euclid(a, b):
    while b:
        a, b = b, a % b
    return a


def root(left, right, letter):
    """Where two linear expressions meet, from their gap at 0 and at 1."""

    def gap(x):
        sides = (
            re.sub(rf"(\d?){letter}", lambda match: f"{match[1]}*{x}" if match[1] else str(x), side) for side in (left, right)
        )
        return operator.sub(*map(expression, sides))

    return gap(0) / (gap(0) - gap(1))


def following(terms):
    """The next term by the table of differences, down to a row of equal ones with a witness."""
    if len(set(terms)) == 1:
        assert len(terms) >= 2
        return terms[0]
    return terms[-1] + following([b - a for a, b in zip(terms, terms[1:], strict=False)])


def rounded(number, to):
    context = Context(prec=60)
    decimals = re.fullmatch(r"(\d) decimal places?", to)
    step = (
        Decimal(1).scaleb(-int(decimals[1]))
        if decimals
        else Decimal(1).scaleb(0 if to == "the nearest whole number" else POWERS[to.removeprefix("the nearest ")])
    )
    quotient = context.divide(Decimal(number), step)
    assert abs(quotient) % 1 != Decimal("0.5"), "half-way: two answers"
    return Fraction(context.multiply(quotient.quantize(Decimal(1), ROUND_HALF_UP, context), step))


def digit(name, number):
    return Fraction(int(Fraction(number) / Fraction(10) ** POWERS[name.removesuffix("s")]) % 10)


def chosen(word, items):
    return max(items) if word == "larger" else min(items)


def closest(target, items):
    ordered = sorted(items, key=lambda item: abs(item - target))
    assert abs(ordered[0] - target) < abs(ordered[1] - target)
    return ordered[0]


def ranked(rank, which, items):
    assert len(set(items)) == len(items)
    sign = 1 if which == "smallest" else -1
    place = ORDINALS.index((rank or "").strip())
    return next(item for item in items if sum(sign * other < sign * item for other in items) == place)


def converted(amount, source, target):
    (kind, factor), (other, divisor) = UNITS[source.removesuffix("s")], UNITS[target.removesuffix("s")]
    assert kind == other and (source.endswith("s") == (Fraction(amount) != 1))
    return Fraction(amount) * factor / divisor


def minutes(first, last):
    start, end = (datetime.datetime.strptime(text, "%H:%M") for text in (first, last))
    return Fraction(int((end - start).total_seconds()), 60)


def truth(holds):
    return "true" if holds else "false"


def which(word, a, b):
    a, b = Fraction(a), Fraction(b)
    assert a != b
    return "first" if chosen(word, [a, b]) == a else "second"


def in_days(day, count):
    start = datetime.date(2024, 1, 1 + DAYS.index(day))  # the first of January 2024 was a Monday
    return DAYS[(start + datetime.timedelta(days=int(count) % 700_000)).weekday()]  # whole weeks, within the calendar


def in_months(month, count):
    place = MONTHS.index(month)
    for _ in range(int(count) % 12):
        place = 0 if place == 11 else place + 1
    return MONTHS[place]


def read_words(text):
    """`twelve thousand thirty-four` -> 12034."""
    ones = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
    tens = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
    total = group = 0
    for word in re.split("[ -]", text):
        if word == "hundred":
            group *= 100
        elif word in ("thousand", "million", "billion"):
            total, group = total + group * {"thousand": 10**3, "million": 10**6, "billion": 10**9}[word], 0
        else:
            group += tens[word] if word in tens else ones.index(word)
    return total + group


class Spelled(str):
    """A number whose name in words is the answer: equal to any text that reads as it."""

    def __eq__(self, other):
        return read_words(other) == int(self)

    __hash__ = str.__hash__


N = rf"({NUMBER})"
M = rf"\(?({NUMBER})\)?"  # behind an operator
LIST = rf"({NUMBER}(?:, {NUMBER})*)"
PLUS = rf"({NUMBER}(?: \+ \(?{NUMBER}\)?){{2,}})"
MIXED = r"([\d(][\d ()+*/-]*)"
TO = r"(\d decimal places?|the nearest [a-z ]+)"
LINE = r"([^=:,]+) = ([^=:,]+)"
AMOUNT = rf"{N} ([a-z]+)"
TIME = r"(\d+:\d\d)"


def exact(function):
    """Every captured text as a Fraction."""
    return lambda *texts: function(*map(Fraction, texts))


def several_operators(text):
    return len(set(re.findall(r"[+*/-]", re.sub(r"\(-|^-", "", text)))) > 1


# (module, patterns, answer from what the patterns capture)
RULES = [
    (
        "add",
        [rf"What is {N} \+ {M}\?", rf"Calculate {N} \+ {M}\.", rf"Add {N} and {N}\.", rf"What is the sum of {N} and {N}\?"],
        exact(lambda a, b: a + b),
    ),
    ("subtract", [rf"What is {N} - {M}\?", rf"Calculate {N} - {M}\.", rf"What is {N} minus {N}\?"], exact(lambda a, b: a - b)),
    ("subtract", [rf"Subtract {N} from {N}\."], exact(lambda a, b: b - a)),
    ("add many", [rf"What is {PLUS}\?", rf"Add up {LIST}\."], lambda text: sum(numbers(text))),
    (
        "add many",
        [rf"What is the sum of ({NUMBER}(?:, {NUMBER})+) and {N}\?"],
        lambda text, last: sum(numbers(text)) + Fraction(last),
    ),
    (
        "multiply",
        [
            rf"What is {N} \* {M}\?",
            rf"Calculate {N} \* {M}\.",
            rf"Multiply {N} by {N}\.",
            rf"What is the product of {N} and {N}\?",
        ],
        exact(lambda a, b: a * b),
    ),
    (
        "divide",
        [rf"What is {N} / {M}\?", rf"Calculate {N} / {M}\.", rf"Divide {N} by {N}\.", rf"What is {N} divided by {N}\?"],
        exact(lambda a, b: a / b),
    ),
    ("mixed", [rf"What is {MIXED}\?", rf"Calculate {MIXED}\.", rf"What is the value of {MIXED}\?"], expression),
    ("equation", [rf"Solve {LINE} for ([a-z])\.", rf"If {LINE}, what is ([a-z])\?"], root),
    ("equation", [rf"What is ([a-z]) in {LINE}\?"], lambda letter, left, right: root(left, right, letter)),
    (
        "remainder",
        [
            rf"What is the remainder when {N} is divided by {N}\?",
            rf"Divide {N} by {N}\. What is the remainder\?",
            rf"What is {N} mod {N}\?",
        ],
        exact(lambda a, b: a - b * (a // b)),
    ),
    (
        "gcd",
        [
            rf"What is the greatest common divisor of {N} and {N}\?",
            rf"Calculate gcd\({N}, {N}\)\.",
            rf"What is the highest common factor of {N} and {N}\?",
        ],
        exact(euclid),
    ),
    (
        "lcm",
        [
            rf"What is the least common multiple of {N} and {N}\?",
            rf"Calculate lcm\({N}, {N}\)\.",
            rf"Find the smallest positive number that both {N} and {N} divide\.",
        ],
        exact(lambda a, b: a * b / euclid(a, b)),
    ),
    (
        "sequence",
        [
            rf"What comes next: {LIST}\?",
            rf"What is the next number in {LIST}\?",
            rf"Which number continues the sequence {LIST}\?",
        ],
        lambda text: following(numbers(text)),
    ),
    ("round", [rf"Round {N} to {TO}\.", rf"What is {N} rounded to {TO}\?", rf"Give {N} to {TO}\."], rounded),
    ("place", [rf"What is the ([a-z -]+) digit of {N}\?", rf"Name the ([a-z -]+) digit of {N}\."], digit),
    ("place", [rf"Which digit of {N} counts ([a-z -]+)\?"], lambda number, name: digit(name, number)),
    (
        "compare",
        [rf"Which is (larger|smaller): {N} or {N}\?", rf"What is the (larger|smaller) of {N} and {N}\?"],
        lambda word, a, b: chosen(word, [Fraction(a), Fraction(b)]),
    ),
    ("compare", [rf"Which of {N} and {N} is (larger|smaller)\?"], lambda a, b, word: chosen(word, [Fraction(a), Fraction(b)])),
    ("nearest", [rf"Which of {LIST} is nearest to {N}\?"], lambda items, target: closest(Fraction(target), numbers(items))),
    (
        "nearest",
        [rf"Which number is closest to {N}: {LIST}\?", rf"Find the one nearest to {N} among {LIST}\."],
        lambda target, items: closest(Fraction(target), numbers(items)),
    ),
    (
        "kth",
        [
            rf"What is the (\w+ )?(smallest|largest) of {LIST}\?",
            rf"Find the (\w+ )?(smallest|largest) number in {LIST}\.",
            rf"Which number is the (\w+ )?(smallest|largest): {LIST}\?",
        ],
        lambda rank, which, items: ranked(rank, which, numbers(items)),
    ),
    ("convert", [rf"How many ([a-z]+s) are in {AMOUNT}\?"], lambda target, amount, source: converted(amount, source, target)),
    ("convert", [rf"Convert {AMOUNT} to ([a-z]+s)\.", rf"What is {AMOUNT} in ([a-z]+s)\?"], converted),
    (
        "time",
        [
            rf"How many minutes are between {TIME} and {TIME}\?",
            rf"How many minutes is it from {TIME} to {TIME}\?",
            rf"A train leaves at {TIME} and arrives at {TIME}\. How many minutes does it take\?",
        ],
        minutes,
    ),
    (
        "which",
        [
            rf"Which is (larger|smaller), the first or the second: {N} or {N}\?",
            rf"Is the first or the second number (larger|smaller): {N}, {N}\?",
        ],
        which,
    ),
    ("order", [rf"True or false: {N} is less than {N}\.", rf"True or false: {N} < {N}\."], exact(lambda a, b: truth(a < b))),
    ("order", [rf"True or false: {N} is greater than {N}\.", rf"True or false: {N} > {N}\."], exact(lambda a, b: truth(a > b))),
    ("divisible", [rf"True or false: {N} is divisible by {N}\."], exact(lambda a, b: truth((a / b).denominator == 1))),
    ("divisible", [rf"True or false: {N} divides {N}\."], exact(lambda a, b: truth((b / a).denominator == 1))),
    (
        "parity",
        [r"Is (\d+) even or odd\?", r"Is (\d+) an odd or an even number\?"],
        lambda text: "even" if text[-1] in "02468" else "odd",
    ),
    ("weekday", [r"Today is (\w+)\. What day is it in (\d+) days?\?"], in_days),
    ("weekday", [r"Which weekday comes (\d+) days? after a (\w+)\?"], lambda count, day: in_days(day, count)),
    ("month", [r"It is (\w+)\. What month is it in (\d+) months?\?"], in_months),
    ("month", [r"Which month comes (\d+) months? after (\w+)\?"], lambda count, month: in_months(month, count)),
    ("spell", [r"Write (\d+) in words\.", r"Spell out the number (\d+)\."], Spelled),
]
COMPILED = [(module, re.compile(pattern), answer) for module, patterns, answer in RULES for pattern in patterns]


def solve(question):
    """(module, answer); a question that none or two of the patterns match is an AssertionError."""
    found = []
    for module, pattern, answer in COMPILED:
        match = pattern.fullmatch(question)
        if match and not (module == "mixed" and not several_operators(match[1])):
            found.append((module, answer, match.groups()))
    assert len(found) == 1, (question, [each[0] for each in found])
    module, answer, texts = found[0]
    return module, answer(*texts)
