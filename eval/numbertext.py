"""Which number of a text is the answer.

In:  a `Part` of a model's output.   Out: `Pick`: the number, or the reason why none can be told.
Where: behind the answer marker, in the one bold phrase, on a first line that is nothing but a number, in a short output,
else in the last sentence that has a number and asks nothing.
Which: what follows the last `=`; else the number that the sentence says something *is*; else the last (behind a marker
the first). Ordinals, counts of what was looked at (`the 3 bars`), conditions (`above 50`), years in passing and
what stands in brackets give way to any other candidate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, get_args

from eval.clocktext import find_times
from eval.unwrap import Part
from smmd_vlm.numerals import Number, find_number_words, find_numbers

Reason = Literal[
    "empty",  # nothing but white space
    "only thinking",  # the thinking never ends in an answer
    "refusal",  # says that it cannot be told
    "invalid clock",  # says that the clock shows no time
    "no number",
    "no time",
    "time, not a number",
    "range",  # two ends, no value
    "several answers",  # `3 or 4`
    "out of range",  # beyond 1e100, or no time of day
]
REASONS: tuple[str, ...] = get_args(Reason)

SHORT = 80  # an output up to this long is taken as the answer itself
MOST_NUMBERS = 100  # at either end of a text: a table read aloud has fewer, hostile text has more

REFUSAL = re.compile(
    r"\b(?:can(?:not|'t| not)|could(?: not|n't)|unable to|impossible to|not possible|(?:does|do|did)(?:n't| not) (?:let|allow|show|provide"
    r"|contain|include|say|give|specify|have|know|tell|permit)|no (?:information|data|way to)|not (?:enough|sufficient|shown|given|provided"
    r"|specified|visible|available|clear|determin\w{1,6})|insufficient|unanswerable|unknown|undetermined|sorry|n/a)\b",
    re.IGNORECASE,
)
_TURN = re.compile(r"\b(?:but|however|still|so|though|approximately|about)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]*]{0,3}\s+(?=[^\s])|\n+")
_HEDGE = r"(?:about|approximately|approx\.?|around|roughly|nearly|almost|only|just|exactly|a total of|equal to|[~≈(]|[\"'])"
_STATED = re.compile(
    rf"(?:\b(?:is|are|was|were|be|being|equals?|gives?|makes?|totals?|yields?|gets?|got|to|by)|[:=≈~]"
    rf"|\b(?:difference|gap|change|sum|total|average|mean|median|ratio|increase|decrease|drop|rise) of)[ ]?(?:{_HEDGE}[ ]?){{0,3}}$",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\b(?:in|for|from|since|until|during|of|than|above|below|over|under|between|and|not|per|year|the|these|those|all)[ ]$",
    re.IGNORECASE,
)
_SCOPE = re.compile(
    r"[ ](?:bars?|lines?|years?|months?|days?|countries|categories|groups?|segments?|slices?|points?|hands?|sectors?|series|colou?rs?)\b",
    re.IGNORECASE,
)
_YEARS = re.compile(
    r"\b(?:from|between)[ ](?:18|19|20)\d\d[ ]?(?:to|and|until|-)[ ]?(?:18|19|20)\d\d\b|\((?:[^()]{0,200})\)", re.IGNORECASE
)
_PRONOUN_ONE = re.compile(r"\b(?:the|this|that|no|any|each|every|which|other|another|some|\w{2,12}est)[ ]$", re.IGNORECASE)
_FALL = re.compile(
    r"\b(?:drop|drops|dropped|fall|falls|fell|fallen|decreas\w{0,3}|declin\w{0,3}|loss|lost|lose[sd]?|reduc\w{0,5}|down|minus|shrank|shrinks?)\b",
    re.IGNORECASE,
)
_OF = re.compile(r"\b(?:of|in|for)[ ]$", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween[ ]$", re.IGNORECASE)
_RANGE = re.compile(r"(?<![\w.])\d[\d,.]{0,20}%?\s?-\s?\d")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d{1,12}),(\d{1,2})(?![\d]|[.,]\d)")


@dataclass(frozen=True, kw_only=True)
class Pick:
    """The number that answers, with the words it stands in; or the reason why there is none."""

    number: Number | None = None
    text: str = ""
    candidates: tuple[float, ...] = ()
    reason: Reason | None = None


def pick_number(part: Part, *, year: bool = False, signed: bool = False) -> Pick:
    """The number that a part of an output answers with; `year`: four digits are preferred; `signed`: a drop of 4 is -4."""
    region = _region(part)
    numbers = find_numbers(region) or _words(region) or _decimal_comma(region)
    if len(numbers) > 2 * MOST_NUMBERS:
        numbers = numbers[:MOST_NUMBERS] + numbers[-MOST_NUMBERS:]
    candidates = tuple(float(number.value) for number in numbers if in_range(number))
    if _refuses(part, region, numbers):
        return Pick(text=region, candidates=candidates, reason="refusal")
    if not numbers:
        reason: Reason = "range" if _RANGE.search(region) else "time, not a number" if find_times(region) else "no number"
        return Pick(text=region, reason=reason)
    if why := _no_single(region, numbers):
        return Pick(text=region, candidates=candidates, reason=why)
    number = _choose(region, numbers, first=part.marked, year=year)
    if not in_range(number):
        return Pick(text=region, candidates=candidates, reason="out of range")
    before = region[: number.start]
    if signed and number.digits > 0 and _FALL.search(before) and not before.rstrip("$€£¥₹ ").lower().endswith(" to"):
        number = replace(number, digits=-number.digits)
    return Pick(number=number, text=region[number.start : number.end], candidates=candidates)


def whole_number(text: str) -> Number | None:
    """The number that a text is, from its first character to its last; a full stop may follow."""
    if len(text) > 400:
        return None
    bare = text.rstrip(".") if text.endswith(".") and not text.endswith("..") else text
    numbers = find_numbers(bare)
    if len(numbers) != 1 or numbers[0].form == "ordinal" or not in_range(numbers[0]):
        return None
    return numbers[0] if (numbers[0].start, numbers[0].end) == (0, len(bare)) else None


def in_range(number: Number) -> bool:
    """Zero, or between 1e-100 and 1e100: wider than any quantity, and products and squares of errors still have floats."""
    return number.digits == 0 or Decimal("1e-100") < abs(number.amount) < Decimal("1e100")


def says_a_range(text: str) -> bool:
    return _RANGE.search(text) is not None


def _words(region: str) -> list[Number]:
    """Number words, without the `one` of `the tallest one`."""
    found = find_number_words(region)
    return [
        n for n in found if region[n.start : n.end].lower() != "one" or not _PRONOUN_ONE.search(_before(region, n.start, 16))
    ]


def _decimal_comma(region: str) -> list[Number]:
    """`10,5` where a number was asked for and none was found: one or two digits behind a comma are no thousands."""
    return find_numbers(_DECIMAL_COMMA.sub(r"\1.\2", region))


def _region(part: Part) -> str:
    if part.marked:
        return part.text
    if part.bold and find_numbers(part.bold):
        return part.bold
    first_line = part.text.split("\n", 1)[0].strip()
    if "\n" in part.text and whole_number(first_line.strip(" ~≈")):
        return first_line
    if len(part.text) <= SHORT and "\n" not in part.text and "? " not in part.text:
        return part.text
    sentences = [sentence for sentence in _SENTENCE_END.split(part.text) if sentence.strip()]
    for sentence in reversed(sentences[-200:]):
        if not sentence.rstrip().endswith("?") and find_numbers(sentence):
            return sentence
    return part.text


def _refuses(part: Part, region: str, numbers: list[Number]) -> bool:
    refusal = None if part.marked and numbers else REFUSAL.search(region)
    if refusal is None:
        return False
    turn = _TURN.search(region, refusal.end())
    return not (turn and any(number.start > turn.start() for number in numbers))


def _no_single(region: str, numbers: list[Number]) -> Reason | None:
    """`between 3 and 4` or `3 - 4` alone is a range; `3 or 4`, and `3, 4 and 5`, are several answers; none has a value."""
    if len(numbers) == 2 and _BETWEEN.search(_before(region, numbers[0].start, 12)):
        return "range"
    joints = [region[a.end : b.start].strip(" ,").lower() for a, b in zip(numbers, numbers[1:], strict=False)]
    if (
        len(numbers) > 1
        and all(joint in ("", "and", "&") for joint in joints)
        and not _OF.search(_before(region, numbers[0].start, 40))
    ):
        return "several answers"
    if len(numbers) != 2:
        return None
    first, second = numbers
    joint = joints[0]
    if joint == "or" and first.value != second.value:
        return "several answers"
    opens = re.sub(rf"(?i){_HEDGE}", "", region[: first.start]).strip()
    if joint in ("-", "to") and not opens and len(region) - second.end < 20:
        return "range"
    return None


def _choose(region: str, numbers: list[Number], *, first: bool, year: bool) -> Number:
    if len(numbers) == 1:
        return numbers[0]
    if year:
        years = [number for number in numbers if re.fullmatch(r"[12]\d{3}", region[number.start : number.end])]
        return _stated(region, years or numbers, first=first)
    equals = region.rfind("=")
    if equals >= 0 and (after := [number for number in numbers if number.start > equals]):
        return after[0]
    asides = [match.span() for match in _YEARS.finditer(region)]
    open_ones = [
        n for n in numbers if n.form != "ordinal" and not any(start <= n.start < end for start, end in asides)
    ] or numbers
    main = [n for n in open_ones if not _SCOPE.match(region, n.end)] or open_ones
    if not any(_is_stated(region, n) for n in main):
        stated_counts = [n for n in open_ones if _is_stated(region, n)]
        main = stated_counts or [n for n in main if not _ASIDE.search(_before(region, n.start, 12))] or main
    return _stated(region, main, first=first)


def _stated(region: str, numbers: list[Number], *, first: bool) -> Number:
    if first and not region[: numbers[0].start].strip(" ~≈("):
        return numbers[0]
    stated = [number for number in numbers if _is_stated(region, number)]
    if stated:
        return stated[-1]
    return numbers[0] if first else numbers[-1]


def _is_stated(region: str, number: Number) -> bool:
    return _STATED.search(_before(region, number.start, 40)) is not None


def _before(text: str, place: int, length: int) -> str:
    return text[max(0, place - length) : place]
