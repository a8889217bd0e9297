"""A distribution's point values, intervals and distances: worked, against double loops, and the same however a dial is turned."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_vlm.distribution import Distribution

PERIOD = 720


def of(weights: dict[float, float], *, other: float = 0.0, period: int | None = None) -> Distribution:
    """`weights` in proportion, scaled to what `other` leaves."""
    total = math.fsum(weights.values())
    values = tuple(sorted(weights))
    probabilities = tuple(weights[value] / total * (1 - other) for value in values)
    return Distribution(values=values, probabilities=probabilities, pruned=0.0, other=other, period=period)


def weighted(values):
    return st.dictionaries(values, st.integers(1, 50).map(float), min_size=1, max_size=12)


lines = weighted(st.integers(-999, 999)).map(of)
circles = weighted(st.integers(0, PERIOD - 1)).map(lambda weights: of(weights, period=PERIOD))


def test_numbers_worked():
    found = of({1: 2, 2: 5, 4: 1, 10: 2}, other=0.2)
    assert found.mass == pytest.approx(0.8) and found.mode == 2 and found.median == 2  # the halves meet within the 2
    assert found.mean == pytest.approx((1 * 2 + 2 * 5 + 4 * 1 + 10 * 2) / 10)
    assert found.interval(0.8) == (1, 10) and found.interval(0.6) == (1, 4)  # 0.2 reaches the 1, 0.8 the 4
    assert found.weight_in((1, 4)) == pytest.approx(0.8) and found.probability(2) == pytest.approx(0.4)
    assert found.expected_distance(2) == pytest.approx((2 + 0 + 2 + 16) / 10)


def test_times_round_the_top_worked():
    found = of({710: 1, 715: 2, 5: 4, 10: 1}, period=PERIOD)  # 11:50, 11:55, 12:05, 12:10
    assert found.mode == found.median == 5 and found.distance(715, 5) == 10
    assert found.interval(0.5) == (715, 5) and found.covers((715, 5), 0) and not found.covers((715, 5), 360)
    assert found.interval(0.95) == (710, 10) and found.weight_in((710, 10)) == pytest.approx(1)
    assert of({710: 1, 10: 1}, period=PERIOD).mean == 0  # not 6 o'clock, the mean of the numbers
    assert of({0: 1, 360: 1}, period=PERIOD).mean is None  # no direction
    assert of({719: 1, 1: 3}, period=PERIOD).mean == pytest.approx(0.5, abs=1e-4)


@given(st.one_of(lines, circles))
def test_distances_equal_double_loops(found):
    pairs = list(zip(found.values, found.weights, strict=True))

    def far(point):
        return sum(weight * found.distance(value, point) for value, weight in pairs)

    assert found.spread == pytest.approx(sum(weight * far(value) for value, weight in pairs), abs=1e-9)
    assert far(found.median) == pytest.approx(min(far(value) for value in found.values), abs=1e-6)
    assert found.expected_distance(3) == pytest.approx(far(3))


@given(circles, st.integers(-PERIOD, PERIOD))
def test_no_other_point_of_the_dial_is_nearer_than_the_median(found, point):
    assert found.expected_distance(found.median) <= found.expected_distance(point % PERIOD) + 1e-6


@given(st.one_of(lines, circles), st.floats(0.01, 0.99))
def test_intervals_hold_their_share_and_grow(found, share):
    interval = found.interval(share)
    assert found.weight_in(interval) >= share - 1e-6 and found.covers(interval, found.median)
    wider = found.interval((1 + share) / 2)
    assert all(found.covers(wider, end) for end in interval)


@given(weighted(st.integers(0, PERIOD - 1)), st.integers(1, PERIOD - 1))
def test_a_turned_dial_turns_everything(weights, turn):
    found = of(weights, period=PERIOD)
    turned = of({(value + turn) % PERIOD: weight for value, weight in weights.items()}, period=PERIOD)
    assert turned.spread == pytest.approx(found.spread, abs=1e-6)
    assert turned.expected_distance(turned.median) == pytest.approx(found.expected_distance(found.median), abs=1e-6)
    assert (found.mean is None) == (turned.mean is None)
    if found.mean is not None and math.hypot(*_vector(weights)) > 1e-3:
        assert turned.distance(turned.mean, found.mean + turn) == pytest.approx(0, abs=1e-3)


def _vector(weights: dict[float, float]) -> tuple[float, float]:
    angles = [(weight / sum(weights.values()), 2 * math.pi * value / PERIOD) for value, weight in weights.items()]
    return sum(w * math.cos(a) for w, a in angles), sum(w * math.sin(a) for w, a in angles)


def test_without_mass_there_is_no_median():
    nothing = Distribution(values=(), probabilities=(), pruned=0.25, other=0.75)
    assert nothing.mass == 0
    with pytest.raises(ValueError, match="with mass on some value"):
        _ = nothing.median


GOOD = {"values": [1, 3], "probabilities": [0.5, 0.25], "pruned": 0.0, "other": 0.25}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [3, 1]}, "ascending order"),
        ({"values": [1, 1]}, "each once"),
        ({"values": [1, float("nan")]}, "expected finite values"),
        ({"values": [1]}, "one probability a value"),
        ({"values": "13"}, "expected values as a list of numbers"),
        ({"values": [1, "3"]}, "expected values as a list of numbers"),
        ({"probabilities": [0.5, 0.5]}, "add up to 1"),
        ({"probabilities": [1.5, -0.75]}, "between 0 and 1"),
        ({"other": True}, "expected other as a number"),
        ({"other": None}, "expected other as a number"),
        ({"decimals": 0.5}, "expected decimals as a whole number"),
        ({"decimals": -1}, "decimals >= 0"),
        ({"period": 3}, "below the period 3"),
    ],
)
def test_bad_rows_are_named(change, message):
    assert Distribution.from_mapping(GOOD | {"note": "unknown keys are ignored"}).values == (1, 3)
    with pytest.raises(ValueError, match=f"distribution: expected.*{message.removeprefix('expected ')}"):
        Distribution.from_mapping(GOOD | change)
