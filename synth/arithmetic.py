"""Write arithmetic questions with exact answers, text alone: a dataset folder.

    python -m synth.arithmetic --n 50000 --out data/arithmetic --seed 0 --workers 2 --preset varied
    python -m synth.arithmetic --preset small --show 12    # a quick look, no dataset

What can be set is the fields of `ArithmeticConfig` and of its section problems; docs/arithmetic.md is the tour.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from synth.arithmetic_maker import GENERATOR, GENERATOR_VERSION, RESERVED, SPLITS, ArithmeticMaker
from synth.arithmetic_presets import PRESETS, Problems
from synth.card import CardText
from synth.door import command_line, enter, read_settings
from synth.settings import setting
from synth.writer import Plan, check_shares

PROG = "smmd-arithmetic"
SHARES = {"train": 0.96, "interpolation": 0.02, "extrapolation": 0.02}
# What the plan says for itself or no record depends on; the rest is what each record depends on.
_OF_THE_PLAN = ("n", "start", "seed", "out", "workers", "shard_size", "splits", "show")


@dataclass(frozen=True, kw_only=True)
class ArithmeticConfig:
    """Everything that can be set; the flags and the YAML keys are these names."""

    n: int = setting(50_000, "number of questions")
    out: str = setting("data/arithmetic", "folder to write")
    seed: int = setting(0, "another seed, other questions")
    preset: Literal["varied", "small", "words"] = setting(
        "varied", "where problems start from; its settings change it one by one"
    )
    start: int = setting(0, "index of the first question; pieces agree with the whole")
    workers: int = setting(os.cpu_count() or 1, "processes that write; changes nothing but the time it takes")
    splits: dict[str, float] = setting(SHARES, "share of each split, such as '{\"train\": 1}'; shares add up to 1")
    shard_size: int = setting(5000, "questions a file")
    show: int = setting(0, "print only so many questions, and write no dataset")
    problems: Problems | None = setting(None, "what is asked, and how far it goes; the preset's when not given")

    def __post_init__(self) -> None:
        if self.problems is None:
            object.__setattr__(self, "problems", PRESETS[self.preset])
        if self.workers <= 0:
            raise ValueError(f"workers must be at least 1 process, got {self.workers}")
        if self.show < 0:
            raise ValueError(f"show must be 0 or the number of questions to look at, got {self.show}")
        check_shares(self.splits, SPLITS)
        self.maker().check()

    def maker(self) -> ArithmeticMaker:
        assert self.problems is not None
        return ArithmeticMaker(seed=self.seed, problems=self.problems, shares=self.splits)

    def plan(self) -> Plan:
        """What the writer is to write; refuses an n, start or shard_size that cannot be."""
        config = {name: value for name, value in asdict(self).items() if name not in _OF_THE_PLAN}
        return Plan(
            out=Path(self.out), generator=GENERATOR, generator_version=GENERATOR_VERSION, config=config, seed=self.seed,
            n=self.n, start=self.start, splits=SPLITS, shares=self.splits,
            held_out={"problems": f"one in {RESERVED}"}, shard_size=self.shard_size, pictures=False, card=_card(self),
        )  # fmt: skip


def _card(config: ArithmeticConfig) -> CardText:
    assert config.problems is not None
    asked = ", ".join(name for name, weight in config.problems.modules.items() if weight)
    return CardText(
        title="Arithmetic with exact answers",
        summary=f"Questions in words and figures, preset `{config.preset}`, of the modules {asked}. `interpolation` has problems of the same "
        "ranges as `train` that never occur there in any wording; those of `extrapolation` have longer numbers, more terms or longer spans "
        "than `train` ever has. `group` is the problem; `meta` holds its module, operands and digits.",
        command=command_line(GENERATOR, config),
        tags=("arithmetic", "mathematics"),
    )  # fmt: skip


def read_config(argv: list[str] | None) -> ArithmeticConfig:
    """argv and YAML over the preset they name."""
    description = "Write arithmetic questions with exact answers. Problem settings are shown as in preset varied."
    return read_settings(ArithmeticConfig, argv, prog=PROG, description=description)


def show(config: ArithmeticConfig) -> str:
    """The first questions, a line each."""
    make = config.maker()
    records = [make(config.start + k) for k in range(config.show)]
    widest = max(len(record.kind) for record in records)
    lines = [f"{record.kind:{widest}}  {record.question}  {record.answer}" for record in records]
    return "\n".join([*lines, f"{config.show} questions, no dataset (seed {config.seed})"])


def main(argv: list[str] | None = None) -> int:
    return enter(PROG, lambda: read_config(argv), show)


def run() -> None:
    """The console command."""
    sys.exit(main())


if __name__ == "__main__":
    run()
