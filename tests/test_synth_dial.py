"""Hands and dials as an independent reader finds them in the pixels."""

import json
import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.clock_extras import ClockExtras
from synth.clock_layout import OUTLINE_POINTS, hand_angles, lay_out
from synth.clock_look import ClockLook
from synth.clock_presets import PRESETS
from synth.clock_scene import SceneLook
from synth.clocks import ClockConfig
from synth.dial import Layer, draw
from synth.hands import Hand, hand_shapes, hand_tip
from synth.shapes import Disc, Polygon

SHAPES = (*ClockLook().hand_shape, "lollipop")


def clocks(preset, size_px, count, seed=0):
    rng = Random(seed)
    for _ in range(count):
        time_s = int(rng.random() * 43200)
        look = PRESETS[preset].look.sample(rng)
        choices = {**look, **PRESETS[preset].extras.sample(rng, look)}
        angles = hand_angles(time_s, 24 if choices["numerals"] == "24-hour" else 12)
        if "turn" in choices:  # this file's reader looks at upright dials; test_synth_truth.py at all of them
            del choices["turn"], choices["turn_deg"]
        choices.pop("mirrored", None)
        yield angles, lay_out(choices, {**angles, "alarm": 45.0}, size_px)


def ink_of(clock, hand):
    """(H, W) how much one hand changes each pixel: two renders, with and without it."""
    bare = replace(clock, hands=(), hub=Layer((0, 0, 0), ()))
    with_hand = np.asarray(draw(replace(bare, hands=(hand,))), dtype=float)
    return np.abs(with_hand - np.asarray(draw(bare), dtype=float)).sum(-1)


def read_angle(ink, center):
    """Every hand is symmetric about its axis and longer than its tail, so the first moment points along it."""
    y, x = np.mgrid[: ink.shape[0], : ink.shape[1]] + 0.5
    dx, dy = (ink * (x - center[0])).sum(), (ink * (y - center[1])).sum()
    return math.degrees(math.atan2(dx, -dy)) % 360


def apart_deg(a, b):
    return abs((a - b + 180) % 360 - 180)


def on_plain_ground(clock):
    # The reader weighs pixels by their change; a hand over ticks, numerals or rim changes them unevenly.
    hands = tuple(replace(hand, colour=(0, 0, 0), edge=None) for hand in clock.hands if hand.name != "alarm")
    return replace(
        clock, background=((255,) * 3,) * 2, gradient="plain", face=(), numerals=(), ornaments=(), shadow=None, hands=hands
    )


@pytest.mark.parametrize(
    ("preset", "size_px", "count"), [("plain", 64, 60), ("plain", 448, 15), ("varied", 224, 60), ("varied", 448, 15)]
)
def test_hands_in_the_pixels_agree_with_the_time(preset, size_px, count):
    for expected, clock in clocks(preset, size_px, count):
        clock = on_plain_ground(clock)
        for hand in clock.hands:
            seen = read_angle(ink_of(clock, hand), clock.center)
            # A sixth of a minute on the minute hand; a quarter of a pixel sideways at the smallest sizes.
            assert apart_deg(seen, expected[hand.name]) < (1.0 if size_px > 64 else 1.5), (hand, seen)


def test_tips_are_where_the_ink_ends():
    for _, clock in clocks("varied", 448, 15, seed=3):
        clock = on_plain_ground(clock)
        for hand in clock.hands:
            ink = ink_of(clock, hand)
            ys, xs = np.nonzero(ink > ink.max() / 4)
            tip = hand_tip(hand, clock.center)
            along = np.hypot(xs + 0.5 - clock.center[0], ys + 0.5 - clock.center[1])
            assert along.max() == pytest.approx(hand.length_px, abs=max(1.5, hand.width_px / 2))
            assert np.hypot(xs + 0.5 - tip[0], ys + 0.5 - tip[1]).min() < 1.5


