"""Charts as records: index -> Record, with the whole truth about the chart in `meta`.

The records of one chart are made together and handed out one by one, so that its picture is painted once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from smmd_vlm.records import Record
from synth.chart_maker import BARE, Made, make_chart
from synth.chart_pen import paint
from synth.chart_reading import mark_slack
from synth.looks import ChartLook
from synth.png import encode_png
from synth.questions import Question, ask
from synth.writer import split_of

_HELD_OUT = " / held-out look"


@dataclass(frozen=True)
class ChartMaker:
    """index -> Record; picklable, the same everywhere."""

    stream: str
    seed: int
    questions: int
    everywhere: ChartLook
    training: ChartLook
    shares: Mapping[str, float]
    held_out: tuple[tuple[str, str], ...] = ()
    _last: dict[int, list[Record]] = field(default_factory=dict, compare=False, repr=False)  # the chart at hand

    def __call__(self, index: int) -> Record:
        chart, question = divmod(index, self.questions)
        if chart not in self._last:
            self._last.clear()
            self._last[chart] = self.records(chart)
        return self._last[chart][question]

    def records(self, chart: int) -> list[Record]:
        """All records of one chart."""
        split = split_of(self.seed, chart, self.shares)
        made = self.made(chart)
        image = encode_png(paint(made.chart.shapes, made.chart.size_px, made.chart.paper))
        truth = describe(made)
        held_out = any(made.choices[factor] == name for factor, name in self.held_out)
        group = f"chart-{self.seed}-{chart:08d}"
        return [
            Record(
                id=f"{group}-{k}", image=image, question=question.text, answer=question.answer, answer_type=question.answer_type, value=question.value,
                unit=question.unit, tolerance=question.tolerance, task="chart",
                kind=f"{made.choices['kind']} / {question.template}{_HELD_OUT if held_out else ''}", group=group, split=split,
                meta=_meta(self.seed, chart, held_out, question, truth),
            )
            for k, question in enumerate(self.asked(chart, made))
        ]  # fmt: skip

    def made(self, chart: int) -> Made:
        training = split_of(self.seed, chart, self.shares) == "train"
        return make_chart(self.training if training else self.everywhere, self._stream(chart), least_marks=self.questions)

    def asked(self, chart: int, made: Made) -> list[Question]:
        # Without text a question is its place alone, and the smallest of models is asked in one way.
        return ask(made, self.questions, self._stream(chart), 0.0 if made.choices["kind"] == BARE else 1.0)

    def _stream(self, chart: int) -> str:
        return f"{self.stream}/{self.seed}/{chart}"


def describe(made: Made) -> dict[str, Any]:
    """The truth about a chart as plain JSON; numbers of the table and the axis are decimal texts, all else is pixels."""
    table, chart, plot = made.table, made.chart, made.chart.plot
    look, axis = chart.look, plot.axis
    marks = chart.marks.points if look.lines else chart.marks.boxes
    return {
        "choices": made.choices,
        "size_px": list(chart.size_px),
        "text": {"title": made.texts.title, "subtitle": made.texts.subtitle, "value_axis": made.texts.value_title, "place_axis": made.texts.x_title},
        "table": {
            "measure": table.measure, "unit": table.unit, "scale": 10**table.scale, "axis": table.axis, "places_are": table.x_name, "places": list(table.x),
            "of": table.of or None, "series_are": table.series_things.singular if table.series_things else None, "ties": table.has_ties,
            "series": [{"name": s.name or None, "values": [None if v is None else _text(v) for v in s.values]} for s in table.series],
        },
        "axis": {
            "low": _text(axis.low), "high": _text(axis.high), "log": axis.log, "ticks": [_text(t) for t in axis.ticks], "tick_texts": list(chart.tick_texts),
            "shown": chart.axis_shown, "horizontal": plot.horizontal, "low_px": plot.value_px[0], "high_px": plot.value_px[1],
        },
        "plot_px": list(plot.box),
        "places_px": [round(plot.center(i), 2) for i in range(plot.count)],
        "places_named": list(chart.names_shown),
        "marks": "points" if look.lines else "boxes",
        "marks_px": [[None if mark is None else list(mark) for mark in row] for row in marks],
        "printed": [list(row) for row in chart.printed],
        # How far off a mark may be read where its number is not printed.
        "reading_tolerance": [[None if v is None else _text(mark_slack(made, k, v)) for v in s.values] for k, s in enumerate(table.series)],
        "colours": [{"name": name or None, "rgb": list(rgb)} for name, rgb in look.colours],
        "colour_by": "place" if look.by_place else "series",
    }  # fmt: skip


def _meta(seed: int, chart: int, held_out: bool, question: Question, truth: Mapping[str, Any]) -> str:
    row = {"seed": seed, "chart": chart, "held_out": held_out, "question": dict(question.facts), **truth}
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def _text(number: Decimal) -> str:
    return format(number, "f")
