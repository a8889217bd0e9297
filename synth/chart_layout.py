"""Lay out a chart: table, texts and choices -> shapes in pixels, with the place of every mark.

Text is measured before anything is placed, and a picture grows until its plot has room: nothing is clipped, nothing overlaps.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from synth.chart_axis import ValueAxis, linear_axis, log_axis
from synth.chart_fonts import Font, text_width, wrap
from synth.chart_frame import Fonts, Key, Page, fonts_of, put_footer, put_header, put_legend
from synth.chart_grid import put_grid, put_names, put_value_axis
from synth.chart_labels import put_labels
from synth.chart_marks import Look, Marks, look_of, put_marks
from synth.chart_plot import Names, Plot, name_lines
from synth.chart_shapes import Colour, Shape, text_at
from synth.chart_texts import ChartTexts
from synth.looks import STYLES, Style
from synth.tables import Table

_LARGEST_PX = 2000


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart laid out: what to paint, and the truth about it. Indices are [series][place]."""

    size_px: tuple[int, int]
    paper: Colour
    shapes: tuple[Shape, ...]
    plot: Plot
    marks: Marks
    printed: tuple[tuple[bool, ...], ...]  # is the number written beside its mark?
    names_shown: tuple[bool, ...]  # is the place named on its axis?
    axis_shown: bool
    tick_texts: tuple[str, ...]
    look: Look


@dataclass(frozen=True)
class _TooSmall(Exception):
    """How many pixels the plot lacks; the picture grows by that."""

    width: float
    height: float


def lay_out(table: Table, texts: ChartTexts, choices: Mapping[str, Any], seed: str) -> Chart:
    """`seed` starts the few decisions that are taken here, so that a second try takes the same ones."""
    ratio = int(choices["dpi"]) / 100
    width, height = (round(int(side) * ratio) for side in choices["size"].split("x"))
    hide_axis = STYLES[choices["look"]].hides_axis and choices["labels"] == "all"
    while True:
        try:
            chart = _try(table, texts, choices, random.Random(seed), (width, height), ratio, hide_axis)
        except _TooSmall as lack:
            width, height = width + max(0, round(lack.width)), height + max(0, round(lack.height))
            assert max(width, height) <= _LARGEST_PX, f"a chart grew past {_LARGEST_PX} pixels"
            continue
        if hide_axis and not all(
            all(p or v is None for p, v in zip(row, s.values, strict=True))
            for row, s in zip(chart.printed, table.series, strict=True)
        ):
            hide_axis = False  # a number that is not printed must be read off an axis
            continue
        return chart


def _try(
    table: Table, texts: ChartTexts, choices: Mapping[str, Any], rng: random.Random, size_px: tuple[int, int], ratio: float, hide_axis: bool
) -> Chart:  # fmt: skip
    style = STYLES[choices["look"]]
    look = look_of(table, choices, style, rng)
    fonts = fonts_of(style, choices["font"], ratio * choices["text_size"])
    margin = 10 * ratio
    page = Page(margin, margin, size_px[0] - margin, size_px[1] - margin, ratio)
    put_header(page, texts, style, fonts)
    put_footer(page, texts, style, fonts)
    legend = _legend_place(table, choices, style, look)
    if legend in ("top", "bottom", "right"):
        names = [
            Key(name=s.name, colour=look.colours[k][1], marker=look.marker, dash_px=look.dashes[k], line=look.lines)
            for k, s in enumerate(table.series)
        ]
        put_legend(page, names, legend, style, fonts.text)
    axis = _value_axis(table, look, choices, style, fonts, page)
    # Powers of ten beside small numbers are nobody's choice.
    far = max(abs(axis.low), abs(axis.high)) >= 10_000 or axis.high < Decimal("0.01")
    ticks = (texts.ticks if far else texts.numbers).ticks(axis)
    plot = _plot(
        table, look, axis, ticks, texts, style, fonts, page, hide_axis, rng, legend, numbered=choices["labels"] != "none"
    )
    grid = {"look": style.grid, "none": "none", "value": "value", "both": "both"}[choices["grid"]]
    background, foreground = Page(0, 0, 0, 0, ratio), Page(0, 0, 0, 0, ratio)
    put_grid(background, foreground, plot, look, style, "none" if hide_axis else grid)
    if not hide_axis:
        put_value_axis(foreground, plot, ticks, style, fonts.text)
    put_names(foreground, plot, style, fonts.text)
    marks = put_marks(foreground, background, plot, table, look, style, ratio)
    taken = [shape for shape in (*page.shapes, *foreground.shapes, *background.shapes)]
    if legend == "direct":
        _direct_names(foreground, plot, marks, table, look, fonts.text)
        taken = [*taken, *foreground.shapes[-len(table.series) :]]
    printed = put_labels(foreground, taken, plot, marks, table, look, texts.numbers, style, fonts.label, choices["labels"], rng)
    paper = style.tint if choices["paper"] == "tinted" else style.paper
    return Chart(
        size_px=size_px, paper=paper, shapes=(*background.shapes, *foreground.shapes, *page.shapes), plot=plot, marks=marks, printed=printed,
        names_shown=tuple(plot.names.shown), axis_shown=not hide_axis, tick_texts=tuple(ticks), look=look,
    )  # fmt: skip


