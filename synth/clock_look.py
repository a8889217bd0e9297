"""How a clock looks: outline, colours, numerals, ticks and hands. What few dials have is in clock_extras.py.

Lengths are shares of the dial's radius, so a look holds at any image size. The defaults are those of preset `varied`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synth.factors import TURN, UNIT, Factors, Range, Weights
from synth.settings import setting


@dataclass(frozen=True, kw_only=True)
class ClockLook(Factors):
    """One value for each of these is in the meta of every record."""

    section: ClassVar[str] = "look"

    # place and outline
    radius: Range = setting((0.32, 0.48), "dial radius, share of the image side", within=(0.05, 0.6))
    shift_x: Range = setting((-1.0, 1.0), "place left to right, share of the free room", within=(-1.0, 1.0))
    shift_y: Range = setting((-1.0, 1.0), "place top to bottom, share of the free room", within=(-1.0, 1.0))
    dial_shape: Weights = setting(
        {"round": 0.66, "square": 0.08, "rounded square": 0.1, "octagon": 0.04, "ellipse": 0.07, "irregular": 0.05},
        "outline of the dial",
    )
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
    numerals: Weights = setting(
        {"arabic": 0.4, "roman": 0.2, "12-3-6-9": 0.12, "none": 0.16, "dots": 0.04, "12 and 24": 0.05, "24-hour": 0.03},
        "numerals on the dial",
    )
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
            "STIXGeneralItalic": 0.05,
            "STIXGeneralBolIta": 0.03,
            "DejaVuSans-Oblique": 0.04,
            "DejaVuSerif-Italic": 0.03,
            "cmr10": 0.06,
            "cmss10": 0.06,
            "cmb10": 0.04,
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
    hand_shape: Weights = setting(
        {
            "baton": 0.2,
            "tapered": 0.12,
            "pointed": 0.1,
            "arrow": 0.1,
            "rounded": 0.14,
            "dauphine": 0.08,
            "sword": 0.08,
            "spade": 0.08,
            "skeleton": 0.1,
        },
        "hour and minute hand",
    )
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
        super().__post_init__()
        if self.minute_length[0] <= self.hour_length[1]:
            raise ValueError(
                f"look.minute_length must start above look.hour_length's end, got {list(self.minute_length)} and {list(self.hour_length)}; "
                "a minute hand that is no longer than the hour hand makes the time ambiguous"
            )
