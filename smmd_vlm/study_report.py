"""The pages of a study: one table of all cells, every one against the named ones, learning curves, self-contained HTML.

Differences are `python -m eval compare`'s: paired by seed and sample, two-level intervals, and only among cells that start from
the same weights. Read from the cells' files alone, so that the same study always gives the same pages.
"""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Iterator
from statistics import mean
from typing import TYPE_CHECKING, Any

from smmd_vlm.processes import run
from smmd_vlm.records import read_jsonl

if TYPE_CHECKING:
    from smmd_vlm.study import Cell, Plan

# metric of report.json -> (heading, factor)
_TIME = {
    "exact": ("exact %", 100),
    "within_1_min": ("±1 min %", 100),
    "within_5_min": ("±5 min %", 100),
    "mean_error_min": ("mean error, min", 1),
}
_OTHER = {"exact": ("exact %", 100), "relaxed": ("relaxed %", 100), "mean_absolute_error": ("mean absolute error", 1)}
_COMPARED = ("exact", "mean_error_min", "mean_absolute_error")
_CURVES = (
    ("eval_exact", "exact answers"),
    ("eval_mean_error_min", "mean error, min"),
    ("eval_mean_absolute_error", "mean absolute error"),
)


def write_study(plan: Plan) -> Iterator[str]:
    """Write the pages; yields the lines to show on the screen."""
    rows = {cell.name: _row(plan, cell) for cell in plan.cells}
    groups = list(_groups(plan))
    versus = {
        name: {cell.name: _compare(plan, cell, name) for cell in group if cell.name != name}
        for group in groups
        for name in _named(plan, group)
    }
    content = {
        "format": "smmd-vlm study",
        "version": 2,
        "seeds": list(plan.seeds),
        "cells": list(rows.values()),
        "against": {name: {cell: _kept(found) for cell, found in each.items()} for name, each in versus.items()},
    }
    (plan.out / "study.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    tables = [
        _table([rows[cell.name] for cell in group], {name: versus[name] for name in _named(plan, group)}) for group in groups
    ]
    picture = _curves(plan, groups)
    (plan.out / "study.png").write_bytes(picture)
    note = (
        f"{len(plan.seeds)} seeds, the same weights, data order and steps for all cells of a seed. A difference is the cell minus the named "
        "one, over seeds and samples, with its 95 % interval; a star marks an interval without 0, all others are inside the noise. "
        f"Training took {sum(sum(row['train_seconds']) for row in rows.values()) / 60:.0f} minutes of one core in all."
    )
    marked = "\n\n".join(_markdown(table) for table in tables)
    (plan.out / "study.md").write_text(f"{note}\n\n{marked}\n\n![learning curves](study.png)\n", encoding="utf-8")
    (plan.out / "study.html").write_text(_page(plan, tables, picture, note), encoding="utf-8")
    for table in tables:
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        yield ""
        for row in table:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield f"\nwrote {plan.out}/study.html, study.md, study.json and study.png"


def _groups(plan: Plan) -> Iterator[list[Cell]]:
    """The cells that start from the same weights, in the order of the file."""
    starts = [cell.tiny for cell in plan.cells]
    for k, start in enumerate(starts):
        if start not in starts[:k]:
            yield [cell for cell in plan.cells if cell.tiny == start]


def _named(plan: Plan, group: list[Cell]) -> list[str]:
    return [name for name in plan.against if any(cell.name == name for cell in group)]


def _summary(plan: Plan, cell: Cell, seed: int) -> dict[str, Any]:
    report = json.loads((plan.folder(cell, seed) / "report" / "report.json").read_text(encoding="utf-8"))
    return report["time" if "time" in report else "other"]["overall"]


def _row(plan: Plan, cell: Cell) -> dict[str, Any]:
    summaries = [_summary(plan, cell, seed) for seed in plan.seeds]
    metrics = _TIME if "within_1_min" in summaries[0] else _OTHER
    seconds = [
        next(
            row["train_runtime"]
            for _, row in read_jsonl(plan.folder(cell, seed) / "run" / "metrics.jsonl")
            if "train_runtime" in row
        )
        for seed in plan.seeds
    ]
    found: dict[str, Any] = {
        "cell": cell.name,
        "changes": cell.changes,
        "train_seconds": [round(value, 1) for value in seconds],
    }
    for name in metrics:
        values = [summary[name] for summary in summaries]
        found[name] = {"per_seed": values, "mean": mean(values) if all(value is not None for value in values) else None}
    return found