def _legend_place(table: Table, choices: Mapping[str, Any], style: Style, look: Look) -> str:
    if len(table.series) == 1:
        return "none"
    place = style.legend if choices["legend"] == "look" else choices["legend"]
    if place == "direct":
        # Names at the lines' ends need lines, ends, and ends that lie apart.
        last = sorted(s.values[-1] for s in table.series if s.values[-1] is not None)
        span = max(table.numbers) - min(min(table.numbers), max(table.numbers) if choices["base"] == "high" else Decimal(0))
        apart = all(b - a > span * Decimal("0.12") for a, b in zip(last, last[1:], strict=False))
        return "direct" if look.lines and len(last) == len(table.series) and apart else "bottom"
    return place


def _value_axis(table: Table, look: Look, choices: Mapping[str, Any], style: Style, fonts: Fonts, page: Page) -> ValueAxis:
    numbers = look.stack_tops(table) if look.stacked else table.numbers
    if choices["scale"] == "log" and min(numbers) > 0 and max(numbers) > 30 * min(numbers) and not look.stacked:
        return log_axis(numbers)
    length = page.width if look.horizontal else page.bottom - page.top
    # Room for numbers printed beyond the last mark.
    reach = 0.0
    if choices["labels"] != "none" and not look.stacked:
        reach = (
            max(len(str(n)) for n in numbers) * 0.75 * fonts.label.size_px
            if look.turned or look.horizontal
            else 1.6 * fonts.label.size_px
        ) / (0.7 * length)
    most = Decimal(100) if table.quantity == "percent" and max(numbers) <= 100 else None
    count = max(3, min(7, int(length / ((75 if look.horizontal else 50) * page.ratio))))
    return linear_axis(
        numbers, from_zero=choices["base"] == "zero" or not look.lines or look.filled, ticks=count, headroom=min(reach, 0.4), open_end=style.open_end and not look.stacked,
        most=most if reach < 0.1 or look.parts == "hundred" else None,
    )  # fmt: skip


