"""The loop: predictions -> one score a row -> a summary per answer group, per kind, per answer type.

    summary = evaluate(read_predictions("predictions.jsonl"))
    summary.to_dict()["time"]["overall"]["exact"]

Clock times and other answers are never mixed in one number: `time` and `other` are two groups with their own scorers.
A row counts right, wrong or unparsed by its group's headline (`exact_time`, `relaxed`); unparsed rows stay in every
denominator of a rate and out of every mean error, and both counts are printed. Another headline (`numeric_equal` for text
maths) can be asked for, never silently: every table names it. Rows that it cannot judge go by `relaxed_strict`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eval.answers import read_gold
from eval.calibration import Reading, calibration
from eval.intervals import CONFIDENCE, Interval, mean_interval, median_interval, rate_interval
from eval.sanity import concerns
from eval.scorers import VERSIONS, AnswerVerdict, TimeVerdict, score_answer, score_time
from smmd_vlm.records import Prediction

REPORT_FORMAT = "smmd-vlm scores"
REPORT_VERSION = 1
NO_KIND = "(none)"

# name in the report -> scorer; the order is the order of the tables
TIME_RATES = {
    "exact": "exact_time",
    "exact_hour_minute": "exact_hour_minute",
    "within_1_min": "within_1_min",
    "within_5_min": "within_5_min",
    "within_15_min": "within_15_min",
    "within_tolerance": "within_tolerance",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "swap_rate": "swap",
}
OTHER_RATES = {
    name: name
    for name in (
        "exact",
        "relaxed",
        "relaxed_strict",
        "numeric_equal",
        "within_1_percent",
        "within_2_percent",
        "within_5_percent",
        "within_10_percent",
        "within_tolerance",
    )
} | {"sign_error_rate": "sign_error"}
TIME_ERRORS = {"error_min": "error_min"}
OTHER_ERRORS = {"absolute_error": "absolute_error", "relative_error": "relative_error", "magnitude_error": "magnitude_error"}
_ERROR_NAMES = {
    "error_min": ("mean_error_min", "median_error_min"),
    "absolute_error": ("mean_absolute_error", "median_absolute_error"),
    "relative_error": ("mean_relative_error", "median_relative_error"),
    "magnitude_error": ("mean_magnitude_error", "median_magnitude_error"),
}
HEADLINES = {"time": "exact_time", "other": "relaxed"}


@dataclass(frozen=True, kw_only=True)
class Score:
    """One row of scores.jsonl."""

    id: str
    kind: str
    group: str | None
    answer_type: str
    outcome: str  # right, wrong, unparsed; no gold where a clock's gold is no time
    truncated: bool  # the token limit ended the answer
    verdict: TimeVerdict | AnswerVerdict
    reading: Reading | None = None  # the distribution beside the gold, where there are both

    @property
    def is_time(self) -> bool:
        return isinstance(self.verdict, TimeVerdict)

    def to_row(self) -> dict[str, Any]:
        """`id`, `kind`, `value`, `reason` and every scorer's verdict under its own name; None where it does not apply."""
        verdict = self.verdict
        row: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
            "group": self.group,
            "answer_type": self.answer_type,
            "value": verdict.value,
            "gold_value": verdict.gold_value,
            "outcome": self.outcome,
            "reason": verdict.reason,
            "truncated": self.truncated,
            "cut": verdict.cut,
        }
        if isinstance(verdict, TimeVerdict):
            row["exact"] = verdict.exact_time  # what the report's `exact` averages
        for name in VERSIONS:
            if hasattr(verdict, name):
                row[name] = getattr(verdict, name)
        if self.reading is not None:
            row["distribution"] = self.reading.to_row()
        return row


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All scores and what they add up to."""

    scores: tuple[Score, ...]
    predictions: tuple[Prediction, ...] = ()  # in the order of the scores
    concerns: tuple[str, ...] = ()  # why these numbers may not mean what they seem to, one sentence each
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)  # "time" and "other", those that occur

    def to_dict(self) -> dict[str, Any]:
        """The shape of report.json (docs/formats.md), without what only the command knows."""
        return {
            "format": REPORT_FORMAT,
            "version": REPORT_VERSION,
            "confidence": CONFIDENCE,
            "n": len(self.scores),
            "concerns": list(self.concerns),
            **self.groups,
        }


def score(prediction: Prediction, *, headline: str = HEADLINES["other"]) -> Score:
    """Judge one prediction. Without an answer type, a gold that is nothing but `H:MM` counts as a clock time."""
    answer_type = prediction.answer_type or ("time" if read_gold(prediction.answer).kind == "time" else None)
    verdict: TimeVerdict | AnswerVerdict
    if answer_type == "time":
        verdict = score_time(gold=prediction.answer, prediction=prediction.prediction, tolerance=prediction.tolerance)
        right = verdict.exact_time
    else:
        verdict = score_answer(
            gold=prediction.answer, prediction=prediction.prediction, answer_type=answer_type, tolerance=prediction.tolerance
        )
        right = getattr(verdict, headline)
        right = verdict.relaxed_strict if right is None else right
        answer_type = answer_type or verdict.kind
    return Score(
        id=prediction.id,
        kind=prediction.kind or NO_KIND,
        group=prediction.group,
        answer_type=answer_type,
        outcome="no gold" if right is None else "right" if right else "unparsed" if verdict.reason else "wrong",
        truncated=prediction.finish_reason == "length",
        verdict=verdict,
        reading=_reading(prediction, verdict),
    )


def _reading(prediction: Prediction, verdict: TimeVerdict | AnswerVerdict) -> Reading | None:
    distribution, gold = prediction.distribution, verdict.gold_value
    if distribution is None or gold is None or not distribution.mass > 0:
        return None
    if (distribution.period is not None) != isinstance(verdict, TimeVerdict):
        kind, other = ("a time", "numbers") if isinstance(verdict, TimeVerdict) else ("a number", "times")
        raise ValueError(
            f"prediction {prediction.id!r}: the answer is {kind}, its distribution is over {other}; give both one type"
        )
    error = verdict.error_min if isinstance(verdict, TimeVerdict) else verdict.absolute_error
    return Reading(distribution=distribution, gold=gold, greedy_error=error)


def evaluate(predictions: Iterable[Prediction], *, headline: str | None = None) -> Summary:
    """Score every prediction and summarise; an empty file is a ValueError, since it says nothing about a model.

    `headline`: a scorer of other answers than clock times to count right and wrong by, instead of `relaxed`.
    """
    if headline is not None and (headline not in OTHER_RATES or headline == "sign_error_rate"):
        names = ", ".join(name for name in OTHER_RATES if name != "sign_error_rate")
        raise ValueError(f"expected a headline ({names}), got {headline!r}")
    headlines = HEADLINES if headline is None else HEADLINES | {"other": headline}
    rows = tuple(predictions)
    scores = tuple(score(prediction, headline=headlines["other"]) for prediction in rows)
    if not scores:
        raise ValueError("expected at least one prediction to score, got none")
    groups: dict[str, dict[str, Any]] = {}
    time = [row for row in scores if row.is_time]
    other = [row for row in scores if not row.is_time]
    if time:
        groups["time"] = _group("time", time, headlines)
    if other:
        groups["other"] = _group("other", other, headlines) | {"by_answer_type": _split("other", other, "answer_type")}
    for name, part in groups.items():
        part |= _calibration([pair for pair in zip(scores, rows, strict=True) if pair[0].is_time == (name == "time")])
    return Summary(scores=scores, predictions=rows, groups=groups, concerns=tuple(concerns(scores, rows, headlines)))


def _calibration(rows: Sequence[tuple[Score, Prediction]]) -> dict[str, Any]:
    """{"calibration": ...} of a group in which some row has a distribution, else nothing."""
    given = [(prediction.distribution, score.group) for score, prediction in rows if prediction.distribution is not None]
    if not given:
        return {}
    read = [score for score, _ in rows if score.reading is not None]
    readings, groups = [score.reading for score in read], [score.group for score in read]
    return {"calibration": calibration(readings, groups, given=given, without=len(rows) - len(given))}


def headline_metric(part: dict[str, Any]) -> str:
    """The name under which a group's summaries hold their headline: `exact` for `exact_time v1`."""
    scorer = part["headline"].split(" v")[0]
    return "exact" if scorer == "exact_time" else scorer


