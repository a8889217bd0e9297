"""A comparison in words and tables: what was found, whether it is more than noise, what would settle it.

The first sentence is the one to quote; it never says "better" of a difference whose interval holds zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eval.compare import COMPARE_FORMAT, LOWER_IS_BETTER, Comparison, Part, Row, to_dict
from eval.reporttext import GROUP_TITLES, aligned, md_text, open_beside

COMPARE_FILES = ("compare.json", "compare.md", "compare.html")
ONE_RUN = (
    "With one run a side this covers the choice of test samples alone: the noise of training is not covered, and another seed may "
    "move either side by more. Train at least three seeds a side before believing it."
)


def verdict(part: Part, seeds: int) -> str:
    """The sentence to quote."""
    row = part.headline
    found = row.estimate
    over = f"{found.n} samples and {seeds} pair{'s' if seeds > 1 else ''} of runs"
    size = f"{points(row, found.difference)} of {row.scorer} (95 % interval {points(row, found.low, bare=True)} to {points(row, found.high)})"
    if found.settled:
        side = "A" if (found.difference > 0) != (row.metric in LOWER_IS_BETTER) else "B"
        return (
            f"{side} is better by {size.lstrip('+-−')}, over {over}."
            if side == "A"
            else f"B is better: A − B is {size}, over {over}."
        )
    return f"The difference A − B of {size}, over {over}, is inside the noise. {settling(row)}"


def settling(row: Row) -> str:
    """How many samples or seeds would settle a difference of the size that was seen."""
    found = row.estimate
    if found.difference == 0:
        return "No number of samples settles a difference of nothing."
    samples, seeds = found.samples_needed(), found.seeds_needed()
    ways = []
    if samples is not None and samples > found.n:
        ways.append(f"about {_round(samples)} samples instead of {found.n}")
    if seeds is not None and seeds > found.seeds:
        ways.append(f"about {_round(seeds)} seeds a side instead of {found.seeds}")
    if ways:
        return f"If it is real, {' or '.join(ways)} would show it four times in five."
    if found.seeds > 1:
        factor = _round(max(2, round(7.85 * (found.variance_seeds + found.variance_samples) / found.difference**2 + 0.5)))
        return f"If it is real, neither more samples nor more seeds alone would show it; about {factor} times as many of both would."
    return "If it is real, more seeds would have to show it."


def screen(comparison: Comparison) -> str:
    """For a terminal: the verdict, every metric, the headline per kind."""
    lines = [f"A: {', '.join(map(_plain, comparison.names_a))}", f"B: {', '.join(map(_plain, comparison.names_b))}"]
    for part in comparison.parts:
        lines += ["", verdict(part, comparison.seeds), ""]
        head = [GROUP_TITLES[part.name], "n", "A", "B", "A − B", "95 % interval", ""]
        body = [_cells(row.metric, row) for row in part.rows]
        body += [_cells(f"  {_plain(kind)[:30]}", row) for kind, row in part.kinds.items()] if len(part.kinds) > 1 else []
        lines += aligned([head, *body])
        lines += [_mcnemar(part)]
        if len(part.kinds) > 1:
            lines.append(_many(part))
    if comparison.seeds == 1:
        lines += ["", ONE_RUN]
    lines += [f"look here: {side}, {concern}" for side, concern in concerns(comparison)]
    return "\n".join(lines)


def markdown(comparison: Comparison) -> str:
    lines = ["# Comparison", "", f"A: {', '.join(f'`{md_text(name)}`' for name in comparison.names_a)}", ""]
    lines += [f"B: {', '.join(f'`{md_text(name)}`' for name in comparison.names_b)}", ""]
    lines += [*([f"**{ONE_RUN}**", ""] if comparison.seeds == 1 else [])]
    lines += [f"- **Look here**, {side}: {md_text(concern)}" for side, concern in concerns(comparison)]
    lines.append("")
    for part in comparison.parts:
        lines += [f"## {GROUP_TITLES[part.name]}", "", verdict(part, comparison.seeds), ""]
        lines += _md_table("metric", [(row.metric, row) for row in part.rows])
        lines += [_mcnemar(part), ""]
        if len(part.kinds) > 1:
            lines += [f"### {part.headline.scorer} by kind", "", *_md_table("kind", list(part.kinds.items())), _many(part), ""]
    lines += [
        "Paired by seed and sample; standard errors by a bootstrap over seeds and over groups of samples that share a picture, "
        "intervals by Student's t. Differences in percent are percentage points.",
    ]
    return "\n".join(lines) + "\n"


def concerns(comparison: Comparison) -> list[tuple[str, str]]:
    """(side, sentence) of what looks like an accident in any run, each once."""
    sides = (("A", comparison.runs_a), ("B", comparison.runs_b))
    return list(dict.fromkeys((side, concern) for side, runs in sides for run in runs for concern in run.concerns))


def check_compare_folder(out: Path) -> None:
    """Refuse to write over anything but an earlier comparison."""
    if not out.exists():
        return
    names = sorted(entry.name for entry in out.iterdir()) if out.is_dir() else ["a file"]
    foreign = [name for name in names if name.removesuffix(".tmp") not in COMPARE_FILES]
    try:
        ours = not names or json.loads((out / "compare.json").read_text(encoding="utf-8"))["format"] == COMPARE_FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        ours = False
    if foreign or not ours:
        raise ValueError(
            f"--out {out} holds {(foreign or names)[0]!r}; name a folder that is new, empty or an earlier comparison"
        )


def write_comparison(comparison: Comparison, out: Path, page: str) -> list[str]:
    """compare.json first: it marks the folder as ours."""
    check_compare_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    texts = (json.dumps(to_dict(comparison), indent=2) + "\n", markdown(comparison), page)
    for name, text in zip(COMPARE_FILES, texts, strict=True):
        with open_beside(out / name) as file:
            file.write(text)
    return list(COMPARE_FILES)


def points(row: Row, value: float, *, bare: bool = False) -> str:
    """A difference as people say it: percentage points, or the answer's unit."""
    text, unit = (f"{100 * value:+.1f}", "points") if row.unit == "%" else (f"{value:+.4g}", row.unit)
    return " ".join([text.replace("-", "−"), *([unit] if unit and not bare else [])])


