"""index -> Record: the choices of one clock, its time, its picture, and the whole truth about it.

Record i depends on (generator version, settings, seed, i) alone. Times are uniform over the 720 minutes of the dial (but for
what `extras.pose` asks for); a second hand, where there is one, is uniform over the 60 seconds and moves the other two.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from smmd_vlm.numerals import DIAL_MINUTES
from smmd_vlm.records import Record
from synth.camera import shift_and_scale
from synth.clock_answers import ASKED, AnswerFormat, Reading, answer, question, tolerance_min, value_min
from synth.clock_layout import hand_angles
from synth.clock_presets import Preset
from synth.dial_frame import DialFrame
from synth.factors import Choices
from synth.film import encode
from synth.hands import hand_tip
from synth.scene import Seen, cells, photograph, see
from synth.shapes import Point
from synth.writer import split_of

GENERATOR = "synth.clocks"
GENERATOR_VERSION = 1  # raise it with every change that alters a record
POSE_GAP_DEG = 3.3  # the minute hand gains 5.5 degrees a minute on the hour hand, so a time lies within half of that
LEAST_OFF = 0.3  # of an hour; an impossible hour hand is at least so far from every place that goes with the minute hand
UNMARKED_ROLL = 0.4  # share of the camera's roll where nothing on the dial tells which way is up


@dataclass(frozen=True)
class Picture:
    """One record's choices and geometry, before anything is painted."""

    reading: Reading
    choices: Choices
    scene: Choices
    asked: Seen
    seen: tuple[Seen, ...]
    where: str
    angles_deg: dict[str, float]
    others: tuple[Reading, ...]
    question: int
    rng: random.Random

    def paint(self, size_px: int) -> Any:
        """The picture as an image; its grain and things are the same every time."""
        state = self.rng.getstate()
        image = photograph(self.seen, self.scene, size_px, self.rng)
        self.rng.setstate(state)
        return image


