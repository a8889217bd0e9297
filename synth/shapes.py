"""Shapes in one colour, anti-aliased at any size: the stencil drawn larger and box-reduced, cut to its own bounds.

All geometry is in pixels of the final image (x right, y down, pixel k covers k to k+1). Nothing is random here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, ImageDraw

Point = tuple[float, float]
Colour = tuple[int, int, int]
Box = tuple[int, int, int, int]


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


def on_dial(center: Point, angle_deg: float, along_px: float, across_px: float = 0.0) -> Point:
    """The point `along_px` from the centre towards the angle (clockwise from 12), `across_px` to the right of that way."""
    sine, cosine = math.sin(math.radians(angle_deg)), math.cos(math.radians(angle_deg))
    return (center[0] + along_px * sine + across_px * cosine, center[1] - along_px * cosine + across_px * sine)


def moved(shape: Shape, across_px: float, down_px: float) -> Shape:
    """The shape, shifted."""
    match shape:
        case Disc((x, y), radius):
            return Disc((x + across_px, y + down_px), radius)
        case Polygon(points):
            return Polygon(tuple((x + across_px, y + down_px) for x, y in points))
        case Hole(inner):
            return Hole(moved(inner, across_px, down_px))  # type: ignore[arg-type]


def stencil(
    shapes: Sequence[Shape], size: tuple[int, int], pad_px: int = 0, steps: int | None = None
) -> tuple[Image.Image, Box] | None:
    """How much of each pixel the shapes cover, and the box of those pixels, `pad_px` wider; None when nothing of them shows.

    `steps` a pixel, as many as the size asks for unless told otherwise; 1 leaves edges ragged and is much faster.
    """
    box = bounds(shapes, size, pad_px)
    if box is None:
        return None
    left, top, right, bottom = box
    steps = steps or supersampling(size[0])
    large = Image.new("L", ((right - left) * steps, (bottom - top) * steps))
    trace(ImageDraw.Draw(large), shapes, (left, top), steps, 255)
    return large.reduce(steps) if steps > 1 else large, box


def faded(mask: Image.Image, depth: float) -> Image.Image:
    """The mask at a share of its strength, in steps of a hundredth."""
    return mask.point(_scale(round(100 * depth)))


@lru_cache(maxsize=128)
def _scale(percent: int) -> list[int]:
    return [round(percent * grey / 100) for grey in range(256)]


def supersampling(size_px: int) -> int:
    """Eight steps a pixel while images are small, where a hand's whole swing between two minutes is a pixel or less; then four."""
    return 8 if size_px <= 128 else 4


def trace(pen: ImageDraw.ImageDraw, shapes: Sequence[Shape], origin: Point, steps: int, ink: int | Colour) -> None:
    """Fill the shapes, `steps` canvas pixels to one of the image, from `origin` on."""
    left, top = origin
    for shape in shapes:
        fill, outline = (0, shape.shape) if isinstance(shape, Hole) else (ink, shape)
        # Pillow rounds towards zero and fills both ends: round first, and let pixel k stand for k to k+1.
        if isinstance(outline, Disc):
            (x, y), r = outline.center, outline.radius
            low = (round((x - r - left) * steps), round((y - r - top) * steps))
            high = (round((x + r - left) * steps) - 1, round((y + r - top) * steps) - 1)
            if high[0] >= low[0] and high[1] >= low[1]:
                pen.ellipse((*low, *high), fill=fill)
        else:
            pen.polygon(
                [(round((x - left) * steps - 0.5), round((y - top) * steps - 0.5)) for x, y in outline.points], fill=fill
            )


def bounds(shapes: Sequence[Shape], size: tuple[int, int], pad_px: int = 0) -> Box | None:
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
    left, top = max(math.floor(min(xs)) - pad_px, 0), max(math.floor(min(ys)) - pad_px, 0)
    right, bottom = min(math.ceil(max(xs)) + 1 + pad_px, size[0]), min(math.ceil(max(ys)) + 1 + pad_px, size[1])
    return (left, top, right, bottom) if right > left and bottom > top else None
