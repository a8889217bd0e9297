"""Kernels: worked values, positive semi-definiteness, and what they refuse."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smmd_vlm import kernels

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


def test_worked_values_of_the_paper_bandwidth():
    # sigma 2: K(1) = exp(-1/8), K(2) = exp(-1/2), K(5) = exp(-25/8)
    gram = kernels.gaussian(torch.arange(10.0))
    assert gram[0, 1].item() == pytest.approx(math.exp(-1 / 8), rel=1e-12)
    assert gram[3, 5].item() == pytest.approx(math.exp(-1 / 2), rel=1e-12)
    assert gram[9, 4].item() == pytest.approx(math.exp(-25 / 8), rel=1e-12)
    assert gram.sum(-1).mean().item() == pytest.approx(4.2301, abs=5e-5)  # LOSSES 1.2: mean degree over digits


def test_several_bandwidths_are_averaged():
    values = torch.tensor([0.0, 1.0, 7.0])
    mean = (kernels.gaussian(values, [1.0]) + kernels.gaussian(values, [3.0])) / 2
    torch.testing.assert_close(kernels.gaussian(values, [1.0, 3.0]), mean)


@given(VALUES, st.lists(st.floats(0.1, 50), min_size=1, max_size=3))
def test_gaussian_is_symmetric_psd_with_ones_on_the_diagonal(values, sigmas):
    gram = kernels.gaussian(torch.tensor(values, dtype=torch.float64), sigmas)
    torch.testing.assert_close(gram, gram.T)
    torch.testing.assert_close(gram.diagonal(), torch.ones(len(values), dtype=torch.float64))
    assert torch.linalg.eigvalsh(gram).min() > -1e-9


@given(st.integers(2, 40), st.integers(0, 2**31))
def test_shuffled_is_a_relabelling_without_a_fixed_point(size, seed):
    gram = kernels.gaussian(torch.arange(float(size)))
    mixed = kernels.shuffled(gram, seed)
    torch.testing.assert_close(torch.linalg.eigvalsh(mixed), torch.linalg.eigvalsh(gram), atol=1e-9, rtol=0)
    torch.testing.assert_close(mixed.diagonal(), gram.diagonal())
    # relabel the positions themselves to see where each index went
    marks = torch.arange(size * size, dtype=torch.float64).reshape(size, size)
    assert (kernels.shuffled(marks, seed).diagonal() != marks.diagonal()).all()


@pytest.mark.parametrize("sigmas", [(), (0.0,), (-1.0,), (math.nan,), (math.inf,)])
def test_refuses_bandwidths_that_are_no_width(sigmas):
    with pytest.raises(ValueError, match="sigmas must be"):
        kernels.gaussian(torch.arange(3.0), sigmas)


def test_refuses_values_that_are_not_finite():
    with pytest.raises(ValueError, match="finite"):
        kernels.gaussian(torch.tensor([0.0, math.nan]))


@given(VALUES, st.floats(0.5, 100), st.lists(st.floats(0.1, 50), min_size=1, max_size=3))
def test_a_circle_is_psd_for_every_sigma(values, period, sigmas):
    gram = kernels.gaussian_of(kernels.chords(torch.tensor(values, dtype=torch.float64), period), sigmas)
    torch.testing.assert_close(gram, gram.T)
    torch.testing.assert_close(gram.diagonal(), torch.ones(len(values), dtype=torch.float64))
    assert torch.linalg.eigvalsh(gram).min() > -1e-9


def test_chords():
    chords = kernels.chords(torch.tensor([0.0, 1.0, 5.0, 9.0, 12.0, 12.0]), 10.0)
    by_hand = pytest.approx(10 / math.pi * math.sin(math.pi / 10), rel=1e-12)
    assert chords[0, 1].item() == by_hand and chords[0, 3].item() == by_hand
    assert chords[0, 2].item() == pytest.approx(10 / math.pi)  # the diameter
    assert chords[0, 4].item() == math.inf and chords[4, 5].item() == 0  # 12 lies off a circle of 10; "12" and "012" are equals


@given(VALUES)
def test_laplace_is_psd(values):
    gram = kernels.laplace_of(kernels.distances(torch.tensor(values, dtype=torch.float64)), [2.0])
    assert torch.linalg.eigvalsh(gram).min() > -1e-9


@given(VALUES, st.integers(0, 2**31))
def test_random_values_stay_in_range_and_repeat(values, seed):
    values = torch.tensor(values, dtype=torch.float64)
    drawn = kernels.random_values(values, seed)
    assert torch.equal(drawn, kernels.random_values(values, seed))
    assert values.min() <= drawn.min() and drawn.max() <= values.max()


def test_spanning_sigmas():
    assert kernels.spanning_sigmas(torch.arange(10.0)) == (2.0,)
    assert kernels.spanning_sigmas(torch.arange(60.0)) == (2.0, 6.0, 18.0)
    assert kernels.spanning_sigmas(torch.arange(1000.0)) == (2.0, 6.0, 18.0, 54.0, 162.0)


def test_squash_keeps_zero_and_brings_the_rest_into_its_range():
    gaps = kernels.squash(kernels.distances(torch.tensor([0.0, 1.0, 1.0, 101.0])), 5.0)
    assert gaps[1, 2].item() == 0 and gaps[0, 1].item() == 1 and gaps[0, 3].item() == 5
    assert kernels.squash(torch.zeros(2, 2), 5.0).sum().item() == 0


@pytest.mark.parametrize("period", [0.0, -1.0, math.nan, math.inf])
def test_refuses_circles_that_are_none(period):
    with pytest.raises(ValueError, match="period must be"):
        kernels.chords(torch.arange(3.0), period)
