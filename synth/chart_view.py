"""A chart as the question templates see it: what can be read, what is named, what can be told apart."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from smmd_vlm.records import AnswerType
from synth.chart_maker import Made
from synth.chart_phrases import Phrases
from synth.chart_reading import Seen, seen


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a template says: wordings of one question, and its answer, a number as seen or a text."""

    wordings: tuple[str, ...]
    answer: Seen | str
    arguments: Mapping[str, Any]  # what an evaluator needs besides the table
    answer_type: AnswerType = "number"
    unit: str | None = None
    places: int | None = None  # decimals of an exact number that does not end; None: one more than the table keeps


@dataclass
class View:
    """A chart as templates look at it, with their source of chance."""

    made: Made
    rng: random.Random
    say: Phrases = field(init=False)
    grid: list[list[Seen | None]] = field(init=False)  # [series][place]

    def __post_init__(self) -> None:
        table, look = self.made.table, self.made.chart.look
        mark = "point" if look.lines else "part" if look.stacked else "bar"
        self.say = Phrases(table, mark, self.rng.random() < 0.5)
        self.grid = [[seen(self.made, k, i) for i in range(len(table.x))] for k in range(len(table.series))]

    @property
    def places(self) -> int:
        return len(self.made.table.x)

    @property
    def many(self) -> bool:
        """More than one series?"""
        return len(self.grid) > 1

    def series(self) -> int:
        return self.rng.randrange(len(self.grid))

    def named(self, series: int) -> list[int]:
        """Places that have a number and whose names are shown."""
        shown = self.made.chart.names_shown
        return [i for i, number in enumerate(self.grid[series]) if number is not None and shown[i]]

    def complete(self, series: int) -> bool:
        return None not in self.grid[series]

    def row(self, series: int) -> list[Seen]:
        return [number for number in self.grid[series] if number is not None]

    def ranked(self, series: int, *, lowest: bool = False) -> list[int]:
        """Places of a series, the highest (or lowest) first; missing ones left out."""
        there = [i for i, number in enumerate(self.grid[series]) if number is not None]
        return sorted(there, key=lambda i: self.grid[series][i].exact, reverse=not lowest)

    def clearly_first(self, series: int, order: list[int], rank: int = 0) -> bool:
        """Can the mark at `rank` be told from its neighbours in the order?"""
        row = self.grid[series]
        pairs = [(a, b) for a, b in zip(order, order[1:], strict=False)][max(rank - 1, 0) : rank + 1]
        return bool(pairs) and all(self.apart(row[a], row[b]) for a, b in pairs)

    def apart(self, a: Seen, b: Seen) -> bool:
        return a.surely_above(b) or b.surely_above(a)

    @property
    def adds_up(self) -> bool:
        """Does a sum of these numbers mean something?"""
        table = self.made.table
        if table.quantity == "percent":
            return self.made.chart.look.stacked
        return (
            table.quantity in ("money", "count", "amount")
            and table.axis != "number"
            and not table.measure.startswith("average")
        )


Template = Callable[[View], Draft | None]
