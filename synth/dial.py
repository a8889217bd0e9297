"""Draw a face and its hands, anti-aliased at any size.

In:  a `Clock`, all geometry in pixels of the final image (x right, y down, pixel k covers k to k+1).   Out: an RGB image.
Nothing is random here. Each layer is a stencil drawn larger and box-reduced, cut to its own bounds, then inked through.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

Point = tuple[float, float]
Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Disc:
    center: Point
    radius: float


@dataclass(frozen=True)
class Polygon:
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Hole:
    """Cut out of the shapes before it in its layer."""

    shape: Disc | Polygon


Shape = Disc | Polygon | Hole


@dataclass(frozen=True)
class Layer:
    """Shapes that share one colour; where they overlap they are one."""

    colour: Colour
    shapes: tuple[Shape, ...]
    edge_hidden: bool = False  # a later layer covers the whole edge, so it need not be smooth; five times as fast


@dataclass(frozen=True, kw_only=True)
class Numeral:
    text: str
    center: Point
    font: str
    height_px: int
    colour: Colour


@dataclass(frozen=True, kw_only=True)
class Hand:
    name: str  # hour, minute, second
    shape: str
    angle_deg: float  # clockwise from 12
    length_px: float
    width_px: float
    tail_px: float
    colour: Colour


@dataclass(frozen=True, kw_only=True)
class Clock:
    size_px: int
    background: tuple[Colour, Colour]  # from, to
    gradient: str  # plain, gradient down, gradient across
    center: Point
    outline: tuple[Point, ...]
    face: tuple[Layer, ...]  # bottom to top
    numerals: tuple[Numeral, ...]
    hands: tuple[Hand, ...]  # bottom to top
    hub: Layer


def draw(clock: Clock) -> Image.Image:
    """The clock as an RGB image of size_px x size_px."""
    image = _background(clock)
    for layer in clock.face:
        _ink(image, layer)
    for numeral in clock.numerals:
        glyphs = glyph_stencil(numeral.text, numeral.font, numeral.height_px)
        corner = (round(numeral.center[0] - glyphs.width / 2), round(numeral.center[1] - glyphs.height / 2))
        image.paste(numeral.colour, (*corner, corner[0] + glyphs.width, corner[1] + glyphs.height), glyphs)
    for hand in clock.hands:
        _ink(image, Layer(hand.colour, (hand_polygon(hand, clock.center),)))
    _ink(image, clock.hub)
    return image


def on_dial(center: Point, angle_deg: float, along_px: float, across_px: float = 0.0) -> Point:
    """The point `along_px` from the centre towards the angle (clockwise from 12), `across_px` to the right of that way."""
    sine, cosine = math.sin(math.radians(angle_deg)), math.cos(math.radians(angle_deg))
    return (center[0] + along_px * sine + across_px * cosine, center[1] - along_px * cosine + across_px * sine)


def hand_tip(hand: Hand, center: Point) -> Point:
    return on_dial(center, hand.angle_deg, hand.length_px)


def hand_polygon(hand: Hand, center: Point) -> Polygon:
    """The hand's outline; every shape is symmetric about its axis and ends exactly at its length."""
    length, half, tail = hand.length_px, hand.width_px / 2, hand.tail_px
    match hand.shape:
        case "baton":
            right = [(-tail, half), (length, half)]
        case "tapered":
            right = [(-tail, half), (0.0, half), (length, half * 0.35)]
        case "pointed":
            right = [(-tail, half), (length - 3.5 * half, half), (length, 0.0)]
        case "arrow":
            right = [(-tail, half * 0.75), (length - 5 * half, half * 0.75), (length - 5 * half, half * 2.0), (length, 0.0)]
        case _:
            raise ValueError(f"a hand is a baton, tapered, pointed or an arrow, got {hand.shape!r}")
    left = [(along, -across) for along, across in reversed(right)]
    return Polygon(tuple(on_dial(center, hand.angle_deg, along, across) for along, across in right + left))


