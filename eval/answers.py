"""A model's words -> its answer: a number, a time, a year, a list, yes or no, a text, or the reason why there is none.

    read_answer("**43%**. Shall I go on?", answer_type="number")   -> value 43.0, unit "%"
    read_gold("[2013, 2016]")                                      -> kind "list", two years

`read_answer` looks for the answer inside prose (`unwrap`, then `numbertext` or `clocktext`); `read_gold` takes a reference
answer whole and never extracts from it. Pure, standard library only: training imports this file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from eval.clocktext import ClockTime, find_times, read_bare_time
from eval.numbertext import REASONS, REFUSAL, Reason, pick_number, says_a_range, whole_number
from eval.unwrap import Part, plain, unwrap
from smmd_vlm.numerals import Number, fold

__all__ = ["REASONS", "Answer", "Kind", "Reason", "fold_text", "is_year", "read_answer", "read_gold", "split_list"]

Kind = Literal["number", "time", "year", "list", "yes-no", "text"]
MAX_ITEMS = 64


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was read. `kind` is None, and `reason` says why, when nothing could be."""

    kind: Kind | None
    text: str  # the words that were taken as the answer
    value: float | None = None  # the number or year; minutes after 12:00 for a time
    number: Number | None = None  # its exact digits, unit and scale
    time: ClockTime | None = None
    items: tuple[Answer, ...] = ()
    candidates: tuple[float, ...] = ()  # everything that might have been meant
    reason: Reason | None = None
    cut: bool = False  # the output was too long to be read whole

    @property
    def unit(self) -> str | None:
        return self.number.unit if self.number else None

    @property
    def percent(self) -> bool:
        return self.number is not None and self.number.percent

    @property
    def scale(self) -> float:
        """What a scale word behind the number multiplies it by; it is not part of `value`."""
        return float(self.number.scale) if self.number and not self.number.attached else 1.0


def read_answer(output: str, *, answer_type: str | None = None, signed: bool = False) -> Answer:
    """Read a model's output; with `answer_type` only that kind is looked for, without it the kind is guessed.

    `signed`: a signed change was asked for, so `a drop of 4` is -4.
    """
    part = unwrap(output)
    if part.reason is not None:
        return Answer(kind=None, text="", reason=part.reason, cut=part.cut)
    if answer_type == "time":
        answer = _time_answer(part)
    elif answer_type in ("number", "year"):
        answer = _number_answer(part, kind=answer_type, signed=signed)
    elif answer_type == "list":
        answer = _list_answer(part.text)
    elif answer_type == "text":
        answer = _text_answer(part.text)
    else:
        answer = _guess(part, signed=signed)
    return replace(answer, cut=True) if part.cut else answer


def read_gold(gold: str, *, answer_type: str | None = None) -> Answer:
    """A reference answer, taken whole: `Girls grade 10` is a text, `[Italy , 22]` a list, `2010` a year, `12:05` a time."""
    text = plain(fold(gold)) if "\\" in gold else fold(gold).strip()
    if not text:
        return Answer(kind=None, text="", reason="empty")
    if answer_type == "time":
        return _time_answer(Part(text=text))
    if answer_type == "list" or (answer_type is None and text[0] == "[" and text[-1] == "]"):
        return _list_answer(text)
    if answer_type == "text":
        return _text_answer(text)
    number = whole_number(text)
    if number is not None:
        return _from_number(number, text, kind=answer_type or ("year" if is_year(number, text) else "number"))
    if answer_type in ("number", "year"):
        return _number_answer(Part(text=text), kind=answer_type, signed=False)
    if re.fullmatch(r"\d{1,2}:\d{2}(?::\d{2})?", text):
        time = _time_answer(Part(text=text))
        if time.kind:
            return time
    return _text_answer(text)


def is_year(number: Number, text: str) -> bool:
    """Four plain digits, 1800 to 2099: what charts print for a year when nobody says otherwise."""
    return bool(re.fullmatch(r"(?:18|19|20)\d\d", text)) and number.form == "plain"


# ---- text ------------------------------------------------------------------------------------------------------------

_ENDS = " \t\n.,;:!?\"'"
_LEADS = " \t\n\"'≈~"
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "`": "'"})
_YES_NO = re.compile(r"\W*(yes|no)\b(?![-/]| (?:data|one|information|idea|change|answer|value|country))", re.IGNORECASE)


def fold_text(text: str) -> str:
    """A text as it is compared: case, dashes, quotes, spaces and end punctuation do not count."""
    text = " ".join(fold(text).translate(_QUOTES).casefold().strip(_ENDS).split())
    return re.sub(r" ?([-/]) ?", r"\1", text)


def _text_answer(text: str) -> Answer:
    yes_no = _YES_NO.match(text[:40])
    if yes_no and (
        len(fold_text(text[:40])) <= 3 or text[yes_no.end() : yes_no.end() + 1] in (",", ".", ";", "!", ":", "\n", "", " ")
    ):
        return Answer(kind="yes-no", text=yes_no[1].lower())
    return Answer(kind="text", text=text)


# ---- lists -----------------------------------------------------------------------------------------------------------


