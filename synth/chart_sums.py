"""Questions whose answer is read or worked out: values, extremes, differences, ratios, sums, averages, changes."""

from __future__ import annotations

from synth.chart_reading import Seen, mean, median, total
from synth.chart_view import Draft, Template, View

_MOST_TERMS = 8  # nobody adds up more by eye


def retrieve(view: View) -> Draft | None:
    k = view.series()
    named = view.named(k)
    if not named:
        return None
    i = view.rng.choice(named)
    say = view.say
    unit = say.unit(view.rng.random() < 0.4)
    return Draft(
        wordings=(
            f"What {say.be} {say.thing(k, i)}{unit}?",
            f"What value does the chart show for {say.short(k, i)}{unit}?",
            f"Give {say.thing(k, i)}{unit}.",
            f"How high {say.be} {say.thing(k, i)}{unit}?",
            f"Read the value of the {say.mark} for {say.short(k, i)}{unit}.",
        ),
        answer=view.grid[k][i], unit=_unit(view), arguments={"series": k, "place": i},
    )  # fmt: skip


def extreme(view: View, *, lowest: bool) -> Draft | None:
    k = view.series()
    order = view.ranked(k, lowest=lowest)
    if len(order) < 2:
        return None
    say, unit = view.say, view.say.unit(view.rng.random() < 0.4)
    word, most = ("lowest", "minimum") if lowest else ("highest", "maximum")
    return Draft(
        wordings=(
            f"What {say.be} the {word} {_scope(view, k)}{unit}?",
            f"What {say.be} the {most} of {say.whole(k)}{unit}?",
            f"How high {say.be} the {word} value of {say.whole(k)}{unit}?",
        ),
        answer=view.grid[k][order[0]], unit=_unit(view), arguments={"series": k},
    )  # fmt: skip


def difference(view: View) -> Draft | None:
    pair = _two_places(view)
    if pair is None:
        return None
    k, i, j = pair
    say, unit = view.say, view.say.unit(view.rng.random() < 0.4)
    higher, lower = (i, j) if view.grid[k][i].exact > view.grid[k][j].exact else (j, i)
    answer = view.grid[k][higher] - view.grid[k][lower]
    if not answer.readable or not view.apart(view.grid[k][i], view.grid[k][j]):
        return None
    return Draft(
        wordings=(
            f"What {say.be} the difference in {say.whole(k)[4:]} between {_name(view, i)} and {_name(view, j)}{unit}?",
            f"By how much {say.be} {say.thing(k, higher)} higher than{_that(view, k, lower)}{unit}?",
            f"How much lower {say.be} {say.thing(k, lower)} than{_that(view, k, higher)}{unit}?",
        ),
        answer=answer, unit=_unit(view), arguments={"series": k, "place": higher, "other_place": lower},
    )  # fmt: skip


def series_difference(view: View) -> Draft | None:
    pair = _two_series(view)
    if pair is None:
        return None
    k, other, i = pair
    a, b = view.grid[k][i], view.grid[other][i]
    if not view.apart(a, b) or not (a - b).readable:
        return None
    if a.exact < b.exact:
        k, other, a, b = other, k, b, a
    say, unit, names = view.say, view.say.unit(view.rng.random() < 0.4), view.made.table.series
    measure = view.made.table.measure
    return Draft(
        wordings=(
            f"What {say.be} the difference in {measure} between {names[k].name} and {names[other].name}{say.at(i)}{unit}?",
            f"By how much {say.be} {say.thing(k, i)} higher than that{say.of(other)}{unit}?",
            f"How far {'were' if say.over_time else 'are'} {names[k].name} and {names[other].name} apart{say.at(i)}{unit}?",
        ),
        answer=a - b, unit=_unit(view), arguments={"series": k, "other_series": other, "place": i},
    )  # fmt: skip


