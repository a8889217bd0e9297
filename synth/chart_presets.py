"""Four places to start from: `plain`, `varied` (the default), `hard`, and `embedded` for the model that trains on two cores."""

from __future__ import annotations

from dataclasses import replace

from synth.looks import DPI, KINDS, SIZES, ChartLook


def _only(names: tuple[str, ...] | dict[str, float], **weights: float) -> dict[str, float]:
    return dict.fromkeys(names, 0.0) | {name.replace("__", " "): weight for name, weight in weights.items()}


_VARIED = ChartLook()
_PLAIN = ChartLook(
    look={"plain": 1.0},
    kind={"bars": 2.0, "bars (horizontal)": 1.0, "grouped bars": 1.0, "line": 1.0, "lines": 1.0, "dot-lines": 1.0},
    axis={"category": 1.0, "year": 1.0},
    places={"few": 1.0, "medium": 1.0},
    series={"2": 1.0, "3": 0.5},
    size={"480x400": 1.0},
    dpi={"100": 1.0},
    text_size=(1.0, 1.0),
    labels={"all": 0.5, "none": 0.5},
    ticks={"plain": 1.0},
    scale={"linear": 1.0},
    base={"zero": 1.0},
    negative=0.0,
    missing=0.0,
    names={"short": 1.0},
    colours={"look": 1.0},
    one_colour={"one": 1.0},
    legend={"look": 1.0},
    grid={"look": 0.5, "value": 0.5},
    font={"look": 1.0},
    title=1.0,
    source=0.0,
    unit_place={"axis": 1.0},
    paper={"white": 1.0},
    bar_width=(0.6, 0.7),
    line_width=(1.8, 1.8),
    marker={"circle": 1.0},
    hollow=0.0,
)
_HARD = replace(
    _VARIED,
    places={"few": 0.5, "medium": 2.0, "many": 1.5},
    series={"2": 1.0, "3": 2.0, "4": 2.0, "5": 1.0},
    dpi={"75": 1.0, "90": 1.0, "100": 0.5},
    text_size=(0.86, 1.0),
    labels={"all": 0.3, "some": 0.7, "none": 2.0},
    ticks={"plain": 1.0, "comma": 1.0, "space": 1.0, "suffix": 1.0, "scientific": 1.0},
    scale={"linear": 0.8, "log": 0.2},
    base={"zero": 0.3, "high": 0.7},
    negative=0.2,
    missing=0.2,
    names={"short": 0.2, "long": 0.8},
    colours={"look": 0.5, "shuffled": 0.5, "near": 1.5, "vivid": 0.3},
    grid={"look": 0.5, "none": 1.0, "value": 0.3, "both": 0.2},
)
_EMBEDDED = replace(
    _PLAIN,
    kind=_only(KINDS, unlabelled__bars=1.0),
    size=_only(SIZES, **{"64x64": 1.0}),
    dpi=_only(DPI, **{"100": 1.0}),
    colours={"look": 1.0, "vivid": 0.5},
    labels={"none": 1.0},
    bar_width=(0.55, 0.85),
)

PRESETS = {"plain": _PLAIN, "varied": _VARIED, "hard": _HARD, "embedded": _EMBEDDED}
