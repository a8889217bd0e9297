"""Pictures of a scored file: how far off, predicted against true, accuracy by kind. Drawn with matplotlib's figure objects.

In:  scores and a group's summary.   Out: {file name: Figure}; nothing is shown, nothing global is touched.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from eval.evaluate import Score

_BLUE, _GREY, _RED = "#2a6fbb", "#9a9a9a", "#c0392b"
_MOST_KINDS = 30
_MOST_POINTS = 5000


def draw(group: str, scores: Sequence[Score], summary: dict[str, Any]) -> dict[str, Figure]:
    """The figures that say something about these rows: without numbers there is no error to draw."""
    pairs = np.array(
        [
            (row.verdict.gold_value, row.verdict.value)
            for row in scores
            if row.verdict.gold_value is not None and row.verdict.value is not None
        ]
    ).reshape(-1, 2)
    figures = {f"{group}_accuracy_by_kind.png": _by_kind(group, summary)}
    if len(pairs):
        figures[f"{group}_error_histogram.png"] = _clock_errors(scores) if group == "time" else _relative_errors(scores)
        figures[f"{group}_predicted_vs_true.png"] = _clock_pairs(pairs) if group == "time" else _number_pairs(pairs)
    if bins := summary.get("calibration", {}).get("bins"):
        figures[f"{group}_reliability.png"] = _reliability(bins)
    return figures


def save(figure: Figure, path: Path) -> None:
    """Write a PNG. A kind's name may hold letters that the font lacks: they become boxes, which is no news to the user."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(path, dpi=120)


