"""What is printed on a dial or set into it: ticks, numerals, circles, small dials, a date window, a name."""

from __future__ import annotations

from collections.abc import Callable

from synth import clock_colours as colours
from synth.dial import Layer, Numeral, glyph_stencil
from synth.dial_frame import DialFrame
from synth.factors import Choices
from synth.shapes import Disc, Hole, Polygon, Shape, on_dial

ROMAN = ("XII", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI")
ROMAN_SCALE = 0.8  # VIII must fit where 8 does
ALL_DAY_SCALE = 0.6  # 24 numerals must fit where 12 do
SECOND_RING_SCALE = 0.5
THINNEST_PX = 0.8  # thinner than this a hand or tick fades away
SMALLEST_NUMERAL_PX = 6
NAMES = (
    "Altora",
    "LINDQVIST",
    "Merian",
    "NOVAMARK",
    "Kestrel & Co",
    "Orbis",
    "HALDEN",
    "Tempora",
    "B. Sauer",
    "VELA",
    "Ardent",
    "PIER 9",
)
SECOND_LINES = ("QUARTZ", "AUTOMATIC", "10 BAR", "STAINLESS", "EST. 1902", "17 JEWELS")
SUBDIALS_DEG = {"one": (180.0,), "two": (90.0, 270.0), "three": (90.0, 180.0, 270.0)}
SUBDIAL_AT = 0.52
SMALLEST_BRANDED_PX = 40  # radius of a dial below which lettering would be specks

Limit = Callable[[float], float]  # angle -> px from the centre


def follows_outline(choices: Choices) -> bool:
    return choices["dial_shape"] == "ellipse" or ("track" in choices and choices["dial_shape"] != "round")


def ticks(choices: Choices, frame: DialFrame, outer: Limit) -> tuple[Shape, ...]:
    """Hour and minute ticks inwards from `outer`, and the circles on the face, all in ink."""
    every = {"minutes": 1, "hours": 5, "quarters": 15, "none": 0}[choices["ticks"]]
    length, width = choices["hour_tick_length"] * frame.radius, choices["hour_tick_width"] * frame.radius
    found: list[Shape] = []
    if "rings" in choices and not follows_outline(choices):
        found += _rings(choices, frame, outer(0.0), outer(0.0) - choices["minute_tick_scale"] * length)
    for minute in range(0, 60, every or 60):
        if not every:
            break
        scale = 1.0 if minute % 5 == 0 else choices["minute_tick_scale"]
        end = outer(minute * 6.0)
        low, half = end - scale * length, max(scale * width, THINNEST_PX) / 2
        corners = ((low, -half), (end, -half), (end, half), (low, half))
        found.append(Polygon(frame.many_at(minute * 6.0, corners)))
    return tuple(found)


def _rings(choices: Choices, frame: DialFrame, outer: float, inner: float) -> list[Shape]:
    thickness = max(0.012 * frame.radius, THINNEST_PX)
    radii = (outer, inner) if choices["rings"] == "track" else (choices["ring_radius"] * frame.radius,)
    found: list[Shape] = []
    for radius in radii:
        found += [Disc(frame.center, radius + thickness / 2), Hole(Disc(frame.center, radius - thickness / 2))]
    return found


def numerals(choices: Choices, frame: DialFrame, clear: Limit) -> tuple[Numeral, ...]:
    """Numerals as far out as each one's own box allows, so that a wide VIII keeps the same room as a slim I."""
    kind = choices["numerals"]
    if kind in ("none", "dots"):
        return ()
    scale = {"roman": ROMAN_SCALE, "24-hour": ALL_DAY_SCALE, "12 and 24": 0.9}.get(kind, 1.0)
    height_px = max(round(scale * choices["numeral_size"] * frame.radius), SMALLEST_NUMERAL_PX)
    gap = choices["numeral_gap"] * frame.radius
    if kind == "24-hour":
        return tuple(
            _numeral(choices, frame, 15.0 * hour, str(hour or 24), height_px, clear(15.0 * hour) - gap) for hour in range(24)
        )
    found = []
    for hour in range(0, 12, 3 if kind == "12-3-6-9" else 1):
        text = str(hour or 12)
        if kind == "roman":
            text = choices["roman_four"] if hour == 4 else ROMAN[hour]
        found.append(_numeral(choices, frame, hour * 30.0, text, height_px, clear(hour * 30.0) - gap))
    if kind == "12 and 24":
        small_px = max(round(SECOND_RING_SCALE * height_px), SMALLEST_NUMERAL_PX)
        for hour in range(12 if small_px < 0.2 * frame.radius else 0):  # on a tiny dial they would lie over the pivot
            room = clear(hour * 30.0) - 1.5 * gap - 1.3 * height_px
            found.append(_numeral(choices, frame, hour * 30.0, str(hour + 12 if hour else 24), small_px, room))
    return tuple(found)


def _numeral(choices: Choices, frame: DialFrame, angle_deg: float, text: str, height_px: int, outer_px: float) -> Numeral:
    font, stretch = choices["numeral_font"], choices.get("numeral_stretch_by", 1.0)
    glyphs = glyph_stencil(text, font, height_px, stretch)
    turned = choices.get("numeral_turn")
    if turned is None:
        across, down = on_dial((0.0, 0.0), angle_deg, 1.0)
        reach, turn_deg = abs(across) * glyphs.width / 2 + abs(down) * glyphs.height / 2, frame.turn_deg
    else:
        reach, turn_deg = glyphs.height / 2, frame.seen_deg(angle_deg)
        if turned == "readable" and 90 < angle_deg < 270:
            turn_deg += 180
    return Numeral(
        text=text,
        center=frame.at(angle_deg, outer_px - reach),
        font=font,
        height_px=height_px,
        colour=colours.ink(choices),
        turn_deg=turn_deg,
        stretch=stretch,
        reflected=choices.get("mirrored") == "reflected",
    )


def ornaments(choices: Choices, frame: DialFrame, clear: Limit) -> tuple[Layer | Numeral, ...]:
    """Dots, the mark at 12, a name, small dials and a date window, bottom to top."""
    ink, unit = colours.ink(choices), frame.radius * frame.inner_circle
    marks: list[Shape] = []
    size = choices["numeral_size"] * frame.radius
    if choices["numerals"] == "dots":
        for hour in range(12):
            radius = 0.18 * size * (1.4 if hour % 3 == 0 else 1.0)
            marks.append(
                Disc(frame.at(30.0 * hour, clear(30.0 * hour) - choices["numeral_gap"] * frame.radius - radius), radius)
            )
    if "twelve_mark" in choices:
        top = clear(0.0) - 0.02 * unit
        marks.append(Polygon((frame.at(0, top, -0.4 * size), frame.at(0, top, 0.4 * size), frame.at(0, top - 0.8 * size))))
    found: list[Layer | Numeral] = [Layer(ink, tuple(marks))] if marks else []
    if "brand" in choices and unit > SMALLEST_BRANDED_PX:
        found += _brand(choices, frame, unit)
    for angle_deg in SUBDIALS_DEG.get(choices.get("subdials", ""), ()):
        found += _subdial(choices, frame, angle_deg, unit)
    if "date_window" in choices:
        found += _date_window(choices, frame, unit)
    return tuple(found)


def _text(choices: Choices, frame: DialFrame, angle_deg: float, along_px: float, text: str, height_px: float) -> Numeral:
    return Numeral(
        text=text,
        center=frame.at(angle_deg, along_px),
        font=choices["numeral_font"],
        height_px=max(round(height_px), 5),
        colour=colours.ink(choices),
        turn_deg=frame.turn_deg,
        reflected=choices.get("mirrored") == "reflected",
    )


def _brand(choices: Choices, frame: DialFrame, unit: float) -> list[Layer | Numeral]:
    pick = choices["brand_name"]
    lines: list[Layer | Numeral] = [
        _text(choices, frame, 0.0, 0.36 * unit, NAMES[int(pick * len(NAMES)) % len(NAMES)], 0.1 * unit)
    ]
    if "second_line" in choices:
        text = SECOND_LINES[int(pick * 1000) % len(SECOND_LINES)]
        lines.append(_text(choices, frame, 180.0, 0.4 * unit, text, 0.065 * unit))
    return lines


def _subdial(choices: Choices, frame: DialFrame, angle_deg: float, unit: float) -> list[Layer | Numeral]:
    face, ink = colours.face(choices), colours.ink(choices)
    center, radius = frame.at(angle_deg, SUBDIAL_AT * unit), choices["subdial_radius"] * unit
    thin = max(0.06 * radius, THINNEST_PX)
    marks: list[Shape] = [Disc(center, radius), Hole(Disc(center, radius - thin))]
    for k in range(12):
        corners = ((0.75, -thin / 2), (0.92, -thin / 2), (0.92, thin / 2), (0.75, thin / 2))
        marks.append(Polygon(tuple(on_dial(center, 30.0 * k, along * radius, across) for along, across in corners)))
    points = choices["subdial_deg"] + 97.0 * angle_deg  # each hand of its own
    hand = ((-0.2, -thin), (0.7, -thin / 2), (0.7, thin / 2), (-0.2, thin))
    marks.append(Polygon(tuple(on_dial(center, points, along * radius, across) for along, across in hand)))
    ground = colours.blend(face, ink, 0.12)
    return [Layer(ground, (Disc(center, radius),)), Layer(colours.blend(ground, ink, 0.75), tuple(marks))]


def _date_window(choices: Choices, frame: DialFrame, unit: float) -> list[Layer | Numeral]:
    angle_deg = 30.0 * int(choices["date_window"])
    text = _text(choices, frame, angle_deg, 0.6 * unit, str(int(choices["date"])), 0.13 * unit)
    glyphs = glyph_stencil(text.text, text.font, text.height_px)
    half_across, half_down = glyphs.width / 2 + 0.03 * unit, glyphs.height / 2 + 0.03 * unit

    def window(grown: float) -> Polygon:
        across, down = half_across + grown, half_down + grown
        corners = ((-down, -across), (-down, across), (down, across), (down, -across))
        return Polygon(tuple(on_dial(text.center, frame.turn_deg, along, right) for along, right in corners))

    ink, thin = colours.ink(choices), max(0.015 * unit, THINNEST_PX)
    return [Layer(ink, (window(thin),)), Layer(colours.face(choices), (window(0.0),)), text]