@lru_cache(maxsize=8192)
def glyph_stencil(text: str, font: str, height_px: int) -> Image.Image:
    """The text as a mask cut to its ink; FreeType anti-aliases it, so it needs no reducing."""
    face = ImageFont.truetype(_font_folder() / f"{font}.ttf", height_px, layout_engine=ImageFont.Layout.BASIC)
    canvas = Image.new("L", (height_px * (len(text) + 2), height_px * 3))
    ImageDraw.Draw(canvas).text((height_px, height_px // 2), text, fill=255, font=face)
    return canvas.crop(canvas.getbbox())


@lru_cache(maxsize=1)
def _font_folder() -> Path:
    # Looked up, not imported: matplotlib takes longer to import than a hundred clocks to draw.
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise ValueError("the numerals' fonts come with matplotlib, which is not installed; run `pip install matplotlib`")
    return Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf"


def _background(clock: Clock) -> Image.Image:
    size = (clock.size_px, clock.size_px)
    start, end = clock.background
    image = Image.new("RGB", size, start)
    if clock.gradient != "plain":
        ramp = Image.linear_gradient("L").resize(size, Image.Resampling.BILINEAR)
        if clock.gradient == "gradient across":
            ramp = ramp.transpose(Image.Transpose.ROTATE_90)
        image.paste(end, (0, 0, *size), ramp)
    return image


def _supersampling(size_px: int) -> int:
    """Eight steps a pixel while images are small, where a hand's whole swing between two minutes is a pixel or less; then four."""
    return 8 if size_px <= 128 else 4


def _ink(image: Image.Image, layer: Layer) -> None:
    """Paste the layer's colour through the stencil of its shapes."""
    if layer.edge_hidden:
        _trace(ImageDraw.Draw(image), layer.shapes, (0, 0), 1, layer.colour)
        return
    box = _bounds(layer.shapes, image.size)
    if box is None:
        return
    left, top, right, bottom = box
    steps = _supersampling(image.width)
    stencil = Image.new("L", ((right - left) * steps, (bottom - top) * steps))
    _trace(ImageDraw.Draw(stencil), layer.shapes, (left, top), steps, 255)
    image.paste(layer.colour, box, stencil.reduce(steps))


def _trace(pen: ImageDraw.ImageDraw, shapes: Sequence[Shape], origin: Point, steps: int, ink: int | Colour) -> None:
    """Fill the shapes, `steps` canvas pixels to one of the image, from `origin` on."""
    left, top = origin
    for shape in shapes:
        fill, outline = (0, shape.shape) if isinstance(shape, Hole) else (ink, shape)
        # Pillow rounds towards zero and fills both ends: round first, and let pixel k stand for k to k+1.
        if isinstance(outline, Disc):
            (x, y), r = outline.center, outline.radius
            low = (round((x - r - left) * steps), round((y - r - top) * steps))
            high = (round((x + r - left) * steps) - 1, round((y + r - top) * steps) - 1)
            if high >= low:
                pen.ellipse((*low, *high), fill=fill)
        else:
            pen.polygon(
                [(round((x - left) * steps - 0.5), round((y - top) * steps - 0.5)) for x, y in outline.points], fill=fill
            )


def _bounds(shapes: Sequence[Shape], size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """Whole pixels that hold the shapes, cut to the image; None when nothing of them shows."""
    xs: list[float] = []
    ys: list[float] = []
    for shape in shapes:
        if isinstance(shape, Disc):
            xs += (shape.center[0] - shape.radius, shape.center[0] + shape.radius)
            ys += (shape.center[1] - shape.radius, shape.center[1] + shape.radius)
        elif isinstance(shape, Polygon):
            xs += [x for x, _ in shape.points]
            ys += [y for _, y in shape.points]
    if not xs:
        return None
    left, top = max(math.floor(min(xs)), 0), max(math.floor(min(ys)), 0)
    right, bottom = min(math.ceil(max(xs)) + 1, size[0]), min(math.ceil(max(ys)) + 1, size[1])
    return (left, top, right, bottom) if right > left and bottom > top else None
