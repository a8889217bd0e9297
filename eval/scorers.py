"""One answer -> verdicts. Every scorer is named, versioned and takes `gold` and `prediction` by keyword only.

`exact`           equal after strip and lower-casing.
`relaxed`         relaxed accuracy, the field's headline for charts, to the bit on the raw strings.
                  Paper: ChartQA (Masry et al. 2022), sec. 5.1.
                  Rule followed: google-research/pix2struct@5b086ef, pix2struct/metrics.py, relaxed_correctness.
                  Differs: nothing. No strip, no commas, years are numbers, binary floats.
`relaxed_strict`  the answer is read out of prose first; numbers within 5 % in decimal arithmetic, zero is a number, years
                  exact, `2%` is both 2 and 0.02 when only one side has the sign, a scale word (`5 million`) may be left
                  out on one side, lists in any order but whole, texts folded (case, dashes, quotes, end punctuation).
`within_P_percent`  numeric gold only: |prediction - gold| <= P % of |gold|, read as in relaxed_strict; years not judged.
`within_tolerance`  the record's own tolerance, in units of its value (minutes for a time).
`exact_time` ...  clock readings, on a 12-hour dial; see `TimeVerdict`.

None means: this scorer does not apply to this row. An unparsed prediction is False with a reason, never 0 and never NaN.
Pure, standard library only: training imports this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from eval.answers import MAX_ITEMS, Answer, fold_text, is_year, read_answer, read_gold, split_list
from eval.clocktext import DIAL_SECONDS, ClockTime
from smmd_vlm.numerals import Number

# Raise a version whenever any input can get another verdict; reports print it beside the name.
VERSIONS: dict[str, int] = {
    "exact": 1,
    "relaxed": 1,
    "relaxed_strict": 1,
    "numeric_equal": 1,
    "within_1_percent": 1,
    "within_2_percent": 1,
    "within_5_percent": 1,
    "within_10_percent": 1,
    "within_tolerance": 1,
    "absolute_error": 1,
    "relative_error": 1,
    "sign_error": 1,
    "magnitude_error": 1,
    "exact_time": 1,
    "exact_hour_minute": 1,
    "within_1_min": 1,
    "within_5_min": 1,
    "within_15_min": 1,
    "error_min": 1,
    "hour": 1,
    "minute": 1,
    "second": 1,
    "swap": 1,
}


# ---- any answer ------------------------------------------------------------------------------------------------------


def exact(*, gold: str, prediction: str) -> bool:
    """Equal after strip and lower-casing."""
    return prediction.strip().lower() == gold.strip().lower()


def relaxed(*, gold: str, prediction: str) -> bool:
    """Relaxed accuracy as pix2struct computes it; the error is divided by the gold, never by the prediction."""
    prediction_float = _to_float(prediction)
    gold_float = _to_float(gold)
    if prediction_float is not None and gold_float:
        return abs(prediction_float - gold_float) / abs(gold_float) <= 0.05
    return prediction.lower() == gold.lower()


def relaxed_strict(*, gold: str, prediction: str, answer_type: str | None = None) -> bool:
    """Relaxed accuracy that reads the answer first and forgives only what the question leaves open (module docstring)."""
    return _judge(gold, prediction, answer_type).right


def within(*, gold: str, prediction: str, percent: float, answer_type: str | None = None) -> bool | None:
    """Is the number that was read within `percent` of the gold number? None when the gold is no number, or a year."""
    judged = _judge(gold, prediction, answer_type)
    return judged.within(Decimal(str(percent)))


def within_1_percent(*, gold: str, prediction: str) -> bool | None:
    return within(gold=gold, prediction=prediction, percent=1)


def within_2_percent(*, gold: str, prediction: str) -> bool | None:
    return within(gold=gold, prediction=prediction, percent=2)


def within_5_percent(*, gold: str, prediction: str) -> bool | None:
    return within(gold=gold, prediction=prediction, percent=5)


def within_10_percent(*, gold: str, prediction: str) -> bool | None:
    return within(gold=gold, prediction=prediction, percent=10)


@dataclass(frozen=True, kw_only=True)
class AnswerVerdict:
    """What every scorer says about one answer that is not a clock time."""

    exact: bool
    relaxed: bool
    relaxed_strict: bool
    numeric_equal: bool | None  # the same number, however written
    within_1_percent: bool | None
    within_2_percent: bool | None
    within_5_percent: bool | None
    within_10_percent: bool | None
    within_tolerance: bool | None
    absolute_error: float | None
    relative_error: float | None  # |error| / |gold|; None for a gold of zero
    sign_error: bool | None  # the right magnitude may stand behind the wrong sign
    magnitude_error: float | None  # decades between |prediction| and |gold|: 1 is a factor of ten
    kind: str  # what the gold is: number, year, list, yes-no, text
    value: float | None  # the number read from the prediction
    gold_value: float | None
    reason: str | None  # why the prediction could not be read
    cut: bool


def score_answer(
    *, gold: str, prediction: str, answer_type: str | None = None, tolerance: float | None = None
) -> AnswerVerdict:
    """All verdicts on one answer; gold and prediction are each read once."""
    judged = _judge(gold, prediction, answer_type)
    error = judged.error
    gold_number, number = judged.pair if judged.pair else (None, None)
    both = gold_number is not None and number is not None and gold_number != 0 and number != 0
    return AnswerVerdict(
        exact=exact(gold=gold, prediction=prediction),
        relaxed=relaxed(gold=gold, prediction=prediction),
        relaxed_strict=judged.right,
        numeric_equal=None if judged.gold.number is None else error == 0,
        within_1_percent=judged.within(Decimal(1)),
        within_2_percent=judged.within(Decimal(2)),
        within_5_percent=judged.within(Decimal(5)),
        within_10_percent=judged.within(Decimal(10)),
        within_tolerance=None
        if tolerance is None or judged.gold.number is None
        else error is not None and error <= Decimal(str(tolerance)),
        absolute_error=None if error is None else float(error),
        relative_error=float(error / abs(gold_number)) if error is not None and gold_number else None,
        sign_error=None if not both else (gold_number > 0) != (number > 0),
        magnitude_error=None if not both else abs(float(abs(number).log10() - abs(gold_number).log10())),
        kind=judged.gold.kind or "text",
        value=judged.prediction.value,
        gold_value=judged.gold.value,
        reason=judged.prediction.reason,
        cut=judged.prediction.cut,
    )


def _to_float(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        return None


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """Gold and prediction as read, and the two numbers that are compared."""

    gold: Answer
    prediction: Answer
    pair: tuple[Decimal, Decimal] | None  # gold, prediction: the reading that agrees best
    right: bool

    @property
    def error(self) -> Decimal | None:
        return abs(self.pair[1] - self.pair[0]) if self.pair else None

    def within(self, percent: Decimal) -> bool | None:
        if self.gold.kind != "number":
            return None
        return self.error is not None and self.error * 100 <= percent * abs(self.pair[0])


def _judge(gold: str, prediction: str, answer_type: str | None) -> _Judged:
    want = read_gold(gold, answer_type=None if answer_type == "time" else answer_type)
    if want.kind in ("number", "year"):
        signed = want.value is not None and want.value < 0
        got = read_answer(prediction, answer_type=want.kind, signed=signed)
    elif want.kind == "list":
        got = read_answer(prediction, answer_type="list")
    else:
        got = read_answer(prediction, answer_type="text")
    pair = _nearest_pair(want.number, got.number) if want.number and got.number else None
    return _Judged(gold=want, prediction=got, pair=pair, right=_right(want, got, pair, prediction))


def _right(want: Answer, got: Answer, pair: tuple[Decimal, Decimal] | None, prediction: str) -> bool:
    if want.kind == "number":
        return pair is not None and abs(pair[1] - pair[0]) * 20 <= abs(pair[0])
    if want.kind == "year":
        return want.number is not None and got.number is not None and want.number.amount == got.number.amount
    if want.kind == "list":
        return _same_items(want.items, got.items) or (
            got.kind == "list"
            and _same_items(want.items, tuple(map(read_gold, split_list(got.text, at_and=False)[: MAX_ITEMS + 1])))
        )
    if want.kind == "yes-no" and got.kind == "yes-no":
        return want.text == got.text
    first_line = got.text.split("\n", 1)[0]  # the answer, then an explanation
    return fold_text(want.text) in (fold_text(got.text), fold_text(first_line), fold_text(prediction[:1000]))


def _nearest_pair(gold: Number, prediction: Number) -> tuple[Decimal, Decimal]:
    """(gold, prediction) under the reading that agrees best, among those that the notation leaves open."""
    pairs = [(gold.amount, prediction.amount)]
    if (gold.scale == 1) != (prediction.scale == 1):
        pairs.append((gold.digits, prediction.digits))
    if gold.percent != prediction.percent:
        hundred = Decimal(100)
        pairs += [(g / hundred, p) if gold.percent else (g, p / hundred) for g, p in pairs]
    return min(pairs, key=lambda pair: abs(pair[1] - pair[0]) / (abs(pair[0]) or 1))


def _same_items(want: Sequence[Answer], got: Sequence[Answer]) -> bool:
    """One-to-one, in any order, nothing left over: a bipartite matching, since 5 % neighbourhoods may overlap."""
    if len(want) != len(got) or len(want) > MAX_ITEMS:
        return False
    partner: dict[int, int] = {}

    def place(item: int, tried: set[int]) -> bool:
        for other in range(len(got)):
            if other not in tried and _same_item(want[item], got[other]):
                tried.add(other)
                if other not in partner or place(partner[other], tried):
                    partner[other] = item
                    return True
        return False

    return all(place(item, set()) for item in range(len(want)))


def _same_item(want: Answer, got: Answer) -> bool:
    if want.number is None or got.number is None:
        return fold_text(want.text) == fold_text(got.text)
    if is_year(want.number, want.text):
        return want.number.amount == got.number.amount
    gold, prediction = _nearest_pair(want.number, got.number)
    return abs(prediction - gold) * 20 <= abs(gold)


# ---- clocks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TimeVerdict:
    """What every scorer says about one clock reading, on a 12-hour dial: 15:30 and 03:30 are one position.

    An unreadable prediction is False everywhere and has no error. An unreadable gold has None everywhere, except
    that a gold which says the clock is invalid is answered rightly by saying so.
    """

    exact_time: bool | None  # hour and minute, and the second when the gold has one
    exact_hour_minute: bool | None
    within_1_min: bool | None  # circular: 11:59 and 12:00 differ by 1
    within_5_min: bool | None
    within_15_min: bool | None
    within_tolerance: bool | None
    error_min: float | None  # circular, 0 to 360
    hour: bool | None  # the hour as read, right or not: 02:59 for 03:00 is a wrong hour
    minute: bool | None
    second: bool | None  # None when the gold has no second
    swap: bool | None  # the reading with the two hands exchanged, see `is_swap`
    value: float | None  # minutes after 12:00
    gold_value: float | None
    reason: str | None
    cut: bool


def score_time(*, gold: str, prediction: str, tolerance: float | None = None) -> TimeVerdict:
    """All verdicts on one clock reading. Seconds are compared only when the gold has them."""
    want = read_gold(gold, answer_type="time")
    got = read_answer(prediction, answer_type="time")
    common = dict(value=got.value, gold_value=want.value, reason=got.reason, cut=got.cut)
    if want.time is None:
        said_so = got.reason == "invalid clock" if want.reason == "invalid clock" else None
        common["reason"] = None if said_so else got.reason
        return _no_time(said_so, **common)
    if got.time is None:
        return _no_time(False, second=None if want.time.second is None else False, hands=False, **common)
    error_s = time_error_s(want.time, got.time)
    hour, minute = _fields(got.time)[0] == _fields(want.time)[0], _fields(got.time)[1] == _fields(want.time)[1]
    second = None if want.time.second is None else got.time.second is not None and _fields(got.time)[2] == _fields(want.time)[2]
    return TimeVerdict(
        exact_time=hour and minute and second is not False,
        exact_hour_minute=hour and minute,
        within_1_min=error_s <= 60,
        within_5_min=error_s <= 300,
        within_15_min=error_s <= 900,
        within_tolerance=None if tolerance is None else error_s <= tolerance * 60 + 1e-6,
        error_min=error_s / 60,
        hour=hour,
        minute=minute,
        second=second,
        swap=is_swap(gold_s=want.time.dial_s, prediction_s=got.time.dial_s),
        **common,
    )


def exact_time(*, gold: str, prediction: str) -> bool | None:
    return score_time(gold=gold, prediction=prediction).exact_time


def within_1_min(*, gold: str, prediction: str) -> bool | None:
    return score_time(gold=gold, prediction=prediction).within_1_min


def within_5_min(*, gold: str, prediction: str) -> bool | None:
    return score_time(gold=gold, prediction=prediction).within_5_min


def error_min(*, gold: str, prediction: str) -> float | None:
    return score_time(gold=gold, prediction=prediction).error_min


def time_error_s(gold: ClockTime, prediction: ClockTime) -> int:
    """Seconds between two dial positions, the short way round; a gold without seconds drops the prediction's."""
    drop = prediction.second or 0 if gold.second is None else 0
    gap_s = (prediction.dial_s - drop - gold.dial_s) % DIAL_SECONDS
    return min(gap_s, DIAL_SECONDS - gap_s)


