"""How charts look: the factors that are drawn once a chart, and the five looks.

A look fixes what belongs together on a publisher's charts (fonts, frame, legend, palette, footer); factors vary the rest.
`statista`, `owid`, `pew` and `bokeh` resemble the charts of ChartQA and PlotQA, `plain` is what a script draws by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synth.chart_shapes import Colour
from synth.factors import Factors, Weights
from synth.settings import setting

HORIZONTAL, STACKED = " (horizontal)", ("stacked bars", "100 % bars")
SIZES = (
    "64x64",
    "80x80",
    "96x96",
    "340x300",
    "420x330",
    "420x560",
    "480x400",
    "560x400",
    "640x440",
    "720x520",
    "800x557",
    "850x600",
)
DPI = ("75", "90", "100", "120", "150")


def _weights(**weights: float) -> Weights:
    return {name.replace("__", " "): weight for name, weight in weights.items()}


KINDS: Weights = {
    "bars": 3, "bars (horizontal)": 3, "grouped bars": 2.5, "grouped bars (horizontal)": 1.5, "stacked bars": 1,
    "stacked bars (horizontal)": 0.7, "100 % bars": 0.6, "100 % bars (horizontal)": 0.6, "line": 2, "lines": 2.5, "dots": 0.7,
    "dot-lines": 1.5, "area": 0.5, "unlabelled bars": 0,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ChartLook(Factors):
    """The defaults are the preset `varied`."""

    section = "look"
    look: Weights = setting(_weights(plain=1, statista=1.3, owid=1, pew=0.8, bokeh=1), "whose charts they resemble")
    kind: Weights = setting(KINDS, "kind of chart; `unlabelled bars` have no text at all")
    axis: Weights = setting(
        _weights(category=1, year=1, month=0.25, number=0.2), "what stands along the chart, where the kind leaves it open"
    )
    places: Weights = setting(_weights(few=1, medium=2, many=0.6), "how many places along it: 2 to 4, 5 to 9, 10 to 20")
    series: Weights = setting({"2": 3.0, "3": 2.0, "4": 1.0, "5": 0.3}, "how many series, where the kind has several")
    size: Weights = setting({name: 1.0 if int(name.partition("x")[0]) >= 400 else 0.0 for name in SIZES}, "pixels at 100 dpi")
    dpi: Weights = setting(dict.fromkeys(DPI, 0.4) | {"100": 1.0}, "scales everything, text too")
    text_size: tuple[float, float] = setting((0.92, 1.15), "letters, relative to the look's own", within=(0.8, 1.6))
    labels: Weights = setting(_weights(all=1.2, some=0.5, none=1.3), "numbers printed beside the marks")
    ticks: Weights = setting(_weights(plain=1.5, comma=1, space=0.5, suffix=0.5, scientific=0.3), "how ticks are written")
    scale: Weights = setting(_weights(linear=0.93, log=0.07), "the value axis, where the numbers allow it")
    base: Weights = setting(_weights(zero=0.6, high=0.4), "lines only: does the value axis begin at zero?")
    negative: float = setting(0.07, "chance of numbers below zero")
    missing: float = setting(0.06, "chance of missing values")
    names: Weights = setting(_weights(short=0.7, long=0.3), "how long names may be")
    colours: Weights = setting(
        _weights(look=1, shuffled=0.6, near=0.2, vivid=0.3),
        "the look's palette in order or shuffled, shades of one, bright ones",
    )
    one_colour: Weights = setting(
        _weights(one=0.7, each=0.2, marked=0.1), "bars of one series: all alike, each its own, one marked"
    )
    legend: Weights = setting(
        _weights(look=1, right=0.25, bottom=0.25, top=0.25, direct=0.15), "where series are named; direct: at the lines' ends"
    )
    grid: Weights = setting(_weights(look=1, none=0.15, value=0.3, both=0.15), "lines behind the marks")
    font: Weights = setting(_weights(look=1, sans=0.2, serif=0.15, times=0.15), "family of all text")
    title: float = setting(0.85, "chance of a title; what is measured stands at the axis without one")
    source: float = setting(0.5, "chance of a source line")
    unit_place: Weights = setting(_weights(title=0.3, axis=0.7), "where the unit is named")
    paper: Weights = setting(_weights(white=0.85, tinted=0.15), "background")
    bar_width: tuple[float, float] = setting((0.5, 0.85), "of the place they stand in", within=(0.2, 0.95))
    line_width: tuple[float, float] = setting((1.3, 2.6), "pixels at 100 dpi", within=(0.8, 5))
    marker: Weights = setting(_weights(circle=0.6, square=0.2, diamond=0.1, triangle=0.1), "shape of dots")
    hollow: float = setting(0.25, "chance that dots are hollow")


@dataclass(frozen=True, kw_only=True)
class Style:
    """What one look fixes. Sizes in pixels at 100 dpi."""

    family: str
    title_family: str
    text_px: float = 11
    title_px: float = 14
    title_bold: bool = False
    title_middle: bool = False
    subtitle_italic: bool | None = None  # None: no subtitle, the unit goes into the title
    ink: Colour = (60, 60, 60)
    title_ink: Colour = (30, 30, 30)
    faint: Colour = (220, 220, 220)
    paper: Colour = (255, 255, 255)
    tint: Colour = (246, 246, 242)
    axis_title_italic: bool = False
    frame: str = "L"  # box, L, base, none
    tick_px: float = 4
    minor_ticks: bool = False
    open_end: bool = False  # the axis ends beyond the data, not at a tick
    grid: str = "value"
    grid_dash_px: tuple[float, ...] = ()
    bands: bool = False  # alternating places shaded
    legend: str = "right"
    legend_key: str = "square"
    legend_box: bool = False
    bar_edge: bool = False
    label_bold: bool = False
    label_ink: Colour | None = None  # None: the ink
    hides_axis: bool = False  # no value axis when every number is printed
    rules: bool = False  # a line above and below everything
    name_turn_deg: float = 45  # long names along the bottom
    footer: str = "{source}"
    palette: tuple[str, ...]


COLOURS: Mapping[str, Colour] = {
    "blue": (40, 118, 221), "navy": (15, 40, 62), "grey": (160, 165, 170), "red": (200, 40, 45), "green": (58, 150, 60), "orange": (240, 135, 30),
    "purple": (125, 70, 160), "teal": (30, 150, 140), "yellow": (235, 195, 40), "brown": (140, 85, 55), "pink": (225, 110, 170),
    "light blue": (135, 190, 235), "light green": (160, 215, 130), "black": (25, 25, 25), "gold": (200, 155, 45), "dark green": (20, 85, 50),
    "magenta": (205, 30, 130), "cyan": (40, 195, 215), "maroon": (120, 20, 40), "beige": (225, 205, 150),
}  # fmt: skip
VIVID: Mapping[str, Colour] = {
    "green": (125, 250, 10), "indigo": (75, 0, 130), "salmon": (233, 150, 122), "brown": (160, 82, 45), "red": (240, 20, 20), "blue": (65, 105, 225),
    "turquoise": (64, 224, 208), "magenta": (230, 30, 200), "yellow": (245, 220, 20), "black": (20, 20, 20),
}  # fmt: skip

STYLES = {
    "plain": Style(
        family="sans", title_family="sans", text_px=11, title_px=13.5, title_middle=True, ink=(0, 0, 0), title_ink=(0, 0, 0), frame="box", grid="none",
        legend="right", legend_box=True, palette=("blue", "orange", "green", "red", "purple", "brown", "pink", "grey", "yellow", "cyan"),
    ),
    "statista": Style(
        family="sans", title_family="sans", text_px=10.5, title_px=14, title_bold=True, ink=(85, 85, 85), faint=(215, 215, 215), frame="base", tick_px=0,
        grid="value", grid_dash_px=(1, 2), bands=True, legend="bottom", legend_key="dot", label_bold=True, label_ink=(35, 35, 35), footer="© {publisher} {year}",
        palette=("blue", "navy", "grey", "red", "light blue", "green"),
    ),
    "owid": Style(
        family="sans", title_family="serif", text_px=11, title_px=17, subtitle_italic=False, ink=(100, 100, 100), title_ink=(70, 70, 70), frame="none", tick_px=0,
        grid="value", grid_dash_px=(3, 3), legend="direct", label_ink=(110, 110, 110), footer="Source: {source}    {publisher} • CC BY",
        palette=("teal", "maroon", "orange", "navy", "purple", "brown", "magenta", "green"),
    ),
    "pew": Style(
        family="sans", title_family="sans", text_px=10.5, title_px=14, title_bold=True, subtitle_italic=True, ink=(50, 50, 50), title_ink=(0, 0, 0), frame="base",
        tick_px=3, grid="none", legend="top", hides_axis=True, rules=True, footer="Note: Figures are rounded.\nSource: {source}\n*{publisher}",
        palette=("gold", "green", "brown", "beige", "grey", "navy"),
    ),
    "bokeh": Style(
        family="serif", title_family="serif", text_px=12, title_px=13.5, title_bold=True, ink=(68, 68, 68), title_ink=(68, 68, 68), faint=(229, 229, 229),
        axis_title_italic=True, frame="L", tick_px=6, minor_ticks=True, open_end=True, grid="both", legend="right", bar_edge=True, name_turn_deg=-90,
        palette=("blue", "brown", "purple", "green", "orange", "pink", "teal", "navy"),
    ),
}  # fmt: skip


def colours_of(choices: Mapping[str, Any], count: int, order: float) -> list[tuple[str, Colour]]:
    """(name, colour) for `count` series; a name is "" where colours are too near for words. `order` shuffles, 0 to 1."""
    palette = STYLES[choices["look"]].palette
    if choices["colours"] == "near":
        base = COLOURS[palette[int(order * len(palette))]]
        return [("", _lightened(base, 0.72 * k / max(count - 1, 1))) for k in range(count)]
    if choices["colours"] == "vivid" or (choices["look"] == "bokeh" and choices["colours"] == "shuffled"):
        table, names = VIVID, list(VIVID)
    else:
        table, names = COLOURS, [*palette, *(name for name in COLOURS if name not in palette)]
    if choices["colours"] != "look":
        reach = names if choices["colours"] == "vivid" else names[: max(len(palette), count)]
        start, stride = int(order * len(reach)), 1 if len(reach) % 3 == 0 else 3
        names = [reach[(start + stride * k) % len(reach)] for k in range(len(reach))]
    return [(names[k % len(names)], table[names[k % len(names)]]) for k in range(count)]


def _lightened(colour: Colour, share: float) -> Colour:
    return tuple(round(value + (245 - value) * share) for value in colour)  # type: ignore[return-value]
