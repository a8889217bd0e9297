"""Two sides of runs on one test set -> which is better, by how much, and whether that is more than noise.

    comparison = compare(["a/seed0", "a/seed1"], ["b/seed0", "b/seed1"])

Runs are paired by position (the same seed on both sides) and by sample. Each is a predictions.jsonl or a folder that holds
one (`eval run`'s). All are scored anew, so both sides go by the same scorers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eval.evaluate import OTHER_RATES, TIME_RATES, Summary, evaluate, headline_metric, scorer_label
from eval.paired import Estimate, mcnemar, paired_difference
from smmd_vlm.records import read_predictions

COMPARE_FORMAT = "smmd-vlm comparison"
# metric -> scorer; swap and sign error are better when low, and an error is no rate
METRICS = {
    "time": {name: TIME_RATES[name] for name in ("exact", "within_1_min", "within_5_min", "hour", "minute", "swap_rate")}
    | {"mean_error_min": "error_min"},
    "other": {
        name: OTHER_RATES[name]
        for name in ("relaxed", "exact", "relaxed_strict", "numeric_equal", "within_1_percent", "within_5_percent", "within_10_percent")
    }
    | {"mean_absolute_error": "absolute_error"},
}  # fmt: skip
ERRORS = {"mean_error_min", "mean_absolute_error", "crps"}  # in the answer's unit; all others are rates
LOWER_IS_BETTER = ERRORS | {"swap_rate"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One metric of one part of the test set."""

    metric: str
    scorer: str  # name and version
    unit: str  # %, min, or nothing: the answer's own
    a: float
    b: float
    estimate: Estimate


@dataclass(frozen=True, kw_only=True)
class Part:
    """One answer group: every metric over all its samples, the headline per kind, McNemar per pair of runs."""

    name: str  # time or other
    headline: Row
    rows: tuple[Row, ...]
    kinds: dict[str, Row]
    discordant: tuple[tuple[int, int, float], ...]  # (A alone right, B alone right, p) for each pair of runs


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that was found; `runs_a[k]` and `runs_b[k]` are paired."""

    names_a: tuple[str, ...]
    names_b: tuple[str, ...]
    runs_a: tuple[Summary, ...]
    runs_b: tuple[Summary, ...]
    parts: tuple[Part, ...]

    @property
    def seeds(self) -> int:
        return len(self.names_a)


def compare(side_a: Sequence[str | Path], side_b: Sequence[str | Path], *, headline: str | None = None) -> Comparison:
    """Read, score and pair; runs that answer different questions are refused."""
    if len(side_a) != len(side_b):
        raise ValueError(
            f"expected as many runs on either side, paired by seed, got {len(side_a)} and {len(side_b)}; leave out what has no partner"
        )
    runs_a = [_read(path, headline) for path in side_a]
    runs_b = [_read(path, headline) for path in side_b]
    order = [row.id for row in runs_a[0].predictions]
    first = {row.id: row for row in runs_a[0].predictions}
    for path, run in zip([*side_a[1:], *side_b], [*runs_a[1:], *runs_b], strict=True):
        _require_same_questions(side_a[0], first, path, run)
    aligned_a, aligned_b = ([_aligned(run, order) for run in runs] for runs in (runs_a, runs_b))
    parts = tuple(
        _part(name, aligned_a, aligned_b) for name in ("time", "other") if name in aligned_a[0].groups
    )  # fmt: skip
    return Comparison(
        names_a=tuple(map(str, side_a)),
        names_b=tuple(map(str, side_b)),
        runs_a=tuple(aligned_a),
        runs_b=tuple(aligned_b),
        parts=parts,
    )


def _read(path: str | Path, headline: str | None) -> Summary:
    source = Path(path)
    source = source / "predictions.jsonl" if source.is_dir() else source
    if not source.is_file():
        raise ValueError(f"expected a predictions file or a folder that holds predictions.jsonl, {path} is neither")
    return evaluate(read_predictions(source), headline=headline)


def _require_same_questions(first_path: object, first: dict[str, Any], path: object, run: Summary) -> None:
    ids = {row.id for row in run.predictions}
    if ids != first.keys():
        odd = ids ^ first.keys()
        raise ValueError(
            f"{first_path} and {path} answer different questions: {len(odd)} of {len(ids | first.keys())} ids are in one of them only, "
            f"for example {min(odd)!r}; compare predictions for one test set"
        )
    for row in run.predictions:
        if row.answer != first[row.id].answer or row.answer_type != first[row.id].answer_type:
            raise ValueError(
                f"{first_path} and {path} disagree about the gold of {row.id!r} ({first[row.id].answer!r} and {row.answer!r}); "
                "compare predictions for one version of the test set"
            )


def _aligned(run: Summary, order: list[str]) -> Summary:
    """The run with its rows in the first run's order."""
    place = {row.id: k for k, row in enumerate(run.predictions)}
    rows = [place[each] for each in order]
    return Summary(
        scores=tuple(run.scores[k] for k in rows),
        predictions=tuple(run.predictions[k] for k in rows),
        groups=run.groups,
        concerns=run.concerns,
    )


