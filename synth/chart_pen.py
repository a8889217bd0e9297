"""Paint a list of shapes with matplotlib's Agg renderer -> a Pillow image.

The renderer is used directly: figures and axes would lay out once more what is laid out already, at three times the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, IdentityTransform
from PIL import Image

from synth.chart_fonts import Font, font_file
from synth.chart_shapes import Area, Colour, Dots, Point, Shape, Stroke, Text

_SAME = IdentityTransform()
_DPI = 72  # a point is a pixel
# The user's matplotlibrc must not reach the pictures; unhinted text is as wide as `chart_fonts` says.
_SETTINGS = {"text.hinting": "none", "text.antialiased": True, "path.simplify": False, "agg.path.chunksize": 0}
_MARKERS = {
    "circle": Path.unit_circle().transformed(Affine2D().scale(0.5)),
    "square": Path([(-0.45, -0.45), (0.45, -0.45), (0.45, 0.45), (-0.45, 0.45), (-0.45, -0.45)], closed=True),
    "diamond": Path([(0, -0.6), (0.6, 0), (0, 0.6), (-0.6, 0), (0, -0.6)], closed=True),
    "triangle": Path([(-0.55, -0.45), (0.55, -0.45), (0, 0.55), (-0.55, -0.45)], closed=True),
}


def paint(shapes: Sequence[Shape], size_px: tuple[int, int], paper: Colour) -> Image.Image:
    """The shapes in order, on a sheet of this size and colour."""
    width, height = size_px
    renderer = RendererAgg(width, height, _DPI)
    pen = renderer.new_gc()
    pen.set_antialiased(True)
    pen.set_snap(False)  # places are exact; where an edge must be sharp the layout puts it on a pixel
    with rc_context(_SETTINGS):
        for shape in shapes:
            _paint(renderer, pen, shape, height)
    image = Image.new("RGB", size_px, paper)
    drawn = Image.fromarray(np.asarray(renderer.buffer_rgba()))
    image.paste(drawn, (0, 0), drawn)
    return image


def _paint(renderer: RendererAgg, pen: object, shape: Shape, height: int) -> None:
    if isinstance(shape, Text):
        pen.set_foreground(_unit(shape.colour))
        renderer.draw_text(pen, shape.x, shape.y, shape.text, _properties(shape.font), shape.turn_deg)
    elif isinstance(shape, Area):
        pen.set_linewidth(shape.edge_px if shape.edge else 0)
        pen.set_foreground(_unit(shape.edge or shape.fill))
        pen.set_dashes(0, None)
        pen.set_joinstyle("miter")
        renderer.draw_path(pen, _path(shape.points, height, closed=True), _SAME, _unit(shape.fill))
    elif isinstance(shape, Stroke):
        pen.set_linewidth(shape.width_px)
        pen.set_foreground(_unit(shape.colour))
        pen.set_dashes(0, list(shape.dash_px) or None)
        pen.set_joinstyle("round")
        pen.set_capstyle("butt")
        renderer.draw_path(pen, _path(shape.points, height), _SAME)
    elif isinstance(shape, Dots):
        pen.set_linewidth(shape.edge_px)
        pen.set_foreground(_unit(shape.edge))
        pen.set_dashes(0, None)
        for x, y in shape.points:  # draw_markers would be faster and moves every marker to a whole pixel
            place = Affine2D().scale(shape.size_px).translate(x, height - y)
            renderer.draw_path(pen, _MARKERS[shape.shape], place, _unit(shape.fill))


def _path(points: Sequence[Point], height: int, closed: bool = False) -> Path:
    upwards = [(x, height - y) for x, y in points]
    return Path([*upwards, upwards[0]], closed=True) if closed else Path(upwards)


@lru_cache(maxsize=256)
def _unit(colour: Colour) -> tuple[float, float, float]:
    red, green, blue = colour
    return red / 255, green / 255, blue / 255


@lru_cache(maxsize=256)
def _properties(font: Font) -> FontProperties:
    return FontProperties(fname=str(font_file(font.family, font.bold, font.italic)), size=font.size_px)