def swapped_readings_min(gold_s: int) -> tuple[float, ...]:
    """Minutes after 12:00 that a reader finds who takes the hour hand for the minute hand and the other way round.

    The hour hand stands at the fraction t / 720 of the dial, so as a minute hand it shows minute t / 12. The minute hand,
    taken for an hour hand, stands at m / 5 hours. A true hour hand there would have moved on with the minutes; this one has
    not, so two hours are honest readings: the numeral passed last, floor(m / 5), and the one that fits the minutes best,
    round(m / 5 - t / 720). Most times have one reading, the rest two. Example: 03:00 -> 12:15; 10:10 -> 02:50.8.
    """
    time_min = gold_s / 60
    minute = time_min / 12
    hand_h = (time_min % 60) / 5
    hours = {int(hand_h) % 12, round(hand_h - minute / 60) % 12}
    return tuple(sorted(hour * 60 + minute for hour in hours))


def is_swap(*, gold_s: int, prediction_s: int) -> bool:
    """Does the prediction name the exchanged hands, to a minute, and not the right time, to a minute?

    Where the hands (nearly) overlap the exchanged reading is the right one: a correct answer is never a swap.
    """
    if _circular_s(gold_s, prediction_s) <= 60:
        return False
    return any(_circular_s(reading * 60, prediction_s) <= 60 for reading in swapped_readings_min(gold_s))


def _circular_s(a_s: float, b_s: float) -> float:
    gap_s = abs(a_s - b_s) % DIAL_SECONDS
    return min(gap_s, DIAL_SECONDS - gap_s)


def _fields(time: ClockTime) -> tuple[int, int, int]:
    """Hour 0 to 11, minute, second: carries done, so that 11:60 is 12:00."""
    return time.dial_s // 3600, time.dial_s // 60 % 60, time.dial_s % 60


def _no_time(verdict: bool | None, *, second: bool | None = None, hands: bool | None = None, **common: object) -> TimeVerdict:
    return TimeVerdict(
        exact_time=verdict,
        exact_hour_minute=verdict,
        within_1_min=verdict,
        within_5_min=verdict,
        within_15_min=verdict,
        within_tolerance=None,
        error_min=None,
        hour=hands,
        minute=hands,
        second=second,
        swap=hands,
        **common,
    )
