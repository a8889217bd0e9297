"""The pages of a study: one table of all cells, every one against the named ones, learning curves, self-contained HTML.

Differences are `python -m eval compare`'s: paired by seed and sample, two-level intervals, and only among cells that start from
the same weights. Read from the cells' files alone, so that the same study always gives the same pages.
"""

from __future__ import annotations

import base64
import html
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

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
    "crps": ("CRPS, min", 1),  # where the test keeps distributions
}
_OTHER = {
    "exact": ("exact %", 100),
    "numeric_equal": ("equal %", 100),  # the number read out of the words; where that makes a difference
    "relaxed": ("relaxed %", 100),
    "mean_absolute_error": ("mean absolute error", 1),
    "crps": ("CRPS", 1),
}
_COMPARED = ("exact", "numeric_equal", "mean_error_min", "mean_absolute_error", "crps")
_CURVES = (
    ("eval_exact", "exact answers"),
    ("eval_numeric_equal", "equal numbers"),
    ("eval_mean_error_min", "mean error, min"),
    ("eval_mean_absolute_error", "mean absolute error"),
)


class _Look(NamedTuple):
    line: str
    marker: str
    color: str


_LOOKS = [_Look(line, marker, f"C{k}") for line, marker in (("-", "o"), ("--", "s"), (":", "^")) for k in range(10)]


def write_study(plan: Plan) -> Iterator[str]:
    """Write the pages; yields the lines to show on the screen."""
    rows = _distinct([_row(plan, cell) for cell in plan.cells])
    against = {
        name: {cell.name: _compare(plan, cell, name) for cell in plan.cells if _alike(plan, cell, name) and cell.name != name}
        for name in plan.against
    }
    content = {
        "format": "smmd-vlm study",
        "version": 3,
        "seeds": list(plan.seeds),
        "also": list(plan.also),
        "cells": rows,
        "against": against,
    }
    (plan.out / "study.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    picture = _figure(plan, rows)
    (plan.out / "study.png").write_bytes(picture)
    (plan.out / "study.md").write_text(f"{markdown(content)}\n\n![learning curves](study.png)\n", encoding="utf-8")
    (plan.out / "study.html").write_text(_page(plan, content, picture), encoding="utf-8")
    for table in _tables(content):
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        yield ""
        for row in table:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield f"\nwrote {plan.out}/study.html, study.md, study.json and study.png"


def markdown(content: Mapping[str, Any]) -> str:
    """study.json -> what it says, and one table for each group of cells that start alike."""
    return "\n\n".join([_note(content), *map(_markdown, _tables(content))])


def _note(content: Mapping[str, Any]) -> str:
    minutes = sum(sum(row["train_seconds"]) for row in content["cells"]) / 60
    return (
        f"{len(content['seeds'])} seeds, the same weights, data order and steps for all cells of a seed. A difference is the cell minus the "
        "named one, over seeds and samples, with its 95 % interval; a star marks an interval without 0, all others are inside the noise. "
        f"Training took {minutes:.0f} minutes of one core in all."
    )


def _alike(plan: Plan, cell: Cell, name: str) -> bool:
    """Does the cell start from the same weights as the one called `name`?"""
    return cell.tiny == next(each for each in plan.cells if each.name == name).tiny


def _summary(plan: Plan, cell: Cell, seed: int) -> dict[str, Any]:
    part = _part(plan.folder(cell, seed) / "report" / "report.json")
    also = {
        _also(name): _part(plan.folder(cell, seed) / f"report-{name}" / "report.json")["overall"]["exact"] for name in plan.also
    }
    return part["overall"] | ({"crps": part["calibration"]["crps"]} if "calibration" in part else {}) | also


def _part(report: Path) -> dict[str, Any]:
    """What a report or a comparison says of its only, or of its clock, answers."""
    content = json.loads(report.read_text(encoding="utf-8"))
    return content["time" if "time" in content else "other"]


def _also(name: str) -> str:
    return f"{name} exact"


def _specs(times: bool, also: Iterable[str]) -> dict[str, tuple[str, float]]:
    """Metrics of a study -> (heading, factor): its test's own, then the exact answers on the other datasets."""
    return (_TIME if times else _OTHER) | {_also(name): (f"{name}, exact %", 100) for name in also}


def _row(plan: Plan, cell: Cell) -> dict[str, Any]:
    summaries = [_summary(plan, cell, seed) for seed in plan.seeds]
    metrics = [name for name in _specs("within_1_min" in summaries[0], plan.also) if name in summaries[0]]
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
        "tiny": cell.tiny,
        "train_seconds": [round(value, 1) for value in seconds],
    }
    for name in metrics:
        values = [summary[name] for summary in summaries]
        found[name] = {"per_seed": values, "mean": mean(values) if all(value is not None for value in values) else None}
    return found


