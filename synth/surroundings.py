"""What a clock hangs on and stands among: textures, things, and the strap of a watch; all behind the clock.

Everything works in place on an RGB picture; `rng` decides where pieces lie, the scene's choices decide the rest.
"""

from __future__ import annotations

import colorsys
import random

from PIL import Image, ImageDraw, ImageFilter, ImageFont

from synth.camera import Matrix, project
from synth.dial import Clock
from synth.factors import Choices
from synth.fields import FIELD_PX, VARIANTS, field
from synth.shapes import Colour, Polygon, on_dial, stencil

WORDS = ("OPEN", "EXIT", "Gate 4", "PLATFORM 2", "CAFE", "No. 17", "SALE", "ROOM 3B", "1987", "24 h")


def paint_behind(scene: Choices, size_px: int, rng: random.Random) -> Image.Image:
    """A wall, table or cloth of the scene's `behind`."""
    lightness, contrast = scene["behind_lightness"], scene["behind_contrast"]

    def shade(step: float) -> Colour:
        return _hls(scene["behind_hue"], lightness + step * contrast, scene["behind_saturation"])

    image = Image.new("RGB", (size_px, size_px), shade(-0.5))
    piece_px = max(scene["behind_scale"] * size_px, 4.0)
    match scene["behind"]:
        case "plaster":
            image.paste(shade(0.5), (0, 0), _window("clouds", size_px, 2.0, rng))
        case "wood":
            image.paste(shade(0.5), (0, 0), _window("fibre", size_px, 1.4, rng))
            _planks(ImageDraw.Draw(image), size_px, 1.5 * piece_px, shade(-1.0))
            if rng.random() < 0.5:
                image = image.transpose(Image.Transpose.ROTATE_90)
        case "cloth":
            image.paste(shade(0.5), (0, 0), _window("weave", size_px, 1.0 + 2 * rng.random(), rng))
        case "brick":
            _bricks(ImageDraw.Draw(image), size_px, piece_px, shade, rng)
        case "tiles":
            _tiles(ImageDraw.Draw(image), size_px, piece_px, shade(0.4), shade(-0.6))
        case "checker":
            _tiles(ImageDraw.Draw(image), size_px, piece_px / 2, shade(0.5), None)
        case "bokeh":
            image = _bokeh(size_px, piece_px, scene, rng)
    return image


def strew(image: Image.Image, count: int, rng: random.Random) -> None:
    """Frames, boxes, discs, lines and lettering around the clock."""
    pen, side = ImageDraw.Draw(image), image.width
    for _ in range(count):
        x, y, w, h = (
            rng.random() * side,
            rng.random() * side,
            side * (0.04 + 0.3 * rng.random()),
            side * (0.04 + 0.3 * rng.random()),
        )
        colour = _hls(rng.random(), rng.random(), 0.6 * rng.random())
        box = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        match int(rng.random() * 6):
            case 0:
                pen.rectangle(box, fill=colour)
            case 1:
                pen.rectangle(box, fill=colour, outline=_hls(rng.random(), rng.random(), 0.4), width=max(round(side / 50), 1))
            case 2:
                pen.ellipse((x - w / 2, y - w / 2, x + w / 2, y + w / 2), fill=colour)
            case 3:
                pen.line(
                    (x, y, rng.random() * side, rng.random() * side),
                    fill=colour,
                    width=max(round(side / 60 * (1 + rng.random())), 1),
                )
            case 4:
                pen.polygon([(x + (rng.random() - 0.5) * w, y + (rng.random() - 0.5) * h) for _ in range(5)], fill=colour)
            case _:
                font = ImageFont.load_default(size=max(side * (0.04 + 0.08 * rng.random()), 6))
                pen.text((x, y), WORDS[int(rng.random() * len(WORDS))], fill=colour, font=font)


