"""compare.html: two sides of runs as a page for people: the verdict, every metric, every kind, and what flipped."""

from __future__ import annotations

from pathlib import Path

from eval import svg
from eval.compare import Comparison, Part, Row
from eval.compare_report import ONE_RUN, concerns, level, mark, points, verdict
from eval.page import Page, Sample, figures, gallery, heading, paragraph, table, tiles
from eval.reporttext import GROUP_TITLES

MOST_FLIPS, MOST_KINDS = 60, 40


def compare_page(comparison: Comparison, *, data: Path | None = None) -> str:
    """The whole document. `data`: the dataset that was predicted on, for the pictures."""
    page = Page("Comparison")
    page.add(
        paragraph(f"A: {', '.join(comparison.names_a)}", "mono soft"),
        paragraph(f"B: {', '.join(comparison.names_b)}", "mono soft"),
    )
    if comparison.seeds == 1:
        page.add(paragraph(ONE_RUN, "concern"))
    page.add(*(paragraph(f"{side}: {concern}", "concern") for side, concern in concerns(comparison)))
    for part in comparison.parts:
        row = part.headline
        page.add(heading(GROUP_TITLES[part.name]), paragraph(verdict(part, comparison.seeds), "verdict"))
        between = f"{points(row, row.estimate.low, bare=True)} to {points(row, row.estimate.high)}"
        page.add(tiles([("A", level(row, row.a), row.scorer), ("B", level(row, row.b), row.scorer), ("A − B", points(row, row.estimate.difference), between)]))  # fmt: skip
        page.add(
            figures(_charts(part)), heading("Every metric", 3), _table("metric", [(each.metric, each) for each in part.rows])
        )
        if len(part.kinds) > 1:
            page.add(heading("By kind", 3), _table("kind", list(part.kinds.items())))
    flips = _flips(comparison)
    page.add(heading("What flipped"), paragraph(f"Samples that one side gets right more often than the other, the clearest {MOST_FLIPS} each way.", "soft"))  # fmt: skip
    page.add(gallery(_cards(comparison, flips, data)) if flips else paragraph("None did."))
    return page.text()


def _charts(part: Part) -> list[str]:
    def rows(named: list[tuple[str, Row]]) -> list[tuple[str, float, float, float]]:
        return [(name, *(100 * v for v in (r.estimate.difference, r.estimate.low, r.estimate.high))) for name, r in named]

    rates = [(row.metric, row) for row in part.rows if row.unit == "%"]
    unit = "A − B in percentage points with 95 % intervals; red: zero lies outside"
    charts = [svg.intervals("Every rate", rows(rates), zero=True, unit=unit)]
    if len(part.kinds) > 1:
        kinds = sorted(part.kinds.items(), key=lambda item: -item[1].estimate.n)[:MOST_KINDS]
        charts.append(svg.intervals(f"{part.headline.scorer} by kind", rows(kinds), zero=True, unit=unit))
    return charts


def _table(first: str, rows: list[tuple[str, Row]]) -> str:
    body = []
    for name, row in rows:
        found = row.estimate
        between = f"{points(row, found.low, bare=True)} to {points(row, found.high, bare=True)}"
        seeds = ", ".join(points(row, each, bare=True) for each in found.per_seed)
        body.append((name, str(found.n), level(row, row.a), level(row, row.b), points(row, found.difference, bare=True), between, mark(row), seeds))  # fmt: skip
    return table((first, "n", "A", "B", "A − B", "95 % interval", "", "per seed"), body)


def _flips(comparison: Comparison) -> list[tuple[int, str]]:
    """(row, side that gets it right more often), the clearest first."""
    n = len(comparison.runs_a[0].scores)

    def right(runs: tuple, k: int) -> int:
        return sum(run.scores[k].outcome == "right" for run in runs)

    gaps = [(right(comparison.runs_a, k) - right(comparison.runs_b, k), k) for k in range(n)]
    for_a = sorted((gap for gap in gaps if gap[0] > 0), key=lambda gap: (-gap[0], gap[1]))[:MOST_FLIPS]
    for_b = sorted((gap for gap in gaps if gap[0] < 0), key=lambda gap: (gap[0], gap[1]))[:MOST_FLIPS]
    return [(k, "A better") for _, k in for_a] + [(k, "B better") for _, k in for_b]


def _cards(comparison: Comparison, flips: list[tuple[int, str]], data: Path | None) -> list[Sample]:
    pictures: dict[str, bytes] = {}
    rows = comparison.runs_a[0].predictions
    if data is not None:
        from eval.pictures import find_pictures, thumbnail

        found = find_pictures(data, [rows[k].id for k, _ in flips])
        pictures = {each: small for each, encoded in found.items() if (small := thumbnail(encoded)) is not None}
    note = "no picture (pass --data for pictures)" if data is None else "no picture"
    cards = []
    for k, side in flips:
        row = rows[k]
        said_a = ", ".join(run.predictions[k].prediction for run in comparison.runs_a)
        said_b = ", ".join(run.predictions[k].prediction for run in comparison.runs_b)
        kind = comparison.runs_a[0].scores[k].kind
        lines = (
            ("", f"{side} · {kind} · {row.id}"),
            ("asked", row.question),
            ("gold", row.answer),
            ("A", said_a),
            ("B", said_b),
        )
        sets = (side.replace(" ", "-"),)
        cards.append(Sample(outcome=side, kind=kind, sets=sets, lines=lines, picture=pictures.get(row.id), note=note))
    return cards
