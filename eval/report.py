"""A summary -> what people read: a table on the screen, report.json, report.md, scores.jsonl and pictures.

A report folder belongs to this file: it is written only when it is new, empty or an earlier report, and files that are
rewritten are replaced whole. Every table names its scorers with their versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eval.calibration import metric_rows, summary_line
from eval.evaluate import REPORT_FORMAT, Summary, headline_metric
from eval.reporttext import BESIDE, GROUP_TITLES, aligned, flat_facts, md_text, open_beside

PLOT_FILES = tuple(
    f"{group}_{name}.png"
    for group in ("time", "other")
    for name in ("error_histogram", "predicted_vs_true", "accuracy_by_kind", "reliability")
)
REPORT_FILES = ("report.json", "report.md", "report.html", "scores.jsonl", *PLOT_FILES)
_COLUMNS = {
    "time": ("exact", "within_1_min", "within_5_min", "mean_error_min", "median_error_min", "hour", "minute", "swap_rate"),
    "other": ("exact", "relaxed", "relaxed_strict", "within_1_percent", "within_5_percent", "median_relative_error"),
}
_HEADS = {
    "exact": "exact",
    "within_1_min": "±1 min",
    "within_5_min": "±5 min",
    "mean_error_min": "mean err",
    "median_error_min": "median",
    "hour": "hour",
    "minute": "minute",
    "swap_rate": "swapped",
    "relaxed": "relaxed",
    "relaxed_strict": "strict",
    "within_1_percent": "≤1 %",
    "within_5_percent": "≤5 %",
    "median_relative_error": "median rel",
}
_MINUTES = {"mean_error_min", "median_error_min"}
_SCREEN_KINDS = 20


def check_folder(out: Path) -> None:
    """Refuse what must not be written over: a file, or a folder that holds anything but an earlier report."""
    if not out.exists():
        return
    if not out.is_dir():
        raise ValueError(f"--out must be a folder, {out} is a file; name a folder that is new, empty or an earlier report")
    names = sorted(entry.name for entry in out.iterdir())
    foreign = [name for name in names if name.removesuffix(BESIDE) not in REPORT_FILES]
    if foreign:
        raise ValueError(
            f"--out {out} holds {foreign[0]!r}, which is no part of a report; name a folder that is new, empty or an earlier report"
        )
    if names and not _is_report(out / "report.json"):
        raise ValueError(
            f"--out {out} holds {names[0]!r} but no report.json of this tool; name a folder that is new, empty or an earlier report"
        )


def write_report(
    summary: Summary, out: Path, *, source: str, meta: dict[str, Any] | None = None, data: Path | None = None
) -> list[str]:
    """Write the whole folder; the names of the files, in order. `data`: the dataset, for the page's pictures."""
    from eval.plots import draw, save  # matplotlib takes a second to load; refusals do not wait for it
    from eval.report_page import report_page

    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    # report.json goes first: what marks the folder as ours must not be what an interrupted run lacks
    report = summary.to_dict() | {"predictions": source, "meta": meta}
    with open_beside(out / "report.json") as page:
        page.write(json.dumps(report, indent=2) + "\n")
    figures = {}
    for group, part in summary.groups.items():
        figures |= draw(group, [row for row in summary.scores if row.is_time == (group == "time")], part)
    with open_beside(out / "report.md") as page:
        page.write(markdown(summary, source=source, meta=meta, pictures=list(figures)))
    with open_beside(out / "report.html") as page:
        page.write(report_page(summary, source=source, meta=meta, data=data))
    with open_beside(out / "scores.jsonl") as lines:
        for row in summary.scores:
            lines.write(json.dumps(row.to_row()) + "\n")  # ASCII escapes: an id may hold half a surrogate pair
    for name in PLOT_FILES:
        if name in figures:
            save(figures[name], out / name)
        else:
            (out / name).unlink(missing_ok=True)
    return ["report.json", "report.md", "report.html", "scores.jsonl", *figures]


def screen_table(summary: Summary) -> str:
    """The numbers for a terminal: one table a group, the total first, then the largest kinds."""
    parts = []
    for group, part in summary.groups.items():
        kinds = sorted(part["by_kind"].items(), key=lambda item: -item[1]["n"])
        shown = kinds[:_SCREEN_KINDS] if len(kinds) > 1 else []
        rows = [("all", part["overall"]), *shown]
        head = [
            GROUP_TITLES[group],
            "n",
            *(_HEADS[name] for name in _COLUMNS[group]),
            "right",
            "wrong",
            "unparsed",
            "truncated",
        ]
        body = [
            [_clip(kind), str(row["n"]), *(_cell(name, row) for name in _COLUMNS[group]), *_counts(row)] for kind, row in rows
        ]
        lines = aligned([head, *body])
        overall = part["overall"]["intervals"]
        first = headline_metric(part)
        low, high = overall[first] or (None, None)
        if low is not None:
            lines.append(f"95 % interval of {first}: {low:.1%} to {high:.1%}; right and wrong by {part['headline']}")
        if len(kinds) > _SCREEN_KINDS:
            lines.append(f"({len(kinds) - _SCREEN_KINDS} smaller kinds are in report.json)")
        lines.append("scorers: " + ", ".join(dict.fromkeys(part["scorers"][name] for name in _COLUMNS[group])))
        parts.append("\n".join(lines))
        if "calibration" in part:
            rows = [list(row) for row in metric_rows(part["calibration"])]
            parts.append(
                "\n".join([*aligned([["Calibration", "value", "95 % interval"], *rows]), summary_line(part["calibration"])])
            )
    parts += [f"look here: {concern}" for concern in summary.concerns]
    return "\n\n".join(parts)


