"""Calibration: CRPS against double sums, worked numbers, properties, a calibrated forecaster, and what the report keeps."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.calibration import DECODERS, Reading, calibration, metric_rows
from eval.cli import main
from eval.evaluate import evaluate
from smmd_vlm.distribution import Distribution
from smmd_vlm.records import Prediction, write_jsonl

PERIOD = 720


def of(weights: dict[float, float], *, other: float = 0.0, period: int | None = None, decimals: int = 0) -> Distribution:
    total, values = sum(weights.values()), tuple(sorted(weights))
    probabilities = tuple(weights[value] / total * (1 - other) for value in values)
    return Distribution(values=values, probabilities=probabilities, pruned=0.0, other=other, period=period, decimals=decimals)


def read(distribution: Distribution, gold: float, greedy: float | None = None) -> Reading:
    error = None if greedy is None else distribution.distance(greedy, gold)
    return Reading(distribution=distribution, gold=gold, greedy_error=error)


def total(readings: list[Reading]) -> dict:
    groups = [f"g{place}" for place in range(len(readings))]
    return calibration(
        readings,
        groups,
        given=[(reading.distribution, group) for reading, group in zip(readings, groups, strict=True)],
        without=0,
    )


@st.composite
def readings(draw):
    period = draw(st.sampled_from([None, PERIOD]))
    values = st.integers(0, PERIOD - 1)
    weights = draw(st.dictionaries(values, st.integers(1, 50).map(float), min_size=1, max_size=10))
    other = draw(st.sampled_from([0.0, 0.3, 0.9]))
    return read(of(weights, other=other, period=period), draw(values), draw(st.none() | values))


# ---- CRPS ------------------------------------------------------------------------------------------------------------


def test_crps_worked():
    # E|X - 3| = (1 + 1) / 2 = 1, E|X - X'| = (0 + 2 + 2 + 0) / 4 = 1
    assert read(of({2: 1, 4: 1}), 3).crps == pytest.approx(1 - 1 / 2)
    # 11:58 and 12:02 lie 4 minutes apart, the gold 12:00 two from each
    assert read(of({718: 1, 2: 1}, period=PERIOD), 0).crps == pytest.approx(2 - 2 / 2)


@given(readings())
def test_crps_equals_the_double_sum_and_is_no_less_than_zero(reading):
    d = reading.distribution
    pairs = list(zip(d.values, d.weights, strict=True))
    to_gold = sum(w * d.distance(x, reading.gold) for x, w in pairs)
    apart = sum(w * v * d.distance(x, y) for x, w in pairs for y, v in pairs)
    assert reading.crps == pytest.approx(to_gold - apart / 2, abs=1e-6)
    assert reading.crps >= -1e-9 and reading.crps <= to_gold + 1e-9


@given(st.integers(0, PERIOD - 1), st.integers(0, PERIOD - 1), st.sampled_from([None, PERIOD]))
def test_crps_of_a_point_is_its_absolute_error(value, gold, period):
    reading = read(of({value: 1}, period=period), gold, value)
    assert reading.crps == pytest.approx(reading.error("median")) == reading.error("greedy") == reading.error("mode")


def test_the_truth_has_the_best_expected_crps():
    truth, timid, bold = of({4: 2, 5: 6, 6: 2}), of({3: 2, 4: 2, 5: 2, 6: 2, 7: 2}), of({5: 1})

    def expected(said):
        return sum(weight * read(said, gold).crps for gold, weight in zip(truth.values, truth.weights, strict=True))

    assert expected(truth) < min(expected(timid), expected(bold))


# ---- sums ------------------------------------------------------------------------------------------------------------


def test_numbers_worked():
    found = total(
        [
            read(of({5: 9, 6: 1}, other=0.1), 5, 5),  # confidence 0.81, all decoders right (5.1 rounds to 5)
            read(of({5: 3, 6: 2}, other=0.2), 6, 5),  # confidence 0.48, wrong but the mean 5.4; both values in both intervals
            read(of({2: 1}, other=0.6), 9, None),  # confidence 0.4, less than half on values, the greedy answer unread
        ]
    )
    assert (found["n"], found["errors_over"], found["below_half"]) == (3, 2, 1)
    assert found["coverage_80"] == found["coverage_95"] == pytest.approx(2 / 3)
    assert found["expected_coverage_80"] == pytest.approx((0.9 + 1 + 1) / 3)  # 0.9 of the first reaches its 90 % quantile
    assert found["mass"] == pytest.approx((0.9 + 0.8 + 0.4) / 3) and found["other"] == pytest.approx(0.3)
    assert [found[f"exact_{decoder}"] for decoder in DECODERS] == pytest.approx([1 / 3] * 4)
    assert [found[f"error_{decoder}"] for decoder in DECODERS] == pytest.approx([0.5, 0.5, 0.5, (0.1 + 0.6) / 2])
    assert found["crps"] == pytest.approx(((0.1 - 0.09) + (0.6 - 0.24) + 7) / 3)
    assert [(each["low"], each["n"], each["right"]) for each in found["bins"]] == [(0.4, 2, 0.0), (0.8, 1, 1.0)]
    assert found["ece"] == pytest.approx((2 * 0.44 + (1 - 0.81)) / 3)


@given(st.lists(readings(), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_rates_stay_in_bounds_and_order_does_not_matter(some, draw):
    found = total(some)
    for name, interval in found["intervals"].items():
        assert interval is None or interval[0] - 1e-9 <= found[name] <= interval[1] + 1e-9 or name.startswith(("error", "crps"))
    rates = [name for name in found if name.startswith(("coverage", "expected", "exact", "ece", "confidence", "mass"))]
    assert all(0 <= found[name] <= 1 + 1e-9 for name in rates)
    assert found["coverage_80"] <= found["coverage_95"] and sum(each["n"] for each in found["bins"]) == len(some)
    shuffled = draw.sample(some, len(some))
    again = total(shuffled)
    assert all(again[name] == pytest.approx(found[name]) for name in rates + ["crps"])


@pytest.mark.parametrize("period", [None, PERIOD])
def test_who_draws_the_gold_from_the_distribution_is_calibrated(period):
    draw, some = random.Random(0), []
    for _ in range(1500):
        centre, width = draw.randrange(PERIOD), draw.choice([2, 5, 12])
        weights = {
            (centre + step) % PERIOD if period else centre + step: 0.5 + draw.random() * (width - abs(step))
            for step in range(-width, width + 1)
        }
        distribution = of(weights, period=period)
        some.append(read(distribution, draw.choices(distribution.values, distribution.weights)[0]))
    found = total(some)
    for share in ("80", "95"):
        assert found[f"coverage_{share}"] == pytest.approx(
            found[f"expected_coverage_{share}"], abs=0.03
        )  # over 2 standard errors
    assert found["ece"] < 0.04 and found["confidence"] == pytest.approx(found["exact_mode"], abs=0.04)


# ---- the report ------------------------------------------------------------------------------------------------------


def clock(id: str, gold: str, said: str, distribution: Distribution | None) -> Prediction:
    return Prediction(id=id, question="?", answer=gold, prediction=said, answer_type="time", distribution=distribution)


ROWS = [
    clock("1", "12:00", "11:59", of({719: 2, 0: 1, 1: 2}, period=PERIOD)),
    clock("2", "03:00", "03:00", of({180: 1}, other=0.25, period=PERIOD)),
    clock("3", "03:00", "no idea", None),
    clock("4", "03:00", "03:00", Distribution(values=(), probabilities=(), pruned=0.5, other=0.5, period=PERIOD)),
    Prediction(id="5", question="?", answer="7.5", prediction="7", distribution=of({7: 1, 7.5: 3, 8: 1}, decimals=1)),
]


def test_the_report_holds_it(tmp_path, capsys):
    path, out = tmp_path / "p.jsonl", tmp_path / "report"
    path.write_text("".join(row.to_json() + "\n" for row in ROWS), encoding="utf-8")
    assert main(["score", str(path), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    found = report["time"]["calibration"]
    assert (found["n"], found["without"], found["unread"]) == (2, 1, 1)
    assert found["exact_greedy"] == 0.5 and found["exact_mean"] == 1 and found["coverage_80"] == 1
    assert report["other"]["calibration"]["error_greedy"] == 0.5 and report["other"]["calibration"]["error_median"] == 0
    rows = [json.loads(line) for line in (out / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[0]["distribution"]["interval_80"] == [719, 1] and rows[0]["distribution"]["mean"] == 0
    assert rows[1]["distribution"]["confidence"] == 0.75 and "distribution" not in rows[2] and "distribution" not in rows[3]
    page = (out / "report.md").read_text(encoding="utf-8")
    for name, value, between in metric_rows(found):
        assert f"| {name} | {value} | {between} |" in page and name in printed
    assert (
        "2 distributions scored; rows without one: 1, with one that says nothing or has no gold number: 1." in page
        and "(time_reliability.png)" in page
    )
    assert (out / "time_reliability.png").is_file() and "Reliability:" in (out / "report.html").read_text(encoding="utf-8")


def test_without_distributions_nothing_is_said(tmp_path, capsys):
    write_jsonl(tmp_path / "p.jsonl", [{"id": "1", "question": "?", "answer": "3:00", "prediction": "3:00"}])
    assert main(["score", str(tmp_path / "p.jsonl"), "--out", str(tmp_path / "report")]) == 0
    assert "alibration" not in capsys.readouterr().out + (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "calibration" not in evaluate([clock("1", "3:00", "3:00", None)]).to_dict()["time"]


def test_distributions_that_nothing_can_be_read_from_are_counted():
    found = evaluate([ROWS[3]]).to_dict()["time"]["calibration"]
    assert (found["n"], found["unread"], found["coverage_80"], found["ece"]) == (0, 1, None, None)
    assert metric_rows(found) == []


def test_a_time_with_a_distribution_over_numbers_is_refused():
    with pytest.raises(ValueError, match="the answer is a time, its distribution is over numbers"):
        evaluate([clock("1", "3:00", "3:00", of({180: 1}))])


def test_a_prediction_with_a_distribution_comes_back(tmp_path):
    for row in ROWS:
        assert Prediction.from_mapping(json.loads(row.to_json())) == row
    bad = json.loads(ROWS[0].to_json())
    with pytest.raises(ValueError, match="p.jsonl, line 1: distribution: expected one probability a value, got 3 values and 2"):
        Prediction.from_mapping(bad | {"distribution": bad["distribution"] | {"probabilities": [0.5, 0.5]}}, "p.jsonl, line 1")
    with pytest.raises(ValueError, match="distribution must be Distribution or absent, got str"):
        Prediction(id="1", question="", answer="", prediction="", distribution="7")
