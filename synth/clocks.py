"""Draw analogue clocks with the times they show: a dataset folder.

    python -m synth.clocks --n 50000 --out data/clocks --seed 0 --size 224 --workers 2 --preset varied

Record i depends on (generator version, settings, seed, i) alone. Times are uniform over the 720 minutes of the dial;
a second hand, where there is one, is uniform over the 60 seconds and moves the other two.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from smmd_vlm.numerals import DIAL_MINUTES, write_time
from smmd_vlm.records import Record
from synth.card import CardText
from synth.clock_layout import hand_angles, lay_out
from synth.clock_look import PRESETS, Choices, ClockLook
from synth.dial import Clock, draw, hand_tip
from synth.png import encode_png
from synth.settings import guarded, parse, setting
from synth.writer import DEFAULT_SHARES, Plan, split_of, write_dataset

PROG = "smmd-clocks"
GENERATOR = "synth.clocks"
GENERATOR_VERSION = 1  # raise it with every change that alters a record
SMALLEST_PX, LARGEST_PX = 32, 4096
QUESTIONS = (  # the first is the fixed one
    "What time does the clock show? Answer HH:MM.",
    "What time is it on this clock? Answer HH:MM.",
    "Read the clock. Answer HH:MM.",
    "Which time do the hands point to? Answer HH:MM.",
    "Tell the time shown in the picture. Answer HH:MM.",
)
_OF_THE_PLAN = ("n", "start", "seed", "out", "workers", "shard_size", "splits")  # the rest is what each record depends on


@dataclass(frozen=True, kw_only=True)
class ClockConfig:
    """Everything that can be set; the flags and the YAML keys are these names."""

    n: int = setting(50_000, "number of clocks")
    out: str = setting("data/clocks", "folder to write")
    seed: int = setting(0, "another seed, other clocks")
    size: int = setting(224, f"side of the square images in pixels, {SMALLEST_PX} to {LARGEST_PX}")
    preset: Literal["plain", "varied"] = setting(
        "varied", "where the look starts from; the look settings change it factor by factor"
    )
    start: int = setting(0, "index of the first clock; pieces agree with the whole")
    workers: int = setting(os.cpu_count() or 1, "processes that draw; changes nothing but the time it takes")
    splits: dict[str, float] = setting(DEFAULT_SHARES, "share of each split, such as '{\"train\": 1}'; shares add up to 1")
    held_out_times: int = setting(0, "how many of the 720 times never occur in split train")
    held_out_seed: int = setting(0, "which times those are; independent of --seed")
    phrasing: Literal["fixed", "varied"] = setting("fixed", "one question for all clocks, or several ways to ask")
    shard_size: int = setting(1000, "clocks a file")
    look: ClockLook | None = setting(None, "the look of the clocks; the preset's when not given")

    def __post_init__(self) -> None:
        if self.look is None:
            object.__setattr__(self, "look", PRESETS[self.preset])
        if not SMALLEST_PX <= self.size <= LARGEST_PX:
            raise ValueError(
                f"size must be {SMALLEST_PX} to {LARGEST_PX} pixels, got {self.size}; hands cannot be told apart on fewer"
            )
        if self.workers <= 0:
            raise ValueError(f"workers must be at least 1 process, got {self.workers}")
        if not 0 <= self.held_out_times < DIAL_MINUTES:
            raise ValueError(
                f"held_out_times must leave a time to train on, 0 to {DIAL_MINUTES - 1}, got {self.held_out_times}"
            )

    def plan(self) -> Plan:
        """What the writer is to write; refuses an n, start, splits or shard_size that cannot be."""
        config = {name: value for name, value in asdict(self).items() if name not in _OF_THE_PLAN}
        times = [write_time(minute) for minute in sorted(held_out_minutes(self.held_out_times, self.held_out_seed))]
        return Plan(
            out=Path(self.out),
            generator=GENERATOR,
            generator_version=GENERATOR_VERSION,
            config=config,
            seed=self.seed,
            n=self.n,
            start=self.start,
            shares=self.splits,
            held_out={"times": times},
            shard_size=self.shard_size,
            card=_card(self),
        )


@dataclass(frozen=True)
class ClockMaker:
    """index -> Record; picklable, the same everywhere."""

    config: ClockConfig

    def __call__(self, index: int) -> Record:
        config = self.config
        rng = random.Random(f"{GENERATOR}/{GENERATOR_VERSION}/{config.seed}/{index}")
        split = split_of(config.seed, index, config.splits)
        held_out = held_out_minutes(config.held_out_times, config.held_out_seed)
        minutes = _training_minutes(held_out) if split == "train" else range(DIAL_MINUTES)
        minute = minutes[int(rng.random() * len(minutes))]
        second = int(rng.random() * 60)
        question = QUESTIONS[int(rng.random() * len(QUESTIONS))] if config.phrasing == "varied" else QUESTIONS[0]
        choices = config.look.sample(rng)
        if not choices["second_hand"]:
            second = None
        clock = lay_out(choices, 60 * minute + (second or 0), config.size)
        name = f"clock-{config.seed}-{index:08d}"
        return Record(
            id=name,
            image=encode_png(draw(clock)),
            question=question,
            answer=write_time(minute),
            answer_type="time",
            value=float(minute),
            unit="min",
            tolerance=1.0,
            task="clock",
            kind=_kind(config.preset, choices) + (" / held-out time" if minute in held_out else ""),
            group=name,
            split=split,
            meta=_meta(config.seed, index, minute, second, minute in held_out, clock, choices),
        )


@lru_cache
def held_out_minutes(count: int, seed: int) -> frozenset[int]:
    """The times (minutes after 12:00) kept from training; a larger count with the same seed holds out these and more."""
    rng = random.Random(f"held-out times/{seed}")
    shuffled = sorted(range(DIAL_MINUTES), key=lambda _: rng.random())
    return frozenset(shuffled[:count])


@lru_cache
def _training_minutes(held_out: frozenset[int]) -> tuple[int, ...]:
    return tuple(minute for minute in range(DIAL_MINUTES) if minute not in held_out)


def _kind(preset: str, choices: Choices) -> str:
    """What reports group by."""
    if preset == "plain":
        return preset
    return "no numerals" if choices["numerals"] == "none" else choices["numerals"]


def _meta(seed: int, index: int, minute: int, second: int | None, held_out: bool, clock: Clock, choices: Choices) -> str:
    """Every drawing choice and the exact geometry, as JSON; angles in degrees clockwise from 12, places in pixels."""
    angles = hand_angles(60 * minute + (second or 0))
    shown = [hand.name for hand in clock.hands]

    def place(point: tuple[float, float]) -> list[float]:
        return [round(point[0], 2), round(point[1], 2)]

    meta: dict[str, Any] = {
        "seed": seed,
        "index": index,
        "hour": minute // 60 or 12,
        "minute": minute % 60,
        "second": second,
        "held_out": held_out,
        "angles_deg": {name: round(angles[name], 4) for name in shown},
        "tips_px": {hand.name: place(hand_tip(hand, clock.center)) for hand in clock.hands},
        "center_px": place(clock.center),
        "outline_px": [place(point) for point in clock.outline],
        "choices": choices,
    }
    return json.dumps(meta, separators=(",", ":"))


def _card(config: ClockConfig) -> CardText:
    held_out = f" {config.held_out_times} of the 720 times never occur in the training split." if config.held_out_times else ""
    return CardText(
        title="Analogue clocks",
        summary=f"Drawn analogue clocks, {config.size} x {config.size} pixels, look `{config.preset}`, with the time they show as `HH:MM` "
        f"(hours 01 to 12). Times are uniform over the dial.{held_out} `meta` holds every drawing choice, the angles of the hands "
        "and the places of their tips and of the dial's outline.",
        command=_command(config),
        tags=("analogue-clocks", "clock-reading"),
    )


def _command(config: ClockConfig) -> str:
    """The command line that makes these records again: every setting that is not its default."""
    changed = {
        **_changes(config, ClockConfig(preset=config.preset), ""),
        **_changes(config.look, PRESETS[config.preset], "look."),
    }
    flags = {"n": config.n, "seed": config.seed, "preset": config.preset, **changed}
    written = {name: value if isinstance(value, str) else json.dumps(value) for name, value in flags.items()}
    return " ".join(
        [f"python -m {GENERATOR}", *(f"--{name.replace('_', '-')} {shlex.quote(text)}" for name, text in written.items())]
    )


def _changes(config: Any, default: Any, prefix: str) -> dict[str, Any]:
    passed_over = ("out", "workers", "look")
    names = [each.name for each in fields(config) if each.name not in passed_over]
    return {prefix + name: getattr(config, name) for name in names if getattr(config, name) != getattr(default, name)}


def read_config(argv: list[str] | None) -> ClockConfig:
    """argv and YAML over the preset they name."""
    description = "Draw analogue clocks with the times they show. Look settings are shown as in preset varied."
    config = parse(ClockConfig(), argv, prog=PROG, description=description)
    if config.preset == "varied":
        return config
    # Once more, now over the look of the preset that was asked for.
    return parse(ClockConfig(preset=config.preset), argv, prog=PROG, description=description)


def main(argv: list[str] | None = None) -> int:
    def command() -> int:
        config = read_config(argv)
        print(write_dataset(config.plan(), ClockMaker(config), workers=config.workers))
        return 0

    return guarded(PROG, command)


def run() -> None:
    """The console command."""
    sys.exit(main())


if __name__ == "__main__":
    run()
