"""Numbers beside their marks: each where it can be read and belongs to one mark only, or not at all."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from decimal import Decimal

from synth.chart_axis import NumberStyle
from synth.chart_fonts import Font, text_width
from synth.chart_frame import Page
from synth.chart_marks import Look, Marks, reads_white
from synth.chart_plot import Plot
from synth.chart_shapes import Box, Colour, Point, Shape, Text, bounds, crosses, overlap, text_at
from synth.looks import Style
from synth.tables import Table


def put_labels(
    page: Page, taken: Sequence[Shape], plot: Plot, marks: Marks, table: Table, look: Look, numbers: NumberStyle, style: Style, font: Font,
    wanted: str, rng: random.Random,
) -> tuple[tuple[bool, ...], ...]:  # fmt: skip
    """Write the numbers of `all` or `some` marks; returns which stand there, [series][place]."""
    printed = [[False] * len(table.x) for _ in table.series]
    chosen = _chosen(table, wanted, rng)
    bars = [box for row in marks.boxes for box in row if box is not None]
    texts: list[Box] = [bounds(shape.corners()) for shape in taken if isinstance(shape, Text)]
    for k, series in enumerate(table.series):
        for place, value in enumerate(series.values):
            if value is None and not look.lines and not look.stacked:
                label = _missing(plot, k, place, len(table.series) if look.grouped else 1, look, style, font, page.ratio)
                box = bounds(label.corners())
                if not any(overlap(box, other, 1) for other in texts):
                    texts.append(box)
                    page.put(label)
            if value is None or not chosen[k][place]:
                continue
            text = numbers.write(value)
            label = (
                _inside(marks.boxes[k][place], text, look.colour(k, place), font)
                if look.stacked
                else _beside_bar(plot, marks.points[k][place], value, text, look, style, font, page.ratio)
                if not look.lines
                else _beside_point(plot, marks, k, place, text, look, style, font, page.ratio, texts)
            )
            if label is None:
                continue
            box = bounds(label.corners())
            if any(overlap(box, other, 1) for other in texts) or not _within(box, plot, page.ratio):
                continue
            if look.grouped and any(overlap(box, other, -1.5 * page.ratio) for other in bars if other != marks.boxes[k][place]):
                continue
            texts.append(box)
            page.put(label)
            printed[k][place] = True
    return tuple(map(tuple, printed))


def _chosen(table: Table, wanted: str, rng: random.Random) -> list[list[bool]]:
    count = len(table.x)
    if wanted == "some":
        if rng.random() < 0.5:
            keep = [k % 2 == 0 for k in range(count)]
        else:
            keep = [k in (0, count - 1) for k in range(count)]
        return [keep for _ in table.series]
    return [[wanted == "all"] * count for _ in table.series]


def _within(box: Box, plot: Plot, ratio: float) -> bool:
    """Inside the frame; where there is none, above and to the right, a little beyond."""
    left, top, right, bottom = plot.box
    room = 0 if plot.closed else 8 * ratio
    return box[0] >= left + 1 and box[1] >= top - room and box[2] <= right + room and box[3] <= bottom - 1


def _inside(box: Box, text: str, colour: Colour, font: Font) -> Text | None:
    """In the middle of a stacked part, when the part is large enough."""
    left, top, right, bottom = box
    if text_width(text, font) + 4 > right - left or font.size_px + 2 > bottom - top:
        return None
    ink = (255, 255, 255) if reads_white(colour) else (20, 20, 20)
    return text_at((left + right) / 2, (top + bottom) / 2, text, font, ink, anchor="middle", role="label")


def _beside_bar(plot: Plot, end: Point, value: Decimal, text: str, look: Look, style: Style, font: Font, ratio: float) -> Text:
    ink = style.label_ink or style.ink
    away = -1 if value < 0 else 1
    x, y = end
    if plot.horizontal:
        return text_at(x + away * 4 * ratio, y, text, font, ink, anchor="left" if away > 0 else "right", role="label")
    if look.turned:
        anchor = "left" if away > 0 else "right"
        return text_at(x, y - away * 4 * ratio, text, font, ink, anchor=anchor, turn_deg=90.0, role="label")
    return text_at(x, y - away * (0.55 * font.size_px + 3 * ratio), text, font, ink, anchor="middle", role="label")


def _beside_point(
    plot: Plot, marks: Marks, k: int, place: int, text: str, look: Look, style: Style, font: Font, ratio: float, texts: list[Box]
) -> Text | None:  # fmt: skip
    """Above or below its point, clear of every line and dot, and nearer to it than to any other point."""
    x, y = marks.points[k][place]
    ink = look.dark(k) if len(marks.points) > 1 else style.label_ink or style.ink
    lift = 0.5 * font.size_px + (3 + look.line_px + (3 if look.dotted else 0)) * ratio
    others = [
        point
        for row in marks.points
        for i, point in enumerate(row)
        if point is not None and point != (x, y) and abs(i - place) <= 3
    ]
    for dy in (-lift, lift, -1.5 * lift, 1.5 * lift):
        label = text_at(x, y + dy, text, font, ink, anchor="middle", role="label")
        box = bounds(label.corners())
        reach = (0.5 * look.line_px + 1) * ratio  # digits have no descenders, lines have a width
        tight = (box[0] - reach, box[1] - reach, box[2] + reach, box[3] - 0.2 * font.size_px + reach)
        near = (x, (box[1] + box[3]) / 2)
        if any(math.dist(near, point) < 1.6 * abs(dy) for point in others):
            continue
        if any(overlap(tight, (px - 4 * ratio, py - 4 * ratio, px + 4 * ratio, py + 4 * ratio)) for px, py in others):
            continue
        if look.joined and any(crosses(tight, a, b) for a, b in _segments(marks, place)):
            continue
        if any(overlap(box, other, 1) for other in texts) or not _within(box, plot, ratio):
            continue
        if plot.axis.low < 0 < plot.axis.high and not plot.axis.log and box[1] - 1 < plot.along(Decimal(0)) < box[3] + 1:
            continue  # the line at zero would strike it through
        return label
    return None


def _segments(marks: Marks, place: int) -> Iterable[tuple[Point, Point]]:
    """The pieces of all lines near a place."""
    for row in marks.points:
        near = range(max(0, place - 3), min(len(row) - 1, place + 3))
        yield from ((row[i], row[i + 1]) for i in near if row[i] is not None and row[i + 1] is not None)


def _missing(plot: Plot, k: int, place: int, count: int, look: Look, style: Style, font: Font, ratio: float) -> Text:
    """`n/a` where a bar would stand, so that a missing value is not taken for zero."""
    width = plot.slot_px * look.bar_width / count
    side = plot.center(place) + (k - count / 2 + 0.5) * width
    base = plot.along(max(Decimal(0), plot.axis.low))
    if plot.horizontal:
        return text_at(base + 4 * ratio, side, "n/a", font, style.ink, role="label")
    if text_width("n/a", font) + 4 > width:
        return text_at(side, base - 4 * ratio, "n/a", font, style.ink, turn_deg=90.0, role="label")
    return text_at(side, base - 0.6 * font.size_px - 2, "n/a", font, style.ink, anchor="middle", role="label")
