"""The stored truth against the pixels, as an independent reader finds it: no drawing code is shared, only pictures compared.

A hand is what changes between two renders of one record, with it and without it; the dial is what changes between the
picture with the clock and the picture without.
"""

import json
import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from PIL import ImageChops

from synth.clock_extras import ClockExtras
from synth.clock_look import ClockLook
from synth.clock_presets import NO_SCENE, PRESETS
from synth.clock_scene import SceneLook
from synth.clocks import ClockConfig
from synth.dial import Layer, draw
from synth.scene import photograph

NOTHING = Layer((0, 0, 0), ())
SEEN_LEVELS = 10  # of 3 x 255: less is no ink


def evenly(section):
    """Every name of every factor alike, everything a clock can have on every second clock."""
    weights = {
        name: dict.fromkeys(getattr(section, name), 1.0) for name in vars(section) if isinstance(getattr(section, name), dict)
    }
    chances = {name: 0.5 for name in vars(section) if isinstance(getattr(section, name), float)}
    return replace(section, **weights, **chances)


EVERY_STYLE = {"look": evenly(ClockLook()), "extras": evenly(ClockExtras())}
CAMERA = replace(
    NO_SCENE,
    camera=1.0,
    behind=dict.fromkeys(SceneLook().behind, 1.0),
    clocks=dict.fromkeys(SceneLook().clocks, 1.0),
    wall_shadow=0.5,
)


def ink(with_hand, without):
    """(H, W) bool: where two renders differ."""
    return np.asarray(ImageChops.difference(with_hand, without)).sum(-1, dtype=np.uint16) > SEEN_LEVELS


def polar(mask, center):
    ys, xs = np.nonzero(mask)
    dx, dy = xs + 0.5 - center[0], ys + 0.5 - center[1]
    return np.hypot(dx, dy), np.degrees(np.arctan2(dx, -dy)) % 360


def read_axis(mask, center):
    """The middle between a hand's two edges at every radius of its outer two thirds, and of those the median.

    A median, because a hand over a numeral of its own colour shows no edge there.
    """
    radii, angles = polar(mask, center)
    outer = radii > radii.max() / 3
    rough = np.degrees(np.arctan2(np.sin(np.radians(angles[outer])).sum(), np.cos(np.radians(angles[outer])).sum()))
    off = (angles[outer] - rough + 180) % 360 - 180
    rings = radii[outer].astype(int)
    first, last = np.full(rings.max() + 1, np.inf), np.full(rings.max() + 1, -np.inf)
    np.minimum.at(first, rings, off)
    np.maximum.at(last, rings, off)
    there = np.isfinite(first)
    return (rough + np.median((first[there] + last[there]) / 2)) % 360


def apart_deg(a, b):
    return abs((a - b + 180) % 360 - 180)


def hands_alone(render, clock):
    """(name, mask) of each hand: the record with this hand and no other, against the record without any."""
    bare = replace(clock, hands=(), hub=NOTHING, shadow=None)
    without = render(bare)
    for hand in clock.hands:
        yield hand.name, ink(render(replace(bare, hands=(hand,))), without)


@pytest.mark.parametrize("hand_shape", ClockLook().hand_shape)
def test_axes_of_all_hands_on_every_style_before_the_scene(hand_shape):
    look = replace(EVERY_STYLE["look"], hand_shape={hand_shape: 1.0})
    config = ClockConfig(size=448, seed=7, look=look, extras=EVERY_STYLE["extras"], scene=NO_SCENE, answer_format="HH:MM:SS")
    make = config.maker()
    for index in range(56):
        record, picture = make(index), make.picture(index, "train")
        meta = json.loads(record.meta)
        # What the hands must show is worked out here from the answer alone.
        hour, minute, *seconds = (int(part) for part in record.answer.split(":"))
        of_hour_s = 60 * minute + (seconds[0] if seconds else 0)
        turn_of_hour_deg = 15.0 if meta["choices"]["numerals"] == "24-hour" else 30.0
        wanted = {
            "hour": turn_of_hour_deg * (hour + of_hour_s / 3600),
            "minute": of_hour_s / 10,
            "second": 6.0 * (of_hour_s % 60),
        }
        assert ("second" in meta["angles_deg"]) == bool(seconds)
        turn_deg, direction = meta["choices"].get("turn_deg", 0.0), -1 if "mirrored" in meta["choices"] else 1
        for name, mask in hands_alone(lambda clock: draw(clock), picture.asked.clock):
            stored = meta["angles_deg"][name]
            assert apart_deg(stored, wanted.get(name, stored)) < 0.01, (index, name)
            seen = read_axis(mask, meta["center_px"])
            assert apart_deg(seen, turn_deg + direction * stored) < 1.5, (index, name, seen, meta["choices"])
            assert apart_deg(seen, meta.get("seen_angles_deg", meta["angles_deg"])[name]) < 1.5


