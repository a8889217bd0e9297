"""What stands between a clock and its picture: camera, surroundings, light, glass, and what film and storage do.

Only what a picture has is told in its meta. The defaults are those of preset `varied`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synth.factors import FULL_CIRCLE, TURN, UNIT, Factors, Range, Weights
from synth.settings import setting


@dataclass(frozen=True, kw_only=True)
class SceneLook(Factors):
    section: ClassVar[str] = "scene"
    sparse: ClassVar[bool] = True

    # camera
    clocks: Weights = setting(
        {"none": 0.97, "two": 0.01, "three": 0.01, "four": 0.01}, "several clocks, of which one is asked about"
    )
    asked: Range = setting(UNIT, "which one", within=UNIT, needs="clocks")
    camera: float = setting(0.18, "chance that the dial is seen at an angle")
    tilt_deg: Range = setting((0.0, 35.0), "how far the dial leans away", within=(0.0, 60.0), needs="camera")
    tilt_towards_deg: Range = setting(FULL_CIRCLE, "towards where", within=FULL_CIRCLE, needs="camera")
    roll_deg: Range = setting((-12.0, 12.0), "how far the camera is turned", within=(-180.0, 180.0), needs="camera")
    distance: Range = setting(
        (2.5, 10.0), "how far it is away, in dial radii; nearer bends lines more", within=(1.5, 100.0), needs="camera"
    )
    # surroundings
    behind: Weights = setting(
        {
            "none": 0.86,
            "plaster": 0.03,
            "wood": 0.03,
            "brick": 0.01,
            "tiles": 0.02,
            "cloth": 0.02,
            "checker": 0.01,
            "bokeh": 0.02,
        },
        "what lies behind: nothing but the look's background, or a texture",
    )
    behind_hue: Range = setting(TURN, "its hue", within=UNIT, needs="behind")
    behind_saturation: Range = setting((0.0, 0.5), "its saturation", within=UNIT, needs="behind")
    behind_lightness: Range = setting((0.15, 0.85), "its lightness", within=UNIT, needs="behind")
    behind_contrast: Range = setting((0.1, 0.5), "how far it varies", within=UNIT, needs="behind")
    behind_scale: Range = setting((0.06, 0.3), "size of its pieces, share of the image", within=(0.02, 1.0), needs="behind")
    clutter: float = setting(0.08, "chance of things around the clock")
    clutter_count: Range = setting((2.0, 12.0), "how many", within=(1.0, 40.0), needs="clutter")
    strap: float = setting(0.04, "chance of a watch strap")
    strap_width: Range = setting((0.7, 1.2), "its width, in dial radii", within=(0.3, 1.8), needs="strap")
    strap_lightness: Range = setting((0.05, 0.6), "its lightness", within=UNIT, needs="strap")
    wall_shadow: float = setting(0.12, "chance that the clock throws a shadow on what is behind")
    wall_shadow_deg: Range = setting((100.0, 260.0), "towards where", within=FULL_CIRCLE, needs="wall_shadow")
    wall_shadow_length: Range = setting((0.03, 0.15), "how far, in dial radii", within=(0.0, 0.5), needs="wall_shadow")
    wall_shadow_depth: Range = setting((0.2, 0.6), "how dark", within=UNIT, needs="wall_shadow")
    # glass
    reflections: Weights = setting({"none": 0.9, "streaks": 0.04, "window": 0.04, "arc": 0.02}, "reflections in the glass")
    reflection_depth: Range = setting((0.08, 0.4), "how bright", within=UNIT, needs="reflections")
    glare: float = setting(0.05, "chance of a bright spot")
    glare_radius: Range = setting((0.15, 0.5), "its size, in dial radii", within=(0.05, 1.0), needs="glare")
    glare_depth: Range = setting((0.4, 0.9), "how bright", within=UNIT, needs="glare")
    occlusion: float = setting(0.03, "chance that something stands before the rim of the dial")
    occlusion_deg: Range = setting(FULL_CIRCLE, "where", within=FULL_CIRCLE, needs="occlusion")
    occlusion_reach: Range = setting((0.65, 0.9), "how near it comes to the centre", within=(0.5, 1.0), needs="occlusion")
    # light
    light: float = setting(0.12, "chance of uneven light and a colour cast")
    light_deg: Range = setting(FULL_CIRCLE, "from where it comes", within=FULL_CIRCLE, needs="light")
    light_fall: Range = setting((0.0, 0.6), "how much darker the far side is", within=UNIT, needs="light")
    exposure: Range = setting((0.7, 1.15), "brightness", within=(0.2, 2.0), needs="light")
    warmth: Range = setting((-0.12, 0.15), "red gain, and blue loss", within=(-0.5, 0.5), needs="light")
    vignette: Range = setting((0.0, 0.4), "how much darker the corners are", within=UNIT, needs="light")
    # film and storage
    scaling: float = setting(0.08, "chance of low resolution: scaled down and up again")
    scaling_to: Range = setting((0.4, 0.9), "scaled down to this share", within=(0.1, 1.0), needs="scaling")
    blur: float = setting(0.08, "chance of a picture out of focus")
    blur_radius: Range = setting((0.001, 0.008), "how far, share of the image side", within=(0.0, 0.05), needs="blur")
    shake: float = setting(0.02, "chance of a picture shaken while it was taken")
    shake_deg: Range = setting((0.0, 180.0), "which way", within=FULL_CIRCLE, needs="shake")
    shake_length: Range = setting((0.005, 0.02), "how far, share of the image side", within=(0.0, 0.1), needs="shake")
    jpeg: float = setting(0.75, "chance that the picture is stored as JPEG")
    jpeg_quality: Range = setting((60.0, 95.0), "its quality", within=(5.0, 100.0), needs="jpeg")
    noise: float = setting(0.25, "chance of noise, in pictures that are stored as JPEG", needs="jpeg")
    noise_depth: Range = setting((1.0, 10.0), "its standard deviation, of 255", within=(0.0, 60.0), needs="noise")
