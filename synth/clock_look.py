"""How clocks look: every factor a named setting with a distribution of its own.

A factor is a weight per name (`{"arabic": 2, "roman": 1}`), a range drawn from uniformly (`[0.4, 0.6]`), or a chance.
`sample` draws one value per factor. Lengths are shares of the dial's radius, so a look holds at any image size.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, fields
from typing import Any

from synth.settings import setting

Weights = dict[str, float]
Range = tuple[float, float]
Choices = dict[str, Any]

UNIT = (0.0, 1.0)
TURN = (0.0, 1.0)  # a hue, once round the colour wheel


@dataclass(frozen=True, kw_only=True)
class ClockLook:
    """The default is the preset `varied`; the names in its weights are all the names there are."""

    # place and outline
    radius: Range = setting((0.32, 0.48), "dial radius, share of the image side", within=(0.2, 0.49))
    shift_x: Range = setting((-1.0, 1.0), "place left to right, share of the free room", within=(-1.0, 1.0))
    shift_y: Range = setting((-1.0, 1.0), "place top to bottom, share of the free room", within=(-1.0, 1.0))
    dial_shape: Weights = setting({"round": 0.8, "square": 0.2}, "outline of the dial")
    background: Weights = setting({"plain": 0.6, "gradient down": 0.2, "gradient across": 0.2}, "what lies behind the dial")
    background_lightness: Range = setting((0.1, 0.98), "lightness behind the dial", within=UNIT)
    background_hue: Range = setting(TURN, "hue behind the dial", within=UNIT)
    background_saturation: Range = setting((0.0, 0.5), "saturation behind the dial", within=UNIT)
    gradient_step: Range = setting((-0.35, 0.35), "change of lightness over a gradient", within=(-1.0, 1.0))
    rim: Weights = setting({"none": 0.15, "ink": 0.45, "coloured": 0.4}, "ring around the dial")
    rim_width: Range = setting((0.02, 0.12), "width of the ring", within=(0.0, 0.3))
    rim_lightness: Range = setting((0.15, 0.85), "lightness of a coloured ring", within=UNIT)
    rim_hue: Range = setting(TURN, "hue of a coloured ring", within=UNIT)
    rim_saturation: Range = setting((0.0, 0.6), "saturation of a coloured ring", within=UNIT)
    # face and ink
    face_tone: Weights = setting({"light": 0.7, "dark": 0.3}, "dark ink on a light face, or light ink on a dark one")
    face_depth: Range = setting((0.0, 0.2), "how far the face is from pure white or black", within=(0.0, 0.35))
    face_hue: Range = setting(TURN, "hue of the face", within=UNIT)
    face_saturation: Range = setting((0.0, 0.5), "saturation of the face", within=UNIT)
    ink_depth: Range = setting((0.0, 0.3), "how far the ink is from pure black or white", within=(0.0, 0.35))
    ink_hue: Range = setting(TURN, "hue of the ink", within=UNIT)
    ink_saturation: Range = setting((0.0, 0.7), "saturation of the ink", within=UNIT)
    # numerals and ticks
    numerals: Weights = setting({"arabic": 0.45, "roman": 0.2, "12-3-6-9": 0.15, "none": 0.2}, "numerals on the dial")
    roman_four: Weights = setting({"IIII": 0.6, "IV": 0.4}, "how a Roman four is written")
    numeral_font: Weights = setting(
        {
            "DejaVuSans": 0.2,
            "DejaVuSans-Bold": 0.15,
            "DejaVuSerif": 0.15,
            "DejaVuSerif-Bold": 0.1,
            "DejaVuSansMono": 0.05,
            "STIXGeneral": 0.15,
            "STIXGeneralBol": 0.1,
            "STIXGeneralItalic": 0.1,
        },
        "font, by its file name among those that come with matplotlib",
    )
    numeral_size: Range = setting((0.16, 0.28), "height of the letters", within=(0.05, 0.4))
    numeral_gap: Range = setting((0.02, 0.1), "room between ticks and numerals", within=(0.0, 0.4))
    ticks: Weights = setting({"minutes": 0.55, "hours": 0.25, "quarters": 0.05, "none": 0.15}, "ticks on the dial")
    tick_inset: Range = setting((0.01, 0.06), "room between rim and ticks", within=(0.0, 0.3))
    hour_tick_length: Range = setting((0.06, 0.15), "length of the hour ticks", within=(0.0, 0.4))
    hour_tick_width: Range = setting((0.012, 0.045), "width of the hour ticks", within=(0.0, 0.2))
    minute_tick_scale: Range = setting((0.35, 0.7), "minute ticks, share of the hour ticks", within=UNIT)
    # hands
    hand_shape: Weights = setting({"baton": 0.3, "tapered": 0.3, "pointed": 0.25, "arrow": 0.15}, "hour and minute hand")
    hand_colour: Weights = setting(
        {"ink": 0.65, "accent": 0.15, "hour accent": 0.1, "minute accent": 0.1}, "hands in ink or accent"
    )
    accent_hue: Range = setting(TURN, "hue of the accent", within=UNIT)
    accent_saturation: Range = setting((0.6, 1.0), "saturation of the accent", within=UNIT)
    hour_length: Range = setting((0.38, 0.58), "length of the hour hand", within=(0.1, 1.0))
    minute_length: Range = setting((0.72, 0.93), "length of the minute hand", within=(0.1, 1.0))
    hour_width: Range = setting((0.05, 0.11), "width of the hour hand", within=(0.005, 0.3))
    minute_width_scale: Range = setting((0.45, 0.9), "width of the minute hand, share of the hour hand's", within=(0.1, 2.0))
    tail: Range = setting((0.0, 0.22), "length of the hands behind the pivot", within=(0.0, 0.5))
    hub: Range = setting((0.03, 0.08), "radius of the cap on the pivot", within=(0.0, 0.2))
    second_hand: float = setting(0.5, "chance of a second hand")
    second_length: Range = setting((0.75, 0.95), "length of the second hand", within=(0.1, 1.0))
    second_width_scale: Range = setting((0.25, 0.6), "width of the second hand, share of the minute hand's", within=(0.05, 1.0))
    second_tail: Range = setting((0.05, 0.3), "length of the second hand behind the pivot", within=(0.0, 0.5))
    second_colour: Weights = setting({"red": 0.5, "ink": 0.35, "accent": 0.15}, "colour of the second hand")

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, dict):
                names = list(each.default_factory())  # type: ignore[misc]
                _check_weights(each.name, value, names)
                # In one order, whoever wrote it: the order decides which random number gives which name.
                object.__setattr__(self, each.name, {name: float(value[name]) for name in names if name in value})
            elif isinstance(value, (tuple, list)):
                _check_range(each.name, value, *each.metadata["within"])
                object.__setattr__(self, each.name, (float(value[0]), float(value[1])))
            elif not 0 <= value <= 1:
                raise ValueError(f"look.{each.name} must be a chance from 0 to 1, got {value!r}")
        if self.minute_length[0] <= self.hour_length[1]:
            raise ValueError(
                f"look.minute_length must start above look.hour_length's end, got {list(self.minute_length)} and {list(self.hour_length)}; "
                "a minute hand that is no longer than the hour hand makes the time ambiguous"
            )

    def sample(self, rng: random.Random) -> Choices:
        """One value per factor; each takes exactly one random number, so changing one factor leaves the others as they were."""
        return {each.name: _draw(getattr(self, each.name), rng.random()) for each in fields(self)}


def _draw(distribution: Weights | Range | float, u: float) -> str | float | bool:
    if isinstance(distribution, dict):
        left = u * sum(distribution.values())
        for name, weight in distribution.items():
            left -= weight
            if left < 0:
                return name
        return next(name for name in reversed(distribution) if distribution[name] > 0)  # u * sum rounded up to sum
    if isinstance(distribution, tuple):
        low, high = distribution
        return round(low + u * (high - low), 4)  # rounded, so that meta tells exactly what was drawn
    return u < distribution


def _check_weights(name: str, weights: Weights, names: list[str]) -> None:
    unknown = [each for each in weights if each not in names]
    if unknown:
        raise ValueError(f"look.{name} knows {', '.join(names)}, got {unknown[0]!r}")
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights.values()) or not sum(weights.values()) > 0:
        raise ValueError(f"look.{name} must hold weights >= 0 of which one is above 0, got {weights!r}")


def _check_range(name: str, value: Range, low: float, high: float) -> None:
    if len(value) != 2 or not low <= value[0] <= value[1] <= high:
        raise ValueError(f"look.{name} must be a range [low, high] within {low:g} to {high:g}, got {list(value)!r}")


PLAIN = ClockLook(
    radius=(0.4, 0.48),
    dial_shape={"round": 1.0},
    background={"plain": 1.0},
    background_lightness=(0.75, 1.0),
    background_saturation=(0.0, 0.15),
    rim={"ink": 1.0},
    rim_width=(0.03, 0.07),
    face_tone={"light": 1.0},
    face_depth=(0.0, 0.12),
    face_saturation=(0.0, 0.2),
    ink_depth=(0.0, 0.3),
    ink_saturation=(0.0, 0.5),
    numerals={"none": 1.0},
    ticks={"hours": 1.0},
    tick_inset=(0.01, 0.04),
    hour_tick_length=(0.07, 0.12),
    hour_tick_width=(0.03, 0.05),
    hand_shape={"baton": 1.0},
    hand_colour={"ink": 1.0},
    hour_length=(0.42, 0.55),
    minute_length=(0.74, 0.9),
    hour_width=(0.09, 0.13),
    minute_width_scale=(0.5, 0.75),
    tail=(0.0, 0.08),
    hub=(0.05, 0.08),
    second_hand=0.0,
)
PRESETS = {"plain": PLAIN, "varied": ClockLook()}
