"""Draw analogue clocks with the times they show: a dataset folder.

    python -m synth.clocks --n 50000 --out data/clocks --seed 0 --size 224 --workers 2 --preset varied
    python -m synth.clocks --preset photo --show 12        # a quick look, no dataset

What can be set is the fields of `ClockConfig` and of its sections look, extras and scene; docs/clocks.md is the tour.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from smmd_vlm.numerals import DIAL_MINUTES, write_time
from synth.card import CardText, contact_sheet
from synth.clock_answers import AnswerFormat
from synth.clock_extras import ClockExtras
from synth.clock_look import ClockLook
from synth.clock_maker import GENERATOR, GENERATOR_VERSION, ClockMaker, held_out_minutes
from synth.clock_presets import PRESETS, Preset, without_styles
from synth.clock_scene import SceneLook
from synth.door import command_line, enter, read_settings
from synth.png import encode_png
from synth.settings import setting
from synth.writer import DEFAULT_SHARES, Plan

PROG = "smmd-clocks"
SMALLEST_PX, LARGEST_PX = 32, 4096
SECTIONS = ("look", "extras", "scene")
# What the plan says for itself or no record depends on; the rest is what each record depends on.
_OF_THE_PLAN = ("n", "start", "seed", "out", "workers", "shard_size", "splits", "format", "show")


@dataclass(frozen=True, kw_only=True)
class ClockConfig:
    """Everything that can be set; the flags and the YAML keys are these names."""

    n: int = setting(50_000, "number of clocks")
    out: str = setting("data/clocks", "folder to write")
    seed: int = setting(0, "another seed, other clocks")
    size: int = setting(224, f"side of the square images in pixels, {SMALLEST_PX} to {LARGEST_PX}")
    preset: Literal["plain", "varied", "photo"] = setting(
        "varied", "where look, extras and scene start from; their settings change it factor by factor"
    )
    start: int = setting(0, "index of the first clock; pieces agree with the whole")
    workers: int = setting(os.cpu_count() or 1, "processes that draw; changes nothing but the time it takes")
    splits: dict[str, float] = setting(DEFAULT_SHARES, "share of each split, such as '{\"train\": 1}'; shares add up to 1")
    held_out_times: int = setting(0, "how many of the 720 times never occur in split train")
    held_out_seed: int = setting(0, "which times those are; independent of --seed")
    held_out_style: str = setting("", "styles that never occur in split train: factor=name,factor=name, such as numerals=roman")
    phrasing: Literal["fixed", "varied"] = setting("fixed", "one question for all clocks, or several ways to ask")
    answer_format: AnswerFormat = setting("HH:MM", "what the answers look like; seconds only where there is a second hand")
    impossible: float = setting(0.0, "share of clocks whose hands cannot stand like that; `valid` in meta tells them")
    shard_size: int = setting(1000, "clocks a file")
    format: Literal["parquet", "imagefolder"] = setting(
        "parquet", "Parquet files, or folders of pictures with a metadata.jsonl"
    )
    show: int = setting(0, "draw only so many, on one sheet beside --out, and write no dataset")
    look: ClockLook | None = setting(None, "the look of the clocks; the preset's when not given")
    extras: ClockExtras | None = setting(None, "what some dials have; the preset's when not given")
    scene: SceneLook | None = setting(None, "camera, surroundings, light and film; the preset's when not given")

    def __post_init__(self) -> None:
        for name in SECTIONS:
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(PRESETS[self.preset], name))
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
        if not 0 <= self.impossible <= 1:
            raise ValueError(f"impossible must be a share from 0 to 1, got {self.impossible}")
        if self.show < 0:
            raise ValueError(f"show must be 0 or the number of clocks to look at, got {self.show}")
        self.maker()  # refuses held-out styles that are none, or the last of their factor

    @property
    def sections(self) -> Preset:
        assert self.look is not None and self.extras is not None and self.scene is not None
        return Preset(look=self.look, extras=self.extras, scene=self.scene)

    def styles(self) -> tuple[tuple[str, str], ...]:
        """The held-out styles as (factor, name) pairs."""
        pairs = []
        for part in filter(None, (part.strip() for part in self.held_out_style.split(","))):
            factor, _, name = part.partition("=")
            weights = next((getattr(each, factor) for each in vars(self.sections).values() if hasattr(each, factor)), None)
            if not isinstance(weights, dict) or name not in weights:
                raise ValueError(
                    f"held_out_style must be factor=name with a factor of names, such as numerals=roman, got {part!r}"
                    + (f"; {factor} knows {', '.join(weights)}" if isinstance(weights, dict) else "")
                )
            pairs.append((factor, name))
        return tuple(pairs)

    def maker(self) -> ClockMaker:
        styles = self.styles()
        return ClockMaker(
            seed=self.seed,
            size_px=self.size,
            preset=self.preset,
            everywhere=self.sections,
            training=without_styles(self.sections, styles),
            shares=self.splits,
            held_out_times=self.held_out_times,
            held_out_seed=self.held_out_seed,
            held_out_styles=styles,
            answer_format=self.answer_format,
            impossible=self.impossible,
            varied_phrasing=self.phrasing == "varied",
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
            held_out={"times": times, "styles": ["=".join(pair) for pair in self.styles()]},
            shard_size=self.shard_size,
            format=self.format,
            card=_card(self),
        )


def _card(config: ClockConfig) -> CardText:
    notes = ""
    if config.held_out_times:
        notes += f" {config.held_out_times} of the 720 times never occur in the training split."
    if config.held_out_style:
        notes += f" These styles never occur there: `{config.held_out_style}`."
    if config.impossible:
        notes += f" A share of {config.impossible:g} cannot stand like that (`valid` is false in `meta`)."
    return CardText(
        title="Analogue clocks",
        summary=f"Drawn analogue clocks, {config.size} x {config.size} pixels, preset `{config.preset}`, with the time they show as "
        f"`{config.answer_format}` (hours 01 to 12; 00 to 23 on 24-hour dials). Times are uniform over the dial.{notes} `meta` holds "
        "every drawing choice, the angles of the hands and the places of their tips and of the dial's outline.",
        command=command_line(GENERATOR, config),
        tags=("analogue-clocks", "clock-reading"),
    )


def read_config(argv: list[str] | None) -> ClockConfig:
    """argv and YAML over the preset they name."""
    description = "Draw analogue clocks with the times they show. look, extras and scene are shown as in preset varied."
    return read_settings(ClockConfig, argv, prog=PROG, description=description)


def show(config: ClockConfig) -> str:
    """Draw the first clocks on one sheet, beside where the dataset would be."""
    make = config.maker()
    path = Path(f"{config.out.rstrip('/')}.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_png(contact_sheet([make(config.start + k) for k in range(config.show)])))
    return f"drew {config.show} clocks on {path}, no dataset (seed {config.seed})"


def main(argv: list[str] | None = None) -> int:
    return enter(PROG, lambda: read_config(argv), show)


def run() -> None:
    """The console command."""
    sys.exit(main())


if __name__ == "__main__":
    run()