def test_quarter_past_three():
    # 03:15 is 195 minutes: 195 * 0.5 = 97.5 degrees, 15 * 6 = 90 degrees.
    assert hand_angles(195 * 60) == {"hour": 97.5, "minute": 90.0, "second": 0.0}
    # 30 s later the minute hand is half a minute on (3 degrees), the hour hand a quarter of a degree.
    assert hand_angles(195 * 60 + 30) == {"hour": 97.75, "minute": 93.0, "second": 180.0}


@given(st.integers(0, 43199))
def test_the_hour_hand_is_tied_to_the_others(time_s):
    angles = hand_angles(time_s)
    assert angles["hour"] * 12 % 360 == pytest.approx(angles["minute"], abs=1e-6)
    assert angles["minute"] * 60 % 360 == pytest.approx(angles["second"], abs=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_hand_ends_at_its_length(shape):
    hand = Hand(name="hour", shape=shape, angle_deg=90.0, length_px=50.0, width_px=6.0, tail_px=10.0, colour=(0, 0, 0))
    outlines = [shape for shape in hand_shapes(hand, (100.0, 100.0)) if isinstance(shape, Polygon)]
    xs = [x for outline in outlines for x, _ in outline.points]
    assert max(xs) == pytest.approx(150.0)
    assert min(xs) == pytest.approx(90.0)
    for along, across in outlines[0].points:  # symmetric about its axis
        assert any(along == pytest.approx(x) and 200 - across == pytest.approx(y) for x, y in outlines[0].points)
    assert hand_tip(hand, (100.0, 100.0)) == pytest.approx((150.0, 100.0))


@pytest.mark.parametrize("section", ["look", "extras", "scene"])
def test_the_names_of_all_factors_can_be_drawn(section):
    start = {"look": ClockLook(), "extras": ClockExtras(), "scene": SceneLook()}[section]
    for factor, weights in vars(start).items():
        for name in weights if isinstance(weights, dict) else ():
            changed = {section: replace(start, **{factor: {name: 1.0}})}
            if factor == "numeral_font":
                changed["look"] = replace(changed["look"], numerals={"roman": 1.0})
            record = ClockConfig(size=48, **changed).maker()(1)
            assert (
                name in ("none", "IV", "IIII")
                or name in record.meta
                or factor in ("turn", "mirrored", "stretch", "date_window")
            )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["plain", "varied"]), st.sampled_from([32, 64, 224]))
def test_dial_and_tips_lie_within_the_image(index, preset, size_px):
    meta = json.loads(ClockConfig(preset=preset, size=size_px).maker()(index).meta)
    assert len(meta["outline_px"]) == OUTLINE_POINTS
    for x, y in meta["outline_px"] + list(meta["tips_px"].values()):
        assert -0.5 <= x <= size_px + 0.5 and -0.5 <= y <= size_px + 0.5


@pytest.mark.parametrize("size_px", [64, 224, 448])
def test_edges_are_anti_aliased_and_areas_true(size_px):
    # A black disc on white: its darkness sums to pi r^2, and its edge has greys.
    _, clock = next(clocks("plain", size_px, 1))
    radius = size_px * 0.37
    disc = Layer((0, 0, 0), (Disc((size_px * 0.503, size_px * 0.491), radius),))
    clock = replace(on_plain_ground(clock), hands=(), hub=disc)
    dark = 1 - np.asarray(draw(clock), dtype=float)[..., 0] / 255
    assert dark.sum() == pytest.approx(math.pi * radius**2, rel=0.01)
    assert len(np.unique(dark)) > 8


def test_hands_stay_readable_against_the_face():
    # Contrast of the hands against the face under them, as relative luminance; 1.8:1 is far above what fades away.
    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for preset in PRESETS:
        for _, clock in clocks(preset, 64, 300):
            bare = draw(replace(clock, hands=(), hub=Layer((0, 0, 0), ()), shadow=None))
            face = luminance(bare.getpixel((round(clock.center[0]), round(clock.center[1]))))
            for hand in clock.hands:
                light, dark = sorted((luminance(hand.colour), face), reverse=True)
                stained = any(layer.finish is not None for layer in clock.face)  # old dials are hard to read
                assert (light + 0.05) / (dark + 0.05) > (1.5 if stained else 1.8), (preset, hand)
