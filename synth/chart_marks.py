"""Bars, lines, dots and areas: which form, which colours, and where each mark lies."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from synth.chart_frame import Page
from synth.chart_plot import Plot
from synth.chart_shapes import Area, Box, Colour, Dots, Point, Stroke, rectangle
from synth.looks import COLOURS, HORIZONTAL, Style, colours_of
from synth.tables import Table

_DASHES = ((), (5.0, 3.0), (1.5, 2.0), (7.0, 2.0, 1.5, 2.0), (3.0, 2.0))


@dataclass(frozen=True, kw_only=True)
class Look:
    """The kind of chart taken apart, and its colours: one a series, or, where `by_place`, one a place."""

    kind: str
    horizontal: bool
    parts: Literal["none", "stack", "hundred"]
    grouped: bool
    lines: bool  # marks are points: lines, dots, areas
    joined: bool
    dotted: bool
    filled: bool
    colours: tuple[tuple[str, Colour], ...]
    by_place: bool
    marker: str
    hollow: bool
    dashes: tuple[tuple[float, ...], ...]
    bar_width: float
    line_px: float
    turned: bool  # numbers stand upright on narrow bars

    @property
    def stacked(self) -> bool:
        return self.parts != "none"

    def colour(self, series: int, place: int) -> Colour:
        return self.colours[place if self.by_place else series][1]

    def dark(self, series: int) -> Colour:
        """The series' colour, dark enough for text on white."""
        colour = self.colours[series][1]
        share = min(1.0, 120 / max(_luminance(colour), 1))
        return tuple(round(value * share) for value in colour)  # type: ignore[return-value]

    def stack_tops(self, table: Table) -> list[Decimal]:
        return [sum((s.values[i] or Decimal(0) for s in table.series), Decimal(0)) for i in range(len(table.x))]


@dataclass(frozen=True, kw_only=True)
class Marks:
    """[series][place]; None where the value is missing. Bars have boxes, all else has points (for bars: their ends)."""

    boxes: tuple[tuple[Box | None, ...], ...]
    points: tuple[tuple[Point | None, ...], ...]


def _luminance(colour: Colour) -> float:
    return 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2]


def reads_white(colour: Colour) -> bool:
    """Is white text on this colour easier to read than black?"""
    return _luminance(colour) < 140


def look_of(table: Table, choices: Mapping[str, Any], style: Style, rng: random.Random) -> Look:
    kind = choices["kind"]
    horizontal = kind.endswith(HORIZONTAL)
    stem = kind.removesuffix(HORIZONTAL)
    count, places = len(table.series), len(table.x)
    order = rng.random()
    colours = colours_of(choices, count, order)
    by_place = stem == "unlabelled bars"
    if stem == "bars" and choices["one_colour"] != "one":
        if choices["one_colour"] == "each" and places <= 8 and choices["colours"] != "near":
            colours, by_place = colours_of(choices, places, order), True
        elif choices["one_colour"] == "marked":
            marked = rng.randrange(places)
            (name, plain), (other_name, other) = (colours_of(choices, 2, order) * 2)[:2]
            if choices["colours"] == "near":
                other_name, other = (
                    ("red", COLOURS["red"]) if abs(plain[0] - COLOURS["red"][0]) > 60 else ("blue", COLOURS["blue"])
                )
            colours, by_place = [(other_name, other) if k == marked else (name, plain) for k in range(places)], True
    if by_place and stem == "unlabelled bars":
        colours = colours_of(choices, places, order)
    lines = stem in ("line", "lines", "dots", "dot-lines", "area")
    dashed = lines and count > 1 and rng.random() < 0.15
    longest = max(len(format(number, "f")) for number in table.numbers)
    return Look(
        kind=kind, horizontal=horizontal, parts="hundred" if stem.startswith("100 %") else "stack" if stem.startswith("stacked") else "none",
        grouped=stem == "grouped bars", lines=lines, joined=stem in ("line", "lines", "dot-lines", "area"), dotted=stem in ("dots", "dot-lines"),
        filled=stem == "area", colours=tuple(colours), by_place=by_place, marker=choices["marker"] if stem in ("dots", "dot-lines") else "",
        hollow=choices["hollow"], dashes=tuple(_DASHES[k % len(_DASHES)] if dashed else () for k in range(count)), bar_width=choices["bar_width"],
        line_px=choices["line_width"], turned=stem == "grouped bars" and not horizontal and longest >= 4,
    )  # fmt: skip