def ratio(view: View) -> Draft | None:
    pair = _two_places(view)
    if pair is None:
        return None
    k, i, j = pair
    a, b = view.grid[k][i], view.grid[k][j]
    if not _positive(a, b) or not _comparable(a, b):
        return None
    say = view.say
    return Draft(
        wordings=(
            f"What {say.be} the ratio of {say.thing(k, i)} to{_that(view, k, j)}?",
            f"How many times{_that(view, k, j)} {say.be} {say.thing(k, i)}?",
            f"Divide {say.thing(k, i)} by{_that(view, k, j)}.",
        ),
        answer=a.over(b), places=2, arguments={"series": k, "place": i, "other_place": j},
    )  # fmt: skip


def two_sum(view: View) -> Draft | None:
    pair = _two_places(view)
    if pair is None or not view.adds_up:
        return None
    k, i, j = pair
    say, unit = view.say, view.say.unit(view.rng.random() < 0.4)
    return Draft(
        wordings=(
            f"What {say.be} the sum of {say.thing(k, i)} and{_that(view, k, j)}{unit}?",
            f"Add {say.thing(k, i)} and{_that(view, k, j)}{unit}.",
            f"What {say.be} {say.thing(k, i)} plus{_that(view, k, j)}{unit}?",
        ),
        answer=view.grid[k][i] + view.grid[k][j], unit=_unit(view), arguments={"series": k, "place": i, "other_place": j},
    )  # fmt: skip


def series_total(view: View) -> Draft | None:
    if not view.many or not view.adds_up or view.made.chart.look.parts == "hundred":
        return None
    i = view.rng.randrange(view.places)
    column = [row[i] for row in view.grid]
    if None in column or not view.made.chart.names_shown[i]:
        return None
    say, unit, things = view.say, view.say.unit(view.rng.random() < 0.4), view.made.table.series_things.plural
    # The top of a stack is read in one go.
    answer = Seen(total(column).exact, column[0].slack) if view.made.chart.look.stacked and column[0].slack else total(column)
    return Draft(
        wordings=(
            f"What {say.be} the total {view.made.table.measure}{say.at(i)}{unit}, all {things} together?",
            f"Add up {view.made.table.measure} over all {things}{say.at(i)}{unit}.",
            f"What {say.be} the sum of all {things}{say.at(i)}{unit}?",
        ),
        answer=answer, unit=_unit(view), arguments={"place": i},
    )  # fmt: skip


def average(view: View) -> Draft | None:
    return _over_all(view, "average", mean)


def middle(view: View) -> Draft | None:
    return _over_all(view, "median", median)


def sum_of_all(view: View) -> Draft | None:
    return _over_all(view, "sum", total) if view.adds_up and view.made.table.quantity != "percent" else None


def _over_all(view: View, word: str, of: object) -> Draft | None:
    k = view.series()
    if not view.complete(k) or not 2 <= view.places <= _MOST_TERMS:
        return None
    say, unit = view.say, view.say.unit(view.rng.random() < 0.4)
    answer = of(view.row(k))
    if not answer.readable:
        return None
    return Draft(
        wordings=(
            f"What {say.be} the {word} of {say.whole(k)} over all {view.places} {say.places_word} shown{unit}?",
            f"Work out the {word} of the {view.places} values of {say.whole(k)}{unit}.",
            f"Taking all {say.places_word} shown together, what {say.be} the {word} of {say.whole(k)}{unit}?",
        ),
        answer=answer, unit=_unit(view), arguments={"series": k},
    )  # fmt: skip


def percent_change(view: View) -> Draft | None:
    if not view.say.over_time or view.made.table.quantity in ("percent", "signed"):
        return None
    pair = _two_places(view)
    if pair is None:
        return None
    k, i, j = pair
    i, j = sorted((i, j))
    before, after = view.grid[k][i], view.grid[k][j]
    if not _positive(before, after) or not view.apart(before, after):
        return None
    rises = after.exact > before.exact
    change = (after.over(before).times(100) - Seen(before.over(before).exact * 100, before.slack * 0)).times(1 if rises else -1)
    if not change.readable or change.exact > 900:
        return None
    say, verb = view.say, ("increase", "rise", "growth") if rises else ("decrease", "fall", "decline")
    names = view.made.table.x
    return Draft(
        wordings=(
            f"By how many percent did {say.whole(k)} {verb[0]} from {names[i]} to {names[j]}?",
            f"What was the {verb[2]} of {say.whole(k)} between {names[i]} and {names[j]}, in percent?",
            f"From {names[i]} to {names[j]}, by what percentage did {say.whole(k)} {verb[1]}?",
        ),
        answer=change, unit="%", places=1, arguments={"series": k, "place": i, "other_place": j},
    )  # fmt: skip