@dataclass(frozen=True, kw_only=True)
class ClockMaker:
    """Picklable, the same everywhere; `training` is the preset without the styles that are held out."""

    seed: int
    size_px: int
    preset: str
    everywhere: Preset
    training: Preset
    shares: dict[str, float]
    held_out_times: int
    held_out_seed: int
    held_out_styles: tuple[tuple[str, str], ...]
    answer_format: AnswerFormat
    impossible: float
    varied_phrasing: bool

    def __call__(self, index: int) -> Record:
        split = split_of(self.seed, index, self.shares)
        picture = self.picture(index, split)
        reading = picture.reading
        held_time = reading.valid and reading.minutes_after_12 in held_out_minutes(self.held_out_times, self.held_out_seed)
        chosen = {**picture.choices, **picture.scene}
        held_style = any(chosen.get(factor) == name for factor, name in self.held_out_styles)
        name = f"clock-{self.seed}-{index:08d}"
        value = value_min(self.answer_format, reading)
        return Record(
            id=name,
            image=encode(picture.paint(self.size_px), picture.scene),
            question=question(self.answer_format, picture.question, picture.where, self.impossible > 0),
            answer=answer(self.answer_format, reading),
            answer_type="text" if value is None else "time",
            value=value,
            unit=None if value is None else "min",
            tolerance=tolerance_min(self.answer_format, reading),
            task="clock",
            kind=self._kind(picture) + (" / held-out style" if held_style else "") + (" / held-out time" if held_time else ""),
            group=name,
            split=split,
            meta=self._meta(index, picture, held_time, held_style),
        )

    def picture(self, index: int, split: str) -> Picture:
        rng = random.Random(f"{GENERATOR}/{GENERATOR_VERSION}/{self.seed}/{index}")
        room = random.Random(f"{GENERATOR}/{GENERATOR_VERSION}/{self.seed}/{index}/scene")
        sections = self.training if split == "train" else self.everywhere
        minutes = _training_minutes(self.held_out_times, self.held_out_seed) if split == "train" else range(DIAL_MINUTES)
        minute, second = minutes[int(rng.random() * len(minutes))], int(rng.random() * 60)
        wording = int(room.random() * len(ASKED))
        choices = _dial(sections, rng)
        scene = sections.scene.sample(room, choices)
        if "clocks" in scene:  # what stands before one clock might hide another
            scene = {name: value for name, value in scene.items() if not name.startswith("occlusion")}
        if "roll_deg" in scene and unmarked(choices):
            scene["roll_deg"] = round(UNMARKED_ROLL * scene["roll_deg"], 4)
        minute = _posed(choices, minutes, minute, rng.random())
        reading, angles = self._read(choices, minute, second, rng)
        places = cells(scene)
        asked = int(scene.get("asked", 0.0) * len(places)) % len(places)
        seen, others = [], []
        for k, (_, cell) in enumerate(places):
            if k == asked:
                seen.append(see(choices, scene, angles, self.size_px, cell))
                continue
            other = _dial(sections, room)
            stands, points = self._read(other, minutes[int(room.random() * len(minutes))], int(room.random() * 60), room)
            others.append(stands)
            seen.append(see(other, scene, points, self.size_px, cell))
        return Picture(
            reading=reading,
            choices=choices,
            scene=scene,
            asked=seen[asked],
            seen=tuple(seen),
            where=places[asked][0],
            angles_deg=angles,
            others=tuple(others),
            question=wording if self.varied_phrasing else 0,
            rng=room,
        )

    def _read(self, choices: Choices, minute: int, second: int, rng: random.Random) -> tuple[Reading, dict[str, float]]:
        """What the clock shows and where its hands point."""
        all_day = choices["numerals"] == "24-hour"
        afternoon, spoilt, off = rng.random() < 0.5, rng.random() < self.impossible, rng.random()
        shown_second = second if choices["second_hand"] else None
        of_day = minute + (DIAL_MINUTES if all_day and afternoon else 0)
        dial_hours = 24 if all_day else 12
        angles = hand_angles(60 * of_day + (shown_second or 0), dial_hours)
        if spoilt:
            angles["hour"] = (angles["hour"] + 360 / dial_hours * (LEAST_OFF + (1 - 2 * LEAST_OFF) * off)) % 360
        if shown_second is None:
            del angles["second"]
        if "alarm_deg" in choices:
            angles["alarm"] = choices["alarm_deg"]
        hour = of_day // 60 if all_day else of_day // 60 or 12
        return Reading(hour=hour, minute=minute % 60, second=shown_second, valid=not spoilt), angles

    def _kind(self, picture: Picture) -> str:
        """What reports group by."""
        if not picture.reading.valid:
            return "impossible"
        if self.preset == "plain":
            return self.preset
        return "no numerals" if picture.choices["numerals"] == "none" else picture.choices["numerals"]

    def _meta(self, index: int, picture: Picture, held_time: bool, held_style: bool) -> str:
        """Every choice and the exact geometry, as JSON; what a picture does not have is left out."""
        reading, clock = picture.reading, picture.asked.clock
        tips = picture.asked.points([hand_tip(hand, clock.center) for hand in clock.hands])
        center = picture.asked.points([clock.center])[0]
        names = [hand.name for hand in clock.hands]
        meta: dict[str, Any] = {
            "seed": self.seed,
            "index": index,
            "hour": reading.hour if reading.valid else None,
            "minute": reading.minute if reading.valid else None,
            "second": reading.second,
            "held_out": held_time,
        }
        if self.impossible > 0:
            meta["valid"] = reading.valid
        if self.held_out_styles:
            meta["held_out_style"] = held_style
        meta["angles_deg"] = {name: round(picture.angles_deg[name], 4) for name in names}
        if picture.asked.matrix is not None or "turn" in picture.choices or "mirrored" in picture.choices:
            meta["seen_angles_deg"] = {name: _seen_deg(center, tip) for name, tip in zip(names, tips, strict=True)}
        meta |= {
            "tips_px": {name: _place(tip) for name, tip in zip(names, tips, strict=True)},
            "center_px": _place(center),
            "outline_px": [_place(point) for point in picture.asked.points(clock.outline)],
        }
        if "camera" in picture.scene:
            meta["homography"] = _homography(picture.asked)
        if picture.where:
            meta |= {"asked": picture.where, "others": [[each.hour, each.minute, each.second] for each in picture.others]}
        meta["choices"] = picture.choices
        if picture.scene:
            meta["scene"] = picture.scene
        return json.dumps(meta, separators=(",", ":"))