def _part(name: str, runs_a: list[Summary], runs_b: list[Summary]) -> Part:
    """All metrics of one answer group. Which rows are clock times depends on the gold alone, so it is one set for all runs."""
    rows = [k for k, score in enumerate(runs_a[0].scores) if score.is_time == (name == "time")]
    groups = [runs_a[0].scores[k].group for k in rows]
    kinds = [runs_a[0].scores[k].kind for k in rows]
    metric = headline_metric(runs_a[0].groups[name])
    values = {each: [_values(runs, rows, scorer) for runs in (runs_a, runs_b)] for each, scorer in METRICS[name].items()}
    values["crps"] = [_crps(runs, rows) for runs in (runs_a, runs_b)]
    scorers = {each: scorer_label(scorer) for each, scorer in METRICS[name].items()} | {"crps": "crps"}
    units = {each: "%" if each not in ERRORS else "min" if name == "time" else "" for each in values}
    found = [_row(each, scorers[each], units[each], a, b, groups) for each, (a, b) in values.items()]
    scorer = scorer_label(runs_a[0].groups[name]["headline"].split(" v")[0])
    outcomes = [
        np.array([[float(run.scores[k].outcome == "right") for k in rows] for run in runs]) for runs in (runs_a, runs_b)
    ]
    headline = _row(metric, scorer, "%", *outcomes, groups)
    assert headline is not None  # every group has a row
    by_kind = {}
    for kind in sorted(set(kinds)):
        chosen = [k for k, each in enumerate(kinds) if each == kind]
        part = _row(metric, scorer, "%", *(side[:, chosen] for side in outcomes), [groups[k] for k in chosen])
        if part is not None:
            by_kind[kind] = part
    discordant = []
    for a, b in zip(*outcomes, strict=True):
        only_a, only_b = int(((a == 1) & (b == 0)).sum()), int(((a == 0) & (b == 1)).sum())
        discordant.append((only_a, only_b, mcnemar(only_a, only_b)))
    kept = tuple(row for row in found if row is not None)
    return Part(name=name, headline=headline, rows=kept, kinds=by_kind, discordant=tuple(discordant))


def _values(runs: list[Summary], rows: list[int], scorer: str) -> np.ndarray:
    """(S, n) verdicts, NaN where the scorer does not apply."""
    table = [[getattr(run.scores[k].verdict, scorer) for k in rows] for run in runs]
    return np.array([[np.nan if value is None else float(value) for value in row] for row in table])


def _crps(runs: list[Summary], rows: list[int]) -> np.ndarray:
    """(S, n) errors of whole distributions, NaN where a row has none."""
    readings = [[run.scores[k].reading for k in rows] for run in runs]
    return np.array([[np.nan if reading is None else reading.crps for reading in row] for row in readings])


def _row(metric: str, scorer: str, unit: str, a: np.ndarray, b: np.ndarray, groups: Sequence[str | None]) -> Row | None:
    """Over the samples that every run has a verdict on; None when there are none."""
    judged = ~(np.isnan(a).any(0) | np.isnan(b).any(0))
    if not judged.any():
        return None
    kept = [group for group, keep in zip(groups, judged, strict=True) if keep]
    return Row(
        metric=metric,
        scorer=scorer,
        unit=unit,
        a=float(a[:, judged].mean()),
        b=float(b[:, judged].mean()),
        estimate=paired_difference(a[:, judged] - b[:, judged], kept, bounded=unit == "%"),
    )


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """compare.json."""

    def row(each: Row) -> dict[str, Any]:
        found = each.estimate
        return {
            "metric": each.metric,
            "scorer": each.scorer,
            "unit": each.unit,
            "a": each.a,
            "b": each.b,
            "difference": found.difference,
            "interval": [found.low, found.high],
            "settled": found.settled,
            "n": found.n,
            "groups": found.groups,
            "per_seed": list(found.per_seed),
            "standard_error_seeds": found.variance_seeds**0.5 if found.seeds > 1 else None,
            "standard_error_samples": found.variance_samples**0.5,
        }

    return {
        "format": COMPARE_FORMAT,
        "version": 1,
        "a": list(comparison.names_a),
        "b": list(comparison.names_b),
        "seeds": comparison.seeds,
        "covers_training_noise": comparison.seeds > 1,
        **{
            part.name: {
                "headline": row(part.headline),
                "samples_needed": part.headline.estimate.samples_needed(),
                "seeds_needed": part.headline.estimate.seeds_needed(),
                "metrics": {each.metric: row(each) for each in part.rows},
                "by_kind": {kind: row(each) for kind, each in part.kinds.items()},
                "mcnemar": [{"only_a": a, "only_b": b, "p": p} for a, b, p in part.discordant],
            }
            for part in comparison.parts
        },
    }
