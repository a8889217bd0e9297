"""Behind and around the marks: shaded bands, grid, frame, ticks, tick labels, names of places."""

from __future__ import annotations

import math
from decimal import Decimal

from synth.chart_fonts import Font
from synth.chart_frame import Page
from synth.chart_marks import Look
from synth.chart_plot import Plot
from synth.chart_shapes import Colour, Stroke, rectangle, text_at
from synth.looks import Style


def put_grid(back: Page, front: Page, plot: Plot, look: Look, style: Style, grid: str) -> None:
    left, top, right, bottom = plot.box
    if style.bands:
        for place in range(0, plot.count, 2):
            low, high = plot.center(place) - plot.slot_px / 2, plot.center(place) + plot.slot_px / 2
            box = (left, low, right, high) if plot.horizontal else (low, top, high, bottom)
            back.put(rectangle(box, _darker(style.paper, 6)))
    if grid in ("value", "both"):
        for tick in plot.axis.ticks:
            _across(back, plot, plot.along(tick), style.faint, back.ratio, style.grid_dash_px)
    if grid == "both":
        for place in range(plot.count):
            at = _crisp(plot.center(place))
            ends = ((left, at), (right, at)) if plot.horizontal else ((at, top), (at, bottom))
            back.put(Stroke(points=ends, colour=style.faint, width_px=_thin(back), dash_px=style.grid_dash_px))
    _frame(front, plot, style)
    zero = Decimal(0)
    if plot.axis.low < zero and not plot.axis.log:
        _across(front, plot, plot.along(zero), (90, 90, 90), front.ratio)


def _across(page: Page, plot: Plot, at: float, colour: Colour, width_px: float, dash_px: tuple[float, ...] = ()) -> None:
    """A line through the plot at one value."""
    left, top, right, bottom = plot.box
    at = _crisp(at)
    ends = ((at, top), (at, bottom)) if plot.horizontal else ((left, at), (right, at))
    page.put(Stroke(points=ends, colour=colour, width_px=max(1.0, round(width_px)), dash_px=dash_px))


def _frame(page: Page, plot: Plot, style: Style) -> None:
    left, top, right, bottom = (_crisp(edge) for edge in plot.box)
    colour = style.ink
    base = ((left, top), (left, bottom)) if plot.horizontal else ((left, bottom), (right, bottom))
    if style.frame == "box":
        corners = ((left, top), (right, top), (right, bottom), (left, bottom), (left, top), (right, top))
        page.put(Stroke(points=corners, colour=colour, width_px=_thin(page)))
    elif style.frame == "L":
        page.put(Stroke(points=((left, top), (left, bottom), (right, bottom)), colour=colour, width_px=_thin(page)))
    elif style.frame == "base":
        page.put(Stroke(points=base, colour=colour, width_px=_thin(page)))


def put_value_axis(page: Page, plot: Plot, ticks: list[str], style: Style, font: Font) -> None:
    left, _, _, bottom = plot.box
    long, gap = style.tick_px * page.ratio, 4 * page.ratio
    for tick, text in zip(plot.axis.ticks, ticks, strict=True):
        at = plot.along(tick)
        if long:
            _tick(page, plot, at, long, style.ink)
        if plot.horizontal:
            page.put(text_at(at, bottom + long + gap + 0.4 * font.size_px, text, font, style.ink, anchor="middle", role="tick"))
        else:
            page.put(text_at(left - long - gap, at, text, font, style.ink, anchor="right", role="tick"))
    if style.minor_ticks and not plot.axis.log:
        fine = plot.axis.step / 5
        for k in range(1, math.floor((plot.axis.high - plot.axis.low) / fine) + 1):
            if k % 5:
                _tick(page, plot, plot.along(plot.axis.low + k * fine), long / 2, style.ink)


def _tick(page: Page, plot: Plot, at: float, long: float, colour: Colour) -> None:
    left, _, _, bottom = plot.box
    at = _crisp(at)
    ends = ((at, bottom), (at, bottom + long)) if plot.horizontal else ((left - long, at), (left, at))
    page.put(Stroke(points=ends, colour=colour, width_px=_thin(page)))


def put_names(page: Page, plot: Plot, style: Style, font: Font) -> None:
    left, _, _, bottom = plot.box
    long, gap = style.tick_px * page.ratio, 4 * page.ratio
    names = plot.names
    for place, lines in enumerate(names.lines):
        at = plot.center(place)
        if long:
            shown = long if names.shown[place] else long / 2
            ends = (
                ((left - long, _crisp(at)), (left, _crisp(at)))
                if plot.horizontal
                else ((_crisp(at), bottom), (_crisp(at), bottom + shown))
            )
            page.put(Stroke(points=ends, colour=style.ink, width_px=_thin(page)))
        if plot.horizontal:
            for k, line in enumerate(lines):
                y = at + (k - (len(lines) - 1) / 2) * font.line_px
                page.put(text_at(left - long - gap, y, line, font, style.ink, anchor="right", role="name"))
        elif names.turn_deg:
            y = bottom + long + gap + (0.3 * font.size_px if names.turn_deg == 45 else 0)
            anchor = "left" if names.turn_deg < 0 else "right"
            page.put(text_at(at, y, lines[0], font, style.ink, anchor=anchor, turn_deg=names.turn_deg, role="name"))
        else:
            for k, line in enumerate(lines):
                y = bottom + long + 1.5 * gap + (k + 0.4) * font.line_px
                if line:
                    page.put(text_at(at, y, line, font, style.ink, anchor="middle", role="name"))


def _thin(page: Page) -> float:
    return max(1.0, round(page.ratio))


def _crisp(at: float) -> float:
    """The middle of a pixel, so that a line one pixel wide is sharp."""
    return math.floor(at) + 0.5


def _darker(colour: Colour, by: int) -> Colour:
    return tuple(max(value - by, 0) for value in colour)  # type: ignore[return-value]