def _list_answer(text: str) -> Answer:
    items = split_list(text)
    return Answer(kind="list", text=text, items=tuple(read_gold(item) for item in items[: MAX_ITEMS + 1]))


def split_list(text: str, *, at_and: bool = True) -> list[str]:
    """`[a, b]`, `a, b and c`, `a; b` or one item a line -> items; commas in brackets, quotes and thousands stay."""
    text = text.strip().rstrip(".")
    bracketed = len(text) > 1 and text[0] + text[-1] in ("[]", "{}", "()")
    if bracketed:
        text = text[1:-1]
    separators = "\n" if "\n" in text.strip() else ";" if ";" in text else ","
    spaced = separators == "," and ", " in text  # `1,234, 5` has thousands, `2003,2009` has not
    items, depth, quote, start = [], 0, "", 0
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char == '"' or (char == "'" and not text[:place].rstrip()[-1:].isalnum()):
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char in separators and depth <= 0 and not (spaced and char == "," and text[place + 1 : place + 2].isdigit()):
            items.append(text[start:place])
            start = place + 1
            if len(items) > MAX_ITEMS:
                break
    items.append(text[start:])
    if at_and and not bracketed:
        items = [half for item in items for half in re.split(r"(?:^|\s)(?:and|&)\s", item)]
    items = [item.strip().strip("\"'").strip() for item in items]
    return [item for item in items if item]


# ---- times -----------------------------------------------------------------------------------------------------------

_INVALID = re.compile(r"[\"']valid[\"']\s{0,3}:\s{0,3}(?:false|0)", re.IGNORECASE)
_SAID = re.compile(
    r"(?:\b(?:time|is|it's|reads?|shows?|showing|so|thus|therefore|exactly|about|approximately|around|roughly)|[:=≈~])[ \"']{0,3}$",
    re.IGNORECASE,
)


def _time_answer(part: Part) -> Answer:
    if _INVALID.search(part.text):
        return Answer(kind=None, text=part.text, reason="invalid clock")
    found = find_times(part.text)
    if not found and (bare := read_bare_time(part.text.strip(_ENDS))):
        found = [bare]
    possible = [time for time in found if time.possible]
    candidates = tuple(time.dial_s / 60 for time in possible)
    if not possible:
        reason: Reason = "out of range" if found else "refusal" if REFUSAL.search(part.text) else "no time"
        return Answer(kind=None, text=part.text, reason=reason)
    time = _choose_time(part, possible)
    if time is None:
        return Answer(kind=None, text=part.text, candidates=candidates, reason="several answers")
    return Answer(kind="time", text=part.text[time.start : time.end], value=time.dial_s / 60, time=time, candidates=candidates)


def _choose_time(part: Part, times: list[ClockTime]) -> ClockTime | None:
    if part.bold and len(bold := [time for time in find_times(part.bold) if time.possible]) == 1:
        return bold[0]
    times = [time for time in times if not re.search(r"\bnot ?$", part.text[max(0, time.start - 6) : time.start])] or times
    if len({time.dial_s for time in times}) == 1:
        return times[0]
    for first, second in zip(times, times[1:], strict=False):
        if first.dial_s != second.dial_s and part.text[first.end : second.start].strip(" ,(").lower() in ("or", "/"):
            return None
    if part.marked:
        return times[0]
    said = [time for time in times if _SAID.search(part.text[max(0, time.start - 20) : time.start])]
    return (said or times)[-1]


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _number_answer(part: Part, *, kind: Kind, signed: bool) -> Answer:
    pick = pick_number(part, year=kind == "year", signed=signed)
    if pick.number is None:
        return Answer(kind=None, text=pick.text, candidates=pick.candidates, reason=pick.reason)
    return replace(_from_number(pick.number, pick.text, kind=kind), candidates=pick.candidates)


def _from_number(number: Number, text: str, *, kind: Kind) -> Answer:
    value = float(number.value)
    return Answer(kind=kind, text=text, value=value, number=number, candidates=(value,))


# ---- no kind asked for -----------------------------------------------------------------------------------------------


def _guess(part: Part, *, signed: bool) -> Answer:
    text = part.text
    if text[0] == "[" and text[-1] == "]":
        return _list_answer(text)
    opening = _text_answer(text)
    if opening.kind == "yes-no":
        return opening
    whole = whole_number(text.rstrip(_ENDS).lstrip(_LEADS))
    if whole is not None:
        return _from_number(whole, text, kind="year" if is_year(whole, text.strip(_ENDS)) else "number")
    if "ratio" not in text.lower() or re.fullmatch(r"\d{1,2}:\d\d", text):
        time = _time_answer(part)
        if time.kind == "time" or time.reason == "invalid clock":
            return time
    answer = _number_answer(part, kind="number", signed=signed)
    if (
        answer.kind is None
        and answer.reason in ("no number", "time, not a number")
        or (answer.reason == "range" and says_a_range(text))
    ):
        return Answer(kind="text", text=text.strip())
    if answer.number is not None and is_year(answer.number, answer.text):
        return replace(answer, kind="year")
    return answer
