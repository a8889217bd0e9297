"""Draw bar and line charts with questions that have exact answers: a dataset folder.

    python -m synth.charts --n 50000 --out data/charts --seed 0 --questions-per-chart 4 --preset varied --workers 2
    python -m synth.charts --preset hard --show 12         # a quick look, no dataset

What can be set is the fields of `ChartConfig` and of its section look; docs/charts.md is the tour. Chart c, with all its questions,
depends on (generator version, settings, seed, c) alone; its records stand together and share a split.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from synth.card import CardText
from synth.chart_presets import PRESETS
from synth.door import command_line, enter, read_settings
from synth.looks import ChartLook
from synth.settings import setting
from synth.writer import DEFAULT_SHARES, Plan

PROG = "smmd-charts"
GENERATOR = "synth.charts"
GENERATOR_VERSION = 2  # raise it with every change that alters a record
_CHOICES = f"{GENERATOR}/1"  # seeds the random choices; raised when one is added, so that drawing alone leaves them as they are
MOST_QUESTIONS, MOST_BARE_QUESTIONS = 12, 4
# What the plan says for itself or no record depends on; the rest is what each record depends on.
_OF_THE_PLAN = ("n", "start", "seed", "out", "workers", "shard_size", "splits", "show")


@dataclass(frozen=True, kw_only=True)
class ChartConfig:
    """Everything that can be set; the flags and the YAML keys are these names."""

    n: int = setting(50_000, "number of records, rounded up to whole charts")
    out: str = setting("data/charts", "folder to write")
    seed: int = setting(0, "another seed, other charts")
    questions_per_chart: int = setting(4, f"records that share a picture, 1 to {MOST_QUESTIONS}")
    preset: Literal["plain", "varied", "hard", "embedded"] = setting(
        "varied", "where the look starts from; its settings change it factor by factor"
    )
    start: int = setting(0, "index of the first record, a multiple of questions_per_chart; pieces agree with the whole")
    workers: int = setting(os.cpu_count() or 1, "processes that draw; changes nothing but the time it takes")
    splits: dict[str, float] = setting(DEFAULT_SHARES, "share of each split, such as '{\"train\": 1}'; shares add up to 1")
    held_out_looks: str = setting(
        "", "what never occurs in split train: names of looks, or factor=name, with commas, such as pew,kind=area"
    )
    shard_size: int = setting(1000, "records a file, rounded up to whole charts")
    show: int = setting(0, "draw only so many charts, on one sheet beside --out, and write no dataset")
    look: ChartLook | None = setting(None, "the look of the charts; the preset's when not given")

    def __post_init__(self) -> None:
        if self.look is None:
            object.__setattr__(self, "look", PRESETS[self.preset])
        if not 1 <= self.questions_per_chart <= MOST_QUESTIONS:
            raise ValueError(f"questions_per_chart must be 1 to {MOST_QUESTIONS}, got {self.questions_per_chart}")
        assert self.look is not None
        if self.look.kind.get("unlabelled bars") and self.questions_per_chart > MOST_BARE_QUESTIONS:
            raise ValueError(
                f"questions_per_chart must be 1 to {MOST_BARE_QUESTIONS} for charts without text, which have no more bars, "
                f"got {self.questions_per_chart}"
            )
        if self.workers <= 0:
            raise ValueError(f"workers must be at least 1 process, got {self.workers}")
        if self.start % self.questions_per_chart:
            raise ValueError(f"start must be a multiple of questions_per_chart, {self.questions_per_chart}, got {self.start}")
        if self.show < 0:
            raise ValueError(f"show must be 0 or the number of charts to look at, got {self.show}")
        self.training_look()  # refuses held-out looks that are none, or the last of their factor

    def held_out(self) -> tuple[tuple[str, str], ...]:
        """The held-out looks as (factor, name) pairs."""
        pairs = []
        for part in filter(None, (part.strip() for part in self.held_out_looks.split(","))):
            factor, _, name = part.rpartition("=")
            factor = factor or "look"
            weights = getattr(self.look, factor, None)
            if not isinstance(weights, dict) or name not in weights:
                raise ValueError(
                    f"held_out_looks must be looks or factor=name with a factor of names, such as pew,kind=area, got {part!r}"
                    + (f"; {factor} knows {', '.join(weights)}" if isinstance(weights, dict) else "")
                )
            pairs.append((factor, name))
        return tuple(pairs)

    def training_look(self) -> ChartLook:
        assert self.look is not None
        return self.look.without(self.held_out())

    def maker(self) -> Any:
        from synth.chart_records import ChartMaker  # matplotlib comes with it

        assert self.look is not None
        return ChartMaker(
            stream=_CHOICES, seed=self.seed, questions=self.questions_per_chart, everywhere=self.look,
            training=self.training_look(), shares=self.splits, held_out=self.held_out(),
        )  # fmt: skip

    def plan(self) -> Plan:
        """What the writer is to write; refuses an n, start, splits or shard_size that cannot be."""
        config = {name: value for name, value in asdict(self).items() if name not in _OF_THE_PLAN}
        together = self.questions_per_chart
        return Plan(
            out=Path(self.out), generator=GENERATOR, generator_version=GENERATOR_VERSION, config=config, seed=self.seed,
            n=-(-self.n // together) * together, start=self.start, shares=self.splits,
            held_out={"looks": ["=".join(pair) for pair in self.held_out()]},
            shard_size=self.shard_size, together=together, card=_card(self),
        )  # fmt: skip


def _card(config: ChartConfig) -> CardText:
    held_out = f" These looks never occur in the training split: `{config.held_out_looks}`." if config.held_out_looks else ""
    return CardText(
        title="Bar and line charts with exact answers",
        summary=f"Drawn charts, preset `{config.preset}`, {config.questions_per_chart} questions each, about invented numbers. Answers are exact "
        "where numbers are printed; elsewhere they are rounded to what can be read off the axis, and `tolerance` says how far off a careful "
        f"reader may be.{held_out} `group` is the chart; `meta` holds its table, axis, drawing choices and the place of every mark.",
        command=command_line(GENERATOR, config),
        tags=("charts", "chart-question-answering"),
    )  # fmt: skip


def read_config(argv: list[str] | None) -> ChartConfig:
    """argv and YAML over the preset they name."""
    description = "Draw bar and line charts with questions and exact answers. Look settings are shown as in preset varied."
    return read_settings(ChartConfig, argv, prog=PROG, description=description)


def show(config: ChartConfig) -> str:
    """Draw the first charts with all their questions on one sheet, beside where the dataset would be."""
    from synth.chart_sheet import chart_sheet

    make = config.maker()
    first = config.start
    groups = [
        [make(first + c * config.questions_per_chart + q) for q in range(config.questions_per_chart)]
        for c in range(config.show)
    ]
    path = Path(f"{config.out.rstrip('/')}.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(chart_sheet(groups))
    return f"drew {config.show} charts on {path}, no dataset (seed {config.seed})"


def main(argv: list[str] | None = None) -> int:
    return enter(PROG, lambda: read_config(argv), show)


def run() -> None:
    """The console command."""
    sys.exit(main())


if __name__ == "__main__":
    run()
