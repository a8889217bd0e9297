"""Draw a face and its hands, anti-aliased at any size.

In:  a `Clock`, all geometry in pixels of its canvas (x right, y down, pixel k covers k to k+1).   Out: an RGB image.
Nothing is random here. Layers are inked through their stencils, bottom to top.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from synth.fields import TURN_STEP_DEG, VARIANTS, field, turned_field
from synth.hands import Hand, hand_shapes
from synth.shapes import Colour, Disc, Point, Polygon, Shape, faded, moved, stencil, trace

BLACK, WHITE = (0, 0, 0), (255, 255, 255)


@dataclass(frozen=True, kw_only=True)
class Finish:
    """A field laid over a layer: `dark` through it, and `light` through its negative."""

    kind: str  # a field's name, or lit: from one side
    depth: float  # 0 to 1
    turn_deg: float = 0.0
    dark: Colour = BLACK
    light: Colour | None = None


@dataclass(frozen=True)
class Layer:
    """Shapes that share one colour; where they overlap they are one."""

    colour: Colour
    shapes: tuple[Shape, ...]
    edge_hidden: bool = False  # a later layer covers the whole edge, so it need not be smooth; five times as fast
    finish: Finish | None = None


@dataclass(frozen=True, kw_only=True)
class Numeral:
    """Any text on the dial."""

    text: str
    center: Point
    font: str
    height_px: int
    colour: Colour
    turn_deg: float = 0.0  # clockwise
    stretch: float = 1.0
    reflected: bool = False


@dataclass(frozen=True, kw_only=True)
class Shadow:
    """What the hands throw on the dial."""

    across_px: float
    down_px: float
    depth: float


@dataclass(frozen=True, kw_only=True)
class Clock:
    size_px: int
    background: tuple[Colour, Colour]  # from, to
    gradient: str  # plain, gradient down, gradient across
    center: Point
    radius_px: float
    body: Disc | Polygon  # all that the clock covers
    outline: tuple[Point, ...]
    face: tuple[Layer, ...]  # bottom to top
    numerals: tuple[Numeral, ...]
    ornaments: tuple[Layer | Numeral, ...]
    shadow: Shadow | None
    hands: tuple[Hand, ...]  # bottom to top
    hub: Layer


def draw(clock: Clock, ground: Image.Image | None = None) -> Image.Image:
    """The clock as an RGB image of size_px x size_px, on its own background or drawn onto `ground`."""
    image = background(clock) if ground is None else ground
    for layer in clock.face:
        _ink(image, layer)
    for part in (*clock.numerals, *clock.ornaments):
        _write(image, part) if isinstance(part, Numeral) else _ink(image, part)
    if clock.shadow is not None and clock.hands:
        _throw(image, clock)
    for hand in clock.hands:
        if hand.edge is not None:
            _ink(image, Layer(hand.edge, hand_shapes(hand, clock.center, grown_px=max(0.18 * hand.width_px, 0.5))))
        _ink(image, Layer(hand.colour, hand_shapes(hand, clock.center)))
    _ink(image, clock.hub)
    return image


def background(clock: Clock) -> Image.Image:
    size = (clock.size_px, clock.size_px)
    start, end = clock.background
    image = Image.new("RGB", size, start)
    if clock.gradient != "plain":
        image.paste(end, (0, 0, *size), _ramp(clock.size_px, clock.gradient == "gradient across"))
    return image


@lru_cache(maxsize=4)
def _ramp(size_px: int, across: bool) -> Image.Image:
    ramp = Image.linear_gradient("L").resize((size_px, size_px), Image.Resampling.BILINEAR)
    return ramp.transpose(Image.Transpose.ROTATE_90) if across else ramp


def glyph_stencil(text: str, font: str, height_px: int, stretch: float = 1.0) -> Image.Image:
    """The text as a mask cut to its ink; FreeType anti-aliases it, so it needs no reducing."""
    return _glyphs(text, font, height_px) if stretch == 1.0 else _stretched(text, font, height_px, stretch)


@lru_cache(maxsize=64)  # asked for twice per numeral: where it goes, and what it looks like
def _stretched(text: str, font: str, height_px: int, stretch: float) -> Image.Image:
    glyphs = _glyphs(text, font, height_px)
    return glyphs.resize((max(round(glyphs.width * stretch), 1), glyphs.height), Image.Resampling.BICUBIC)


@lru_cache(maxsize=16384)
def _glyphs(text: str, font: str, height_px: int) -> Image.Image:
    canvas = Image.new("L", (height_px * (len(text) + 2), height_px * 3))
    ImageDraw.Draw(canvas).text((height_px, height_px // 2), text, fill=255, font=_font(font, height_px))
    return canvas.crop(canvas.getbbox())


@lru_cache(maxsize=1024)
def _font(name: str, height_px: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(_font_folder() / f"{name}.ttf", height_px, layout_engine=ImageFont.Layout.BASIC)


def _write(image: Image.Image, text: Numeral) -> None:
    glyphs = glyph_stencil(text.text, text.font, text.height_px, text.stretch)
    if text.reflected:
        glyphs = glyphs.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if text.turn_deg % 360:
        glyphs = glyphs.rotate(-text.turn_deg, Image.Resampling.BILINEAR, expand=True)
    corner = (round(text.center[0] - glyphs.width / 2), round(text.center[1] - glyphs.height / 2))
    image.paste(text.colour, (*corner, corner[0] + glyphs.width, corner[1] + glyphs.height), glyphs)


@lru_cache(maxsize=1)
def _font_folder() -> Path:
    # Looked up, not imported: matplotlib takes longer to import than a hundred clocks to draw.
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise ValueError("the numerals' fonts come with matplotlib, which is not installed; run `pip install matplotlib`")
    return Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf"


def _ink(image: Image.Image, layer: Layer) -> None:
    """Paste the layer's colour through the stencil of its shapes."""
    if layer.edge_hidden and layer.finish is None:
        trace(ImageDraw.Draw(image), layer.shapes, (0, 0), 1, layer.colour)
        return
    cut = stencil(layer.shapes, image.size, steps=1 if layer.edge_hidden else None)
    if cut is None:
        return
    mask, box = cut
    image.paste(layer.colour, box, mask)
    if layer.finish is not None:
        _finish(image, layer.finish, mask, box)