def spread(view: View) -> Draft | None:
    k = view.series()
    order = view.ranked(k)
    if len(order) < 3:
        return None
    answer = view.grid[k][order[0]] - view.grid[k][order[-1]]
    if not answer.readable:
        return None
    say, unit = view.say, view.say.unit(view.rng.random() < 0.4)
    return Draft(
        wordings=(
            f"What {say.be} the difference between the highest and the lowest {_scope(view, k)}{unit}?",
            f"What {say.be} the range of {say.whole(k)} over all {say.places_word}{unit}?",
            f"How far apart {'were' if say.over_time else 'are'} the maximum and the minimum of {say.whole(k)}{unit}?",
        ),
        answer=answer, unit=_unit(view), arguments={"series": k},
    )  # fmt: skip


def lead(view: View) -> Draft | None:
    """Two steps: find the two highest, subtract."""
    k = view.series()
    order = view.ranked(k)
    if len(order) < 3:
        return None
    answer = view.grid[k][order[0]] - view.grid[k][order[1]]
    if not answer.readable or not view.clearly_first(k, order, 1):
        return None
    say, unit = view.say, view.say.unit(view.rng.random() < 0.4)
    return Draft(
        wordings=(
            f"What {say.be} the difference between the highest and the second highest {_scope(view, k)}{unit}?",
            f"By how much {say.be} the highest {_scope(view, k)} above the second highest{unit}?",
            f"How far {say.be} the second highest {_scope(view, k)} below the highest{unit}?",
        ),
        answer=answer, unit=_unit(view), arguments={"series": k},
    )  # fmt: skip


def middle_of_ends(view: View) -> Draft | None:
    k = view.series()
    order = view.ranked(k)
    if len(order) < 3:
        return None
    say, unit = view.say, view.say.unit(view.rng.random() < 0.4)
    answer = mean([view.grid[k][order[0]], view.grid[k][order[-1]]])
    if not answer.readable:
        return None
    return Draft(
        wordings=(
            f"What {say.be} the average of the highest and the lowest {_scope(view, k)}{unit}?",
            f"Take the maximum and the minimum of {say.whole(k)}: what is their average{unit}?",
        ),
        answer=answer, unit=_unit(view), arguments={"series": k},
    )  # fmt: skip


def at_the_others_peak(view: View) -> Draft | None:
    """Two steps: find where one series is highest, read the other one there."""
    if not view.many:
        return None
    k, other = view.rng.sample(range(len(view.grid)), 2)
    order = view.ranked(other)
    if not view.clearly_first(other, order) or view.grid[k][order[0]] is None:
        return None
    say, unit, names = view.say, view.say.unit(view.rng.random() < 0.4), view.made.table.series
    place = say.place_word
    measure = view.made.table.measure
    return Draft(
        wordings=(
            f"What {say.be} {say.whole(k)} {_in_the(view)} {place} with the highest {measure}{say.of(other)}{unit}?",
            f"Find the {place} where {names[other].name} {say.be} highest: what {say.be} the value{say.of(k)} there{unit}?",
        ),
        answer=view.grid[k][order[0]], unit=_unit(view), arguments={"series": k, "other_series": other},
    )  # fmt: skip


