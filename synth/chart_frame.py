"""The page around the plot: title, subtitle, footer, legend; each takes its strip and leaves the rest.

`Page` is the free rectangle and the shapes so far. Strips are cut from the outside in, so that nothing can lie on anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from synth.chart_fonts import Font, text_width, wrap
from synth.chart_shapes import Colour, Dots, Shape, Stroke, rectangle, text_at
from synth.chart_texts import ChartTexts
from synth.looks import Style

_SMALLEST_TEXT_PX = 7.6  # digits are told apart down to here


@dataclass
class Page:
    """What is still free (left, top, right, bottom), in pixels, and what has been put down."""

    left: float
    top: float
    right: float
    bottom: float
    ratio: float  # pixels here per pixel at 100 dpi
    shapes: list[Shape] = field(default_factory=list)

    @property
    def width(self) -> float:
        return self.right - self.left

    def put(self, *shapes: Shape) -> None:
        self.shapes.extend(shapes)

    def lines_on_top(self, lines: Sequence[str], font: Font, colour: Colour, *, middle: bool = False, role: str = "") -> None:
        for line in lines:
            x = (self.left + self.right) / 2 if middle else self.left
            self.put(
                text_at(x, self.top + font.line_px / 2, line, font, colour, anchor="middle" if middle else "left", role=role)
            )
            self.top += font.line_px


@dataclass(frozen=True, kw_only=True)
class Key:
    """One entry of a legend."""

    name: str
    colour: Colour
    marker: str = ""  # shape of the dots on its line; "" for none
    dash_px: tuple[float, ...] = ()
    line: bool = False


def put_header(page: Page, texts: ChartTexts, style: Style, fonts: Fonts) -> None:
    gap = 6 * page.ratio
    if style.rules:
        y = round(page.top) + 0.5
        page.put(Stroke(points=((page.left, y), (page.right, y)), colour=(120, 120, 120), width_px=max(1.0, page.ratio)))
        page.top += gap
    if texts.title:
        page.lines_on_top(
            wrap(texts.title, fonts.title, page.width), fonts.title, style.title_ink, middle=style.title_middle, role="title"
        )
    if texts.subtitle:
        page.lines_on_top(wrap(texts.subtitle, fonts.subtitle, page.width), fonts.subtitle, style.ink, role="subtitle")
    page.top += gap if texts.title else 0


def put_footer(page: Page, texts: ChartTexts, style: Style, fonts: Fonts) -> None:
    lines = []
    for line in texts.footer:
        font = replace(fonts.small, bold=line.startswith("*"))
        lines += [(part, font) for part in wrap(line.removeprefix("*"), font, page.width)]
    if style.rules:
        y = round(page.bottom) - 0.5
        page.put(Stroke(points=((page.left, y), (page.right, y)), colour=(120, 120, 120), width_px=max(1.0, page.ratio)))
        page.bottom -= 4 * page.ratio
    for line, font in reversed(lines):
        # Statista's line stands on the right, as a copyright does.
        right = line.startswith("©")
        y = page.bottom - font.line_px / 2
        page.put(
            text_at(
                page.right if right else page.left, y, line, font, style.ink, anchor="right" if right else "left", role="footer"
            )
        )
        page.bottom -= font.line_px
    page.bottom -= 5 * page.ratio if lines else 0


def put_legend(page: Page, keys: Sequence[Key], place: str, style: Style, font: Font) -> None:
    """A legend `right`, `top` or `bottom` of what is still free."""
    side, gap = 0.8 * font.size_px, 6 * page.ratio
    wide = max(side, 20 * page.ratio) if any(key.line for key in keys) else side
    widths = [wide + 0.5 * font.size_px + text_width(key.name, font) for key in keys]
    if place == "right":
        pad = gap if style.legend_box else 0
        column = max(widths) + 2 * pad
        left, top = page.right - column, page.top + 4 * page.ratio
        if style.legend_box:
            box = (
                round(left) + 0.5,
                round(top) + 0.5,
                round(left + column) - 0.5,
                round(top + 2 * pad + len(keys) * font.line_px * 1.15) + 0.5,
            )
            page.put(rectangle(box, style.paper, (200, 200, 200)))
        for k, key in enumerate(keys):
            _put_key(page, key, left + pad, top + pad + (k + 0.5) * font.line_px * 1.15, wide, side, style, font)
        page.right = left - 2 * gap
        return
    rows: list[list[int]] = [[]]
    for k, width in enumerate(widths):
        taken = sum(widths[j] + 2 * gap for j in rows[-1])
        if rows[-1] and taken + width > page.width:
            rows.append([])
        rows[-1].append(k)
    height = len(rows) * font.line_px * 1.15
    top = page.top if place == "top" else page.bottom - height
    for r, row in enumerate(rows):
        x = (page.left + page.right) / 2 - (sum(widths[k] + 2 * gap for k in row) - 2 * gap) / 2
        for k in row:
            _put_key(page, keys[k], x, top + (r + 0.5) * font.line_px * 1.15, wide, side, style, font)
            x += widths[k] + 2 * gap
    if place == "top":
        page.top += height + gap
    else:
        page.bottom -= height + gap


def _put_key(page: Page, key: Key, x: float, y: float, wide: float, side: float, style: Style, font: Font) -> None:
    if key.line:
        page.put(Stroke(points=((x, y), (x + wide, y)), colour=key.colour, width_px=2 * page.ratio, dash_px=key.dash_px))
        if key.marker:
            page.put(Dots(points=((x + wide / 2, y),), shape=key.marker, size_px=0.75 * side, fill=key.colour, edge=key.colour))
    elif style.legend_key == "dot":
        page.put(Dots(points=((x + side / 2, y),), shape="circle", size_px=side, fill=key.colour, edge=key.colour))
    else:
        edge = (0, 0, 0) if style.bar_edge else None
        page.put(rectangle((round(x), round(y - side / 2), round(x + side), round(y + side / 2)), key.colour, edge))
    page.put(text_at(x + wide + 0.5 * font.size_px, y, key.name, font, style.ink, role="legend"))


@dataclass(frozen=True, kw_only=True)
class Fonts:
    """The fonts of one chart, sizes settled."""

    title: Font
    subtitle: Font
    text: Font
    small: Font
    label: Font
    axis_title: Font


def fonts_of(style: Style, family: str, scale: float) -> Fonts:
    """`scale` is pixels here per pixel of the style; `family` "look" keeps the look's own."""
    body = style.family if family == "look" else family
    head = style.title_family if family == "look" else family

    def sized(px: float) -> float:
        return max(round(px * scale, 1), _SMALLEST_TEXT_PX)

    return Fonts(
        title=Font(head, sized(style.title_px), bold=style.title_bold),
        subtitle=Font(body, sized(style.text_px), italic=bool(style.subtitle_italic)),
        text=Font(body, sized(style.text_px)),
        small=Font(body, sized(0.85 * style.text_px)),
        label=Font(body, sized(0.92 * style.text_px), bold=style.label_bold),
        axis_title=Font(body, sized(style.text_px), italic=style.axis_title_italic),
    )