def _finish(image: Image.Image, finish: Finish, mask: Image.Image, box: tuple[int, int, int, int]) -> None:
    variant = int(finish.turn_deg) % VARIANTS
    if finish.kind == "radial":
        grey = field("radial", variant)
    else:
        step = round(finish.turn_deg / TURN_STEP_DEG) % (360 // TURN_STEP_DEG)
        grey = turned_field(finish.kind, 0 if finish.kind == "lit" else variant, step)
    grey = grey.resize(mask.size, Image.Resampling.BILINEAR)
    image.paste(finish.dark, box, ImageChops.multiply(mask, faded(grey, finish.depth)))
    if finish.light is not None:
        image.paste(finish.light, box, ImageChops.multiply(mask, faded(ImageChops.invert(grey), finish.depth)))


def _throw(image: Image.Image, clock: Clock) -> None:
    """The hands' shadow: softer the farther it falls."""
    shadow = clock.shadow
    assert shadow is not None
    soft_px = 0.3 * max(abs(shadow.across_px), abs(shadow.down_px))
    shapes = [moved(each, shadow.across_px, shadow.down_px) for hand in clock.hands for each in hand_shapes(hand, clock.center)]
    cut = stencil(shapes, image.size, pad_px=round(2 * soft_px))
    if cut is not None:
        mask, box = cut
        image.paste(BLACK, box, faded(mask.filter(ImageFilter.BoxBlur(soft_px)), shadow.depth))
