"""Camera, surroundings, glass and film: what each does, and that none moves what the truth says."""

import io
import json
import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from PIL import Image, ImageDraw

from synth.camera import framed, project, shift_and_scale, tilted, warp
from synth.clock_presets import NO_SCENE, PRESETS
from synth.clock_scene import SceneLook
from synth.clocks import ClockConfig
from synth.fields import field, grain, turned_field
from synth.film import encode, expose
from synth.shapes import Disc, Polygon, stencil


def test_a_dial_that_leans_away_upwards():
    # 60 degrees away from the viewer at the top, seen from two radii: the top comes to lie at y = -cos 60 / (1 + sin 60 / 2).
    top, right, bottom = project(tilted(60.0, 0.0, 0.0, 2.0), [(0.0, -1.0), (1.0, 0.0), (0.0, 1.0)])
    assert top == pytest.approx((0.0, -0.5 / (1 + math.sqrt(3) / 4)))
    assert bottom == pytest.approx((0.0, 0.5 / (1 - math.sqrt(3) / 4)))
    assert right == pytest.approx((1.0, 0.0))  # the axis of the tilt stays


def test_rolling_turns_clockwise_and_no_tilt_changes_nothing():
    assert project(tilted(0.0, 77.0, 90.0, 3.0), [(0.0, -1.0)])[0] == pytest.approx((1.0, 0.0))  # 12 goes to 3
    assert np.allclose(tilted(0.0, 77.0, 0.0, 3.0), np.eye(3))


def test_framing_fills_the_square_and_keeps_its_middle():
    circle = [(50 + 40 * math.sin(k / 10), 50 + 40 * math.cos(k / 10)) for k in range(63)]
    matrix = framed(tilted(35.0, 130.0, 10.0, 2.5), (50.0, 50.0), 40.0, circle, (120.0, 90.0), 60.0)
    seen = np.array(project(matrix, circle))
    assert (seen.max(0) - seen.min(0)).max() == pytest.approx(120.0)
    assert (seen.max(0) + seen.min(0)) / 2 == pytest.approx([120.0, 90.0])


def test_warping_takes_pixels_where_projecting_takes_points():
    spot = Image.new("RGB", (80, 80))
    spot.paste((255, 255, 255), (50, 20, 56, 26))  # centred on (53, 23)
    outline = [(0.0, 0.0), (80.0, 0.0), (80.0, 80.0), (0.0, 80.0)]
    matrix = framed(tilted(30.0, 40.0, -8.0, 3.0), (40.0, 40.0), 40.0, outline, (60.0, 55.0), 50.0)
    light = np.asarray(warp(spot, matrix, (5, 3, 115, 113)), dtype=float)[..., 0]
    y, x = np.mgrid[:110, :110] + 0.5
    seen = (5 + (light * x).sum() / light.sum(), 3 + (light * y).sum() / light.sum())
    assert seen == pytest.approx(project(matrix, [(53.0, 23.0)])[0], abs=0.15)
    assert np.allclose(shift_and_scale((1.0, 2.0), (5.0, 7.0), 3.0) @ [1.0, 2.0, 1.0], [5.0, 7.0, 1.0])


FILM = {
    "scaling": {"scaling": True, "scaling_to": 0.4},
    "blur": {"blur": True, "blur_radius": 0.02},
    "shake": {"shake": True, "shake_deg": 37.0, "shake_length": 0.05},
    "noise": {"noise": True, "noise_depth": 12.0},
    "light": {"light": True, "light_deg": 0.0, "light_fall": 0.0, "exposure": 0.8, "warmth": 0.1, "vignette": 0.0},
}


@pytest.mark.parametrize("stage", FILM)
def test_film_moves_nothing(stage):
    image = Image.new("RGB", (128, 128))
    ImageDraw.Draw(image).ellipse((40, 60, 70, 90), fill=(255, 255, 255))
    done = expose(image, FILM[stage], Random(3))
    before, after = (np.asarray(each, dtype=float).mean(-1) for each in (image, done))
    assert not np.array_equal(before, after)
    y, x = np.mgrid[:128, :128] + 0.5
    after = np.where(after > 40, after, 0)  # not the grain about it
    for axis in (x, y):
        assert (after * axis).sum() / after.sum() == pytest.approx((before * axis).sum() / before.sum(), abs=0.3)


