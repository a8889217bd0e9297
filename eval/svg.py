"""Small charts as inline SVG text: curves, bars, points, a heat map, intervals. Numbers in, a string out; nothing is loaded.

Colours are CSS classes of eval/page.py, so that charts follow the page's light and dark. Every text goes through `escape`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from eval.page import escape

W, H = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 26, 40


def curve(title: str, x_label: str, points: Sequence[tuple[float, float]], ticks: Sequence[tuple[float, str]], x_of: Callable[[float], float]) -> str:  # fmt: skip
    """Shares (0 to 1) against x; `x_of` maps x to 0..1 across the frame."""
    places = [(_x(x_of(x)), _y(share)) for x, share in points]
    path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(f"{share:.1%}")}</title></circle>'
        for (x, y), (_, share) in zip(places, points, strict=True)
    )
    body = f'<path class="line" d="{path}"/>{dots}'
    return _frame(title, x_label, body, [(x_of(x), text) for x, text in ticks])


def bars(title: str, x_label: str, shares: Mapping[str, float], bad: frozenset[str] = frozenset()) -> str:
    """A bar for each name, its share written above."""
    top = 1.12 * max([*shares.values(), 1e-9])  # room for the number above the highest
    step = 1 / max(1, len(shares))
    body = []
    for place, (name, share) in enumerate(shares.items()):
        left, width, y = _x(place * step + step * 0.12), (W - LEFT - RIGHT) * step * 0.76, _y(share / top)
        kind = "bad" if name in bad else "bar"
        body.append(f'<rect class="{kind}" x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_y(0) - y:.1f}"/>')
        body.append(f'<text class="small" x="{left + width / 2:.1f}" y="{y - 3:.1f}" text-anchor="middle">{share:.0%}</text>')
    ticks = [((place + 0.5) * step, name) for place, name in enumerate(shares)]
    return _frame(title, x_label, "".join(body), ticks, shares_axis=False)


def scatter(title: str, labels: tuple[str, str], pairs: Sequence[tuple[float, float]], place: Callable[[float], float], ticks: Sequence[tuple[float, str]]) -> str:  # fmt: skip
    """Predicted against true; `place` maps a value to 0..1 on both axes, the diagonal is right."""
    dots = "".join(
        f'<circle class="point" cx="{_x(place(gold)):.1f}" cy="{_y(place(value)):.1f}" r="2.2"/>' for gold, value in pairs
    )
    body = f'<line class="grid" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>{dots}'
    body += "".join(f'<text class="small" x="{LEFT - 4}" y="{_y(place(v)) + 3:.1f}" text-anchor="end">{escape(t)}</text>' for v, t in ticks)  # fmt: skip
    return _frame(title, labels[0], body, [(place(v), t) for v, t in ticks], shares_axis=False, y_label=labels[1])


def heat(title: str, rows: Sequence[str], columns: Sequence[str], counts: Mapping[tuple[str, str], int]) -> str:
    """Gold down, predicted across; a cell's strength is its share of the row."""
    cell = min((W - LEFT - RIGHT) / len(columns), (H - TOP - BOTTOM) / len(rows))
    body = []
    for r, gold in enumerate(rows):
        total = sum(counts.get((gold, each), 0) for each in columns)
        y = TOP + r * cell
        body.append(f'<text class="small" x="{LEFT - 5}" y="{y + cell * 0.7:.1f}" text-anchor="end">{escape(gold)}</text>')
        for c, each in enumerate(columns):
            count = counts.get((gold, each), 0)
            share = count / total if total else 0.0
            kind = "bar" if gold == each else "bad"
            body.append(
                f'<rect class="{kind}" fill-opacity="{share**0.5:.3f}" x="{LEFT + c * cell:.1f}" y="{y:.1f}" width="{cell - 1:.1f}" '
                f'height="{cell - 1:.1f}"><title>{escape(f"{gold} read as {each}: {count} ({share:.1%})")}</title></rect>'
            )
    for c, each in enumerate(columns):
        body.append(f'<text class="small" x="{LEFT + (c + 0.5) * cell:.1f}" y="{TOP + len(rows) * cell + 12:.1f}" text-anchor="middle">{escape(each)}</text>')  # fmt: skip
    body.append(f'<text class="small" x="{LEFT}" y="{H - 8}">gold digit down, digit read across; hover for counts</text>')
    return _svg(title, "".join(body))


