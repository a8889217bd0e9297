"""From choices to geometry: where everything on one clock lies, in pixels, and in which colour.

In:  what `ClockLook.sample` drew, the seconds after 12:00, the image side.   Out: a `dial.Clock`, ready to draw.
The hands agree with the time: the minute hand moves with the second, the hour hand with both.
"""

from __future__ import annotations

import colorsys

from synth.clock_look import Choices
from synth.dial import Clock, Colour, Disc, Hand, Hole, Layer, Numeral, Point, Polygon, glyph_stencil, on_dial

OUTLINE_POINTS = 24
ROMAN = ("XII", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI")
NARROW_RIM_PX = 3.0
ROMAN_SCALE = 0.8  # VIII must fit where 8 does
THINNEST_PX = 0.8  # thinner than this a hand or tick fades away
SMALLEST_NUMERAL_PX = 6


def hand_angles(time_s: int) -> dict[str, float]:
    """Seconds after 12:00 -> degrees clockwise from 12 of the hour, minute and second hand."""
    return {"hour": time_s % 43200 / 120, "minute": time_s % 3600 / 10, "second": time_s % 60 * 6.0}


def lay_out(choices: Choices, time_s: int, size_px: int) -> Clock:
    """Every part of the clock at that time; a second hand only where the choices have one."""
    radius = choices["radius"] * size_px
    room = size_px / 2 - radius - 1  # one pixel stays free on each side
    center = (size_px / 2 + choices["shift_x"] * max(room, 0.0), size_px / 2 + choices["shift_y"] * max(room, 0.0))
    rim_px = 0.0 if choices["rim"] == "none" else max(choices["rim_width"] * radius, THINNEST_PX)
    inner = radius - rim_px
    ink = _ink(choices)
    ticks, clear_px = _ticks(choices, center, inner)
    hands = _hands(choices, time_s, inner, ink)
    return Clock(
        size_px=size_px,
        background=_background(choices),
        gradient=choices["background"],
        center=center,
        outline=_outline_points(choices["dial_shape"], center, radius),
        face=_face(choices, center, radius, inner, ticks),
        numerals=_numerals(choices, center, clear_px, inner, ink),
        hands=hands,
        hub=Layer(hands[-1].colour, (Disc(center, max(choices["hub"] * inner, hands[0].width_px / 2)),)),
    )


def _face(choices: Choices, center: Point, radius: float, inner: float, ticks: tuple[Polygon, ...]) -> tuple[Layer, ...]:
    """Face, rim and ticks in as few layers as their colours and edges allow, since layers of this size are what takes time."""
    shape, ink, face_colour = choices["dial_shape"], _ink(choices), _face_colour(choices)
    inked = (Layer(ink, ticks),) if ticks else ()
    if inner == radius:
        return (Layer(face_colour, (_outline_shape(shape, center, radius),)), *inked)
    if radius - inner < NARROW_RIM_PX:  # too narrow to hide a ragged edge
        face = Layer(face_colour, (_outline_shape(shape, center, inner),))
        rim = Layer(_rim_colour(choices), (_outline_shape(shape, center, radius),))
        return (rim, face, *inked)
    face = Layer(face_colour, (_outline_shape(shape, center, (radius + inner) / 2),), edge_hidden=True)
    ring = (_outline_shape(shape, center, radius), Hole(_outline_shape(shape, center, inner)))
    if choices["rim"] == "ink":
        return (face, Layer(ink, (*ring, *ticks)))
    return (face, Layer(_rim_colour(choices), ring), *inked)


def _hands(choices: Choices, time_s: int, inner: float, ink: Colour) -> tuple[Hand, ...]:
    angles = hand_angles(time_s)
    accent = _accent(choices)
    hour_width = max(choices["hour_width"] * inner, THINNEST_PX)

    def hand(name: str, width_px: float, colour: Colour, shape: str, tail: float) -> Hand:
        return Hand(
            name=name,
            shape=shape,
            angle_deg=angles[name],
            length_px=choices[f"{name}_length"] * inner,
            width_px=width_px,
            tail_px=tail * inner,
            colour=colour,
        )

    shape, tail, colour = choices["hand_shape"], choices["tail"], choices["hand_colour"]
    minute_width = max(choices["minute_width_scale"] * hour_width, THINNEST_PX)
    hands = [
        hand("hour", hour_width, accent if colour in ("accent", "hour accent") else ink, shape, tail),
        hand("minute", minute_width, accent if colour in ("accent", "minute accent") else ink, shape, tail),
    ]
    if choices["second_hand"]:
        colours = {"red": _hls(0.0, 0.45 if choices["face_tone"] == "light" else 0.6, 0.85), "ink": ink, "accent": accent}
        second_width = max(choices["second_width_scale"] * minute_width, THINNEST_PX)
        hands.append(hand("second", second_width, colours[choices["second_colour"]], "baton", choices["second_tail"]))
    return tuple(hands)


def _ticks(choices: Choices, center: Point, inner: float) -> tuple[tuple[Polygon, ...], float]:
    """The ticks, and the radius inside which the dial is clear of them."""
    outer = inner * (1 - choices["tick_inset"])
    every = {"minutes": 1, "hours": 5, "quarters": 15, "none": 0}[choices["ticks"]]
    if not every:
        return (), outer
    length, width = choices["hour_tick_length"] * inner, choices["hour_tick_width"] * inner
    ticks = []
    for minute in range(0, 60, every):
        scale = 1.0 if minute % 5 == 0 else choices["minute_tick_scale"]
        low, half = outer - scale * length, max(scale * width, THINNEST_PX) / 2
        corners = ((low, -half), (outer, -half), (outer, half), (low, half))
        ticks.append(Polygon(tuple(on_dial(center, minute * 6.0, along, across) for along, across in corners)))
    return tuple(ticks), outer - length


def _numerals(choices: Choices, center: Point, clear_px: float, inner: float, ink: Colour) -> tuple[Numeral, ...]:
    """Upright numerals, each as far out as its own box allows, so that a wide VIII keeps the same room as a slim I."""
    kind = choices["numerals"]
    if kind == "none":
        return ()
    scale = ROMAN_SCALE if kind == "roman" else 1.0
    height_px = max(round(scale * choices["numeral_size"] * inner), SMALLEST_NUMERAL_PX)
    numerals = []
    for hour in range(0, 12, 3 if kind == "12-3-6-9" else 1):
        text = str(hour or 12)
        if kind == "roman":
            text = choices["roman_four"] if hour == 4 else ROMAN[hour]
        glyphs = glyph_stencil(text, choices["numeral_font"], height_px)
        across, down = on_dial((0.0, 0.0), hour * 30.0, 1.0)
        reach = abs(across) * glyphs.width / 2 + abs(down) * glyphs.height / 2
        place = on_dial(center, hour * 30.0, clear_px - choices["numeral_gap"] * inner - reach)
        numerals.append(Numeral(text=text, center=place, font=choices["numeral_font"], height_px=height_px, colour=ink))
    return tuple(numerals)


def _outline_points(shape: str, center: Point, radius: float) -> tuple[Point, ...]:
    """The dial's outline, clockwise from 12, one point every 15 degrees."""
    points = []
    for k in range(OUTLINE_POINTS):
        x, y = on_dial((0.0, 0.0), 360.0 * k / OUTLINE_POINTS, 1.0)
        reach = radius / max(abs(x), abs(y)) if shape == "square" else radius
        points.append((center[0] + reach * x, center[1] + reach * y))
    return tuple(points)


def _outline_shape(shape: str, center: Point, radius: float) -> Disc | Polygon:
    if shape == "round":
        return Disc(center, radius)
    x, y = center
    return Polygon(((x - radius, y - radius), (x + radius, y - radius), (x + radius, y + radius), (x - radius, y + radius)))


def _face_colour(choices: Choices) -> Colour:
    depth = choices["face_depth"]
    return _colour(choices, "face", 1 - depth if choices["face_tone"] == "light" else depth)


def _ink(choices: Choices) -> Colour:
    depth = choices["ink_depth"]
    return _colour(choices, "ink", depth if choices["face_tone"] == "light" else 1 - depth)


def _rim_colour(choices: Choices) -> Colour:
    return _ink(choices) if choices["rim"] == "ink" else _colour(choices, "rim", choices["rim_lightness"])


def _accent(choices: Choices) -> Colour:
    return _colour(choices, "accent", 0.35 if choices["face_tone"] == "light" else 0.68)


def _background(choices: Choices) -> tuple[Colour, Colour]:
    start = choices["background_lightness"]
    end = min(max(start + choices["gradient_step"], 0.0), 1.0)
    return _colour(choices, "background", start), _colour(choices, "background", end)


def _colour(choices: Choices, part: str, lightness: float) -> Colour:
    return _hls(choices[f"{part}_hue"], lightness, choices[f"{part}_saturation"])


def _hls(hue: float, lightness: float, saturation: float) -> Colour:
    red, green, blue = colorsys.hls_to_rgb(hue, lightness, saturation)
    return (round(red * 255), round(green * 255), round(blue * 255))
