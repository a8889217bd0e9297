"""Numbers that may not mean what they seem to: a floor under every headline, and the usual accidents behind a bad score.

A score of 9 % where a model is known for 87 % is nearly always a prompt, a token limit or an answer format, not the model
(EvolvingLMMs-Lab/lmms-eval#645). Nothing here changes a number; each concern is one sentence that says what to look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from eval.calibration import HALF
from eval.scorers import relaxed
from smmd_vlm.records import Prediction

if TYPE_CHECKING:
    from eval.evaluate import Score

FEWEST = 20  # below that many rows nothing is said: chance alone looks odd
UNPARSED, TRUNCATED, SAME, GAP = 0.2, 0.05, 0.9, 0.1
LONG_ANSWER = 100  # characters
_CONSTANTS = 5  # how many of the commonest golds are tried as constant answers


def concerns(scores: Sequence[Score], predictions: Sequence[Prediction], headlines: dict[str, str]) -> Iterator[str]:
    """One sentence for each thing that looks like an accident."""
    for name, title in (("time", "clock times"), ("other", "answers")):
        pairs = [
            (score, prediction)
            for score, prediction in zip(scores, predictions, strict=True)
            if score.is_time == (name == "time") and score.outcome != "no gold"
        ]
        if len(pairs) >= FEWEST:
            yield from _group_concerns(name, title, [s for s, _ in pairs], [p for _, p in pairs], headlines[name])


def _group_concerns(name: str, title: str, scores: list[Score], predictions: list[Prediction], headline: str) -> Iterator[str]:
    n = len(scores)
    accuracy = sum(score.outcome == "right" for score in scores) / n
    answer, floor = _best_constant(name, scores, predictions)
    if accuracy <= floor:
        yield (
            f"{title}: {headline} is {accuracy:.1%}, and always answering {_short(answer)} would reach {floor:.1%}; "
            "look at the raw predictions, the prompt and whether the pictures reach the model"
        )
    said, times = Counter(prediction.prediction for prediction in predictions).most_common(1)[0]
    _, often = Counter(prediction.answer for prediction in predictions).most_common(1)[0]
    if times / n >= SAME and often / n < SAME:
        yield f"{title}: {times / n:.0%} of the predictions are {_short(said)}; the model does not look at the question or the picture"
    unparsed = sum(score.outcome == "unparsed" for score in scores) / n
    if unparsed > UNPARSED:
        yield f"{title}: {unparsed:.0%} of the predictions could not be read; the reasons are in the report, the prompt may ask for another form"
    truncated = sum(score.truncated for score in scores) / n
    if truncated > TRUNCATED:
        yield f"{title}: {truncated:.0%} of the predictions hit the token limit; raise max_new_tokens or ask for shorter answers"
    if name == "other":
        strict = sum(score.verdict.relaxed_strict for score in scores) / n
        raw = sum(score.verdict.relaxed for score in scores) / n
        if strict - raw > GAP:
            yield f"{title}: relaxed is {raw:.1%} but relaxed_strict {strict:.1%}; relaxed takes raw strings, and these answers come in sentences or with units"
    masses = [prediction.distribution.mass for prediction in predictions if prediction.distribution is not None]
    vague = sum(mass < HALF for mass in masses)
    if vague > len(masses) / 2:
        yield (
            f"{title}: {vague} of {len(masses)} distributions leave less than half of the probability to values; coverage, CRPS and "
            "decoders say little of this model"
        )
    length = median(len(prediction.prediction) for prediction in predictions)
    if length > LONG_ANSWER:
        yield f"{title}: half of the predictions are longer than {length:.0f} characters; for short answers use a prompt that asks for them"


def _best_constant(name: str, scores: list[Score], predictions: list[Prediction]) -> tuple[str, float]:
    """The constant answer that scores best among the commonest golds, and what it scores."""
    if name == "time":
        golds = Counter(score.verdict.gold_value for score in scores if score.verdict.gold_value is not None)
        if not golds:
            return "", 0.0
        value, times = golds.most_common(1)[0]
        return f"{int(value) // 60 or 12}:{int(value) % 60:02d}", times / len(scores)
    golds = Counter(prediction.answer for prediction in predictions)
    shares = {
        answer: sum(times for gold, times in golds.items() if relaxed(gold=gold, prediction=answer)) / len(predictions)
        for answer, _ in golds.most_common(_CONSTANTS)
    }
    best = max(shares, key=lambda answer: shares[answer])
    return best, shares[best]


def _short(text: str) -> str:
    clean = "".join(c if c.isprintable() else " " for c in text)
    return repr(clean if len(clean) <= 40 else clean[:39] + "…")
