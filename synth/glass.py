"""What lies between the dial and the camera: reflections, a bright spot, something that stands before the rim.

Everything works in place on the picture, within or about the dial's body as the camera sees it.
"""

from __future__ import annotations

import random

from PIL import Image, ImageChops, ImageFilter

from synth.clock_colours import hls
from synth.factors import Choices
from synth.shapes import Disc, Hole, Point, Polygon, Shape, faded, on_dial, stencil

WHITE = (255, 255, 255)
# The gradient's corners are not quite black; a spot has no corners.
_SPOT = [round(255 * max((grey - 75) / 180, 0.0) ** 1.5) for grey in range(256)]


def reflect(image: Image.Image, scene: Choices, body: Polygon, rng: random.Random) -> None:
    """Streaks, a window's panes or an arc, mirrored in the glass."""
    center, radius = _middle(body)
    slant = 360 * rng.random()
    shapes: list[Shape] = []
    match scene["reflections"]:
        case "streaks":
            for _ in range(1 + int(4 * rng.random())):
                at, half = (2 * rng.random() - 1) * radius, radius * (0.01 + 0.1 * rng.random())
                shapes.append(_quad(center, slant, -1.6 * radius, 1.6 * radius, at - half, at + half))
        case "window":
            x, y = on_dial(center, slant, 0.45 * radius)
            slant, pane = 40 * rng.random() - 20, radius * (0.2 + 0.2 * rng.random())
            for along in (-1, 0):
                for across in (-1, 0):
                    low, left = along * pane * 1.15, across * pane * 0.9
                    shapes.append(_quad((x, y), slant, low, low + pane * 1.05, left, left + pane * 0.8))
        case "arc":
            moved = on_dial(center, slant, radius * (0.1 + 0.3 * rng.random()))
            shapes = [Disc(center, 0.96 * radius), Hole(Disc(moved, radius * (0.9 + 0.2 * rng.random())))]
    _lay(image, shapes, body, scene["reflection_depth"], 0.012 * radius)


def glare(image: Image.Image, scene: Choices, body: Polygon, rng: random.Random) -> None:
    """A bright spot that fades outwards."""
    center, radius = _middle(body)
    x, y = on_dial(center, 360 * rng.random(), 0.8 * radius * rng.random() ** 0.5)
    half = max(scene["glare_radius"] * radius, 2.0)
    width, height = round(2 * half), max(round(2 * half * (0.4 + 0.6 * rng.random())), 2)
    spot = ImageChops.invert(Image.radial_gradient("L")).resize((width, height), Image.Resampling.BILINEAR)
    spot = faded(spot.point(_SPOT), scene["glare_depth"])
    left, top = round(x - width / 2), round(y - height / 2)
    image.paste(WHITE, (left, top, left + width, top + height), spot)


def occlude(image: Image.Image, scene: Choices, body: Polygon, rng: random.Random) -> None:
    """A post, a leaf or a shoulder before the rim; it never comes near the centre, so the hands can still be followed."""
    center, radius = _middle(body)
    half, lean = radius * (0.12 + 0.6 * rng.random()), (rng.random() - 0.5) * radius
    near = scene["occlusion_reach"] * radius
    corners = ((near, -half), (near * 1.03, 0.0), (near, half), (3 * radius, half + lean), (3 * radius, -half + lean))
    shape = Polygon(tuple(on_dial(center, scene["occlusion_deg"], along, across) for along, across in corners))
    cut = stencil((shape,), image.size)
    if cut is not None:
        image.paste(hls(rng.random(), 0.1 + 0.6 * rng.random(), 0.4 * rng.random()), cut[1], cut[0])


def _quad(center: Point, angle_deg: float, low: float, high: float, left: float, right: float) -> Polygon:
    corners = ((low, left), (high, left), (high, right), (low, right))
    return Polygon(tuple(on_dial(center, angle_deg, along, across) for along, across in corners))


def _lay(image: Image.Image, shapes: list[Shape], body: Polygon, depth: float, soft_px: float) -> None:
    """White through the shapes, softly, only where there is glass."""
    cut, glass = stencil(shapes, image.size), stencil((body,), image.size)
    if cut is None or glass is None:
        return
    sheet = Image.new("L", image.size)
    sheet.paste(cut[0].filter(ImageFilter.BoxBlur(soft_px)), cut[1])
    mask = ImageChops.multiply(sheet.crop(glass[1]), glass[0])
    image.paste(WHITE, glass[1], faded(mask, depth))


def _middle(body: Polygon) -> tuple[Point, float]:
    """Centre and the smaller half side of the body's box."""
    xs, ys = [x for x, _ in body.points], [y for _, y in body.points]
    half = min(max(xs) - min(xs), max(ys) - min(ys)) / 2
    return ((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2), half
