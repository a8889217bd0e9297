"""Answer the questions about a chart again, from the stored table alone; shares no code with the generator.

`answer(meta)` works the answer out in fractions and rounds it to the stored step. What a template means is written here once more.
"""

import json
from decimal import Decimal
from fractions import Fraction

_COLOURS = {"navy": "dark blue"}


def answer(meta: str) -> str:
    chart = json.loads(meta)
    asked = chart["question"]
    result = _TEMPLATES[asked["template"]](_Table(chart), asked)
    return result if isinstance(result, str) else _written(result, Fraction(asked["round_to"]))


def _written(number: Fraction, step: Fraction) -> str:
    """Rounded half to even to whole steps, as digits."""
    rounded = round(number / step) * step
    decimals = max(0, -Decimal(str(float(step))).adjusted())
    text = f"{Decimal(rounded.numerator) / Decimal(rounded.denominator):.{decimals}f}"
    return text.removeprefix("-") if not rounded else text


class _Table:
    def __init__(self, chart: dict) -> None:
        self.chart = chart
        self.places = chart["table"]["places"]
        self.names = [series["name"] for series in chart["table"]["series"]]
        self.rows = [[None if v is None else Fraction(v) for v in series["values"]] for series in chart["table"]["series"]]

    def at(self, asked: dict, series: str = "series", place: str = "place") -> Fraction:
        return self.rows[asked[series]][asked[place]]

    def values(self, asked: dict, series: str = "series") -> list[Fraction]:
        return [value for value in self.rows[asked[series]] if value is not None]

    def ranked(self, asked: dict, series: str = "series") -> list[int]:
        row = self.rows[asked[series]]
        return sorted((i for i, value in enumerate(row) if value is not None), key=lambda i: -row[i])


def _median(values: list[Fraction]) -> Fraction:
    ordered = sorted(values)
    n = len(ordered)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def _yes(truth: bool) -> str:
    return "Yes" if truth else "No"


def _change(t: _Table, q: dict) -> Fraction:
    before, after = t.at(q), t.at(q, place="other_place")
    return abs(after - before) / before * 100


def _above(t: _Table, q: dict) -> Fraction:
    limit = Fraction(q["threshold"])
    return Fraction(sum(v < limit if q["below"] else v > limit for v in t.values(q)))


def _list(t: _Table, q: dict) -> str:
    order = t.ranked(q)[::-1] if q["lowest"] else t.ranked(q)
    return f"[{t.places[order[0]]}, {t.places[order[1]]}]"


def _which_series(t: _Table, q: dict) -> str:
    column = [row[q["place"]] for row in t.rows]
    return t.names[column.index(min(column) if q["lowest"] else max(column))]


def _trend(t: _Table, q: dict) -> str:
    values = t.values(q)
    return _yes(all(b < a if q["down"] else b > a for a, b in zip(values, values[1:], strict=False)))


def _overtaking(t: _Table, q: dict) -> str:
    return next(
        place
        for place, a, b in zip(t.places, t.rows[q["series"]], t.rows[q["other_series"]], strict=True)
        if a is not None and b is not None and a > b
    )


def _first_above(t: _Table, q: dict) -> str:
    return next(p for p, v in zip(t.places, t.rows[q["series"]], strict=True) if v is not None and v > Fraction(q["threshold"]))


def _two_against_one(t: _Table, q: dict) -> str:
    ordered = sorted(t.values(q))
    return _yes(ordered[0] + ordered[1] > ordered[-1])


def _colour(t: _Table, q: dict) -> str:
    name = t.chart["colours"][q["colour_of"]]["name"]
    return _COLOURS.get(name, name)


def _coloured(t: _Table, q: dict) -> str:
    return t.places[q["colour_of"]] if t.chart["colour_by"] == "place" else t.names[q["colour_of"]]


_TEMPLATES = {
    "retrieve": lambda t, q: t.at(q),
    "by position": lambda t, q: t.at(q),
    "coloured value": lambda t, q: t.at(q),
    "highest value": lambda t, q: max(t.values(q)),
    "lowest value": lambda t, q: min(t.values(q)),
    "difference": lambda t, q: abs(t.at(q) - t.at(q, place="other_place")),
    "difference of series": lambda t, q: abs(t.at(q) - t.at(q, series="other_series")),
    "ratio": lambda t, q: t.at(q) / t.at(q, place="other_place"),
    "sum of two": lambda t, q: t.at(q) + t.at(q, place="other_place"),
    "sum": lambda t, q: sum(t.values(q)),
    "total": lambda t, q: sum(row[q["place"]] for row in t.rows),
    "average": lambda t, q: sum(t.values(q)) / len(t.values(q)),
    "median": lambda t, q: _median(t.values(q)),
    "percent change": _change,
    "range": lambda t, q: max(t.values(q)) - min(t.values(q)),
    "lead of the highest": lambda t, q: sorted(t.values(q))[-1] - sorted(t.values(q))[-2],
    "average of the extremes": lambda t, q: (max(t.values(q)) + min(t.values(q))) / 2,
    "value at another's peak": lambda t, q: t.rows[q["series"]][t.ranked(q, "other_series")[0]],
    "where highest": lambda t, q: t.places[t.ranked(q)[0]],
    "where lowest": lambda t, q: t.places[t.ranked(q)[-1]],
    "where second highest": lambda t, q: t.places[t.ranked(q)[1]],
    "which series": _which_series,
    "count places": lambda t, q: Fraction(len(t.places)),
    "count series": lambda t, q: Fraction(len(t.names)),
    "count above": _above,
    "first above": _first_above,
    "overtaking": _overtaking,
    "comparison": lambda t, q: _yes(t.at(q) > t.at(q, place="other_place")),
    "comparison of series": lambda t, q: _yes(t.at(q) > t.at(q, series="other_series")),
    "two against one": _two_against_one,
    "trend": _trend,
    "list": _list,
    "missing": lambda t, q: t.places[t.rows[q["series"]].index(None)],
    "which is coloured": _coloured,
    "colour": _colour,
}