@lru_cache
def held_out_minutes(count: int, seed: int) -> frozenset[int]:
    """The times (minutes after 12:00) kept from training; a larger count with the same seed holds out these and more."""
    rng = random.Random(f"held-out times/{seed}")
    shuffled = sorted(range(DIAL_MINUTES), key=lambda _: rng.random())
    return frozenset(shuffled[:count])


@lru_cache
def _training_minutes(count: int, seed: int) -> tuple[int, ...]:
    held_out = held_out_minutes(count, seed)
    return tuple(minute for minute in range(DIAL_MINUTES) if minute not in held_out)


def unmarked(choices: Choices) -> bool:
    """Nothing on the dial tells where its 12 is."""
    return choices["numerals"] in ("none", "dots") and "twelve_mark" not in choices


def _dial(sections: Preset, rng: random.Random) -> Choices:
    """Look and extras together, less what would make the dial unreadable or lie upon something else."""
    look = sections.look.sample(rng)
    choices = {**look, **sections.extras.sample(rng, look)}
    drop: set[str] = set()
    if choices["numerals"] not in ("none", "dots"):
        drop.add("twelve_mark")
    elif "mirrored" in choices:  # without numerals it would just show another time
        drop.add("mirrored")
    choices = {name: value for name, value in choices.items() if name not in drop}
    if "turn" in choices:
        share = choices["turn_deg"] / 360
        if unmarked(choices):
            drop |= {"turn", "turn_deg"}
        elif choices["turn"] == "tilted":
            choices["turn_deg"] = round(30 * share - 15, 4)
        elif choices["turn"] == "quarter":
            choices["turn_deg"] = 90.0 * (1 + int(2.999 * share))
    if "turn" in choices and "turn" not in drop and choices["dial_shape"] != "round":
        # Its corners stay in the picture.
        reach = DialFrame.of(choices, (0.0, 0.0), 1.0).extent
        choices["radius"] = round(choices["radius"] / max(reach, 1.0), 4)
    crowded = {"one": ("6",), "two": ("3", "9"), "three": ("3", "6", "9")}.get(choices.get("subdials", ""), ())
    if choices.get("date_window") in crowded:
        drop |= {"date_window", "date"}
    if "6" in crowded:
        drop.add("second_line")
    if choices["numerals"] == "12 and 24":  # the inner ring takes their place
        drop |= {"brand", "brand_name", "second_line"}
    return {name: value for name, value in choices.items() if name not in drop}


def _posed(choices: Choices, minutes: Sequence[int], minute: int, u: float) -> int:
    """The time, or one of those whose hands lie over or opposite each other."""
    if "pose" not in choices:
        return minute
    wanted = 0.0 if choices["pose"] == "overlapping" else 180.0
    fitting = [each for each in minutes if abs((each * 5.5 - wanted + 180) % 360 - 180) < POSE_GAP_DEG]
    return fitting[int(u * len(fitting))] if fitting else minute


def _seen_deg(center: Point, tip: Point) -> float:
    """Clockwise from straight up in the picture."""
    return round(float(np.degrees(np.arctan2(tip[0] - center[0], center[1] - tip[1])) % 360), 4)


def _homography(seen: Seen) -> list[list[float]]:
    """From the dial's own plane (centre 0, radius 1, y down, as it hangs untilted) to the picture's pixels."""
    assert seen.matrix is not None
    matrix = seen.matrix @ shift_and_scale((0.0, 0.0), seen.clock.center, seen.clock.radius_px)
    return [[round(float(value), 6) for value in row] for row in matrix / matrix[2, 2]]


def _place(point: Point) -> list[float]:
    return [round(point[0], 2), round(point[1], 2)]