def test_tips_and_centre_through_the_camera():
    config = ClockConfig(size=448, seed=9, look=EVERY_STYLE["look"], extras=EVERY_STYLE["extras"], scene=CAMERA)
    make = config.maker()
    for index in range(25):
        meta, picture = json.loads(make(index).meta), make.picture(index, "train")
        others = [seen for seen in picture.seen if seen is not picture.asked]

        def render(clock, picture=picture, others=others):
            return photograph([replace(picture.asked, clock=clock), *others], picture.scene, 448, Random(1))

        for name, mask in hands_alone(render, picture.asked.clock):
            tip, center = np.array(meta["tips_px"][name]), np.array(meta["center_px"])
            axis = (tip - center) / np.hypot(*(tip - center))
            ys, xs = np.nonzero(mask)
            offsets = np.stack([xs + 0.5, ys + 0.5], -1) - center
            along, across = offsets @ axis, offsets @ np.array([-axis[1], axis[0]])
            near_axis = np.abs(across) < max(2.0, 0.02 * np.hypot(*(tip - center)))
            assert (along * near_axis).max() == pytest.approx(np.hypot(*(tip - center)), abs=1.5), (index, name)
            assert (
                apart_deg(read_axis(mask, center), meta["seen_angles_deg"][name]) < 3.0
            )  # a wide hand near by is no straight axis


def test_outline_through_the_camera():
    config = ClockConfig(
        size=448, seed=11, look=EVERY_STYLE["look"], scene=replace(CAMERA, wall_shadow=0.0, behind={"none": 1.0})
    )
    make = config.maker()
    for index in range(40):
        meta, picture = json.loads(make(index).meta), make.picture(index, "train")
        shown = picture.asked.clock
        # The dial in black on white, so that a face the colour of the wall is seen as well.
        ground = replace(
            shown, background=((255,) * 3,) * 2, gradient="plain", shadow=None, hands=(), hub=NOTHING, numerals=(), ornaments=()
        )
        black = replace(ground, face=(Layer((0, 0, 0), (shown.body,)),))
        image = np.asarray(photograph([replace(picture.asked, clock=black)], {**picture.scene}, 448, Random(1)), dtype=float)[
            ..., 0
        ]
        center = np.array(meta["center_px"])
        for corner in np.array(meta["outline_px"]):
            way = (corner - center) / np.hypot(*(corner - center))
            steps = np.arange(0.0, 2.0 * np.hypot(*(corner - center)), 0.25)
            places = center + steps[:, None] * way
            inside = ((places >= 0) & (places < 448)).all(-1)
            columns, rows = places[inside].astype(int).T
            dark = image[rows, columns] < 127
            if dark[-1]:  # runs out of the picture
                continue
            edge = steps[inside][dark].max()
            # Between two of a curve's points the outline bends by less than a pixel; at a square's corner the ray grazes it.
            assert edge == pytest.approx(np.hypot(*(corner - center)), abs=2.5), (index, meta["choices"]["dial_shape"])


def test_the_homography_takes_the_dial_to_the_picture():
    make = ClockConfig(size=224, scene=CAMERA).maker()
    for index in range(30):
        meta = json.loads(make(index).meta)
        matrix = np.array(meta["homography"])

        def seen(x, y, matrix=matrix):
            u, v, w = matrix @ (x, y, 1.0)
            return u / w, v / w

        assert seen(0, 0) == pytest.approx(meta["center_px"], abs=0.02)
        turn = math.radians(meta["choices"].get("turn_deg", 0.0))
        if meta["choices"]["dial_shape"] == "round":  # the dial's 12 lies one radius above its centre before any camera
            assert seen(math.sin(turn), -math.cos(turn)) == pytest.approx(meta["outline_px"][0], abs=0.02)


@pytest.mark.parametrize("preset", PRESETS)
def test_second_renders_and_other_orders_give_the_same_picture(preset):
    make = ClockConfig(preset=preset, size=96).maker()
    forwards = [make(index).image for index in range(12)]
    assert forwards == [make(index).image for index in reversed(range(12))][::-1]
    picture = make.picture(3, "train")
    assert picture.paint(96).tobytes() == picture.paint(96).tobytes()
