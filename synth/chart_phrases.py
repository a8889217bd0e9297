"""The words that questions are made of: naming a mark, a scope, a unit, so that only one thing can be meant."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from synth.tables import SCALE_WORDS, Table


@dataclass(frozen=True)
class Phrases:
    table: Table
    mark: str  # bar, line, point, area: what one value is drawn as
    group_digits: bool  # thresholds as 12,000 or 12000

    @property
    def over_time(self) -> bool:
        return self.table.axis in ("year", "month")

    @property
    def be(self) -> str:
        return "was" if self.over_time else "is"

    @property
    def have(self) -> str:
        return "had" if self.over_time else "has"

    @property
    def place_word(self) -> str:
        """year, month, country, depth"""
        table = self.table
        if table.x_things:
            return table.x_things.singular
        return table.x_name.partition(" (")[0].lower()

    @property
    def places_word(self) -> str:
        table = self.table
        return table.x_things.plural if table.x_things else f"{self.place_word}s"

    @property
    def which_place(self) -> str:
        """In which year | Which country is asked as: For which country."""
        table = self.table
        preposition = "In" if self.over_time else "At" if table.axis == "number" else table.x_things.preposition.capitalize()
        return f"{preposition} which {self.place_word}"

    def at(self, place: int) -> str:
        """in 2015, in Norway, for Coal, at a depth of 20 m: with a space in front."""
        table, name = self.table, self.table.x[place]
        if self.over_time:
            return f" in {name}"
        if table.axis == "number":
            unit = table.x_name.partition(" (")[2].rstrip(")")
            return f" at a {self.place_word} of {name} {unit}"
        return f" {table.x_things.preposition} {name}"

    def of(self, series: int) -> str:
        """for Coal, in Norway: the series, or whom the only one is about; with a space in front, or nothing."""
        table = self.table
        if table.series_things:
            return f" {table.series_things.preposition} {table.series[series].name}"
        return f" {table.of_things.preposition} {table.of}" if table.of_things else ""

    def thing(self, series: int, place: int) -> str:
        """the production for Rice in Kenya"""
        first, second = self.of(series), self.at(place)
        if self.table.x_things and self.table.series_things:
            first, second = second, first
        return f"the {self.table.measure}{first}{second}"

    def whole(self, series: int) -> str:
        """the production in Kenya: of one series, over all places."""
        return f"the {self.table.measure}{self.of(series)}"

    def short(self, series: int, place: int) -> str:
        """Kenya, Rice: the words on the chart for one mark."""
        name = self.table.series[series].name
        return f"{self.table.x[place]}, {name}" if name else self.table.x[place]

    def unit(self, always: bool) -> str:
        """in million euros: needed where the unit scales the number, welcome elsewhere; with a space in front."""
        table = self.table
        if not table.unit or table.unit == "%" or not (table.scale or _scaled(table.unit) or always):
            return ""
        return f" in {table.unit}"

    def amount(self, number: Decimal) -> str:
        """A threshold with its unit: 2.5 million euros, 40%, 12,000."""
        table = self.table
        digits = format(number, ",f" if self.group_digits else "f")
        if table.unit == "%":
            return f"{digits}%"
        plural_word = next((word for word in SCALE_WORDS.values() if word and table.unit == f"{word}s"), None)
        return f"{digits} {plural_word or table.unit}".rstrip()

    @property
    def first_to_last(self) -> str:
        return f"from {self.table.x[0]} to {self.table.x[-1]}"


def _scaled(unit: str) -> bool:
    return unit.split(" ")[0] in SCALE_WORDS.values()