def test_light_falls_off_away_from_where_it_comes():
    grey = Image.new("RGB", (64, 64), (128, 128, 128))
    lit = {"light": True, "light_deg": 90.0, "light_fall": 0.6, "exposure": 1.0, "warmth": 0.2, "vignette": 0.0}
    pixels = np.asarray(expose(grey, lit, Random(0)), dtype=float)
    assert pixels[32, 60, 1] > pixels[32, 32, 1] > pixels[32, 3, 1]  # from the right
    assert (pixels[..., 0] > pixels[..., 1]).all() and (pixels[..., 1] > pixels[..., 2]).all()  # warm
    bright = np.asarray(expose(grey, {**lit, "light_fall": 0.0, "exposure": 1.5, "warmth": 0.0}, Random(0)), dtype=float)
    assert bright.mean() == pytest.approx(192, abs=2)


def test_noise_has_the_depth_it_says():
    grey = Image.new("RGB", (500, 300), (128, 128, 128))
    for depth in (3.0, 12.0):
        pixels = np.asarray(expose(grey, {"noise": True, "noise_depth": depth}, Random(1)), dtype=float)
        assert pixels.std() == pytest.approx(depth, rel=0.05) and pixels.mean() == pytest.approx(128, abs=0.3)


def test_pictures_that_end_in_a_jpeg_are_stored_as_that_jpeg():
    image = Image.fromarray(np.asarray(Image.effect_noise((64, 64), 60).convert("RGB")))
    stored = encode(image, {"jpeg": True, "jpeg_quality": 60.0})
    again = io.BytesIO()
    image.save(again, "JPEG", quality=60)
    assert stored == again.getvalue()
    assert Image.open(io.BytesIO(encode(image, {}))).format == "PNG"


ALWAYS = {
    "clutter": 1.0,
    "strap": 1.0,
    "wall_shadow": 1.0,
    "glare": 1.0,
    "occlusion": 1.0,
    "light": 1.0,
    "scaling": 1.0,
    "blur": 1.0,
    "shake": 1.0,
}
NAMED = [("behind", name) for name in SceneLook().behind if name != "none"]
NAMED += [("reflections", name) for name in SceneLook().reflections if name != "none"]


@pytest.mark.parametrize(
    "change", [*({name: chance} for name, chance in ALWAYS.items()), *({factor: {name: 1.0}} for factor, name in NAMED)]
)
def test_every_part_of_a_scene_shows_and_leaves_the_clock_where_it_was(change):
    look = replace(PRESETS["plain"].look, radius=(0.3, 0.4))
    without = ClockConfig(preset="plain", size=96, look=look).maker()
    scene = replace(NO_SCENE, shake_length=(0.03, 0.05), **change)  # less than a pixel would not show
    having = ClockConfig(preset="plain", size=96, look=look, scene=scene).maker()
    for index in range(4):
        before, after = without(index), having(index)
        assert before.image != after.image
        told, tells = json.loads(before.meta), json.loads(after.meta)
        assert tells.pop("scene").keys() >= change.keys() and tells == told


def test_nothing_before_a_clock_comes_near_its_centre():
    scene = replace(NO_SCENE, occlusion=1.0)
    with_thing, without = (ClockConfig(preset="plain", size=96, scene=each).maker() for each in (scene, NO_SCENE))
    for index in range(40):
        a, b = (np.asarray(Image.open(io.BytesIO(make(index).image)), dtype=int) for make in (with_thing, without))
        meta = json.loads(with_thing(index).meta)
        ys, xs = np.nonzero(np.abs(a - b).sum(-1))
        nearest = np.hypot(xs + 0.5 - meta["center_px"][0], ys + 0.5 - meta["center_px"][1]).min()
        assert nearest > 0.6 * meta["choices"]["radius"] * 96  # occlusion_reach starts at 0.65


def test_fields_are_the_same_every_time_and_use_their_range():
    for kind in ("radial", "sunburst", "brushed", "paper", "clouds", "fibre", "weave"):
        grey = np.asarray(field(kind, 1))
        assert grey.shape == (256, 256) and grey.std() > 15, kind
    assert turned_field("lit", 0, 6).getpixel((90, 5)) > turned_field("lit", 0, 6).getpixel((90, 175))  # upside down
    assert abs(float(grain().mean())) < 0.3 and float(grain().std()) == pytest.approx(32, rel=0.02)
    with pytest.raises(ValueError, match="unknown field"):
        field("marble")


def test_a_stencil_covers_what_its_shape_does():
    mask, box = stencil((Polygon(((10.25, 10.0), (20.75, 10.0), (20.75, 15.5), (10.25, 15.5))),), (40, 40))
    # Pillow fills both ends of a polygon: up to one of eight steps a pixel more each way.
    assert 10.5 * 5.5 <= np.asarray(mask, dtype=float).sum() / 255 <= 10.625 * 5.625 + 0.1
    assert box[0] <= 10 and box[2] >= 21
    assert stencil((Disc((-50.0, -50.0), 10.0),), (40, 40)) is None and stencil((), (40, 40)) is None