def markdown(summary: Summary, *, source: str, meta: dict[str, Any] | None, pictures: Iterable[str] = ()) -> str:
    """The report as a page: every rate with its interval, every split, the reasons why answers were not read."""
    lines = [
        "# Scores",
        "",
        f"{len(summary.scores)} predictions from `{md_text(source)}`. Intervals are 95 %, clustered by `group` where rows share one;",
        "they cover the choice of test samples, not the noise of training.",
        "",
    ]
    lines += [f"- **Look here**: {md_text(concern)}" for concern in summary.concerns] + ([""] if summary.concerns else [])
    if meta:
        lines += [f"Run: {', '.join(f'{md_text(key)} = {md_text(value)}' for key, value in flat_facts(meta))}", ""]
    for group, part in summary.groups.items():
        lines += [f"## {GROUP_TITLES[group]}", "", f"Right, wrong and unparsed by `{part['headline']}`.", ""]
        lines += _md_metrics(part)
        for title, key in (("kind", "by_kind"), ("answer type", "by_answer_type")):
            if key in part:
                head = [title, "n", *(_HEADS[name] for name in _COLUMNS[group]), "right", "wrong", "unparsed", "truncated"]
                lines += [f"### By {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
                for name, row in part[key].items():
                    cells = [md_text(name), str(row["n"]), *(_cell(column, row) for column in _COLUMNS[group]), *_counts(row)]
                    lines.append("| " + " | ".join(cells) + " |")
                lines += [
                    "",
                    "Scorers: " + ", ".join(dict.fromkeys(f"`{part['scorers'][name]}`" for name in _COLUMNS[group])),
                    "",
                ]
        if "calibration" in part:
            lines += [
                "### Calibration",
                "",
                f"{summary_line(part['calibration'])}.",
                "",
                "| metric | value | 95 % interval |",
                "|---|---|---|",
            ]
            lines += [f"| {' | '.join(row)} |" for row in metric_rows(part["calibration"])]
            lines.append("")
        if reasons := part["overall"]["reasons"]:
            lines += [
                "Unparsed because: " + ", ".join(f"{md_text(reason)} ({count})" for reason, count in reasons.items()) + ".",
                "",
            ]
    lines += [f"![{name.removesuffix('.png').replace('_', ' ')}]({name})" for name in pictures]
    return "\n".join(lines) + "\n"


def _md_metrics(part: dict[str, Any]) -> list[str]:
    overall = part["overall"]
    counts = ", ".join(f"{name} {overall[name]}" for name in ("n", "right", "wrong", "unparsed", "truncated", "cut"))
    lines = [
        f"{counts}; mean errors over {overall['errors_over']} rows.",
        "",
        "| metric | value | 95 % interval | scorer |",
        "|---|---|---|---|",
    ]
    for name, interval in overall["intervals"].items():
        value = overall[name]
        if value is None or (name == "exact_hour_minute" and overall["second"] is None):
            continue  # without seconds it would only repeat `exact`
        show = _number if "error" in name and not name.endswith("rate") else _percent
        between = f"{show(interval[0])} to {show(interval[1])}" if interval else "–"
        lines.append(f"| {name} | {show(value)} | {between} | {part['scorers'].get(name, part['headline'])} |")
    return [*lines, ""]


def _cell(name: str, row: dict[str, Any]) -> str:
    value = row[name]
    if value is None:
        return "–"
    return f"{value:.1f}" if name in _MINUTES else _percent(value)


def _counts(row: dict[str, Any]) -> list[str]:
    return [str(row[name]) for name in ("right", "wrong", "unparsed", "truncated")]


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %" if value < 100 else f"{value:.3g}x"  # a relative error can be anything


def _number(value: float) -> str:
    return f"{value:.4g}"


def _clip(kind: str) -> str:
    clean = "".join(c if c.isprintable() else "?" for c in kind)
    return clean if len(clean) <= 32 else clean[:31] + "…"


def _is_report(path: Path) -> bool:
    try:
        return json.loads(path.read_text(encoding="utf-8")).get("format") == REPORT_FORMAT
    except (OSError, ValueError, AttributeError):
        return False
