"""Where things lie on one dial: its centre, how it is turned or mirrored, how far its outline reaches.

Angles are degrees from the dial's own 12 in the dial's own direction; `seen_deg` turns them into the picture's, clockwise
from straight up. Distances are pixels, outlines multiples of the radius.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from synth.factors import Choices
from synth.shapes import Disc, Point, Polygon, on_dial

CURVE_POINTS = 72


@dataclass(frozen=True)
class DialFrame:
    center: Point
    radius: float
    shape: str
    turn_deg: float = 0.0
    direction: int = 1  # -1 on a mirrored dial
    aspect: float = 1.0  # of an ellipse
    wide: bool = False
    wobble: float = 0.0  # of an irregular outline
    wobble_turn: float = 0.0

    @classmethod
    def of(cls, choices: Choices, center: Point, radius: float) -> DialFrame:
        return cls(
            center=center,
            radius=radius,
            shape=choices["dial_shape"],
            turn_deg=choices.get("turn_deg", 0.0),
            direction=-1 if "mirrored" in choices else 1,
            aspect=choices.get("aspect", 1.0),
            wide=choices.get("stretch") == "wide",
            wobble=choices.get("wobble", 0.0),
            wobble_turn=choices.get("wobble_turn", 0.0),
        )

    def seen_deg(self, angle_deg: float) -> float:
        return self.turn_deg + self.direction * angle_deg

    def at(self, angle_deg: float, along_px: float, across_px: float = 0.0) -> Point:
        return on_dial(self.center, self.seen_deg(angle_deg), along_px, across_px)

    def many_at(self, angle_deg: float, places: Iterable[tuple[float, float]]) -> tuple[Point, ...]:
        """(along, across) places at one angle."""
        turn = math.radians(self.seen_deg(angle_deg))
        sine, cosine = math.sin(turn), math.cos(turn)
        x, y = self.center
        return tuple((x + along * sine + across * cosine, y - along * cosine + across * sine) for along, across in places)

    def reach(self, angle_deg: float) -> float:
        """From the centre to the outline, in radii."""
        if self.shape == "round":
            return 1.0
        turn = math.radians(angle_deg)
        x, y = math.sin(turn), math.cos(turn)
        match self.shape:
            case "square":
                return 1 / max(abs(x), abs(y))
            case "rounded square":
                return (x**6 + y**6) ** (-1 / 6)
            case "octagon":
                return 1 / math.cos(math.radians((angle_deg + 22.5) % 45 - 22.5))
            case "ellipse":
                return 1 / (math.hypot(x, y / self.aspect) if self.wide else math.hypot(x / self.aspect, y))
            case "irregular":
                phase = 2 * math.pi * self.wobble_turn
                waves = math.sin(2 * turn + phase) + math.sin(3 * turn + 2 * phase) + 0.5 * math.sin(5 * turn + 3 * phase)
                return 1 - self.wobble * (1 + waves / 2.5)
        raise ValueError(f"unknown dial shape {self.shape!r}; the names are those of look.dial_shape")

    @property
    def inner_circle(self) -> float:
        """The largest circle about the centre that stays on the dial, in radii."""
        return {"ellipse": self.aspect, "irregular": 1 - 2 * self.wobble}.get(self.shape, 1.0)

    @property
    def extent(self) -> float:
        """Half the side of the upright square about the centre that holds the dial, in radii."""
        if self.shape == "round":
            return 1.0
        return max(max(abs(across), abs(down)) for across, down in self._unit_outline)

    def body(self, radius: float) -> Disc | Polygon:
        """The outline at that radius, as a shape."""
        if self.shape == "round":
            return Disc(self.center, radius)
        x, y = self.center
        return Polygon(tuple((x + radius * across, y + radius * down) for across, down in self._unit_outline))

    @cached_property
    def _unit_outline(self) -> tuple[Point, ...]:
        corners = {"square": (45, 135, 225, 315), "octagon": tuple(22.5 + 45 * k for k in range(8))}
        angles = corners.get(self.shape) or tuple(360 * k / CURVE_POINTS for k in range(CURVE_POINTS))
        return tuple(on_dial((0.0, 0.0), self.seen_deg(angle), self.reach(angle)) for angle in angles)

    def outline(self, points: int) -> tuple[Point, ...]:
        """The outline in points, the first at the dial's 12."""
        found = []
        for k in range(points):
            angle = 360.0 * k / points
            x, y = on_dial((0.0, 0.0), self.seen_deg(angle), 1.0)
            reach = self.reach(angle) * self.radius
            found.append((self.center[0] + reach * x, self.center[1] + reach * y))
        return tuple(found)
