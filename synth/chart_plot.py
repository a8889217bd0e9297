"""The plot's rectangle, where values and places lie in it, and how the places' names fit along its edge."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from decimal import Decimal

from synth.chart_axis import ValueAxis
from synth.chart_fonts import Font, text_width, wrap
from synth.chart_shapes import Box
from synth.tables import Table


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names of the places in lines; turned names have one line."""

    lines: tuple[tuple[str, ...], ...]
    turn_deg: float
    shown: tuple[bool, ...]

    def height(self, font: Font) -> float:
        longest = max(text_width(line, font) for each in self.lines for line in each)
        if self.turn_deg == 0:
            return (max(len(each) for each in self.lines) + 0.2) * font.line_px
        turn = math.radians(abs(self.turn_deg))
        return longest * math.sin(turn) + font.size_px * math.cos(turn) + 2

    def least_slot(self, font: Font) -> float:
        """Pixels that a place needs so that turned names do not touch."""
        if self.turn_deg == 0 or not all(self.shown):
            return 0.0
        return 1.25 * font.size_px / (math.sin(math.radians(45)) if self.turn_deg == 45 else 1)


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Left, top, right, bottom in whole pixels; places are equal strips along the edge that is not the value axis."""

    box: Box
    axis: ValueAxis
    horizontal: bool
    count: int
    names: Names
    closed: bool = False  # a frame runs all around it

    @property
    def value_px(self) -> tuple[float, float]:
        """Where the axis begins and ends: x of its ends when horizontal, else y."""
        left, top, right, bottom = self.box
        return (left, right) if self.horizontal else (bottom, top)

    def along(self, value: Decimal) -> float:
        low, high = self.value_px
        return low + (high - low) * self.axis.fraction(value)

    @property
    def slot_px(self) -> float:
        left, top, right, bottom = self.box
        return ((bottom - top) if self.horizontal else (right - left)) / self.count

    def center(self, place: int) -> float:
        """The middle of a place's strip: from the top down when horizontal, else from the left."""
        return (self.box[1] if self.horizontal else self.box[0]) + (place + 0.5) * self.slot_px

    @property
    def value_per_px(self) -> Decimal:
        """Of a linear axis."""
        low, high = self.value_px
        return (self.axis.high - self.axis.low) / Decimal(str(abs(high - low)))


def name_lines(table: Table, font: Font, slot: float, turn_deg: float, rng: random.Random) -> Names:
    """Names along the bottom: side by side if they fit, else broken at spaces, else turned, else (in a sequence) thinned out."""
    room = 0.94 * slot - 2
    all_shown = (True,) * len(table.x)
    steep = rng.random() < 0.3
    lines = [wrap(name, font, room) for name in table.x]
    if max(text_width(line, font) for each in lines for line in each) <= room and max(map(len, lines)) <= 3:
        return Names(lines=tuple(map(tuple, lines)), turn_deg=0.0, shown=all_shown)
    if turn_deg == 45 and steep:
        turn_deg = 90.0
    turned = Names(lines=tuple((name,) for name in table.x), turn_deg=turn_deg, shown=all_shown)
    if table.x_things is None and slot < turned.least_slot(font):
        every = math.ceil(1.15 * max(text_width(name, font) for name in table.x) / slot)
        shown = tuple(k % every == 0 for k in range(len(table.x)))
        return Names(
            lines=tuple((name if show else "",) for name, show in zip(table.x, shown, strict=True)), turn_deg=0.0, shown=shown
        )
    return turned