def _group(name: str, scores: list[Score], headlines: dict[str, str]) -> dict[str, Any]:
    rates, errors = (TIME_RATES, TIME_ERRORS) if name == "time" else (OTHER_RATES, OTHER_ERRORS)
    scorers = {metric: scorer_label(scorer) for metric, scorer in rates.items()}
    for scorer in errors:
        scorers |= {metric: scorer_label(scorer) for metric in _ERROR_NAMES[scorer]}
    return {
        "headline": scorer_label(headlines[name]),
        "scorers": scorers,
        "overall": summarise(name, scores),
        "by_kind": _split(name, scores, "kind"),
    }


def _split(name: str, scores: list[Score], attribute: str) -> dict[str, Any]:
    parts: dict[str, list[Score]] = {}
    for row in scores:
        parts.setdefault(getattr(row, attribute), []).append(row)
    return {part: summarise(name, parts[part]) for part in sorted(parts)}


def scorer_label(scorer: str) -> str:
    """How tables name a scorer: `relaxed v1`."""
    return f"{scorer} v{VERSIONS[scorer]}"


def summarise(group: str, scores: Sequence[Score]) -> dict[str, Any]:
    """Counts, rates, mean and median errors of some rows of one answer group, each with its interval.

    A rate is over the rows that its scorer applies to, and None where there are none; `intervals` has [low, high] or None
    under the same names. `errors_over` says how many rows the mean errors are over.
    """
    rates, errors = (TIME_RATES, TIME_ERRORS) if group == "time" else (OTHER_RATES, OTHER_ERRORS)
    outcomes = [row.outcome for row in scores]
    clusters = [row.group for row in scores]
    reasons: dict[str, int] = {}
    for row in scores:
        if row.outcome == "unparsed":
            reasons[row.verdict.reason or ""] = reasons.get(row.verdict.reason or "", 0) + 1
    summary: dict[str, Any] = {
        "n": len(scores),
        "right": outcomes.count("right"),
        "wrong": outcomes.count("wrong"),
        "unparsed": outcomes.count("unparsed"),
        "truncated": sum(row.truncated for row in scores),
        "cut": sum(row.verdict.cut for row in scores),
        "reasons": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    }
    if group == "time":
        summary["no_gold"] = outcomes.count("no gold")
    intervals: dict[str, list[float] | None] = {}

    def add(name: str, value: float | None, interval: Interval | None) -> None:
        summary[name] = value
        intervals[name] = list(interval) if interval is not None else None

    for metric, scorer in rates.items():
        rows = [
            (value, cluster)
            for row, cluster in zip(scores, clusters, strict=True)
            if (value := getattr(row.verdict, scorer)) is not None
        ]
        verdicts, of = [value for value, _ in rows], [cluster for _, cluster in rows]
        add(metric, sum(verdicts) / len(verdicts) if verdicts else None, rate_interval(verdicts, of))
    unparsed = [outcome == "unparsed" for outcome in outcomes]
    add("unparsed_rate", sum(unparsed) / len(unparsed), rate_interval(unparsed, clusters))
    for scorer in errors:
        rows = [
            (value, cluster)
            for row, cluster in zip(scores, clusters, strict=True)
            if (value := getattr(row.verdict, scorer)) is not None
        ]
        values, of = [value for value, _ in rows], [cluster for _, cluster in rows]
        mean_name, median_name = _ERROR_NAMES[scorer]
        add(mean_name, float(np.mean(values)) if values else None, mean_interval(values, of))
        add(median_name, float(np.median(values)) if values else None, median_interval(values, of))
        summary.setdefault("errors_over", len(values))
    summary["intervals"] = intervals
    return summary