def _clock_errors(scores: Sequence[Score]) -> Figure:
    errors = np.array([row.verdict.error_min for row in scores if row.verdict.error_min is not None])
    unparsed = sum(row.outcome == "unparsed" for row in scores)
    figure = Figure(figsize=(7, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    exact = np.array(
        [
            (errors < 0.5).sum(),
            *(((errors >= k - 0.5) & (errors < k + 0.5)).sum() for k in range(1, 6)),
            (errors >= 5.5).sum(),
            unparsed,
        ]
    )
    left.bar(range(8), exact / len(scores), color=[_BLUE] * 6 + [_RED, _GREY])
    left.set_xticks(range(8), ["0", "1", "2", "3", "4", "5", ">5", "?"], fontsize=8)
    left.set(xlabel="error (minutes; ? = unparsed)", ylabel="share of readings", title="near misses")
    right.hist(errors[errors >= 5.5], bins=np.arange(0, 361, 10), color=_RED)
    right.set_xticks(range(0, 361, 60))
    right.set(
        xlabel="error (minutes, the short way round)",
        ylabel="readings",
        title=f"errors beyond 5 minutes ({(errors >= 5.5).sum()})",
    )
    figure.suptitle(f"Clock errors, n = {len(scores)}, {unparsed} unparsed")
    return figure


def _relative_errors(scores: Sequence[Score]) -> Figure:
    errors = np.array([row.verdict.relative_error for row in scores if row.verdict.relative_error is not None])
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    edges = np.array([0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, np.inf])
    counts = np.array(
        [(errors == 0).sum(), *(((errors > low) & (errors <= high)).sum() for low, high in zip(edges, edges[1:], strict=False))]
    )
    names = ["0", "≤0.1 %", "≤1 %", "≤2 %", "≤5 %", "≤10 %", "≤20 %", "≤50 %", "≤100 %", "more"]
    axes.bar(range(len(counts)), counts / max(len(errors), 1), color=[_BLUE] * 5 + [_RED] * 5)
    axes.set_xticks(range(len(counts)), names, fontsize=8)
    axes.set(
        xlabel="relative error (each bar: above the bar to its left)",
        ylabel="share of numeric answers",
        title=f"Relative errors of {len(errors)} numbers that were read",
    )
    return figure


def _clock_pairs(pairs: np.ndarray) -> Figure:
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    pairs = _some(pairs)
    axes.plot([0, 720], [0, 720], color=_GREY, linewidth=0.8, zorder=1)
    axes.scatter(pairs[:, 0], pairs[:, 1], s=6, alpha=0.4, color=_BLUE, linewidths=0, zorder=2)
    ticks = range(0, 721, 120)
    labels = [f"{t // 60 % 12 or 12}:00" for t in ticks]
    axes.set_xticks(ticks, labels)
    axes.set_yticks(ticks, labels)
    axes.set(
        xlabel="true time",
        ylabel="time read",
        xlim=(-5, 725),
        ylim=(-5, 725),
        aspect="equal",
        title=f"Read against true, {len(pairs)} clocks",
    )
    return figure


def _number_pairs(pairs: np.ndarray) -> Figure:
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    pairs = _some(pairs)
    smallest = np.abs(pairs[pairs != 0]).min() if (pairs != 0).any() else 1.0
    largest = max(np.abs(pairs).max(), smallest)
    if largest / smallest > 100:
        axes.set_xscale("symlog", linthresh=max(smallest, largest * 1e-12))
        axes.set_yscale("symlog", linthresh=max(smallest, largest * 1e-12))
    low, high = min(pairs.min(), 0.0), max(pairs.max(), 0.0)
    axes.plot([low, high], [low, high], color=_GREY, linewidth=0.8, zorder=1)
    axes.scatter(pairs[:, 0], pairs[:, 1], s=8, alpha=0.5, color=_BLUE, linewidths=0, zorder=2)
    axes.tick_params(axis="x", labelsize=7, rotation=45)
    axes.tick_params(axis="y", labelsize=7)
    axes.set(xlabel="true value", ylabel="value read", title=f"Read against true, {len(pairs)} numbers")
    return figure


def _reliability(bins: Sequence[dict[str, float]]) -> Figure:
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    most = max(each["n"] for each in bins)
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, zorder=1)
    for each in bins:
        width = each["high"] - each["low"]
        axes.bar(each["low"], each["right"], width, align="edge", color=_BLUE, alpha=0.2 + 0.6 * each["n"] / most, zorder=2)
        axes.annotate(f"{each['n']}", (each["low"] + width / 2, each["right"]), ha="center", va="bottom", fontsize=8)
    axes.plot([each["confidence"] for each in bins], [each["right"] for each in bins], "o", color=_RED, zorder=3)
    axes.set(
        xlabel="confidence: the model's probability of its likeliest value",
        ylabel="share of these values that are right",
        xlim=(0, 1),
        ylim=(0, 1.08),
        title=f"Reliability of {sum(each['n'] for each in bins)} answers (number: answers in the bin)",
    )
    return figure


def _by_kind(group: str, summary: dict[str, Any]) -> Figure:
    metric = "exact" if group == "time" else "relaxed"
    kinds = sorted(summary["by_kind"].items(), key=lambda item: -item[1]["n"])
    shown = kinds[:_MOST_KINDS][::-1]
    figure = Figure(figsize=(7, 1.4 + 0.32 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for place, (_, part) in enumerate(shown):
        rate, interval = part[metric], part["intervals"][metric]
        if rate is None:
            continue
        axes.barh(place, rate, color=_BLUE, alpha=0.75)
        axes.plot(interval, [place, place], color="black", linewidth=1.2)
    axes.set_yticks(
        range(len(shown)), [f"{_short(kind)}  (n = {part['n']})" for kind, part in shown], fontsize=8, parse_math=False
    )
    more = f", the {_MOST_KINDS} largest of {len(kinds)}" if len(kinds) > _MOST_KINDS else ""
    axes.set(xlim=(0, 1), xlabel=f"{summary['scorers'][metric]} (line: 95 % interval)", title=f"Accuracy by kind{more}")
    return figure


def _short(kind: str) -> str:
    clean = "".join(c if c.isprintable() else "?" for c in kind)
    return clean if len(clean) <= 40 else clean[:39] + "…"


def _some(pairs: np.ndarray) -> np.ndarray:
    """A fixed sample: thousands of points more would only darken the picture."""
    if len(pairs) <= _MOST_POINTS:
        return pairs
    return pairs[np.random.default_rng(0).choice(len(pairs), _MOST_POINTS, replace=False)]
