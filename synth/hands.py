"""A hand's outline: every style is symmetric about its axis, ends exactly at its length and is longer than its tail."""

from __future__ import annotations

from dataclasses import dataclass

from synth.shapes import Colour, Disc, Hole, Point, Polygon, Shape, on_dial

ROUND_STEPS = 6  # points on half a round end


@dataclass(frozen=True, kw_only=True)
class Hand:
    name: str  # hour, minute, second, alarm
    shape: str
    angle_deg: float  # clockwise from the picture's 12
    length_px: float
    width_px: float
    tail_px: float
    colour: Colour
    edge: Colour | None = None


def hand_tip(hand: Hand, center: Point) -> Point:
    return on_dial(center, hand.angle_deg, hand.length_px)


def hand_shapes(hand: Hand, center: Point, grown_px: float = 0.0) -> tuple[Shape, ...]:
    """The hand in shapes; `grown_px` wider on each side, for an edge around it."""
    length, half, tail = hand.length_px, hand.width_px / 2 + grown_px, hand.tail_px
    holes: tuple[Shape, ...] = ()
    discs: tuple[Disc, ...] = ()
    match hand.shape:
        case "baton":
            right = [(-tail, half), (length, half)]
        case "tapered":
            right = [(-tail, half), (0.0, half), (length, half * 0.35)]
        case "pointed":
            right = [(-tail, half), (length - 3.5 * half, half), (length, 0.0)]
        case "arrow":
            right = [(-tail, half * 0.75), (length - 5 * half, half * 0.75), (length - 5 * half, half * 2.0), (length, 0.0)]
        case "rounded":
            right = [(-tail, half), *_round_end(length, half)]
        case "dauphine":
            right = [(-tail, 0.0), (length * 0.18, half * 1.25), (length, 0.0)]
        case "sword":
            right = [(-tail, half * 0.5), (0.0, half * 0.5), (length * 0.68, half * 1.1), (length, 0.0)]
        case "spade":
            right = [(-tail, half * 0.6), (length * 0.62, half * 0.6), (length * 0.7, half * 1.7), (length * 0.78, half * 1.6)]
            right += [(length * 0.86, half * 0.6), (length, 0.0)]
        case "skeleton":
            right = [(-tail, half * 0.6), (length * 0.12, half), (length * 0.8, half * 1.1), (length, 0.0)]
            inner = [(length * 0.2, half * 0.45), (length * 0.78, half * 0.5)]
            if half - grown_px > 1.5:  # a narrower slit would not show
                holes = (Hole(_symmetric(inner, hand.angle_deg, center)),)
        case "lollipop":
            right = [(-tail, half), (length, half)]
            discs = (Disc(on_dial(center, hand.angle_deg, length * 0.72), max(length * 0.06, 2.2 * half)),)
        case _:
            raise ValueError(f"unknown hand shape {hand.shape!r}; the names are those of look.hand_shape")
    return (_symmetric(right, hand.angle_deg, center), *discs, *holes)


def _round_end(length: float, half: float) -> list[Point]:
    ends = [on_dial((0.0, 0.0), 90.0 - 90.0 * k / ROUND_STEPS, half) for k in range(ROUND_STEPS + 1)]
    return [(length - half - y, x) for x, y in ends]


def _symmetric(right: list[Point], angle_deg: float, center: Point) -> Polygon:
    left = [(along, -across) for along, across in reversed(right)]
    return Polygon(tuple(on_dial(center, angle_deg, along, across) for along, across in right + left))
