"""Factors: named settings, each with a distribution of its own, drawn once a picture.

A factor is a weight per name (`{"arabic": 2, "roman": 1}`), a range drawn from uniformly (`[0.4, 0.6]`), or a chance.
A section subclasses `Factors`; every factor takes exactly one random number, so changing one leaves the others as they were.
In a sparse section only what a picture has is told: a chance that came out against, a name that means nothing ("none"),
and whatever matters only with an earlier one (`needs="factor"`, or `needs="factor=name"`) are left out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import Field, fields, replace
from typing import Any, ClassVar, TypeVar

Weights = dict[str, float]
Range = tuple[float, float]
Choices = dict[str, Any]
Section = TypeVar("Section", bound="Factors")

UNIT = (0.0, 1.0)
TURN = (0.0, 1.0)  # a hue, once round the colour wheel
FULL_CIRCLE = (0.0, 360.0)


class Factors:
    """Base of frozen dataclasses whose fields are factors; names in a default's weights are all the names there are."""

    section: ClassVar[str]
    sparse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            name = f"{self.section}.{each.name}"
            if isinstance(value, dict):
                names = list(each.default_factory())  # type: ignore[misc]
                _check_weights(name, value, names)
                # In one order, whoever wrote it: the order decides which random number gives which name.
                object.__setattr__(self, each.name, {key: float(value[key]) for key in names if key in value})
            elif isinstance(value, (tuple, list)):
                _check_range(name, value, *each.metadata["within"])
                object.__setattr__(self, each.name, (float(value[0]), float(value[1])))
            elif not 0 <= value <= 1:
                raise ValueError(f"{name} must be a chance from 0 to 1, got {value!r}")
        # What sampling needs, looked up once: it runs for every picture.
        plan = [(each.name, getattr(self, each.name), *_gate(each)) for each in fields(self)]  # type: ignore[arg-type]
        object.__setattr__(self, "_plan", plan)
        possible = (
            {name: self._possible(name) for name, *_ in plan}
            if self.sparse
            else dict.fromkeys((name for name, *_ in plan), True)
        )
        object.__setattr__(self, "_possible_names", frozenset(name for name, can_be in possible.items() if can_be))

    def _possible(self, name: str) -> bool:
        """Whether a picture can have it at all."""
        value, gates = getattr(self, name), {each: gate for each, _, gate, _ in self._plan}  # type: ignore[attr-defined]
        if not value or (isinstance(value, dict) and not any(weight for each, weight in value.items() if each != "none")):
            return False
        return self._possible(gates[name]) if gates[name] in gates else True

    def sample(self, rng: random.Random, given: Choices | None = None) -> Choices:
        """One value per factor, or, in a sparse section, per factor that this picture has; `given` are other sections' choices."""
        known, found = dict(given or {}), {}
        possible: frozenset[str] = self._possible_names  # type: ignore[attr-defined]
        for name, distribution, gate, wanted in self._plan:  # type: ignore[attr-defined]
            u = rng.random()
            if name not in possible or (gate and (gate not in known or (wanted and known[gate] != wanted))):
                continue
            value = _draw(distribution, u)
            if not self.sparse or (value is not False and value != "none"):  # a range may well give 0.0
                known[name] = found[name] = value
        return found

    def without(self: Section, names: Iterable[tuple[str, str]]) -> Section:
        """The same section, in which these (factor, name) pairs never occur."""
        changed: dict[str, Weights] = {}
        for factor, name in names:
            weights = changed.get(factor, getattr(self, factor))
            changed[factor] = {key: 0.0 if key == name else weight for key, weight in weights.items()}
            if not sum(changed[factor].values()) > 0:
                raise ValueError(
                    f"held_out_style must leave a {self.section}.{factor} to train on, {name!r} was the last with a weight"
                )
        return replace(self, **changed)  # type: ignore[type-var]


def _gate(each: Field) -> tuple[str, str]:
    gate, _, wanted = each.metadata.get("needs", "").partition("=")
    return gate, wanted


def _draw(distribution: Weights | Range | float, u: float) -> str | float | bool:
    if isinstance(distribution, tuple):
        low, high = distribution
        return round(low + u * (high - low), 4)  # rounded, so that meta tells exactly what was drawn
    if isinstance(distribution, dict):
        left = u * sum(distribution.values())
        for name, weight in distribution.items():
            left -= weight
            if left < 0:
                return name
        return next(name for name in reversed(distribution) if distribution[name] > 0)  # u * sum rounded up to sum
    return u < distribution


def _check_weights(name: str, weights: Weights, names: list[str]) -> None:
    unknown = [each for each in weights if each not in names]
    if unknown:
        raise ValueError(f"{name} knows {', '.join(names)}, got {unknown[0]!r}")
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights.values()) or not sum(weights.values()) > 0:
        raise ValueError(f"{name} must hold weights >= 0 of which one is above 0, got {weights!r}")


def _check_range(name: str, value: Range, low: float, high: float) -> None:
    if len(value) != 2 or not low <= value[0] <= value[1] <= high:
        raise ValueError(f"{name} must be a range [low, high] within {low:g} to {high:g}, got {list(value)!r}")