def by_position(view: View) -> Draft | None:
    """Single bars told by where they stand."""
    look = view.made.chart.look
    if view.many or look.lines or not view.complete(0):
        return None
    first, last = ("top", "bottom") if look.horizontal else ("leftmost", "rightmost")
    from_first, from_last = ("from the top", "from the bottom") if look.horizontal else ("from the left", "from the right")
    spots = {0: first, view.places - 1: last}
    if view.places > 3:
        spots |= {1: f"second|{from_first}", view.places - 2: f"second|{from_last}", 2: f"third|{from_first}"}
    i = view.rng.choice(list(spots))
    ordinal, _, where = spots[i].partition("|")
    bar, unit = f"the {ordinal} bar {where}".rstrip(), view.say.unit(True)
    return Draft(
        wordings=(f"What is the value of {bar}{unit}?", f"Which value does {bar} show{unit}?", f"How much does {bar} stand for{unit}?"),
        answer=view.grid[0][i], unit=_unit(view), arguments={"series": 0, "place": i},
    )  # fmt: skip


def bare(view: View) -> Draft | None:
    """Of the embedded preset: bars without names."""
    i = view.rng.randrange(view.places)
    ordinal = ("first", "second", "third", "fourth")[i]
    return Draft(
        wordings=(f"What is the value of bar {i + 1}?", f"Read the {ordinal} bar.", f"How high is bar {i + 1} from the left?"),
        answer=view.grid[0][i], arguments={"series": 0, "place": i},
    )  # fmt: skip


def _two_places(view: View) -> tuple[int, int, int] | None:
    k = view.series()
    named = view.named(k)
    if len(named) < 2:
        return None
    i, j = view.rng.sample(named, 2)
    return k, i, j


def _two_series(view: View) -> tuple[int, int, int] | None:
    if not view.many:
        return None
    k, other = view.rng.sample(range(len(view.grid)), 2)
    both = [i for i in view.named(k) if view.grid[other][i] is not None]
    return (k, other, view.rng.choice(both)) if both else None


def _that(view: View, k: int, place: int) -> str:
    """that in 2015: the same quantity elsewhere; on a chart of two names, with both of them."""
    table = view.made.table
    return f" that{view.say.at(place)}{view.say.of(k) if table.x_things and table.series_things else ''}"


def _name(view: View, place: int) -> str:
    """2015, Norway, a depth of 20 m"""
    return view.say.at(place).removeprefix(" ").partition(" ")[2]


def _scope(view: View, k: int) -> str:
    """production in Kenya, without the article."""
    return view.say.whole(k).removeprefix("the ")


def _in_the(view: View) -> str:
    return (
        "in the"
        if view.say.over_time
        else "at the"
        if view.made.table.axis == "number"
        else f"{view.made.table.x_things.preposition} the"
    )


def _unit(view: View) -> str | None:
    return view.made.table.unit or None


def _positive(a: Seen, b: Seen) -> bool:
    return a.exact > 0 and b.exact > 0 and a.readable and b.readable


def _comparable(a: Seen, b: Seen) -> bool:
    """A ratio that keeps two digits with two decimals, and is no order of magnitude."""
    return 0.1 <= a.exact / b.exact <= 20


SUMS: dict[str, tuple[Template, float]] = {
    "retrieve": (retrieve, 4.0),
    "highest value": (lambda view: extreme(view, lowest=False), 1.0),
    "lowest value": (lambda view: extreme(view, lowest=True), 0.8),
    "difference": (difference, 1.2),
    "difference of series": (series_difference, 1.0),
    "ratio": (ratio, 0.7),
    "sum of two": (two_sum, 0.8),
    "sum": (sum_of_all, 0.5),
    "total": (series_total, 0.7),
    "average": (average, 0.9),
    "median": (middle, 0.5),
    "percent change": (percent_change, 0.8),
    "range": (spread, 0.7),
    "lead of the highest": (lead, 0.5),
    "average of the extremes": (middle_of_ends, 0.4),
    "value at another's peak": (at_the_others_peak, 0.6),
    "by position": (by_position, 0.8),
}
BARE_SUMS: dict[str, tuple[Template, float]] = {"by position": (bare, 1.0)}
