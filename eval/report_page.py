"""report.html: one scored file as a page for people; offline, self-contained, everything escaped (eval/page.py).

Headline, tolerance curves, error histograms, predicted against true, digits read as digits, kinds, and samples with pictures.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eval import svg
from eval.calibration import metric_rows, summary_line
from eval.digits import NONE, confusion
from eval.evaluate import Score, Summary, headline_metric
from eval.page import Page, Sample, facts, figures, gallery, heading, paragraph, table, tiles
from eval.reporttext import GROUP_TITLES, flat_facts
from smmd_vlm.records import Prediction

WORST, RANDOM, MOST_KINDS, MOST_PLACES = 60, 60, 40, 10
_MOST_POINTS = 1500
_PERCENTS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_MINUTES = (0, 1, 2, 3, 5, 10, 15, 30, 60, 120, 360)


def report_page(summary: Summary, *, source: str, meta: dict[str, Any] | None = None, data: Path | None = None) -> str:
    """The whole document. `data`: the dataset that was predicted on, for the pictures."""
    page = Page(f"Scores of {source}")
    page.add(paragraph(f"{len(summary.scores)} predictions. Intervals are 95 %, clustered where samples share a picture; they cover the choice of test samples, not the noise of training.", "soft"))  # fmt: skip
    page.add(*(paragraph(concern, "concern") for concern in summary.concerns))
    if meta:
        page.add(facts(flat_facts(meta), "the run: model, data, prompt, versions"))
    for name, part in summary.groups.items():
        rows = [k for k, score in enumerate(summary.scores) if score.is_time == (name == "time")]
        scores = [summary.scores[k] for k in rows]
        page.add(heading(GROUP_TITLES[name]), _headline(part), figures(charts(name, scores)))
        if "calibration" in part:
            page.add(heading("Calibration", 3), *_calibration(part["calibration"]))
        page.add(heading("Every metric", 3), _metrics(part), _kinds(part))
    shown = choose(summary)
    page.add(
        heading("Samples"), paragraph(f"The {WORST} worst and {RANDOM} drawn at random; every row is in scores.jsonl.", "soft")
    )
    page.add(gallery(_cards(summary, shown, data)))
    return page.text()


def choose(summary: Summary) -> dict[int, tuple[str, ...]]:
    """Row -> the sets it is shown for: the worst of all, and a fixed random draw."""
    order = sorted(range(len(summary.scores)), key=lambda k: _badness(summary.scores[k]), reverse=True)
    worst = [k for k in order[:WORST] if summary.scores[k].outcome != "right"]
    drawn = random.Random(0).sample(range(len(summary.scores)), min(RANDOM, len(summary.scores)))
    sets: dict[int, tuple[str, ...]] = {k: ("worst",) for k in worst}
    for k in sorted(drawn):
        sets[k] = (*sets.get(k, ()), "random")
    return sets


def charts(name: str, scores: Sequence[Score]) -> list[str]:
    """The figures of one answer group; those without numbers to draw are left out."""
    pairs = [(s.verdict.gold_value, s.verdict.value) for s in scores if s.verdict.gold_value is not None and s.verdict.value is not None]  # fmt: skip
    if not pairs:
        return []
    found = [_time_curve(scores), _time_errors(scores)] if name == "time" else [_number_curve(scores), _number_errors(scores)]
    found.append(_pairs(name, pairs))
    digits = confusion(pairs, times=name == "time")
    names = [str(digit) for digit in range(10)]
    found.append(
        svg.heat(f"Digits: read as, {digits.n} places", names, names if name == "time" else [*names, NONE], digits.pairs)
    )
    common = set(sorted(digits.places, key=lambda place: -digits.places[place][1])[:MOST_PLACES])
    by_place = {_place_name(place): right / n for place, (right, n) in digits.places.items() if place in common}
    found.append(svg.bars("Digits right, by their place in the gold number", "place", by_place))
    return found


def _place_name(place: str) -> str:
    """`10⁻²`, `h tens`."""
    if place.startswith("10^"):
        return "10" + place.removeprefix("10^").translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return place.replace("hour", "h").replace("minute", "min")


def _headline(part: dict[str, Any]) -> str:
    overall, metric = part["overall"], headline_metric(part)
    interval = overall["intervals"][metric]
    between = f"{interval[0]:.1%} to {interval[1]:.1%}" if interval else "no sample it applies to"
    value = overall[metric]
    counts = [(name, str(overall[name]), f"of {overall['n']}") for name in ("right", "wrong", "unparsed", "truncated")]
    return tiles([(part["headline"], "–" if value is None else f"{value:.1%}", between), *counts])


def _metrics(part: dict[str, Any]) -> str:
    rows = []
    for name, interval in part["overall"]["intervals"].items():
        value = part["overall"][name]
        if value is not None:
            show = "{:.4g}".format if "error" in name and not name.endswith("rate") else "{:.1%}".format
            between = f"{show(interval[0])} to {show(interval[1])}" if interval else "–"
            rows.append((name, show(value), between, part["scorers"].get(name, part["headline"])))
    return table(("metric", "value", "95 % interval", "scorer"), rows)


def _calibration(part: dict[str, Any]) -> list[str]:
    shown = [paragraph(summary_line(part), "soft"), table(("metric", "value", "95 % interval"), metric_rows(part))]
    if part["bins"]:
        pairs = [(each["confidence"], each["right"]) for each in part["bins"]]
        ticks = [(share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
        title = "Reliability: confidence against share right, ten bins"
        shown.append(figures([svg.scatter(title, ("confidence of the mode", "share right"), pairs, float, ticks)]))
    return shown


def _kinds(part: dict[str, Any]) -> str:
    metric = headline_metric(part)
    kinds = sorted(part["by_kind"].items(), key=lambda item: -item[1]["n"])
    rows = [
        (f"{kind} ({row['n']})", row[metric], *row["intervals"][metric])
        for kind, row in kinds[:MOST_KINDS]
        if row[metric] is not None
    ]
    if len(kinds) < 2 or not rows:
        return ""
    more = f", the {MOST_KINDS} largest of {len(kinds)}" if len(kinds) > MOST_KINDS else ""
    title = f"{part['headline']}{more}"
    chart = svg.intervals(title, rows, zero=False, unit="point: rate; line: 95 % interval; in brackets: samples")
    return heading("By kind", 3) + figures([chart])


def _share(errors: np.ndarray, n: int, bound: float) -> float:
    return float((errors <= bound * (1 + 1e-9)).sum() / n)


def _time_curve(scores: Sequence[Score]) -> str:
    errors = np.array([s.verdict.error_min for s in scores if s.verdict.error_min is not None])
    judged = sum(score.outcome != "no gold" for score in scores)
    points = [(m, _share(errors, judged, m + 1 / 120)) for m in _MINUTES]
    ticks = [(m, str(m)) for m in _MINUTES]
    return svg.curve("Share within so many minutes", "error at most (minutes); unparsed count as outside", points, ticks, lambda m: np.log1p(m) / np.log1p(360))  # fmt: skip


def _number_curve(scores: Sequence[Score]) -> str:
    judged = [s for s in scores if s.verdict.gold_value is not None]
    errors = np.array([s.verdict.relative_error for s in judged if s.verdict.relative_error is not None])
    points = [(p, _share(errors, len(judged), p / 100)) for p in _PERCENTS]
    ticks = [(p, f"{p:g}") for p in _PERCENTS]
    return svg.curve("Share of numbers within so many percent", "error at most (% of gold); unparsed count as outside", points, ticks, lambda p: (np.log10(p) + 1) / 3)  # fmt: skip


def _time_errors(scores: Sequence[Score]) -> str:
    errors = np.array([s.verdict.error_min for s in scores if s.verdict.error_min is not None])
    edges = (0.5, 1.5, 5.5, 15.5, 30.5, 60.5, 120.5, 240.5, 361)
    names = ("0", "1", "5", "15", "30", "60", "120", "240", "360")
    return _histogram("Errors: at most so many minutes, the short way round", errors, edges, names, 3, scores)


def _number_errors(scores: Sequence[Score]) -> str:
    errors = np.array([s.verdict.relative_error for s in scores if s.verdict.relative_error is not None])
    edges = (0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.5, 1, np.inf)
    names = ("0", "0.1", "1", "2", "5", "10", "50", "100", "more")
    numeric = [score for score in scores if score.verdict.gold_value is not None]
    return _histogram("Errors: at most so many percent of the gold number", errors, edges, names, 5, numeric)


def _histogram(title: str, errors: np.ndarray, edges: Sequence[float], names: Sequence[str], good: int, scores: Sequence[Score]) -> str:  # fmt: skip
    unparsed = sum(score.outcome == "unparsed" for score in scores)
    cumulative = [int((errors <= edge).sum()) for edge in edges]
    counts = np.diff([0, *cumulative])
    shares = {name: int(count) / max(1, len(scores)) for name, count in zip(names, counts, strict=True)}
    return svg.bars(title, f"share of {len(scores)}; ? = unparsed", shares | {"?": unparsed / max(1, len(scores))}, frozenset((*names[good:], "?")))  # fmt: skip


def _pairs(name: str, pairs: list[tuple[float, float]]) -> str:
    if len(pairs) > _MOST_POINTS:
        pairs = random.Random(0).sample(pairs, _MOST_POINTS)
    if name == "time":
        ticks = [(float(t), f"{t // 60 or 12}:00") for t in range(0, 720, 120)]
        return svg.scatter("Read against true", ("true time", "time read"), pairs, lambda t: t / 720, ticks)
    golds = np.abs([gold for gold, _ in pairs if gold])
    smallest = float(golds.min()) if len(golds) else 1.0
    low, high = min(0.0, *(gold for gold, _ in pairs)), max(0.0, *(gold for gold, _ in pairs))
    place = svg.symlog(smallest, max(low * 10, -1e300), min(high * 10, 1e300) or 1.0)  # ten times: beyond any float otherwise
    values = sorted({low, 0.0, high})
    ticks = [(value, f"{value:.2g}") for value in values]
    return svg.scatter("Read against true, logarithmic both ways from zero", ("true value", "value read"), pairs, place, ticks)  # fmt: skip


def _badness(score: Score) -> tuple[int, float]:
    """Unreadable and wrong first, then by how far off."""
    verdict = score.verdict
    error = verdict.error_min if score.is_time else verdict.relative_error
    return ({"right": 0, "no gold": 0, "unparsed": 1, "wrong": 2}.get(score.outcome, 0), error if error is not None else 0.0)


def _cards(summary: Summary, shown: dict[int, tuple[str, ...]], data: Path | None) -> list[Sample]:
    pictures: dict[str, bytes] = {}
    if data is not None:
        from eval.pictures import find_pictures, thumbnail

        found = find_pictures(data, [summary.predictions[k].id for k in shown])
        pictures = {each: small for each, encoded in found.items() if (small := thumbnail(encoded)) is not None}
    note = "no picture (pass --data for pictures)" if data is None else "no picture"
    return [_card(summary.scores[k], summary.predictions[k], sets, pictures, note) for k, sets in shown.items()]


def _card(score: Score, row: Prediction, sets: tuple[str, ...], pictures: dict[str, bytes], note: str) -> Sample:
    verdict = score.verdict
    error = f"off by {verdict.error_min:.3g} min" if score.is_time and verdict.error_min else ""
    if not score.is_time and verdict.relative_error:
        error = f"off by {100 * verdict.relative_error:.3g} %"
    small = " · ".join(part for part in (score.outcome, error, score.verdict.reason or "", score.kind, row.id) if part)
    lines = (("", small), ("asked", row.question), ("gold", row.answer), ("said", row.prediction))
    return Sample(outcome=score.outcome, kind=score.kind, sets=sets, lines=lines, picture=pictures.get(row.id), note=note)
