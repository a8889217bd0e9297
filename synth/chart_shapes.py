"""A drawn chart as a list of shapes in pixels: x to the right, y down, from the picture's top left corner.

Layout makes them, `chart_pen` paints them in order, tests look at them. Nothing here knows matplotlib.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from synth.chart_fonts import ASCENT, DESCENT, Font, text_width

Colour = tuple[int, int, int]
Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True, kw_only=True)
class Area:
    """A filled polygon, with an outline where `edge` is given."""

    points: tuple[Point, ...]
    fill: Colour
    edge: Colour | None = None
    edge_px: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Stroke:
    points: tuple[Point, ...]
    colour: Colour
    width_px: float
    dash_px: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Dots:
    points: tuple[Point, ...]
    shape: str  # circle, square, diamond, triangle
    size_px: float
    fill: Colour
    edge: Colour
    edge_px: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Text:
    """`x`, `y` is the start of the baseline; the text is turned about it, anticlockwise. `role` says what the text is for."""

    x: float
    y: float
    text: str
    font: Font
    colour: Colour
    turn_deg: float = 0.0
    role: str = ""

    def corners(self) -> tuple[Point, ...]:
        """The four corners of the line, turned."""
        width, size = text_width(self.text, self.font), self.font.size_px
        cos, sin = math.cos(math.radians(self.turn_deg)), math.sin(math.radians(self.turn_deg))
        flat = ((0.0, -ASCENT * size), (width, -ASCENT * size), (width, DESCENT * size), (0.0, DESCENT * size))
        return tuple((self.x + dx * cos + dy * sin, self.y - dx * sin + dy * cos) for dx, dy in flat)


Shape = Area | Stroke | Dots | Text


def rectangle(box: Box, fill: Colour, edge: Colour | None = None, edge_px: float = 1.0) -> Area:
    left, top, right, bottom = box
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    return Area(points=corners, fill=fill, edge=edge, edge_px=edge_px)


def text_at(
    x: float, y: float, text: str, font: Font, colour: Colour, *, anchor: str = "left", turn_deg: float = 0.0, role: str = ""
) -> Text:
    """A line of text whose left end, middle or right end lies at (x, y), with y the middle of its capitals."""
    back = {"left": 0.0, "middle": 0.5, "right": 1.0}[anchor] * text_width(text, font)
    drop = 0.36 * font.size_px
    cos, sin = math.cos(math.radians(turn_deg)), math.sin(math.radians(turn_deg))
    return Text(
        x=round(x - back * cos + drop * sin, 2), y=round(y + back * sin + drop * cos, 2), text=text, font=font, colour=colour,
        turn_deg=turn_deg, role=role,
    )  # fmt: skip


def bounds(points: tuple[Point, ...]) -> Box:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def overlap(a: Box, b: Box, gap_px: float = 0.0) -> bool:
    return a[0] < b[2] + gap_px and b[0] < a[2] + gap_px and a[1] < b[3] + gap_px and b[1] < a[3] + gap_px


def crosses(box: Box, start: Point, end: Point) -> bool:
    """Does the segment touch the box? (Liang-Barsky)"""
    enter, leave = 0.0, 1.0
    for axis in (0, 1):
        step = end[axis] - start[axis]
        low, high = box[axis] - start[axis], box[axis + 2] - start[axis]
        if step == 0:
            if low > 0 or high < 0:
                return False
            continue
        near, far = sorted((low / step, high / step))
        enter, leave = max(enter, near), min(leave, far)
    return enter <= leave
