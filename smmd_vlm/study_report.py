"""The pages of a study: one table of all cells, every one against the named ones, learning curves, self-contained HTML.

Differences are `python -m eval compare`'s: paired by seed and sample, two-level intervals, and only among cells that start from
the same weights. Read from the cells' files alone, so that the same study always gives the same pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from eval import page
from eval.reporttext import md_text
from smmd_vlm.processes import run
from smmd_vlm.records import read_jsonl
from smmd_vlm.study_figure import figure, groups

if TYPE_CHECKING:
    from smmd_vlm.study_plan import Cell, Plan

# metric of report.json -> (heading, factor)
_ALL = {
    "off_values": ("off values %", 100),  # the probability that CRPS leaves out: on text that is no value, or not followed
    "unparsed_rate": ("unread %", 100),
}
_TIME = {
    "exact": ("exact %", 100),
    "within_1_min": ("±1 min %", 100),
    "within_5_min": ("±5 min %", 100),
    "mean_error_min": ("mean error, min", 1),
    "crps": ("CRPS, min", 1),  # where the test keeps distributions
    **_ALL,
}
_OTHER = {
    "exact": ("exact %", 100),
    "numeric_equal": ("equal %", 100),  # the number read out of the words; where that makes a difference
    "relaxed": ("relaxed %", 100),
    "mean_absolute_error": ("mean absolute error", 1),
    "crps": ("CRPS", 1),
    **_ALL,
}
_ONE_SEED = "With one seed the noise of training is not covered: a star may be chance of this run. "
_COMPARED = ("exact", "numeric_equal", "mean_error_min", "mean_absolute_error", "crps")


def write_study(plan: Plan) -> Iterator[str]:
    """Write the pages; yields the lines to show on the screen."""
    rows = _distinct([_row(plan, cell) for cell in plan.cells])
    against = {
        name: {cell.name: _compare(plan, cell, name) for cell in plan.cells if _alike(plan, cell, name) and cell.name != name}
        for name in plan.against
    }
    content = {
        "format": "smmd-vlm study",
        "version": 4,
        "test": _test(plan, plan.test, "report"),
        "seeds": list(plan.seeds),
        "also": {name: _test(plan, test, f"report-{name}") for name, test in plan.also.items()},
        "cells": rows,
        "against": against,
        "concerns": list(_concerns(plan)),
    }
    (plan.out / "study.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    chart = figure(plan, rows)
    (plan.out / "study.png").write_bytes(chart)
    (plan.out / "study.md").write_text(f"{markdown(content)}\n\n![learning curves](study.png)\n", encoding="utf-8")
    (plan.out / "study.html").write_text(_page(plan, content, chart), encoding="utf-8")
    for table in _tables(content):
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        yield ""
        for row in table:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    for sentence in content["concerns"]:
        yield f"look here: {sentence}"
    yield f"\nwrote {plan.out}/study.html, study.md, study.json and study.png"


def markdown(content: Mapping[str, Any]) -> str:
    """study.json -> what it says, and one table for each group of cells that start alike."""
    tables = [_markdown(table) for table in _tables(content)]
    looks = "\n".join(f"- **Look here**: {md_text(sentence)}" for sentence in content["concerns"] or ())
    return "\n\n".join([_note(content), *tables, *([looks] if looks else [])])


def _note(content: Mapping[str, Any]) -> str:
    seconds = sum(sum(row["train_seconds"]) for row in content["cells"])
    spent = f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} seconds"
    seeds = content["seeds"]
    also = [f"{name}: {_said(test)}" for name, test in content["also"].items()]
    unread = [row["unparsed_rate"]["per_seed"] for row in content["cells"] if "unparsed_rate" in row]
    return (
        f"{'; '.join([_said(content['test']), *also])}; {len(seeds)} seed{'s' if len(seeds) > 1 else ''} ({', '.join(map(str, seeds))}), the same weights, data order and steps for all "
        f"cells of a seed. {'' if any(map(any, unread)) or not unread else 'Every answer of the first was read. ' if also else 'Every answer was read. '}"
        f"A difference is the cell minus the named one, over {'samples' if len(seeds) == 1 else 'seeds and samples'}, with its 95 % interval; "
        f"a star marks an interval without 0, all others are inside the noise. {_ONE_SEED if len(seeds) == 1 else ''}"
        f"Train s: the median over seeds; training took {spent}, all runs added up."
    )


def _said(test: Mapping[str, Any]) -> str:
    said = f"{test['n']:,} questions of {test['data']} ({test['split']})"
    if not test.get("trained_on"):
        return said
    return f"{said}, {test['trained_on']:,} of which are trained on too, with the same images if any"


def _test(plan: Plan, test: Mapping[str, Any], report: str) -> dict[str, Any]:
    """What was asked, how much of it, and how much of that was trained on (by the cell that did so most)."""
    folders = [plan.folder(cell, seed) for cell, seed in plan.jobs()]
    cells = [json.loads((folder / "cell.json").read_text(encoding="utf-8")) for folder in folders]
    shared = [cell["trained_on"][report] for cell in cells if "trained_on" in cell]  # an earlier release did not count
    count = json.loads((folders[0] / report / "report.json").read_text(encoding="utf-8"))["n"]
    return {"data": test["data"], "split": test["split"], "n": count, "trained_on": max(shared, default=None)}


def _concerns(plan: Plan) -> Iterator[str]:
    """What the cells' reports call an accident."""
    for cell, seed in plan.jobs():
        for report in sorted(plan.folder(cell, seed).glob("report*/report.json")):
            for sentence in json.loads(report.read_text(encoding="utf-8"))["concerns"]:
                yield f"{cell.name}, seed {seed}{report.parent.name.removeprefix('report').replace('-', ', ', 1)}: {sentence}"


