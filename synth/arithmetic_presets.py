"""What problems are asked and how far they go; three places to start from: `varied` (the default), `small`, `words`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from synth.arithmetic_measures import MEASURES, ORDINALS
from synth.arithmetic_problem import Reach
from synth.arithmetic_sums import SUMS
from synth.arithmetic_words import WORDS
from synth.settings import setting

MODULES = {**SUMS, **MEASURES, **WORDS}
MOST_DIGITS, MOST_PLACES, MOST_TERMS = 12, 6, len(ORDINALS)
MOST_ANSWER_DIGITS = 15  # so many a float64 holds, and with them the record's value
HOURS, EXTRA_HOURS = 12, 12


def _only(names: Iterable[str]) -> dict[str, float]:
    return {name: float(name in names) for name in MODULES}


@dataclass(frozen=True, kw_only=True)
class Problems:
    """The settings that a problem depends on."""

    modules: dict[str, float] = setting(_only({**SUMS, **MEASURES}), "weight of each module")
    digits: int = setting(6, "most digits of a number in a question, outside split extrapolation")
    extra_digits: int = setting(2, "so many more there, where a module grows in digits")
    terms: int = setting(5, "most numbers of a list or an expression, 3 or more")
    extra_terms: int = setting(3, "so many more in split extrapolation, where a module grows in terms")
    answer_digits: int = setting(MOST_ANSWER_DIGITS, f"most digits of an answer, in every split; at most {MOST_ANSWER_DIGITS}")
    decimal: float = setting(0.3, "chance that a problem's numbers may have decimals")
    places: int = setting(2, "most digits behind the point")
    negative: float = setting(0.2, "chance that a number is negative; at 0 no answer is either")
    phrasing: Literal["fixed", "varied"] = setting("varied", "one wording for each module, or several")

    def __post_init__(self) -> None:
        unknown = [name for name in self.modules if name not in MODULES]
        if unknown:
            raise ValueError(f"problems.modules knows {', '.join(MODULES)}, got {unknown[0]!r}")
        weights = self.modules.values()
        if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not sum(weights) > 0:
            raise ValueError(f"problems.modules must hold weights >= 0 of which one is above 0, got {self.modules!r}")
        # In one order, whoever wrote it: the order decides which random number gives which module.
        object.__setattr__(self, "modules", {name: float(self.modules.get(name, 0.0)) for name in MODULES})
        _check("digits", self.digits, 1, MOST_DIGITS - 1)
        _check("extra_digits", self.extra_digits, 1, MOST_DIGITS - self.digits)
        _check("terms", self.terms, 3, MOST_TERMS - 1)
        _check("extra_terms", self.extra_terms, 1, MOST_TERMS - self.terms)
        _check("answer_digits", self.answer_digits, 1, MOST_ANSWER_DIGITS)
        _check("places", self.places, 1, MOST_PLACES)
        for name in ("decimal", "negative"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"problems.{name} must be a chance from 0 to 1, got {getattr(self, name)!r}")

    def reach(self, beyond: str | None = None) -> Reach:
        """How far questions go; with more `digits`, `terms` or `hours`, whichever `beyond` names."""
        return Reach(
            digits=self.digits + (self.extra_digits if beyond == "digits" else 0),
            terms=self.terms + (self.extra_terms if beyond == "terms" else 0),
            hours=HOURS + (EXTRA_HOURS if beyond == "hours" else 0),
            decimal=self.decimal,
            places=self.places,
            negative=self.negative,
        )


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ValueError(f"problems.{name} must be {least} to {most}, got {value}")


_SMALL = ("add", "subtract", "multiply", "divide", "equation", "remainder", "sequence", "round", "place", "nearest", "kth")
PRESETS = {
    "varied": Problems(),
    "small": Problems(
        modules=_only(_SMALL), digits=3, extra_digits=1, terms=3, extra_terms=1, answer_digits=4, decimal=0.0, negative=0.0,
        phrasing="fixed",
    ),
    "words": Problems(modules=_only(WORDS), digits=4),
}  # fmt: skip
