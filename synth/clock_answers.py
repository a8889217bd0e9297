"""How a clock is asked about and what is to be answered: `HH:MM`, `HH:MM:SS` or JSON, in one wording or several."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

AnswerFormat = Literal["HH:MM", "HH:MM:SS", "JSON"]
IMPOSSIBLE = "impossible"
ASKED = (  # the first is the fixed one
    "What time does {clock} show?",
    "What time is it on {clock}?",
    "Read {clock}.",
    "Which time do the hands of {clock} point to?",
    "Tell the time shown by {clock}.",
    "Look at {clock}: what time is it?",
    "Please read the time from {clock}.",
    "What is the time according to {clock}?",
)
WANTED = {
    "HH:MM": "Answer HH:MM.",
    "HH:MM:SS": "Answer HH:MM:SS, or HH:MM when there is no second hand.",
    "JSON": 'Answer in JSON: {"valid": true or false, "hours": H, "minutes": M, "seconds": S or false}.',
}
OR_IMPOSSIBLE = f'If the hands of a clock cannot stand like that, answer "{IMPOSSIBLE}".'


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a clock shows; hours as its dial counts them: 1 to 12, or 0 to 23."""

    hour: int
    minute: int
    second: int | None  # None: no second hand
    valid: bool = True  # False: the hour hand does not go with the minute hand

    @property
    def minutes_after_12(self) -> int:
        return self.hour % 12 * 60 + self.minute


def question(form: AnswerFormat, wording: int, where: str, may_be_impossible: bool) -> str:
    """`where` tells which of several clocks is meant; empty when there is one."""
    asked = ASKED[wording].format(clock=f"the clock {where}".strip())
    extra = [OR_IMPOSSIBLE] if may_be_impossible and form != "JSON" else []
    return " ".join([asked, WANTED[form], *extra])


def answer(form: AnswerFormat, reading: Reading) -> str:
    if not reading.valid:
        return '{"valid": false}' if form == "JSON" else IMPOSSIBLE
    if form == "JSON":
        second = False if reading.second is None else reading.second
        return json.dumps({"valid": True, "hours": reading.hour, "minutes": reading.minute, "seconds": second})
    text = f"{reading.hour:02d}:{reading.minute:02d}"
    return f"{text}:{reading.second:02d}" if form == "HH:MM:SS" and reading.second is not None else text


def value_min(form: AnswerFormat, reading: Reading) -> float | None:
    """Minutes after 12:00, as far as the answer tells them; None for an impossible clock."""
    if not reading.valid:
        return None
    tells_seconds = form != "HH:MM" and reading.second is not None
    return reading.minutes_after_12 + (reading.second / 60 if tells_seconds else 0.0)  # type: ignore[operator]


def tolerance_min(form: AnswerFormat, reading: Reading) -> float | None:
    """One mark of the finest hand that is asked for."""
    if not reading.valid:
        return None
    return 1 / 60 if form != "HH:MM" and reading.second is not None else 1.0
