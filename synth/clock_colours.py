"""The colours that a clock's choices stand for."""

from __future__ import annotations

import colorsys
from functools import lru_cache

from synth.dial import Finish
from synth.factors import Choices
from synth.shapes import Colour


@lru_cache(maxsize=256)
def hls(hue: float, lightness: float, saturation: float) -> Colour:
    red, green, blue = colorsys.hls_to_rgb(hue, min(max(lightness, 0.0), 1.0), saturation)
    return (round(red * 255), round(green * 255), round(blue * 255))


def blend(a: Colour, b: Colour, share: float) -> Colour:
    """`share` of b in a."""
    return tuple(round((1 - share) * x + share * y) for x, y in zip(a, b, strict=True))  # type: ignore[return-value]


def _part(choices: Choices, part: str, lightness: float) -> Colour:
    return hls(choices[f"{part}_hue"], lightness, choices[f"{part}_saturation"])


def is_light(choices: Choices) -> bool:
    return choices["face_tone"] == "light"


def face(choices: Choices) -> Colour:
    depth = choices["face_depth"]
    return _part(choices, "face", 1 - depth if is_light(choices) else depth)


def ink(choices: Choices) -> Colour:
    depth = choices["ink_depth"]
    return _part(choices, "ink", depth if is_light(choices) else 1 - depth)


def rim(choices: Choices) -> Colour:
    return ink(choices) if choices["rim"] == "ink" else _part(choices, "rim", choices["rim_lightness"])


def accent(choices: Choices) -> Colour:
    return _part(choices, "accent", 0.32 if is_light(choices) else 0.68)


def red(choices: Choices) -> Colour:
    return hls(0.0, 0.45 if is_light(choices) else 0.6, 0.85)


def background(choices: Choices) -> tuple[Colour, Colour]:
    start = choices["background_lightness"]
    return _part(choices, "background", start), _part(choices, "background", start + choices["gradient_step"])


def face_finish(choices: Choices) -> Finish | None:
    kind = choices.get("face_finish")
    if kind is None:
        return None
    depth, turn_deg = choices["finish_depth"], 360 * choices["finish_turn"]
    if kind == "paper":  # old paper goes brown
        return Finish(kind=kind, depth=depth, turn_deg=turn_deg, dark=hls(0.05 + 0.08 * choices["finish_hue"], 0.3, 0.6))
    dark = blend(face(choices), (0, 0, 0), 0.7)
    if kind == "radial":
        return Finish(kind=kind, depth=depth, turn_deg=turn_deg, dark=dark)
    bright = blend(face(choices), (255, 255, 255), 0.6 if is_light(choices) else 0.25)
    return Finish(kind=kind, depth=depth, turn_deg=turn_deg, dark=dark, light=bright)


def rim_finish(choices: Choices) -> Finish | None:
    if "rim_finish" not in choices:
        return None
    return Finish(kind="lit", depth=0.6, turn_deg=choices["rim_lit_deg"], light=(255, 255, 255))
