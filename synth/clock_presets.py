"""Three places to start from: `plain` (for first lessons), `varied` (the default) and `photo` (a camera in a room).

`varied` is the defaults of the sections themselves; the other two say where they differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from synth.clock_extras import ClockExtras
from synth.clock_look import ClockLook
from synth.clock_scene import SceneLook


@dataclass(frozen=True, kw_only=True)
class Preset:
    look: ClockLook
    extras: ClockExtras
    scene: SceneLook


_PLAIN_LOOK = ClockLook(
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
    numeral_font={
        "DejaVuSans": 0.2,
        "DejaVuSans-Bold": 0.15,
        "DejaVuSerif": 0.15,
        "DejaVuSerif-Bold": 0.1,
        "DejaVuSansMono": 0.05,
        "STIXGeneral": 0.15,
        "STIXGeneralBol": 0.1,
        "STIXGeneralItalic": 0.1,
    },
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
_NOTHING = {"none": 1.0}
_NO_EXTRAS = ClockExtras(
    pose=_NOTHING,
    turn=_NOTHING,
    mirrored=_NOTHING,
    track=_NOTHING,
    numeral_turn=_NOTHING,
    numeral_stretch=0.0,
    twelve_mark=0.0,
    rings=_NOTHING,
    alarm_hand=0.0,
    subdials=_NOTHING,
    date_window=_NOTHING,
    brand=0.0,
    second_style=_NOTHING,
    edged=0.0,
    hand_shadow=0.0,
    face_finish=_NOTHING,
    rim_finish=_NOTHING,
)
NO_SCENE = SceneLook(
    clocks=_NOTHING,
    camera=0.0,
    behind=_NOTHING,
    clutter=0.0,
    strap=0.0,
    wall_shadow=0.0,
    reflections=_NOTHING,
    glare=0.0,
    occlusion=0.0,
    light=0.0,
    scaling=0.0,
    blur=0.0,
    shake=0.0,
    noise=0.0,
    jpeg=0.0,
)
_PHOTO_LOOK = ClockLook(  # real dials are white, cream, grey or black, their hands black or white, thick more often than not
    radius=(0.3, 0.51),
    rim={"none": 0.15, "ink": 0.3, "coloured": 0.55},
    rim_width=(0.02, 0.2),
    rim_saturation=(0.0, 0.35),
    face_tone={"light": 0.75, "dark": 0.25},
    face_saturation=(0.0, 0.2),
    ink_saturation=(0.0, 0.25),
    background_saturation=(0.0, 0.3),
    hand_colour={"ink": 0.8, "accent": 0.12, "hour accent": 0.04, "minute accent": 0.04},
    hour_length=(0.32, 0.6),
    minute_length=(0.62, 0.97),
    hour_width=(0.035, 0.13),
    minute_width_scale=(0.45, 1.0),
)
_PHOTO_EXTRAS = ClockExtras(
    turn={"none": 0.66, "tilted": 0.2, "quarter": 0.1, "any": 0.04},
    brand=0.4,
    hand_shadow=0.7,
    face_finish={"none": 0.35, "radial": 0.25, "paper": 0.2, "sunburst": 0.1, "brushed": 0.1},
    rim_finish={"none": 0.25, "lit": 0.75},
    edged=0.2,
)
_PHOTO_SCENE = SceneLook(
    clocks={"none": 0.94, "two": 0.03, "three": 0.015, "four": 0.015},
    camera=0.85,
    behind_saturation=(0.0, 0.25),
    behind={
        "none": 0.2,
        "plaster": 0.26,
        "wood": 0.12,
        "brick": 0.07,
        "tiles": 0.06,
        "cloth": 0.14,
        "checker": 0.02,
        "bokeh": 0.13,
    },
    clutter=0.35,
    strap=0.12,
    wall_shadow=0.6,
    reflections={"none": 0.55, "streaks": 0.17, "window": 0.17, "arc": 0.11},
    glare=0.2,
    occlusion=0.08,
    light=0.9,
    scaling=0.35,
    blur=0.5,
    shake=0.08,
    noise=0.8,
    jpeg=1.0,
)

PRESETS = {
    "plain": Preset(look=_PLAIN_LOOK, extras=_NO_EXTRAS, scene=NO_SCENE),
    "varied": Preset(look=ClockLook(), extras=ClockExtras(), scene=SceneLook()),
    "photo": Preset(look=_PHOTO_LOOK, extras=_PHOTO_EXTRAS, scene=_PHOTO_SCENE),
}


def without_styles(preset: Preset, styles: tuple[tuple[str, str], ...]) -> Preset:
    """The preset with these (factor, name) pairs never drawn."""
    sections = {name: getattr(preset, name) for name in ("look", "extras", "scene")}
    for name, section in sections.items():
        mine = [pair for pair in styles if hasattr(section, pair[0])]
        sections[name] = section.without(mine)
    return replace(preset, **sections)