def intervals(title: str, rows: Sequence[tuple[str, float, float, float]], *, zero: bool, unit: str) -> str:
    """A line for each (name, value, low, high); `zero`: differences around nothing, else shares from 0 to 1."""
    low, high = (min([0.0, *(r[2] for r in rows)]), max([0.0, *(r[3] for r in rows)])) if zero else (0.0, 1.0)
    span = (high - low) or 1.0
    left, row_height = 170, 20
    height = TOP + row_height * len(rows) + 28

    def x(value: float) -> float:
        return left + (value - low) / span * (W + 160 - left - 70)

    body = [f'<line class="grid" x1="{x(0):.1f}" y1="{TOP}" x2="{x(0):.1f}" y2="{height - 24}"/>']
    for place, (name, value, below, above) in enumerate(rows):
        y = TOP + row_height * (place + 0.5)
        kind = "far" if zero and (below > 0 or above < 0) else "line"
        shown = f"{value:+.1f}" if zero else f"{value:.1%}"
        body.append(f'<text class="small" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(name, 26)}</text>')
        body.append(f'<line class="{kind}" x1="{x(below):.1f}" y1="{y:.1f}" x2="{x(above):.1f}" y2="{y:.1f}"/>')
        body.append(f'<circle class="dot" cx="{x(value):.1f}" cy="{y:.1f}" r="3.5"/>')
        body.append(f'<text class="small" x="{W + 155}" y="{y + 4:.1f}" text-anchor="end">{escape(shown)}</text>')
    body.append(f'<text class="small" x="{left}" y="{height - 6}">{escape(unit)}</text>')
    return _svg(title, "".join(body), W + 160, height)


def symlog(smallest: float, low: float, high: float) -> Callable[[float], float]:
    """Values -> 0..1, logarithmic beyond `smallest` on both sides of zero."""

    def fold(value: float) -> float:
        return math.copysign(math.log10(1 + abs(value) / smallest), value)

    bottom, top = fold(low), fold(high)
    return lambda value: (fold(min(max(value, low), high)) - bottom) / ((top - bottom) or 1.0)


def _x(share: float) -> float:
    return LEFT + share * (W - LEFT - RIGHT)


def _y(share: float) -> float:
    return H - BOTTOM - share * (H - TOP - BOTTOM)


def _frame(title: str, x_label: str, body: str, ticks: Sequence[tuple[float, str]], *, shares_axis: bool = True, y_label: str = "") -> str:  # fmt: skip
    lines = [f'<line class="axis" x1="{LEFT}" y1="{_y(0)}" x2="{W - RIGHT}" y2="{_y(0)}"/>']
    if shares_axis:
        for share in (0, 0.25, 0.5, 0.75, 1):
            lines.append(f'<line class="grid" x1="{LEFT}" y1="{_y(share)}" x2="{W - RIGHT}" y2="{_y(share)}"/>')
            lines.append(f'<text class="small" x="{LEFT - 5}" y="{_y(share) + 3}" text-anchor="end">{share:.0%}</text>')
    lines += [f'<text class="small" x="{_x(place):.1f}" y="{_y(0) + 13}" text-anchor="middle">{escape(text)}</text>' for place, text in ticks]  # fmt: skip
    lines.append(f'<text class="small" x="{(LEFT + W - RIGHT) / 2}" y="{H - 8}" text-anchor="middle">{escape(x_label)}</text>')
    if y_label:
        lines.append(f'<text class="small" x="{LEFT + 6}" y="{TOP + 10}">{escape(y_label)}</text>')
    return _svg(title, "".join(lines) + body)


def _svg(title: str, body: str, width: int = W, height: float = H) -> str:
    name = escape(title)
    head = f'<text class="title" x="8" y="14">{name}</text>'
    return f'<svg viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{name}">{head}{body}</svg>'
