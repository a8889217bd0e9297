"""The figure of a study: for each group of cells that start alike, what was measured while training, and cost against benefit."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator, Sequence
from statistics import mean, median
from typing import TYPE_CHECKING, Any, NamedTuple

from smmd_vlm.records import read_jsonl

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from smmd_vlm.study_plan import Plan

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


def groups(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The cells that start from the same weights, in the order of the file."""
    starts = [row["tiny"] for row in rows]
    for k, start in enumerate(starts):
        if start not in starts[:k]:
            yield [row for row in rows if row["tiny"] == start]


def figure(plan: Plan, rows: Sequence[dict[str, Any]]) -> bytes:
    """PNG: a line of panels for each group; curves are means over all seeds, and break where one of them could not be read."""
    from matplotlib.figure import Figure

    courses = _courses(plan)
    judged = "numeric_equal" if "numeric_equal" in rows[0] else "exact"
    hidden = {"eval_exact", "eval_numeric_equal"} - {f"eval_{judged}"}
    panels = [(metric, title) for metric, title in _CURVES if courses[metric] and metric not in hidden] or [_CURVES[0]]
    lines = list(groups(rows))
    drawn = Figure(figsize=(6 * (len(panels) + 1), 4 * len(lines)), layout="constrained")
    for line, group in zip(drawn.subplots(len(lines), len(panels) + 1, squeeze=False), lines, strict=True):
        for axes, (metric, title) in zip(line, panels, strict=False):
            for row, look in zip(group, itertools.cycle(_LOOKS), strict=False):
                steps = courses[metric].get(row["cell"], {})
                means = [mean(values) if len(values) == len(plan.seeds) else math.nan for values in steps.values()]
                axes.plot(list(steps), means, color=look.color, linestyle=look.line, label=row["cell"], linewidth=1.3)
            axes.set(title=f"{title}, mean over {len(plan.seeds)} seeds", xlabel="step")
            if "error" in metric:
                _tame(axes)
        for row, look in zip(group, itertools.cycle(_LOOKS), strict=False):
            right, seconds = row[judged]["per_seed"], row["train_seconds"]
            line[-1].plot(seconds, right, look.marker, color=look.color, alpha=0.4, markersize=3)
            line[-1].plot(median(seconds), mean(right), look.marker, color=look.color, label=row["cell"])
        line[-1].set(
            title="right answers of the test against cost; small: each seed", xlabel="seconds of training", xlim=(0, None)
        )
        for axes in line:
            axes.grid(alpha=0.3)
            axes.legend(fontsize=7, frameon=False)
    out = io.BytesIO()
    drawn.savefig(out, format="png", dpi=100)
    return out.getvalue()


def _courses(plan: Plan) -> dict[str, dict[str, dict[int, list[float]]]]:
    """metric -> cell -> step -> the seeds' values, where they could be read."""
    courses: dict[str, dict[str, dict[int, list[float]]]] = {metric: {} for metric, _ in _CURVES}
    for cell, seed in plan.jobs():
        for _, row in read_jsonl(plan.folder(cell, seed) / "run" / "metrics.jsonl"):
            for metric in courses:
                if metric in row:
                    courses[metric].setdefault(cell.name, {}).setdefault(row["step"], []).append(row[metric])
    return courses


def _tame(axes: Axes) -> None:
    """One wild answer must not flatten the rest, nor its scale print one number over the other."""
    from matplotlib.ticker import SymmetricalLogLocator

    axes.set_yscale("symlog", linthresh=1.0)
    locator = SymmetricalLogLocator(base=10, linthresh=1.0, subs=[1, 2, 5] if axes.get_ylim()[1] < 1000 else [1])
    locator.set_params(numticks=10)
    axes.yaxis.set_major_locator(locator)
    axes.yaxis.set_major_formatter("{x:g}")