def put_marks(front: Page, back: Page, plot: Plot, table: Table, look: Look, style: Style, ratio: float) -> Marks:
    """Draw the marks; bars below the frame, lines and dots above it."""
    if look.lines:
        return _put_points(front, back, plot, table, look, style, ratio)
    return _put_bars(back, plot, table, look, style)


def _put_bars(page: Page, plot: Plot, table: Table, look: Look, style: Style) -> Marks:
    count = len(table.series) if look.grouped else 1
    width = plot.slot_px * look.bar_width / count
    base = Decimal(0) if not plot.axis.log else plot.axis.low
    base = min(max(base, plot.axis.low), plot.axis.high)
    boxes: list[list[Box | None]] = [[None] * len(table.x) for _ in table.series]
    for place in range(len(table.x)):
        under = base
        for k, series in enumerate(table.series):
            value = series.values[place]
            if value is None:
                continue
            side = plot.center(place) + ((k - count / 2) * width if look.grouped else -width / 2)
            low, high = round(side), max(round(side + width), round(side) + 2)
            start, end = (under, under + value) if look.stacked else (base, value)
            boxes[k][place] = _box(plot, low, high, start, end)
            under = end if look.stacked else base
            _put_bar(page, boxes[k][place], look.colour(k, place), style)
    ends = tuple(
        tuple(None if box is None else _end(box, plot, series.values[i] < 0) for i, box in enumerate(row))
        for row, series in zip(boxes, table.series, strict=True)
    )
    return Marks(boxes=tuple(map(tuple, boxes)), points=ends)


def _box(plot: Plot, low: int, high: int, start: Decimal, end: Decimal) -> Box:
    near, far = sorted((round(plot.along(start), 2), round(plot.along(end), 2)))
    return (near, float(low), far, float(high)) if plot.horizontal else (float(low), near, float(high), far)


def _end(box: Box, plot: Plot, negative: bool) -> Point:
    left, top, right, bottom = box
    if plot.horizontal:
        return (left if negative else right, (top + bottom) / 2)
    return ((left + right) / 2, bottom if negative else top)


def _put_bar(page: Page, box: Box, colour: Colour, style: Style) -> None:
    left, top, right, bottom = box
    if style.bar_edge and min(right - left, bottom - top) > 3:
        # The outline lies inside, so that its outer edge is the bar's.
        page.put(rectangle((left + 0.5, top + 0.5, right - 0.5, bottom - 0.5), colour, (20, 20, 20)))
    else:
        page.put(rectangle(box, colour))


def _put_points(front: Page, back: Page, plot: Plot, table: Table, look: Look, style: Style, ratio: float) -> Marks:
    points: list[tuple[Point | None, ...]] = []
    width = look.line_px * ratio
    for k, series in enumerate(table.series):
        colour = look.colour(k, 0)
        row = tuple(
            None if v is None else (round(plot.center(i), 2), round(plot.along(v), 2)) for i, v in enumerate(series.values)
        )
        points.append(row)
        runs = _runs(row)
        if look.filled:
            for run in runs:
                floor = plot.box[3]
                shade = tuple(round(255 - (255 - value) * 0.45) for value in colour)
                back.put(Area(points=((run[0][0], floor), *run, (run[-1][0], floor)), fill=shade))
        for run in runs if look.joined else []:
            if len(run) > 1:
                front.put(Stroke(points=run, colour=colour, width_px=width, dash_px=tuple(d * ratio for d in look.dashes[k])))
            elif not look.dotted:
                front.put(Dots(points=run, shape="circle", size_px=3 * width, fill=colour, edge=colour))
        if look.dotted:
            there = tuple(point for point in row if point is not None)
            size = (3.2 + 1.6 * look.line_px) * ratio
            fill = style.paper if look.hollow else colour
            front.put(
                Dots(points=there, shape=look.marker, size_px=size, fill=fill, edge=colour, edge_px=max(1.2 * ratio, 1.0))
            )
    return Marks(boxes=tuple((None,) * len(table.x) for _ in table.series), points=tuple(points))


def _runs(row: tuple[Point | None, ...]) -> list[tuple[Point, ...]]:
    """Unbroken stretches between missing values."""
    runs: list[list[Point]] = [[]]
    for point in row:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [tuple(run) for run in runs if run]
