"""One chart from a random stream: choices, table, words, layout; the picture is painted last and changes nothing.

chart = make_chart(look, "0/17")       # the same chart for the same look and seed text, anywhere
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from synth.chart_axis import NumberStyle, ValueAxis
from synth.chart_frame import Page
from synth.chart_layout import Chart, lay_out
from synth.chart_marks import look_of, put_marks
from synth.chart_plot import Names, Plot
from synth.chart_shapes import Stroke
from synth.chart_texts import ChartTexts, write_texts
from synth.looks import HORIZONTAL, STYLES, ChartLook
from synth.tables import Series, Table, Wanted, make_table

BARE = "unlabelled bars"
MOST_BARE_BARS = 4
_PLACES = {"few": (2, 4), "medium": (5, 9), "many": (10, 20)}


@dataclass(frozen=True, kw_only=True)
class Made:
    """A chart with everything that was decided on the way."""

    choices: dict[str, Any]
    table: Table
    texts: ChartTexts
    chart: Chart


def make_chart(look: ChartLook, seed: str, *, least_marks: int = 1) -> Made:
    """`least_marks`: so many different marks the chart has at least, to be asked about."""
    rng = random.Random(f"chart/{seed}")
    choices = look.sample(rng)
    if choices["kind"] == BARE:
        return _bare(choices, rng, least_marks)
    wanted = _wanted(choices, rng)
    table = make_table(rng, wanted)
    texts = write_texts(table, choices, rng)
    return Made(choices=choices, table=table, texts=texts, chart=lay_out(table, texts, choices, f"layout/{seed}"))


def _wanted(choices: dict[str, Any], rng: random.Random) -> Wanted:
    """What the choices ask of a table; choices that cannot go together give way to the kind of chart."""
    kind = choices["kind"].removesuffix(HORIZONTAL)
    horizontal = choices["kind"].endswith(HORIZONTAL)
    lines = kind in ("line", "lines", "dots", "dot-lines", "area")
    parts = "hundred" if kind.startswith("100 %") else "stack" if kind.startswith("stacked") else "none"
    axis = choices["axis"]
    if lines and axis == "category" and kind != "dots":
        axis = "year"
    if axis == "number" and not lines:
        axis = "year"
    if horizontal and axis != "category" and rng.random() < 0.7:
        axis = "category"
    low, high = _PLACES[choices["places"]]
    most = {"category": 12 if horizontal else 10, "month": 12, "year": 20 if not horizontal else 12, "number": 11}[axis]
    if parts != "none" or kind == "grouped bars":
        most = min(most, 9)
    least = 4 if lines and kind != "dots" else 2
    places = rng.randint(min(max(low, least), most), min(max(high, least), most))
    several = kind in ("grouped bars", "lines") or parts != "none" or (kind in ("dots", "dot-lines") and rng.random() < 0.6)
    series = int(choices["series"]) if several else 1
    positive = parts != "none" or kind == "area"
    negative = choices["negative"] and not positive and choices["scale"] != "log"
    return Wanted(
        axis=axis, places=places, series=series, parts=parts, negative=negative, missing=choices["missing"] and parts == "none" and kind != "area",
        high_base=lines and kind != "area" and choices["base"] == "high" and not negative, wide=choices["scale"] == "log" and not positive,
        suffix=choices["ticks"] == "suffix" and parts != "hundred", long_names=choices["names"] == "long",
    )  # fmt: skip


def _bare(choices: dict[str, Any], rng: random.Random, least_marks: int) -> Made:
    """Up to four bars on a fixed axis from 0 to 99, without any text: for the smallest of models."""
    count = rng.randint(min(least_marks, MOST_BARE_BARS), MOST_BARE_BARS)
    values = tuple(Decimal(value) for value in rng.sample(range(10, 100), count))
    table = Table(
        measure="value", quantity="rate", unit="", scale=0, axis="category", x_name="Bar", x_things=None, x=tuple(str(k + 1) for k in range(count)),
        x_values=None, of="", of_things=None, series_things=None, series=(Series(name="", values=values),), decimals=0,
    )  # fmt: skip
    style = STYLES["plain"]
    look = look_of(table, choices, style, rng)
    width, height = (round(int(side) * int(choices["dpi"]) / 100) for side in choices["size"].split("x"))
    margin = round(0.07 * height)
    axis = ValueAxis(low=Decimal(0), high=Decimal(99), ticks=tuple(map(Decimal, (0, 33, 66, 99))))
    names = Names(lines=tuple(("",) for _ in values), turn_deg=0.0, shown=(False,) * count)
    box = (float(margin), float(margin), float(width - margin), float(height - margin))
    plot = Plot(box=box, axis=axis, horizontal=False, count=count, names=names)
    page = Page(0, 0, 0, 0, height / 400)
    marks = put_marks(page, page, plot, table, look, style, page.ratio)
    left, top, right, bottom = (edge + shift for edge, shift in zip(box, (-0.5, -0.5, 0.5, 0.5), strict=True))
    page.put(
        Stroke(points=((left, top), (right, top), (right, bottom), (left, bottom), (left, top)), colour=(0, 0, 0), width_px=1.0)
    )
    numbers = NumberStyle(form="plain")
    texts = ChartTexts(title="", subtitle="", value_title="", x_title="", footer=(), numbers=numbers, ticks=numbers)
    chart = Chart(
        size_px=(width, height), paper=style.paper, shapes=tuple(page.shapes), plot=plot, marks=marks, printed=((False,) * count,),
        names_shown=(False,) * count, axis_shown=True, tick_texts=(), look=look,
    )  # fmt: skip
    return Made(choices=choices, table=table, texts=texts, chart=chart)
