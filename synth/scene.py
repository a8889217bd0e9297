"""From clocks to a picture: surroundings, each clock as the camera sees it, glass, light and film.

In:  the clocks on canvases of their own with their matrices (`Seen`), the scene's choices, an rng.   Out: an RGB image.
The geometry is in `Seen` before anything is painted, so the truth does not depend on pixels. An empty scene changes nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from PIL import Image, ImageFilter

from synth.camera import Matrix, framed, project, shift_and_scale, tilted, warp
from synth.clock_layout import lay_out, place
from synth.dial import Clock, background, draw
from synth.dial_frame import DialFrame
from synth.factors import Choices
from synth.film import expose
from synth.glass import glare, occlude, reflect
from synth.shapes import Point, Polygon, faded, moved, on_dial, stencil
from synth.surroundings import buckle, paint_behind, strew

MARGIN_PX = 3
BODY_POINTS = 72
NEED_BODY = {"wall_shadow", "reflections", "glare", "occlusion"}
CELLS = {  # name of each place and its box, shares of the picture
    "two": (("on the left", (0.0, 0.25, 0.5)), ("on the right", (0.5, 0.25, 0.5))),
    "three": (
        ("at the top", (0.25, 0.0, 0.5)),
        ("at the bottom left", (0.0, 0.5, 0.5)),
        ("at the bottom right", (0.5, 0.5, 0.5)),
    ),
    "four": (
        ("at the top left", (0.0, 0.0, 0.5)),
        ("at the top right", (0.5, 0.0, 0.5)),
        ("at the bottom left", (0.0, 0.5, 0.5)),
        ("at the bottom right", (0.5, 0.5, 0.5)),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A clock on its own canvas and how that lies in the picture."""

    clock: Clock
    matrix: Matrix | None  # None: the canvas is the picture
    turn_deg: float
    canvas_body: tuple[Point, ...]  # the outline, finely

    @cached_property
    def body(self) -> Polygon:
        """The outline in the picture."""
        return Polygon(tuple(self.points(self.canvas_body)))

    def points(self, canvas_points: Sequence[Point]) -> list[Point]:
        return list(canvas_points) if self.matrix is None else project(self.matrix, canvas_points)


def cells(scene: Choices) -> tuple[tuple[str, tuple[float, float, float]], ...]:
    """(where, (left, top, side)) of every clock in the picture."""
    return CELLS.get(scene.get("clocks", ""), (("", (0.0, 0.0, 1.0)),))


def see(choices: Choices, scene: Choices, angles_deg: dict[str, float], size_px: int, cell: tuple[float, float, float]) -> Seen:
    """One clock, laid out on a canvas that just holds it, as the camera sees it within its cell."""
    left, top, side = cell
    turn_deg = choices.get("turn_deg", 0.0)
    if side == 1.0 and "camera" not in scene:
        clock = lay_out(choices, angles_deg, size_px)
        body = DialFrame.of(choices, clock.center, clock.radius_px).outline(BODY_POINTS) if NEED_BODY & scene.keys() else ()
        return Seen(clock=clock, matrix=None, turn_deg=turn_deg, canvas_body=body)
    (x, y), radius = place(choices, round(side * size_px))
    target = (left * size_px + x, top * size_px + y)
    outline = DialFrame.of(choices, (0.0, 0.0), radius).outline(BODY_POINTS)
    half = math.ceil(max(max(abs(x), abs(y)) for x, y in outline)) + MARGIN_PX
    clock = lay_out(choices, angles_deg, 2 * half, center=(half, half), radius=radius)
    body = tuple((half + x, half + y) for x, y in outline)
    matrix = shift_and_scale(clock.center, target, 1.0)
    if "camera" in scene:
        view = tilted(scene["tilt_deg"], scene["tilt_towards_deg"], scene["roll_deg"], scene["distance"])
        matrix = framed(view, clock.center, radius, body, target, radius)
    return Seen(clock=clock, matrix=matrix, turn_deg=turn_deg, canvas_body=body)


def photograph(seen: Sequence[Seen], scene: Choices, size_px: int, rng: random.Random) -> Image.Image:
    """The picture before it is stored."""
    if "behind" in scene:
        image = paint_behind(scene, size_px, rng)
    else:
        clock = seen[0].clock
        image = background(clock) if clock.size_px == size_px else background(clock).resize((size_px, size_px))
    if "clutter" in scene:
        strew(image, round(scene["clutter_count"]), rng)
    for each in seen:
        if "strap" in scene:
            whole = shift_and_scale((0.0, 0.0), (0.0, 0.0), 1.0) if each.matrix is None else each.matrix
            buckle(image, scene, each.clock, whole, each.turn_deg)
        if "wall_shadow" in scene:
            _shadow(image, scene, each)
    for each in seen:  # after all straps and shadows, none of which may lie upon another clock
        _hang(image, each)
        if "reflections" in scene:
            reflect(image, scene, each.body, rng)
        if "glare" in scene:
            glare(image, scene, each.body, rng)
        if "occlusion" in scene:
            occlude(image, scene, each.body, rng)
    return expose(image, scene, rng)


def _hang(image: Image.Image, seen: Seen) -> None:
    """The clock drawn onto the picture, through the camera when there is one."""
    clock = seen.clock
    if seen.matrix is None:
        draw(clock, image)
        return
    # Around the clock its canvas has the colour of its outermost layer, so that no edge of another colour is pulled in.
    sheet = draw(clock, Image.new("RGB", (clock.size_px, clock.size_px), _outermost(clock)))
    cut = stencil((seen.body,), image.size)
    if cut is not None:
        image.paste(warp(sheet, seen.matrix, cut[1]), cut[1], cut[0])


def _outermost(clock: Clock) -> tuple[int, int, int]:
    """The first layer's colour, or that of the ring which covers its edge."""
    return clock.face[1].colour if clock.face[0].edge_hidden else clock.face[0].colour


def _shadow(image: Image.Image, scene: Choices, seen: Seen) -> None:
    xs = [x for x, _ in seen.body.points]
    radius = (max(xs) - min(xs)) / 2
    length = scene["wall_shadow_length"] * radius
    across, down = on_dial((0.0, 0.0), scene["wall_shadow_deg"], length)
    soft_px = 0.4 * length
    cut = stencil((moved(seen.body, across, down),), image.size, pad_px=round(2 * soft_px))
    if cut is not None:
        mask = faded(cut[0].filter(ImageFilter.BoxBlur(soft_px)), scene["wall_shadow_depth"])
        image.paste((0, 0, 0), cut[1], mask)
