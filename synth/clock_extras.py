"""What some dials have and most lack: other outlines, distractors, turned and mirrored dials, finishes, shadows.

Lengths are shares of the dial's radius. Only what a clock has is told in its meta. The defaults are those of preset `varied`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synth.factors import FULL_CIRCLE, TURN, UNIT, Factors, Range, Weights
from synth.settings import setting


@dataclass(frozen=True, kw_only=True)
class ClockExtras(Factors):
    section: ClassVar[str] = "extras"
    sparse: ClassVar[bool] = True

    # the dial as a whole
    pose: Weights = setting(
        {"none": 0.96, "overlapping": 0.02, "opposite": 0.02},
        "times whose hands lie over or opposite each other, drawn more often",
    )
    turn: Weights = setting(
        {"none": 0.7, "tilted": 0.18, "quarter": 0.06, "any": 0.06},
        "the dial turned with its numerals; a dial without any is at most tilted",
    )
    turn_deg: Range = setting(
        FULL_CIRCLE, "how far; tilted takes it over -15 to 15, quarter over 90, 180 and 270", within=FULL_CIRCLE, needs="turn"
    )
    mirrored: Weights = setting(
        {"none": 0.97, "backwards": 0.015, "reflected": 0.015},
        "a dial that runs backwards: with readable numerals, or seen in a mirror",
    )
    aspect: Range = setting(
        (0.75, 0.95), "narrow side of an ellipse, share of the other", within=(0.5, 1.0), needs="dial_shape=ellipse"
    )
    stretch: Weights = setting({"tall": 0.5, "wide": 0.5}, "which way an ellipse is longer", needs="dial_shape=ellipse")
    wobble: Range = setting(
        (0.03, 0.09), "how far an irregular outline goes in and out", within=(0.0, 0.15), needs="dial_shape=irregular"
    )
    wobble_turn: Range = setting(UNIT, "how it is turned, once round", within=UNIT, needs="dial_shape=irregular")
    # ticks and numerals
    track: Weights = setting(
        {"none": 0.6, "outline": 0.4}, "on dials that are not round: ticks on a circle, or along the outline"
    )
    numeral_turn: Weights = setting(
        {"none": 0.7, "radial": 0.15, "readable": 0.15},
        "numerals upright; feet to the centre; the same with the lower half the other way up",
    )
    numeral_stretch: float = setting(0.25, "chance of narrow or wide numerals")
    numeral_stretch_by: Range = setting(
        (0.6, 1.2), "width of those, share of the font's", within=(0.4, 2.0), needs="numeral_stretch"
    )
    twelve_mark: float = setting(0.15, "chance of a triangle at 12 on dials without numerals")
    rings: Weights = setting(
        {"none": 0.7, "one": 0.15, "track": 0.15}, "thin circles on the face: one, or two with the ticks between"
    )
    ring_radius: Range = setting((0.4, 0.7), "radius of the single circle", within=(0.2, 0.9), needs="rings")
    # distractors
    alarm_hand: float = setting(0.1, "chance of a third, thin and short hand that tells nothing of the time")
    alarm_deg: Range = setting(FULL_CIRCLE, "where it points", within=FULL_CIRCLE, needs="alarm_hand")
    alarm_length_scale: Range = setting((0.6, 0.9), "its length, share of the hour hand's", within=UNIT, needs="alarm_hand")
    alarm_width_scale: Range = setting((0.2, 0.4), "its width, share of the hour hand's", within=UNIT, needs="alarm_hand")
    subdials: Weights = setting(
        {"none": 0.9, "one": 0.05, "two": 0.03, "three": 0.02}, "small dials within the dial, each with a hand of its own"
    )
    subdial_radius: Range = setting((0.15, 0.22), "their radius", within=(0.05, 0.25), needs="subdials")
    subdial_deg: Range = setting(FULL_CIRCLE, "where their hands point", within=FULL_CIRCLE, needs="subdials")
    date_window: Weights = setting(
        {"none": 0.88, "3": 0.08, "6": 0.02, "9": 0.02}, "a window with the day of the month, beside that hour"
    )
    date: Range = setting((1.0, 31.99), "the day", within=(1.0, 32.0), needs="date_window")
    brand: float = setting(0.25, "chance of a name on the dial")
    brand_name: Range = setting(UNIT, "which of the made-up names", within=UNIT, needs="brand")
    second_line: float = setting(0.4, "chance of a smaller line below the centre, with the name", needs="brand")
    # hands
    second_style: Weights = setting({"none": 0.7, "lollipop": 0.3}, "second hand plain, or with a disc")
    edged: float = setting(0.1, "chance that the hands have an edge in the face's colour")
    hand_shadow: float = setting(0.25, "chance that the hands throw a shadow on the dial")
    shadow_deg: Range = setting((100.0, 260.0), "towards where", within=FULL_CIRCLE, needs="hand_shadow")
    shadow_length: Range = setting((0.01, 0.05), "how far", within=(0.0, 0.15), needs="hand_shadow")
    shadow_depth: Range = setting((0.15, 0.5), "how dark", within=UNIT, needs="hand_shadow")
    # finish
    face_finish: Weights = setting(
        {"none": 0.76, "radial": 0.08, "paper": 0.08, "sunburst": 0.04, "brushed": 0.04},
        "even, darker to the edge, stained, or metal",
    )
    finish_depth: Range = setting((0.1, 0.35), "how strong", within=UNIT, needs="face_finish")
    finish_hue: Range = setting(TURN, "hue of the stains", within=UNIT, needs="face_finish")
    finish_turn: Range = setting(UNIT, "how it is turned, once round", within=UNIT, needs="face_finish")
    rim_finish: Weights = setting({"none": 0.7, "lit": 0.3}, "the ring even, or lit from one side")
    rim_lit_deg: Range = setting(FULL_CIRCLE, "from where", within=FULL_CIRCLE, needs="rim_finish")