def _alike(plan: Plan, cell: Cell, name: str) -> bool:
    """Does the cell start from the same weights as the one called `name`?"""
    return cell.tiny == next(each for each in plan.cells if each.name == name).tiny


def _summary(plan: Plan, cell: Cell, seed: int) -> dict[str, Any]:
    part = _part(plan.folder(cell, seed) / "report" / "report.json")
    also = {
        _also(name): _part(plan.folder(cell, seed) / f"report-{name}" / "report.json")["overall"]["exact"] for name in plan.also
    }
    read = part.get("calibration")
    return part["overall"] | ({"crps": read["crps"], "off_values": 1 - read["mass"]} if read else {}) | also


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
        known = [value for value in values if value is not None]
        found[name] = {"per_seed": values, "mean": mean(known) if known else None}
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
    for group in groups(content["cells"]):
        names = [row["cell"] for row in group]
        yield _table(group, {name: versus for name, versus in content["against"].items() if name in names}, content["also"])


def _table(rows: list[dict[str, Any]], versus: dict[str, dict[str, Any]], also: Iterable[str]) -> list[list[str]]:
    metrics = {name: spec for name, spec in _specs("within_1_min" in rows[0], also).items() if name in rows[0]}
    if not any(any(row[name]["per_seed"]) for row in rows for name in metrics if name == "unparsed_rate"):
        metrics.pop("unparsed_rate", None)
    compared = [(name, metric) for name in versus for metric in (*_COMPARED, *map(_also, also)) if metric in metrics]
    head = [f"{metrics[metric][0]} against {name}" for name, metric in compared]
    table = [["cell", *(heading for heading, _ in metrics.values()), *head, "train s"]]
    for row in rows:
        table.append(
            [
                row["cell"],
                *(_mean(row[name], factor) for name, (_, factor) in metrics.items()),
                *(
                    "" if row["cell"] == name else _difference(versus[name][row["cell"]].get(metric), metrics[metric][1])
                    for name, metric in compared
                ),
                f"{median(row['train_seconds']):.0f}",
            ]
        )
    return table


def _mean(found: dict[str, Any], factor: float) -> str:
    """The mean over the seeds that have one; how many, where some have none (nothing could be read)."""
    if found["mean"] is None:
        return "none read"
    value, known = factor * found["mean"], sum(value is not None for value in found["per_seed"])
    partly = "" if known == len(found["per_seed"]) else f" ({known} of {len(found['per_seed'])} seeds)"
    return (f"{value:.2f}" if abs(value) < 1e6 else f"{value:.2e}") + partly


def _difference(found: dict[str, Any] | None, factor: float) -> str:
    """With as many places as its interval is sharp, so that no end is rounded to 0."""
    if found is None:
        return "none read"
    difference, low, high = (factor * value for value in (found["difference"], *found["interval"]))
    sizes = [end for end in (low, high, (high - low) / 20) if end]
    places = max([1, *(next((places for places in range(1, 6) if round(size, places)), 6) for size in sizes)])
    form = f"+.{places}f" if max(abs(low), abs(high)) < 1e6 else "+.1e"
    middle, low, high = (format(value + 0.0, form) for value in (round(difference, places), low, high))
    return f"{middle} [{low}, {high}]{' *' if found['settled'] else ''}"


def _markdown(table: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def _page(plan: Plan, content: Mapping[str, Any], chart: bytes) -> str:
    settings = list(dict.fromkeys(key for cell in plan.cells for key in cell.changes))
    changes = ([cell.name, *(_value(cell.changes.get(key, "")) for key in settings)] for cell in plan.cells)
    document = page.Page(plan.out.name)
    document.add(page.paragraph(_note(content)), *(page.table(head, rows, "scroll nowrap") for head, *rows in _tables(content)))
    document.add(*(page.paragraph(f"look here: {sentence}", "concern") for sentence in content["concerns"]))
    document.add(page.image(chart, "learning curves"), page.heading(f"What each cell changes of {plan.base}"))
    document.add(page.table(["cell", *settings], changes))
    return document.text()


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
