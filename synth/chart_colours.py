"""Questions that name a mark by its colour, or ask for one; only where the colours have plain names and lie well apart."""

from __future__ import annotations

from synth.chart_shapes import Colour
from synth.chart_view import Draft, Template, View

# Colours that people call by these names; others are not asked for.
_NAMES = {
    "blue": "blue", "navy": "dark blue", "grey": "grey", "red": "red", "green": "green", "orange": "orange", "purple": "purple", "yellow": "yellow",
    "brown": "brown", "black": "black", "light blue": "light blue", "dark green": "dark green",
}  # fmt: skip
_LEAST_COLOUR_DISTANCE = 120


def which_is_coloured(view: View) -> Draft | None:
    """Which series has this colour, or, where bars have their own, which place."""
    found = _colours(view)
    if found is None:
        return None
    things, names = (
        (view.made.table.x_things, view.made.table.x)
        if not view.many
        else (view.made.table.series_things, [s.name for s in view.made.table.series])
    )
    if things is None:
        return None
    one = view.rng.choice([k for k in found if list(found.values()).count(found[k]) == 1])
    mark = (
        "line" if view.made.chart.look.joined else "dots" if view.made.chart.look.lines else "bar" if not view.many else "bars"
    )
    return Draft(
        wordings=(
            f"Which {things.singular} is drawn in {found[one]}?",
            f"Which {things.singular} {'do' if mark in ('dots', 'bars') else 'does'} the {found[one]} {mark} stand for?",
            f"What does the colour {found[one]} stand for?",
        ),
        answer=names[one], answer_type="text", arguments={"colour_of": one},
    )  # fmt: skip


def what_colour(view: View) -> Draft | None:
    found = _colours(view)
    if found is None:
        return None
    one = view.rng.choice(list(found))
    name = view.made.table.series[one].name if view.many else view.made.table.x[one]
    mark = "line" if view.made.chart.look.joined else "mark"
    return Draft(
        wordings=(f"Which colour stands for {name}?", f"What colour is the {mark} for {name}?", f"In which colour is {name} drawn?"),
        answer=found[one], answer_type="text", arguments={"colour_of": one},
    )  # fmt: skip


def coloured_value(view: View) -> Draft | None:
    """Read a mark that is named by its colour."""
    found = _colours(view)
    if found is None:
        return None
    unique = [k for k in found if list(found.values()).count(found[k]) == 1]
    one = view.rng.choice(unique)
    say, unit = view.say, view.say.unit(view.rng.random() < 0.5)
    if not view.many:
        number, k, i, where = view.grid[0][one], 0, one, ""
        mark = "bar"
    else:
        named = view.named(one)
        if not named:
            return None
        i = view.rng.choice(named)
        number, k, where = view.grid[one][i], one, say.at(i)
        mark = "line" if view.made.chart.look.joined else "dot" if view.made.chart.look.lines else say.mark
    if number is None:
        return None
    return Draft(
        wordings=(
            f"What is the value of the {found[one]} {mark}{where}{unit}?",
            f"Which value does the {found[one]} {mark} show{where}{unit}?",
            f"Read the {found[one]} {mark}{where}{unit}.",
        ),
        answer=number, unit=view.made.table.unit or None, arguments={"series": k, "place": i},
    )  # fmt: skip


def _colours(view: View) -> dict[int, str] | None:
    """Plain colour names by series (or by place), when they are told apart easily; None otherwise."""
    look = view.made.chart.look
    if not view.many and not look.by_place:
        return None
    if any(name not in _NAMES for name, _ in look.colours):
        return None
    different = list(dict.fromkeys(look.colours))
    if any(_distance(a, b) < _LEAST_COLOUR_DISTANCE for n, (_, a) in enumerate(different) for _, b in different[:n]):
        return None
    found = {k: _NAMES[name] for k, (name, _) in enumerate(look.colours)}
    return found if any(list(found.values()).count(name) == 1 for name in found.values()) else None


def _distance(a: Colour, b: Colour) -> float:
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5


COLOUR_FACTS: dict[str, tuple[Template, float]] = {
    "which is coloured": (which_is_coloured, 0.5),
    "colour": (what_colour, 0.4),
    "coloured value": (coloured_value, 0.7),
}
