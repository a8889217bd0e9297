"""Questions about a chart that have one answer, which can be read off the picture.

In:  a chart as made, how many questions, a seed text.   Out: so many different `Question`s, of different templates while they last.
A template (in `chart_sums` and `chart_facts`) takes a `View` and gives a `Draft`, or None where the chart does not allow the question:
a name that is not shown, marks too alike to be told apart, a missing value.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smmd_vlm.records import AnswerType
from synth.chart_facts import FACTS
from synth.chart_maker import BARE, Made
from synth.chart_reading import round_seen
from synth.chart_sums import BARE_SUMS, SUMS
from synth.chart_view import Draft, Template, View

_ATTEMPTS = 60


@dataclass(frozen=True, kw_only=True)
class Question:
    template: str
    text: str
    answer: str
    answer_type: AnswerType
    value: float | None
    unit: str | None
    tolerance: float | None
    facts: Mapping[str, Any]  # arguments, exact value, the step of rounding


def ask(made: Made, count: int, seed: str, wording: float) -> list[Question]:
    """`count` different questions; `wording` from 0 to 1 says among which wordings, 0: the first only."""
    rng = random.Random(f"questions/{seed}")
    templates: dict[str, tuple[Template, float]] = BARE_SUMS if made.choices["kind"] == BARE else {**SUMS, **FACTS}
    view = View(made, rng)
    found: dict[str, Question] = {}
    left: dict[str, float] = {}
    for _ in range(_ATTEMPTS * count):
        if len(found) == count:
            break
        left = left or {name: weight for name, (_, weight) in templates.items()}
        name = rng.choices(list(left), list(left.values()))[0]
        del left[name]
        draft = templates[name][0](view)
        if draft is not None and (isinstance(draft.answer, str) or draft.answer.worth_asking):
            question = _finish(name, draft, made, rng.random() * wording)
            found.setdefault(question.text, question)
    if len(found) < count:
        raise ValueError(
            f"a chart of kind {made.choices['kind']!r} gave {len(found)} different questions where {count} were wanted; "
            "ask for fewer with --questions-per-chart"
        )
    return list(found.values())


def _finish(template: str, draft: Draft, made: Made, wording: float) -> Question:
    text = draft.wordings[min(int(wording * len(draft.wordings)), len(draft.wordings) - 1)]
    facts: dict[str, Any] = {"template": template, **draft.arguments}
    if isinstance(draft.answer, str):
        return Question(
            template=template, text=text, answer=draft.answer, answer_type=draft.answer_type, unit=draft.unit,
            value=float(draft.answer) if draft.answer_type in ("year", "number") else None,
            tolerance=0.0 if draft.answer_type in ("year", "number") else None, facts=facts,
        )  # fmt: skip
    number = draft.answer
    places = draft.places if draft.places is not None else max(made.table.decimals, 0) + 1
    answer, step = round_seen(number, places)
    tolerance = number.slack
    if not number.slack and number.exact != answer:
        tolerance = step / 2  # whoever rounds otherwise is right too
        text = f"{text} Round to {_decimals_word(places)}."
    facts |= {"exact": str(number.exact), "round_to": format(step, "f")}
    return Question(
        template=template, text=text, answer=format(answer, "f"), answer_type=draft.answer_type, value=float(answer), unit=draft.unit,
        tolerance=float(tolerance), facts=facts,
    )  # fmt: skip


def _decimals_word(places: int) -> str:
    return "a whole number" if places == 0 else f"{places} decimal place{'s' if places > 1 else ''}"