def _distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without `numeric_equal` where it is `exact`: short answers hold nothing but the number."""
    same = all(row.get("numeric_equal") == row["exact"] for row in rows)
    return [{name: value for name, value in row.items() if not (same and name == "numeric_equal")} for row in rows]


def _compare(plan: Plan, cell: Cell, name: str) -> dict[str, Any]:
    """This cell against the one called `name`, metric by metric; the whole comparison lies in comparisons/."""
    other = next(each for each in plan.cells if each.name == name)

    def compare(answers: str, out: str) -> dict[str, Any]:
        folder = plan.out / out / f"{cell.name}-against-{name}"
        ours, theirs = ([plan.folder(each, seed) / answers for seed in plan.seeds] for each in (cell, other))
        run("eval", "compare", *ours, "--against", *theirs, "--out", folder)
        return {
            metric: {field: found[field] for field in ("a", "b", "difference", "interval", "settled", "per_seed")}
            for metric, found in _part(folder / "compare.json")["metrics"].items()
        }

    metrics = compare("predictions.jsonl", "comparisons")
    also = {_also(each): compare(f"predictions-{each}.jsonl", f"comparisons-{each}")["exact"] for each in plan.also}
    return {metric: found for metric, found in metrics.items() if metric in _TIME | _OTHER} | also


def _tables(content: Mapping[str, Any]) -> Iterator[list[list[str]]]:
    for group in _groups(content["cells"]):
        names = [row["cell"] for row in group]
        yield _table(group, {name: versus for name, versus in content["against"].items() if name in names}, content["also"])


def _groups(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The cells that start from the same weights, in the order of the file."""
    starts = [row["tiny"] for row in rows]
    for k, start in enumerate(starts):
        if start not in starts[:k]:
            yield [row for row in rows if row["tiny"] == start]


def _table(rows: list[dict[str, Any]], versus: dict[str, dict[str, Any]], also: Sequence[str]) -> list[list[str]]:
    metrics = {name: spec for name, spec in _specs("within_1_min" in rows[0], also).items() if name in rows[0]}
    compared = [(name, metric) for name in versus for metric in (*_COMPARED, *map(_also, also)) if metric in metrics]
    head = [f"{metrics[metric][0]} against {name}" for name, metric in compared]
    table = [["cell", *(heading for heading, _ in metrics.values()), *head, "train s"]]
    for row in rows:
        cells = [row["cell"]]
        for name, (_, factor) in metrics.items():
            value = row[name]["mean"]
            cells.append("none read" if value is None else f"{factor * value:.2f}")
        cells += [
            "" if row["cell"] == name else _difference(versus[name][row["cell"]].get(metric), metrics[metric][1])
            for name, metric in compared
        ]
        cells.append(f"{mean(row['train_seconds']):.0f}")
        table.append(cells)
    return table


def _difference(found: dict[str, Any] | None, factor: float) -> str:
    if found is None:
        return "none read"
    low, high = (factor * end for end in found["interval"])
    return f"{factor * found['difference']:+.1f} [{low:+.1f}, {high:+.1f}]{' *' if found['settled'] else ''}"


def _markdown(table: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def _figure(plan: Plan, rows: Sequence[dict[str, Any]]) -> bytes:
    """For each group of cells, side by side: means over seeds of what was measured while training; cost against benefit."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import SymmetricalLogLocator

    courses: dict[str, dict[str, dict[int, list[float]]]] = {metric: {} for metric, _ in _CURVES}
    for cell, seed in plan.jobs():
        for _, row in read_jsonl(plan.folder(cell, seed) / "run" / "metrics.jsonl"):
            for metric in courses:
                if metric in row:
                    courses[metric].setdefault(cell.name, {}).setdefault(row["step"], []).append(row[metric])
    judged = "numeric_equal" if "numeric_equal" in rows[0] else "exact"
    hidden = {"eval_exact", "eval_numeric_equal"} - {f"eval_{judged}"}
    panels = [(metric, title) for metric, title in _CURVES if courses[metric] and metric not in hidden] or [_CURVES[0]]
    groups = list(_groups(rows))
    figure = Figure(figsize=(6 * (len(panels) + 1), 4 * len(groups)), layout="constrained")
    for line, group in zip(figure.subplots(len(groups), len(panels) + 1, squeeze=False), groups, strict=True):
        for axes, (metric, title) in zip(line, panels, strict=False):
            for row, look in zip(group, itertools.cycle(_LOOKS), strict=False):
                steps = courses[metric].get(row["cell"], {})
                values = [mean(values) for values in steps.values()]
                axes.plot(list(steps), values, color=look.color, linestyle=look.line, label=row["cell"], linewidth=1.3)
            axes.set(title=f"{title}, mean over {len(plan.seeds)} seeds", xlabel="step")
            if "error" in metric:  # one wild answer must not flatten the rest
                axes.set_yscale("symlog", linthresh=1.0)
                axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=1.0, subs=[1, 2, 5]))
                axes.yaxis.set_major_formatter("{x:g}")
        for row, look in zip(group, itertools.cycle(_LOOKS), strict=False):
            right, seconds = row[judged]["per_seed"], row["train_seconds"]
            line[-1].plot(seconds, right, look.marker, color=look.color, alpha=0.4, markersize=3)
            line[-1].plot(mean(seconds), mean(right), look.marker, color=look.color, label=row["cell"])
        line[-1].set(
            title="right answers of the test against cost; small: each seed", xlabel="seconds of training", xlim=(0, None)
        )
        for axes in line:
            axes.grid(alpha=0.3)
            axes.legend(fontsize=7, frameon=False)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100)
    return out.getvalue()


def _rows(table: list[list[str]]) -> str:
    head, *body = ([html.escape(cell) for cell in row] for row in table)
    rows = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
    return f"<table><thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead><tbody>\n{rows}\n</tbody></table>"


def _page(plan: Plan, content: Mapping[str, Any], picture: bytes) -> str:
    shown = "\n".join(map(_rows, _tables(content)))
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
<p>{html.escape(_note(content))}</p>
{shown}
<img alt="learning curves" src="data:image/png;base64,{base64.b64encode(picture).decode()}">
<h2>What each cell changes of {html.escape(str(plan.base))}</h2>
<table><tbody>
{settings}
</tbody></table>
</body></html>
"""