def level(row: Row, value: float) -> str:
    return f"{100 * value:.1f} %" if row.unit == "%" else f"{value:.4g} {row.unit}".rstrip()


def mark(row: Row) -> str:
    """Which side the interval favours, if any."""
    if not row.estimate.settled:
        return "in the noise"
    return "A better" if (row.estimate.difference > 0) != (row.metric in LOWER_IS_BETTER) else "B better"


def _cells(name: str, row: Row) -> list[str]:
    found = row.estimate
    between = f"{points(row, found.low, bare=True)} to {points(row, found.high, bare=True)}"
    return [
        name,
        str(found.n),
        level(row, row.a),
        level(row, row.b),
        points(row, found.difference, bare=True),
        between,
        mark(row),
    ]


def _md_table(first: str, rows: Iterable[tuple[str, Row]]) -> list[str]:
    lines = [f"| {first} | n | A | B | A − B | 95 % interval | | per seed |", "|---|---|---|---|---|---|---|---|"]
    for name, row in rows:
        seeds = ", ".join(points(row, each, bare=True) for each in row.estimate.per_seed)
        lines.append("| " + " | ".join([*map(md_text, _cells(name, row)), seeds]) + " |")
    return [*lines, ""]


def _mcnemar(part: Part) -> str:
    pairs = "; ".join(f"{a} right in A alone, {b} in B alone, p = {p:.2g}" for a, b, p in part.discordant)
    return f"McNemar on {part.headline.scorer}, one pair of runs each, samples taken as independent: {pairs}."


def _many(part: Part) -> str:
    return f"{len(part.kinds)} kinds are {len(part.kinds)} looks: one in twenty intervals misses zero by chance."


def _round(count: int) -> str:
    """Two significant digits: nothing more is known."""
    digits = max(0, len(str(count)) - 2)
    return f"{-(-count // 10**digits) * 10**digits:,}"


def _plain(text: Any) -> str:
    return "".join(c if c.isprintable() else "?" for c in str(text))