def buckle(image: Image.Image, scene: Choices, clock: Clock, matrix: Matrix, turn_deg: float) -> None:
    """A strap from 12 and 6 on, and a crown at 3, seen as the camera sees the dial."""
    radius, half = clock.radius_px, scene["strap_width"] * clock.radius_px / 2
    leather = _hls(0.06, scene["strap_lightness"], 0.3)

    def paint(colour: Colour, angle_deg: float, low: float, high: float, left: float, right: float) -> None:
        corners = ((low, left), (high, left * 0.85), (high, right * 0.85), (low, right))
        points = [on_dial(clock.center, turn_deg + angle_deg, along * radius, across) for along, across in corners]
        cut = stencil((Polygon(tuple(project(matrix, points))),), image.size)
        if cut is not None:
            image.paste(colour, cut[1], cut[0])

    for end in (0.0, 180.0):
        paint(leather, end, 0.7, 2.2, -half, half)
        for side in (-1, 1):
            paint(_hls(0.06, scene["strap_lightness"] * 1.6, 0.25), end, 0.7, 2.2, side * 0.86 * half, side * 0.9 * half)
            paint(_hls(0.0, 0.6, 0.05), end, 0.85, 1.15, side * 0.98 * half, side * 1.12 * half)
    paint(_hls(0.0, 0.55, 0.05), 90.0, 0.9, 1.13, -0.1 * radius, 0.1 * radius)


def _hls(hue: float, lightness: float, saturation: float) -> Colour:
    red, green, blue = colorsys.hls_to_rgb(hue % 1.0, min(max(lightness, 0.0), 1.0), saturation)
    return (round(red * 255), round(green * 255), round(blue * 255))


def _window(kind: str, size_px: int, zoom: float, rng: random.Random) -> Image.Image:
    """A piece of a field, `zoom` times as large as the field would be if it filled the picture."""
    side = FIELD_PX / zoom
    left, top = rng.random() * (FIELD_PX - side), rng.random() * (FIELD_PX - side)
    cut = (left, top, left + side, top + side)
    return field(kind, int(rng.random() * VARIANTS)).resize((size_px, size_px), Image.Resampling.BILINEAR, box=cut)


def _planks(pen: ImageDraw.ImageDraw, size_px: int, height_px: float, colour: Colour) -> None:
    for k in range(1, int(size_px / height_px) + 1):
        pen.line((0, k * height_px, size_px, k * height_px), fill=colour, width=max(size_px // 150, 1))


def _bricks(pen: ImageDraw.ImageDraw, size_px: int, width_px: float, shade: object, rng: random.Random) -> None:
    height_px, joint_px = width_px / 2.5, max(width_px / 14, 1.0)
    for row in range(int(size_px / height_px) + 1):
        for column in range(int(size_px / width_px) + 2):
            x, y = (column - row % 2 / 2) * width_px, row * height_px
            pen.rectangle((x, y, x + width_px - joint_px, y + height_px - joint_px), fill=shade(rng.random()))  # type: ignore[operator]


def _tiles(pen: ImageDraw.ImageDraw, size_px: int, side_px: float, colour: Colour, joint: Colour | None) -> None:
    joint_px = max(side_px / 20, 1.0) if joint else 0.0
    for row in range(int(size_px / side_px) + 1):
        for column in range(int(size_px / side_px) + 1):
            if joint or (row + column) % 2:
                x, y = column * side_px, row * side_px
                pen.rectangle((x + joint_px, y + joint_px, x + side_px, y + side_px), fill=colour)


def _bokeh(size_px: int, piece_px: float, scene: Choices, rng: random.Random) -> Image.Image:
    """Lights and things far out of focus; painted small, since nothing of it is sharp."""
    small = max(size_px // 4, 8)
    image = Image.new(
        "RGB", (small, small), _hls(scene["behind_hue"], scene["behind_lightness"] * 0.6, scene["behind_saturation"])
    )
    pen = ImageDraw.Draw(image)
    for _ in range(24):
        x, y, r = rng.random() * small, rng.random() * small, piece_px / 4 * (0.4 + rng.random())
        pen.ellipse(
            (x - r, y - r, x + r, y + r), fill=_hls(rng.random(), 0.15 + 0.7 * rng.random(), scene["behind_saturation"])
        )
    return image.filter(ImageFilter.GaussianBlur(piece_px / 12)).resize((size_px, size_px), Image.Resampling.BICUBIC)