def _plot(
    table: Table, look: Look, axis: ValueAxis, ticks: list[str], texts: ChartTexts, style: Style, fonts: Fonts, page: Page, hide_axis: bool,
    rng: random.Random, legend: str, *, numbered: bool,
) -> Plot:  # fmt: skip
    """Cut axis titles, tick labels and names off the page; what is left is the plot."""
    ratio, gap = page.ratio, 5 * page.ratio
    tick_px = style.tick_px * ratio
    if hide_axis:
        value_strip = 2 * gap
    elif look.horizontal:
        value_strip = tick_px + gap + fonts.text.line_px
    else:
        value_strip = tick_px + gap + max(text_width(text, fonts.text) for text in ticks)
    value_title = "" if hide_axis and texts.title else texts.value_title
    below, beside = (value_title, texts.x_title) if look.horizontal else (texts.x_title, value_title)
    _title_below(page, below, fonts.axis_title, style)
    place_beside = _title_beside(page, beside, fonts.axis_title)
    page.right -= max(gap, text_width(ticks[-1], fonts.text) / 2 if look.horizontal else 0)
    if legend == "direct":
        page.right -= gap + max(text_width(series.name, fonts.text) for series in table.series)
    page.top += fonts.text.size_px
    letter = 0.85 * fonts.label.size_px if look.grouped and numbered else 0.0  # a bar is as wide as the number beside it
    if look.horizontal:
        longest = 0.36 * page.width
        lines = [wrap(name, fonts.text, longest) for name in table.x]
        left = page.left + max(text_width(line, fonts.text) for each in lines for line in each) + tick_px + gap
        names = Names(lines=tuple(map(tuple, lines)), turn_deg=0.0, shown=(True,) * len(lines))
        bottom = page.bottom - value_strip
        apart = axis.fraction(axis.ticks[1]) - axis.fraction(axis.ticks[0])
        for_ticks = 1.2 * max(text_width(text, fonts.text) for text in ticks) / apart
        need = max(len(each) for each in lines) * fonts.text.line_px * 1.05
        need = max(need, (len(table.series) if look.grouped else 1) * max(9 * ratio, letter) / look.bar_width)
        _require(max(for_ticks, 170 * ratio) - (page.right - left), max(need * len(lines), 90 * ratio) - (bottom - page.top))
    else:
        left = page.left + value_strip
        slot = (page.right - left) / len(table.x)
        names = name_lines(table, fonts.text, slot, style.name_turn_deg, rng)
        if names.turn_deg == 45:  # the first names reach out to the left
            reach = max(0.72 * text_width(each[0], fonts.text) - (k + 0.5) * slot for k, each in enumerate(names.lines))
            left = max(left, page.left + reach + gap)
            slot = (page.right - left) / len(table.x)
        bottom = page.bottom - names.height(fonts.text) - tick_px - gap
        need = (len(table.series) if look.grouped else 1) * max(8 * ratio, letter) / look.bar_width if not look.lines else 0
        need = max(need, names.least_slot(fonts.text))
        _require(max(need * len(table.x), 170 * ratio) - (page.right - left), 130 * ratio - (bottom - page.top))
    plot = Plot(
        box=(float(round(left)), float(round(page.top)), float(round(page.right)), float(round(bottom))), axis=axis, horizontal=look.horizontal, count=len(table.x),
        names=names, closed=style.frame == "box",
    )  # fmt: skip
    place_beside(plot)
    return plot


def _require(width: float, height: float) -> None:
    if width > 0.5 or height > 0.5:
        raise _TooSmall(width + 1 if width > 0.5 else 0, height + 1 if height > 0.5 else 0)


def _title_below(page: Page, text: str, font: Font, style: Style) -> None:
    for line in reversed(wrap(text, font, 0.8 * page.width) if text else []):
        page.put(
            text_at(
                (page.left + page.right) / 2,
                page.bottom - font.line_px / 2,
                line,
                font,
                style.ink,
                anchor="middle",
                role="axis title",
            )
        )
        page.bottom -= font.line_px
    page.bottom -= 3 * page.ratio if text else 0


def _title_beside(page: Page, text: str, font: Font) -> Any:
    """Reserve the strip now; the title is put down when the plot's middle is known."""
    lines = wrap(text, font, 0.85 * (page.bottom - page.top)) if text else []
    left = page.left
    page.left += len(lines) * font.line_px + (4 * page.ratio if lines else 0)

    def put(plot: Plot) -> None:
        middle = (plot.box[1] + plot.box[3]) / 2
        for k, line in enumerate(lines):
            half = text_width(line, font) / 2
            y = min(max(middle, page.top - font.size_px + half), page.bottom - half)
            page.put(
                text_at(
                    left + (k + 0.5) * font.line_px,
                    y,
                    line,
                    font,
                    (70, 70, 70),
                    anchor="middle",
                    turn_deg=90.0,
                    role="axis title",
                )
            )

    return put


def _direct_names(page: Page, plot: Plot, marks: Marks, table: Table, look: Look, font: Font) -> None:
    heights = sorted(row[-1][1] for row in marks.points)
    nearest = min(b - a for a, b in zip(heights, heights[1:], strict=False))
    if nearest < font.line_px:
        raise _TooSmall(0, (font.line_px / nearest - 1) * (plot.box[3] - plot.box[1]) + 1)
    for k, series in enumerate(table.series):
        point = marks.points[k][-1]
        page.put(text_at(plot.box[2] + 3 * page.ratio, point[1], series.name, font, look.dark(k), role="legend"))
