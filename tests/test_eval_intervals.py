"""eval.intervals: worked values, edges, clustering, coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.intervals import mean_interval, median_interval, rate_interval, student_quantile, wilson


def test_wilson_worked():
    # 7 of 10, z = 1.959964: centre (0.7 + 0.192073) / 1.384146 = 0.644494, half 1.959964 / 1.384146 * sqrt(0.021 + 0.009604) = 0.247715
    low, high = wilson(7, 10)
    assert (low, high) == (pytest.approx(0.396778, abs=1e-6), pytest.approx(0.892209, abs=1e-6))


def test_nothing_and_everything_right_are_never_empty():
    # 0 of n: high is z^2 / (n + z^2) = 3.841459 / 13.841459
    assert wilson(0, 10) == (0.0, pytest.approx(0.277533, abs=1e-6))
    assert wilson(10, 10) == (pytest.approx(0.722467, abs=1e-6), 1.0)
    for verdicts in ([True] * 8, [False] * 8):
        low, high = rate_interval(verdicts, [1, 1, 2, 2, 3, 3, 4, 4])
        assert high - low > 0.4  # four clusters say as much as four rows, at most


def test_no_rows_have_no_interval():
    assert rate_interval([]) is None and mean_interval([]) is None and median_interval([]) is None
    assert mean_interval([1.0, 2.0], ["a", "a"]) is None


@pytest.mark.parametrize(
    ("freedom", "table"), [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)]
)
def test_student_quantile_equals_the_table(freedom, table):
    assert student_quantile(0.975, freedom) == pytest.approx(table, rel=2e-3)


def test_wilson_refuses_nonsense():
    for right, n in ((1, 0), (3, 2), (-1, 2), (1, math.nan)):
        with pytest.raises(ValueError, match="wilson needs"):
            wilson(right, n)
    with pytest.raises(ValueError, match="one entry a row"):
        rate_interval([True], [])


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_groups_of_one_are_no_clusters(verdicts):
    assert (
        rate_interval(verdicts, range(len(verdicts)))
        == rate_interval(verdicts)
        == rate_interval(verdicts, [None] * len(verdicts))
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), min_size=2, max_size=200))
def test_intervals_hold_their_rate_and_clusters_never_narrow_them(rows):
    verdicts, groups = zip(*rows, strict=True)
    rate = sum(verdicts) / len(verdicts)
    low, high = rate_interval(verdicts, groups)
    plain = rate_interval(verdicts)
    assert 0 <= low <= rate + 1e-12 and rate - 1e-12 <= high <= 1
    assert high - low >= plain.high - plain.low - 1e-12


def test_copies_of_a_row_add_nothing():
    draws = np.random.default_rng(0).random(200) < 0.8
    once = rate_interval(draws)
    tenfold = rate_interval(np.repeat(draws, 10), np.repeat(np.arange(200), 10).tolist())
    assert tenfold.high - tenfold.low == pytest.approx(once.high - once.low, rel=0.02)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=80))
def test_mean_and_median_lie_inside(values):
    mean, median = mean_interval(values), median_interval(values)
    assert mean.low - 1e-6 <= np.mean(values) <= mean.high + 1e-6 or len(set(values)) > 1
    assert median.low <= np.median(values) <= median.high
    assert mean == mean_interval(values)  # fixed seed


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("size", [1, 4])
def test_nominal_95_covers_93_to_97(rate, size):
    """200 clusters whose own rates spread as a beta distribution: 3,000 simulated test sets."""
    draw, hits, sets = np.random.default_rng(size), 0, 3000
    groups = np.repeat(np.arange(200), size).tolist()
    for _ in range(sets):
        own = draw.beta(2 * rate, 2 * (1 - rate), size=200)
        low, high = rate_interval((draw.random((200, size)) < own[:, None]).ravel(), groups)
        hits += low <= rate <= high
    assert 0.93 <= hits / sets <= 0.97


def test_mean_and_median_cover_too():
    draw, sets = np.random.default_rng(5), 400
    groups = np.repeat(np.arange(100), 2).tolist()
    means = medians = 0
    for _ in range(sets):
        values = (
            draw.exponential(size=(100, 1)) + draw.exponential(size=(100, 2))
        ).ravel()  # Gamma(2, 1): mean 2, median 1.678
        mean, median = mean_interval(values, groups), median_interval(values, groups)
        means += mean.low <= 2 <= mean.high
        medians += median.low <= 1.67835 <= median.high
    assert 0.91 <= means / sets <= 0.985 and 0.91 <= medians / sets <= 0.985
