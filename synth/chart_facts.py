"""Questions whose answer is a name, a year, a count, a colour, yes or no, or a list: where, when, which, how many, whether."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from synth.chart_colours import COLOUR_FACTS
from synth.chart_reading import Seen
from synth.chart_view import Draft, Template, View


def where_extreme(view: View, *, lowest: bool) -> Draft | None:
    k = view.series()
    order = view.ranked(k, lowest=lowest)
    if len(order) < 2 or not view.clearly_first(k, order):
        return None
    return _place_answer(view, k, order[0], "lowest" if lowest else "highest", {"series": k})


def second_highest(view: View) -> Draft | None:
    k = view.series()
    order = view.ranked(k)
    if len(order) < 3 or not view.clearly_first(k, order, 1):
        return None
    return _place_answer(view, k, order[1], "second highest", {"series": k})


def which_series(view: View) -> Draft | None:
    if not view.many:
        return None
    lowest = view.rng.random() < 0.4
    i = view.rng.randrange(view.places)
    column = {k: row[i] for k, row in enumerate(view.grid)}
    if None in column.values() or not view.made.chart.names_shown[i]:
        return None
    order = sorted(column, key=lambda k: column[k].exact, reverse=not lowest)
    if not view.apart(column[order[0]], column[order[1]]):
        return None
    say, word, things = view.say, "lowest" if lowest else "highest", view.made.table.series_things
    measure = view.made.table.measure
    return Draft(
        wordings=(
            f"Which {things.singular} {say.have} the {word} {measure}{say.at(i)}?",
            f"{say.at(i)[1:2].upper()}{say.at(i)[2:]}, which {things.singular} {say.be} {word}?",
            f"Among the {things.plural}, which one shows the {word} {measure}{say.at(i)}?",
        ),
        answer=view.made.table.series[order[0]].name, answer_type="text", arguments={"place": i, "lowest": lowest},
    )  # fmt: skip


def count_places(view: View) -> Draft | None:
    if (
        view.made.table.axis == "number"
        or not all(view.made.chart.names_shown)
        or not all(map(view.complete, range(len(view.grid))))
    ):
        return None
    say = view.say
    return Draft(
        wordings=(
            f"How many {say.places_word} are shown?",
            f"For how many {say.places_word} does the chart give values?",
            f"Count the {say.places_word} on the chart.",
        ),
        answer=_counted(view.places), arguments={},
    )  # fmt: skip


def count_series(view: View) -> Draft | None:
    if not view.many:
        return None
    plural = view.made.table.series_things.plural
    return Draft(
        wordings=(f"How many {plural} are compared?", f"How many {plural} does the chart tell apart?", f"Count the {plural} on the chart."),
        answer=_counted(len(view.grid)), arguments={},
    )  # fmt: skip


def count_above(view: View) -> Draft | None:
    k = view.series()
    found = _threshold(view, k)
    if found is None or not view.complete(k):
        return None
    threshold, above = found
    under = view.rng.random() < 0.35
    say, word = view.say, "below" if under else "above"
    which = f"{view.say.which_place.split(' ')[0]} how many {say.places_word}"
    return Draft(
        wordings=(
            f"{which} {say.be} {say.whole(k)} {word} {say.amount(threshold)}?",
            f"How many {say.places_word} {'had' if say.over_time else 'have'} a value {word} {say.amount(threshold)} for {say.whole(k)}?",
            f"Count the {say.places_word} where {say.whole(k)} {say.be} {'less' if under else 'more'} than {say.amount(threshold)}.",
        ),
        answer=_counted(view.places - len(above) if under else len(above)), arguments={"series": k, "threshold": str(threshold), "below": under},
    )  # fmt: skip


def first_above(view: View) -> Draft | None:
    """When was a line crossed?"""
    if not view.say.over_time:
        return None
    k = view.series()
    found = _threshold(view, k)
    if found is None or not view.complete(k):
        return None
    threshold, above = found
    if not above or above[0] == 0 or not view.made.chart.names_shown[above[0]]:
        return None
    say = view.say
    return _named_answer(
        view, above[0],
        (
            f"{say.which_place} did {say.whole(k)} first exceed {say.amount(threshold)}?",
            f"When was {say.whole(k)} above {say.amount(threshold)} for the first time?",
            f"What is the first {say.place_word} in which {say.whole(k)} lay above {say.amount(threshold)}?",
        ),
        {"series": k, "threshold": str(threshold)},
    )  # fmt: skip


def overtaking(view: View) -> Draft | None:
    """When did one series first lie above another?"""
    if not view.say.over_time or not view.many:
        return None
    k, other = view.rng.sample(range(len(view.grid)), 2)
    if not view.complete(k) or not view.complete(other):
        return None
    pairs = list(zip(view.grid[k], view.grid[other], strict=True))
    if not all(view.apart(a, b) for a, b in pairs):
        return None
    above = [i for i, (a, b) in enumerate(pairs) if a.exact > b.exact]
    if not above or above[0] == 0 or not view.made.chart.names_shown[above[0]]:
        return None
    say, names = view.say, view.made.table.series
    return _named_answer(
        view, above[0],
        (
            f"{say.which_place} was {say.whole(k)} first higher than that{say.of(other)}?",
            f"When did {names[k].name} first lie above {names[other].name}?",
            f"{say.which_place} did {names[k].name} overtake {names[other].name} for the first time?",
        ),
        {"series": k, "other_series": other},
    )  # fmt: skip


def compare(view: View) -> Draft | None:
    k = view.series()
    named = view.named(k)
    if len(named) < 2:
        return None
    i, j = view.rng.sample(named, 2)
    a, b = view.grid[k][i], view.grid[k][j]
    if not view.apart(a, b):
        return None
    say = view.say
    whom = say.of(k) if view.many and view.made.table.x_things else ""
    return Draft(
        wordings=(
            f"{say.be.capitalize()} {say.thing(k, i)} higher than that{say.at(j)}{whom}?",
            f"{say.be.capitalize()} {say.thing(k, j)} lower than that{say.at(i)}{whom}?",
            f"Yes or no: {say.thing(k, i)} {say.be} larger than that{say.at(j)}{whom}.",
        ),
        answer=_yes(a.exact > b.exact), answer_type="text", arguments={"series": k, "place": i, "other_place": j},
    )  # fmt: skip


def compare_series(view: View) -> Draft | None:
    if not view.many:
        return None
    k, other = view.rng.sample(range(len(view.grid)), 2)
    both = [i for i in view.named(k) if view.grid[other][i] is not None]
    if not both:
        return None
    i = view.rng.choice(both)
    a, b = view.grid[k][i], view.grid[other][i]
    if not view.apart(a, b):
        return None
    say = view.say
    return Draft(
        wordings=(
            f"{say.be.capitalize()} {say.thing(k, i)} higher than that{say.of(other)}?",
            f"{say.be.capitalize()} {say.thing(other, i)} lower than that{say.of(k)}?",
        ),
        answer=_yes(a.exact > b.exact), answer_type="text", arguments={"series": k, "other_series": other, "place": i},
    )  # fmt: skip


def two_against_one(view: View) -> Draft | None:
    """Two steps: do the two lowest together exceed the highest?"""
    k = view.series()
    if not view.adds_up or not view.complete(k) or view.places < 4 or min(n.exact for n in view.row(k)) < 0:
        return None
    order = view.ranked(k)
    lowest = view.grid[k][order[-1]] + view.grid[k][order[-2]]
    highest = view.grid[k][order[0]]
    if not view.apart(lowest, highest):
        return None
    say = view.say
    return Draft(
        wordings=(
            f"Is the sum of the two lowest values of {say.whole(k)} greater than the highest one?",
            f"Do the two lowest values of {say.whole(k)} together exceed the highest one?",
        ),
        answer=_yes(lowest.exact > highest.exact), answer_type="text", arguments={"series": k},
    )  # fmt: skip


def always_rises(view: View) -> Draft | None:
    if not view.say.over_time:
        return None
    k = view.series()
    row = view.grid[k]
    if not view.complete(k) or view.places < 3 or not all(view.apart(a, b) for a, b in zip(row, row[1:], strict=False)):
        return None
    rises = [b.exact > a.exact for a, b in zip(row, row[1:], strict=False)]
    down = not any(rises) or (any(rises) and not all(rises) and view.rng.random() < 0.5)
    verb, say = "fall" if down else "rise", view.say
    yes = not any(rises) if down else all(rises)
    return Draft(
        wordings=(
            f"Did {say.whole(k)} {verb} from each {say.place_word} shown to the next?",
            f"Did {say.whole(k)} {verb} without a break {say.first_to_last}, over all {say.places_word} shown?",
        ),
        answer=_yes(yes), answer_type="text", arguments={"series": k, "down": down},
    )  # fmt: skip


def two_highest(view: View) -> Draft | None:
    k = view.series()
    lowest = view.rng.random() < 0.3
    order = view.ranked(k, lowest=lowest)
    if len(order) < 4 or not view.clearly_first(k, order, 1) or not all(view.made.chart.names_shown[i] for i in order[:2]):
        return None
    if view.made.table.axis == "number":
        return None
    say, word, names = view.say, "lowest" if lowest else "highest", view.made.table.x
    measure = view.made.table.measure
    return Draft(
        wordings=(
            f"Which two {say.places_word} {'had' if say.over_time else 'have'} the {word} {measure}{say.of(k)}? Answer as a list, the {word} first.",
            f"List the two {say.places_word} with the {word} {measure}{say.of(k)}, the {word} first.",
        ),
        answer=f"[{names[order[0]]}, {names[order[1]]}]", answer_type="list", arguments={"series": k, "lowest": lowest},
    )  # fmt: skip


def missing(view: View) -> Draft | None:
    k = view.series()
    gaps = [i for i, number in enumerate(view.grid[k]) if number is None]
    if len(gaps) != 1 or not view.made.chart.names_shown[gaps[0]]:
        return None
    say = view.say
    return _named_answer(
        view, gaps[0],
        (
            f"{say.which_place} is no value shown for {say.whole(k)}?",
            f"Which {say.place_word} has no value of {say.whole(k)}?",
            f"{say.which_place} is the value of {say.whole(k)} missing?",
        ),
        {"series": k},
    )  # fmt: skip


def _threshold(view: View, k: int) -> tuple[Decimal, list[int]] | None:
    """A round number between the values, clear of each of them, and the places above it."""
    row = view.row(k)
    if len(row) < 3:
        return None
    low, high = min(n.exact for n in row), max(n.exact for n in row)
    target = Decimal(str(float(low + (high - low) * Fraction(str(round(view.rng.uniform(0.15, 0.85), 3))))))
    span = Decimal(str(float(high - low)))
    step = Decimal(1).scaleb(span.adjusted())
    for size in (step, step / 2, step / 5, step / 10):
        number = (target / size).to_integral_value() * size
        number = number.quantize(Decimal(1)) if number.normalize().as_tuple().exponent > 0 else number.normalize()
        line = Seen(Fraction(number), Decimal(0))
        if low < line.exact < high and all(view.apart(n, line) for n in row):
            return number, [i for i, n in enumerate(view.grid[k]) if n is not None and n.exact > line.exact]
    return None


def _place_answer(view: View, k: int, place: int, word: str, arguments: dict[str, object]) -> Draft | None:
    if not view.made.chart.names_shown[place]:
        return None
    say, measure = view.say, view.made.table.measure
    if say.over_time or view.made.table.axis == "number":
        wordings = (
            f"{say.which_place} {say.be} {say.whole(k)} {'the ' if ' ' in word else ''}{word}?",
            f"Which {say.place_word} {say.have} the {word} {measure}{say.of(k)}?",
            f"Find the {say.place_word} with the {word} {measure}{say.of(k)}.",
        )
    else:
        wordings = (
            f"Which {say.place_word} {say.have} the {word} {measure}{say.of(k)}?",
            f"{say.which_place} {say.be} {say.whole(k)} {'the ' if ' ' in word else ''}{word}?",
            f"Name the {say.place_word} with the {word} {measure}{say.of(k)}.",
        )
    return _named_answer(view, place, wordings, arguments)


def _named_answer(view: View, place: int, wordings: tuple[str, ...], arguments: dict[str, object]) -> Draft:
    """The name of a place: a year, a number on the axis, or a text."""
    axis = view.made.table.axis
    kind = {"year": "year", "number": "number"}.get(axis, "text")
    unit = view.made.table.x_name.partition(" (")[2].rstrip(")") if axis == "number" else None
    return Draft(wordings=wordings, answer=view.made.table.x[place], answer_type=kind, unit=unit, arguments=arguments)  # type: ignore[arg-type]


def _counted(count: int) -> Seen:
    return Seen(Fraction(count), Decimal(0))


def _yes(true: bool) -> str:
    return "Yes" if true else "No"


FACTS: dict[str, tuple[Template, float]] = {
    "where highest": (lambda view: where_extreme(view, lowest=False), 1.2),
    "where lowest": (lambda view: where_extreme(view, lowest=True), 0.9),
    "where second highest": (second_highest, 0.5),
    "which series": (which_series, 0.9),
    "count places": (count_places, 0.4),
    "count series": (count_series, 0.3),
    "count above": (count_above, 0.9),
    "first above": (first_above, 0.7),
    "overtaking": (overtaking, 0.6),
    "comparison": (compare, 0.9),
    "comparison of series": (compare_series, 0.6),
    "two against one": (two_against_one, 0.4),
    "trend": (always_rises, 0.5),
    "list": (two_highest, 0.6),
    "missing": (missing, 0.8),
    **COLOUR_FACTS,
}