def _compare(plan: Plan, cell: Cell, name: str) -> dict[str, Any]:
    """compare.json's headline and error rows for this cell against the cell called `name`."""
    other = next(each for each in plan.cells if each.name == name)
    out = plan.out / "comparisons" / f"{cell.name}-against-{name}"
    ours = [plan.folder(cell, seed) for seed in plan.seeds]
    theirs = [plan.folder(other, seed) for seed in plan.seeds]
    run("eval", "compare", *ours, "--against", *theirs, "--out", out)
    return json.loads((out / "compare.json").read_text(encoding="utf-8"))


def _scores(comparison: dict[str, Any]) -> dict[str, Any]:
    return comparison["time" if "time" in comparison else "other"]["metrics"]


def _kept(comparison: dict[str, Any]) -> dict[str, Any]:
    """What study.json says of a comparison; the whole of it lies in comparisons/."""
    fields = ("a", "b", "difference", "interval", "settled", "per_seed")
    return {
        metric: {field: found[field] for field in fields}
        for metric, found in _scores(comparison).items()
        if metric in _TIME | _OTHER
    }


def _table(rows: list[dict[str, Any]], versus: dict[str, dict[str, Any]]) -> list[list[str]]:
    metrics = {name: spec for name, spec in (_TIME | _OTHER).items() if name in rows[0]}
    compared = [(name, metric) for name in versus for metric in _COMPARED if metric in metrics]
    head = [f"{metrics[metric][0]} against {name}" for name, metric in compared]
    table = [["cell", *(heading for heading, _ in metrics.values()), *head, "train s"]]
    for row in rows:
        cells = [row["cell"]]
        for name, (_, factor) in metrics.items():
            value = row[name]["mean"]
            cells.append("none read" if value is None else f"{factor * value:.2f}")
        cells += ["" if row["cell"] == name else _difference(versus[name][row["cell"]], metric) for name, metric in compared]
        cells.append(f"{mean(row['train_seconds']):.0f}")
        table.append(cells)
    return table


def _difference(comparison: dict[str, Any], metric: str) -> str:
    found = _scores(comparison).get(metric)
    if found is None:
        return "none read"
    factor = (_TIME | _OTHER)[metric][1]
    low, high = (factor * end for end in found["interval"])
    return f"{factor * found['difference']:+.1f} [{low:+.1f}, {high:+.1f}]{' *' if found['settled'] else ''}"


def _markdown(table: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def _curves(plan: Plan, groups: list[list[Cell]]) -> bytes:
    """Means over seeds of what was measured while training: a row of panels for each group of cells."""
    from matplotlib.figure import Figure

    courses: dict[str, dict[str, dict[int, list[float]]]] = {metric: {} for metric, _ in _CURVES}
    for cell, seed in plan.jobs():
        for _, row in read_jsonl(plan.folder(cell, seed) / "run" / "metrics.jsonl"):
            for metric in courses:
                if metric in row:
                    courses[metric].setdefault(cell.name, {}).setdefault(row["step"], []).append(row[metric])
    panels = [(metric, title) for metric, title in _CURVES if courses[metric]] or [_CURVES[0]]
    figure = Figure(figsize=(6 * len(panels), 4 * len(groups)), layout="constrained")
    for line, group in zip(figure.subplots(len(groups), len(panels), squeeze=False), groups, strict=True):
        for axes, (metric, title) in zip(line, panels, strict=True):
            for cell in group:
                steps = courses[metric].get(cell.name, {})
                axes.plot(list(steps), [mean(values) for values in steps.values()], label=cell.name, linewidth=1.3)
            axes.set(title=f"{title}, mean over {len(plan.seeds)} seeds", xlabel="step")
            axes.grid(alpha=0.3)
            axes.legend(fontsize=7, frameon=False)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return out.getvalue()


def _rows(table: list[list[str]]) -> str:
    head, *body = ([html.escape(cell) for cell in row] for row in table)
    rows = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
    return f"<table><thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead><tbody>\n{rows}\n</tbody></table>"


def _page(plan: Plan, tables: list[list[list[str]]], picture: bytes, note: str) -> str:
    shown = "\n".join(map(_rows, tables))
    settings = "\n".join(
        f"<tr><td>{html.escape(cell.name)}</td><td><code>{html.escape(json.dumps(cell.changes))}</code></td></tr>"
        for cell in plan.cells
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(plan.out.name)}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #1f2937 }}
table {{ border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }}
td, th {{ padding: .25rem .8rem; border-bottom: 1px solid #e5e7eb; text-align: right; white-space: nowrap }}
td:first-child, th:first-child {{ text-align: left }}
img {{ max-width: 100% }}
</style></head><body>
<h1>{html.escape(plan.out.name)}</h1>
<p>{html.escape(note)}</p>
{shown}
<img alt="learning curves" src="data:image/png;base64,{base64.b64encode(picture).decode()}">
<h2>What each cell changes of {html.escape(str(plan.base))}</h2>
<table><tbody>
{settings}
</tbody></table>
</body></html>
"""
