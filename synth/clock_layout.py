"""From choices to geometry: where everything on one clock lies, in pixels, and in which colour.

In:  what the look and the extras drew, the hands' angles, the image side.   Out: a `dial.Clock`, ready to draw.
"""

from __future__ import annotations

from collections.abc import Mapping

from synth import clock_colours as colours
from synth.dial import Clock, Layer, Shadow
from synth.dial_frame import DialFrame
from synth.dial_parts import THINNEST_PX, follows_outline, numerals, ornaments, ticks
from synth.factors import Choices
from synth.hands import Hand
from synth.shapes import Colour, Disc, Hole, Point, Shape, on_dial

OUTLINE_POINTS = 24
NARROW_RIM_PX = 3.0


def hand_angles(time_s: int, dial_hours: int = 12) -> dict[str, float]:
    """Seconds after 12:00 (after 0:00 on a 24-hour dial) -> degrees from 12 of the hour, minute and second hand.

    The hands agree: the minute hand moves with the second, the hour hand with both.
    """
    dial_s = dial_hours * 3600
    return {"hour": time_s % dial_s / (dial_hours * 10), "minute": time_s % 3600 / 10, "second": time_s % 60 * 6.0}


def place(choices: Choices, size_px: int) -> tuple[Point, float]:
    """Centre and radius of the dial in a picture of that side."""
    radius = choices["radius"] * size_px
    # The corners of a turned dial reach farther than its sides did.
    reach = DialFrame.of(choices, (0.0, 0.0), 1.0).extent if "turn" in choices else 1.0
    room = max(size_px / 2 - radius * max(reach, 1.0) - 1, 0.0)  # one pixel stays free on each side
    return (size_px / 2 + choices["shift_x"] * room, size_px / 2 + choices["shift_y"] * room), radius


def lay_out(
    choices: Choices, angles_deg: Mapping[str, float], size_px: int, center: Point | None = None, radius: float = 0.0
) -> Clock:
    """Every part of the clock with its hands at these angles; placed as the choices say unless told otherwise."""
    if center is None:
        center, radius = place(choices, size_px)
    rim_px = 0.0 if choices["rim"] == "none" else max(choices["rim_width"] * radius, THINNEST_PX)
    inner = radius - rim_px
    frame, face_frame = DialFrame.of(choices, center, radius), DialFrame.of(choices, center, inner)
    unit = inner * face_frame.inner_circle
    along_outline = follows_outline(choices)

    def outer(angle_deg: float) -> float:
        return (inner * face_frame.reach(angle_deg) if along_outline else unit) * (1 - choices["tick_inset"])

    def clear(angle_deg: float) -> float:
        return outer(angle_deg) - (0.0 if choices["ticks"] == "none" else choices["hour_tick_length"] * inner)

    hands = _hands(choices, angles_deg, face_frame, unit)
    hour, top = next(hand for hand in hands if hand.name == "hour"), hands[-1]
    return Clock(
        size_px=size_px,
        background=colours.background(choices),
        gradient=choices["background"],
        center=center,
        radius_px=radius,
        body=frame.body(radius),
        outline=frame.outline(OUTLINE_POINTS),
        face=_face(choices, frame, inner, ticks(choices, face_frame, outer)),
        numerals=numerals(choices, face_frame, clear),
        ornaments=ornaments(choices, face_frame, clear),
        shadow=_shadow(choices, radius),
        hands=hands,
        hub=Layer(top.colour, (Disc(center, max(choices["hub"] * unit, hour.width_px / 2)),)),
    )


def _face(choices: Choices, frame: DialFrame, inner: float, inked_shapes: tuple[Shape, ...]) -> tuple[Layer, ...]:
    """Face, rim and ticks in as few layers as their colours and edges allow, since layers of this size are what takes time."""
    radius, ink, face_colour = frame.radius, colours.ink(choices), colours.face(choices)
    finish, lit = colours.face_finish(choices), colours.rim_finish(choices)
    inked = (Layer(ink, inked_shapes),) if inked_shapes else ()
    if inner == radius:
        return (Layer(face_colour, (frame.body(radius),), finish=finish), *inked)
    if radius - inner < NARROW_RIM_PX:  # too narrow to hide a ragged edge
        face = Layer(face_colour, (frame.body(inner),), finish=finish)
        return (Layer(colours.rim(choices), (frame.body(radius),), finish=lit), face, *inked)
    face = Layer(face_colour, (frame.body((radius + inner) / 2),), edge_hidden=True, finish=finish)
    ring = (frame.body(radius), Hole(frame.body(inner)))
    if choices["rim"] == "ink" and lit is None:
        return (face, Layer(ink, (*ring, *inked_shapes)))
    return (face, Layer(colours.rim(choices), ring, finish=lit), *inked)


def _hands(choices: Choices, angles_deg: Mapping[str, float], frame: DialFrame, unit: float) -> tuple[Hand, ...]:
    ink, accent = colours.ink(choices), colours.accent(choices)
    edge = colours.face(choices) if "edged" in choices else None

    def hand(name: str, shape: str, length: float, width_px: float, tail: float, colour: Colour) -> Hand:
        return Hand(
            name=name,
            shape=shape,
            angle_deg=frame.seen_deg(angles_deg[name]),
            length_px=length * unit,
            width_px=width_px,
            tail_px=tail * unit,
            colour=colour,
            edge=edge,
        )

    shape, tail, tint = choices["hand_shape"], choices["tail"], choices["hand_colour"]
    hour_width = max(choices["hour_width"] * unit, THINNEST_PX)
    minute_width = max(choices["minute_width_scale"] * hour_width, THINNEST_PX)
    hour_colour = accent if tint in ("accent", "hour accent") else ink
    minute_colour = accent if tint in ("accent", "minute accent") else ink
    hands = []
    if "alarm_hand" in choices:
        width = max(choices["alarm_width_scale"] * hour_width, THINNEST_PX)
        hands.append(hand("alarm", "baton", choices["alarm_length_scale"] * choices["hour_length"], width, 0.0, accent))
    hands.append(hand("hour", shape, choices["hour_length"], hour_width, tail, hour_colour))
    hands.append(hand("minute", shape, choices["minute_length"], minute_width, tail, minute_colour))
    if choices["second_hand"]:
        colour = {"red": colours.red(choices), "ink": ink, "accent": accent}[choices["second_colour"]]
        width = max(choices["second_width_scale"] * minute_width, THINNEST_PX)
        style = choices.get("second_style", "baton")
        hands.append(hand("second", style, choices["second_length"], width, choices["second_tail"], colour))
    return tuple(hands)


def _shadow(choices: Choices, radius: float) -> Shadow | None:
    if "hand_shadow" not in choices:
        return None
    across, down = on_dial((0.0, 0.0), choices["shadow_deg"], choices["shadow_length"] * radius)
    return Shadow(across_px=across, down_px=down, depth=choices["shadow_depth"])
