"""SMMD against worked values (LOSSES 1.2), a double loop, finite differences, and the reasons it exists."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_vlm import kernels, losses
from smmd_vlm.losses.smmd import SMMDLoss, residual, smmd

DIGITS = torch.arange(10.0)
TOL = {
    torch.float64: dict(rtol=1e-9, atol=1e-12),
    torch.float32: dict(rtol=1e-5, atol=1e-6),
    torch.bfloat16: dict(rtol=2e-2, atol=2e-2),
}

# all mass on one wrong digit: target, predicted -> mmd, alpha * smooth, sum
CORNERS = [
    (5, 4, 0.2350, 1.1405, 1.3755), (5, 3, 0.7869, 1.0606, 1.8475), (5, 2, 1.3507, 0.9558, 2.3065),
    (5, 1, 1.7293, 0.8394, 2.5687), (5, 0, 1.9121, 0.7135, 2.6256), (5, 6, 0.2350, 1.1258, 1.3608),
    (5, 7, 0.7869, 1.0225, 1.8094), (5, 8, 1.3507, 0.8842, 2.2349), (5, 9, 1.7293, 0.7351, 2.4644),
]  # fmt: skip
FROM_ZERO = [1.0223, 1.5806, 2.1159, 2.4644, 2.6256, 2.6688, 2.6465, 2.5781, 2.4743]


def corner(target: int, predicted: int) -> torch.Tensor:
    """(1, 10) residual of a model that is sure of `predicted`."""
    r = torch.zeros(1, 10, dtype=torch.float64)
    r[0, predicted] += 1
    r[0, target] -= 1
    return r


def parts(r: torch.Tensor) -> tuple[float, float]:
    gram = kernels.gaussian(DIGITS)
    degree = gram.sum(-1)
    alpha = 1 / (2 * degree.mean().item())
    mmd = smmd(r, gram, degree, 0.0).item()
    return mmd, smmd(r, gram, degree, alpha).item() - mmd


def test_alpha_of_the_digits():
    assert SMMDLoss(DIGITS).alpha == pytest.approx(0.118199, abs=5e-7)


@pytest.mark.parametrize(("target", "predicted", "mmd", "smooth", "both"), CORNERS)
def test_golden_corners(target, predicted, mmd, smooth, both):
    got_mmd, got_smooth = parts(corner(target, predicted))
    assert got_mmd == pytest.approx(mmd, abs=1e-4)
    assert got_smooth == pytest.approx(smooth, abs=1e-4)
    assert got_mmd + got_smooth == pytest.approx(both, abs=1e-4)


@pytest.mark.parametrize(("predicted", "cost"), list(enumerate(FROM_ZERO, start=1)))
def test_golden_corners_from_zero(predicted, cost):
    assert sum(parts(corner(0, predicted))) == pytest.approx(cost, abs=1e-4)


def test_all_mass_one_bandwidth_away():
    # k = exp(-1/2): k(p,p) - 2k + k(y,y) = 2 - 2 exp(-1/2)
    assert parts(corner(3, 5))[0] == pytest.approx(2 - 2 * math.exp(-0.5), rel=1e-12)


def test_uniform_guess():
    # LOSSES 1.2: a uniform p against target 5 costs 0.9006, less than a confident off-by-one
    loss = SMMDLoss(DIGITS)(torch.zeros(1, 10), torch.tensor([5])).item()
    assert loss == pytest.approx(0.9006, abs=1e-4)


def slow_twin(logits: list[float], target: int, values: list[float], sigmas: list[float]) -> float:
    """The paper's sums, written as loops: r'Kr + alpha * 1/2 sum_ij K_ij (r_i - r_j)^2."""
    n, peak = len(values), max(logits)
    weights = [math.exp(z - peak) for z in logits]
    r = [w / sum(weights) - (i == target) for i, w in enumerate(weights)]
    kernel = [[sum(math.exp(-((a - b) ** 2) / (2 * s * s)) for s in sigmas) / len(sigmas) for b in values] for a in values]
    mmd = sum(r[i] * kernel[i][j] * r[j] for i in range(n) for j in range(n))
    smooth = sum(kernel[i][j] * (r[i] - r[j]) ** 2 for i in range(n) for j in range(n)) / 2
    alpha = 1 / (2 * sum(map(sum, kernel)) / n)
    return mmd + alpha * smooth


@settings(deadline=None)
@given(st.data())
def test_equals_the_double_loop(data):
    n = data.draw(st.integers(2, 12))
    values = data.draw(st.lists(st.floats(-100, 100), min_size=n, max_size=n))
    logits = data.draw(st.lists(st.floats(-20, 20), min_size=n, max_size=n))
    target = data.draw(st.integers(0, n - 1))
    sigmas = data.draw(st.lists(st.floats(0.2, 30), min_size=1, max_size=3))
    module = SMMDLoss(torch.tensor(values, dtype=torch.float64), sigmas=sigmas)
    got = module(torch.tensor([logits], dtype=torch.float64), torch.tensor([target])).item()
    assert got == pytest.approx(slow_twin(logits, target, values, sigmas), rel=1e-9, abs=1e-12)
    assert got >= -1e-12  # K and D - K are positive semi-definite


@pytest.mark.parametrize(
    "options", [{}, {"sigmas": [1.0, 4.0]}, {"alpha": 0.0}, {"kernel": "identity"}, {"kernel": "shuffled"}]
)
def test_gradcheck(options):
    module = SMMDLoss(DIGITS, **options)
    logits = torch.randn(4, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: module(z, torch.tensor([0, 3, 5, 9])), logits)


def test_gradient_is_the_closed_form():
    # dL/dz = p * (g - p'g) with g = 2 ((1 - alpha) K + alpha D) r
    module = SMMDLoss(DIGITS)
    logits = torch.randn(3, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    target = torch.tensor([2, 7, 0])
    module(logits, target).sum().backward()
    p = logits.detach().softmax(-1)
    r = p - torch.nn.functional.one_hot(target, 10)
    g = 2 * ((1 - module.alpha) * r @ module.gram + module.alpha * module.degree * r)
    torch.testing.assert_close(logits.grad, p * (g - (p * g).sum(-1, keepdim=True)), **TOL[torch.float64])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_half_precision_logits_are_lifted_to_float32(dtype):
    logits = torch.randn(5, 10, generator=torch.Generator().manual_seed(2)).to(dtype).requires_grad_()
    loss = SMMDLoss(DIGITS)(logits, torch.tensor([0, 1, 4, 8, 9]))
    exact = SMMDLoss(DIGITS)(logits.detach().double(), torch.tensor([0, 1, 4, 8, 9]))
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.double(), exact, **TOL[torch.float32])
    loss.sum().backward()
    assert logits.grad.dtype == dtype and logits.grad.isfinite().all()


def test_a_confident_right_answer_still_has_a_gradient():
    # the released expanded form rounds to 0 at a gap of 14 on most positions and at 18 on all
    logits = torch.zeros(1, 10)
    logits[0, 5] = 18.0
    logits.requires_grad_()
    SMMDLoss(DIGITS)(logits, torch.tensor([5])).sum().backward()
    assert logits.grad.abs().max() > 0


def test_residual_sums_to_zero_and_is_exact_near_one():
    logits = torch.zeros(1, 10)
    logits[0, 3] = 30.0
    r = residual(logits, torch.tensor([3]))
    assert r[0, 3].item() == pytest.approx(-9 * math.exp(-30), rel=1e-4)  # p - 1 would round to 0 in float32


def test_brier_is_the_identity_kernel_at_smmds_trace():
    full, flat = SMMDLoss(DIGITS), losses.build("brier", DIGITS)
    diagonal = (1 - full.alpha) * full.gram.diagonal() + full.alpha * full.degree
    assert flat.gram.diagonal().sum().item() == pytest.approx(diagonal.sum().item(), rel=1e-12)
    r = torch.randn(2, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    expected = diagonal.mean() * r.square().sum(-1)
    torch.testing.assert_close(smmd(r, flat.gram, flat.degree, flat.alpha), expected)


def test_nearer_is_cheaper_where_the_range_does_not_end():
    costs = [sum(parts(corner(5, predicted))) for predicted in (4, 3, 2, 1)]
    assert costs == sorted(costs)


def test_build_names_what_it_knows():
    with pytest.raises(ValueError, match="loss must be one of smmd, brier, .*, del, got 'mmd2'"):
        losses.build("mmd2", DIGITS)
    with pytest.raises(ValueError, match="takes the options sigmas, alpha, kernel, .*, got sigma"):
        losses.build("smmd", DIGITS, sigma=2.0)
    with pytest.raises(ValueError, match="kernel must be"):
        losses.build("smmd", DIGITS, kernel="laplacian")


# ---------------------------------------------------------------- options that are off by default


def costs(**options) -> torch.Tensor:
    """(10, 10) cost of being sure of the column's digit when the row's is right."""
    module = SMMDLoss(DIGITS, **options)
    return torch.stack([smmd(torch.cat([corner(t, p) for p in range(10)]), module.gram, module.degree, module.alpha) for t in range(10)])  # fmt: skip


@pytest.mark.parametrize("sigmas", [(1.0,), (2.0,), (2.0, 6.0), (4.0,)])
def test_with_a_constant_degree_cost_rises_with_distance_over_all_digit_pairs(sigmas):
    cost = costs(degree="constant", sigmas=sigmas)
    pairs = sorted((abs(t - p), cost[t, p].item()) for t in range(10) for p in range(10))
    for (near, less), (far, more) in zip(pairs, pairs[1:], strict=False):
        assert less < more if near < far else less == pytest.approx(more, rel=1e-9), (near, far)


def test_the_papers_degree_lets_it_fall_at_the_ends():
    cost = costs()
    assert cost[0, 6] > cost[0, 9]  # LOSSES 1.2: the reason for the option


def test_a_constant_degree_keeps_the_trace():
    row, constant = SMMDLoss(DIGITS), SMMDLoss(DIGITS, degree="constant")
    assert constant.degree.sum().item() == pytest.approx(row.degree.sum().item(), rel=1e-12)
    assert constant.alpha == row.alpha


@pytest.mark.parametrize(("target", "predicted", "mmd", "smooth", "both"), CORNERS[:3])
def test_terms_alone(target, predicted, mmd, smooth, both):
    logits = torch.zeros(1, 10)
    logits[0, predicted] = 60.0
    found = [SMMDLoss(DIGITS, term=term)(logits, torch.tensor([target])).item() for term in ("mmd", "smooth", "smmd")]
    assert found == pytest.approx([mmd, smooth, both], abs=1e-4)


def test_laplace():
    # all mass one away: 2 - 2 exp(-1/2) and, by D_ii = sum_j exp(-d / 2), the smoothness term
    module = SMMDLoss(DIGITS, kernel="laplace", alpha=0.0)
    logits = torch.zeros(1, 10)
    logits[0, 4] = 60.0
    assert module(logits, torch.tensor([5])).item() == pytest.approx(2 - 2 * math.exp(-0.5), rel=1e-6)


def test_a_minute_circle_joins_59_and_0():
    minutes = torch.arange(60.0)
    logits = torch.zeros(1, 60)
    logits[0, 59] = 60.0
    line, circle = SMMDLoss(minutes), SMMDLoss(minutes, period=60)
    assert circle(logits, torch.tensor([0])).item() == pytest.approx(circle(logits, torch.tensor([58])).item(), rel=1e-6)
    assert circle(logits, torch.tensor([0])) < line(logits, torch.tensor([0]))
    # on a circle every value has the same neighbourhood, so cost rises with the chord without another option
    module = SMMDLoss(minutes, period=60)
    assert module.degree.max().item() == pytest.approx(module.degree.min().item(), rel=1e-9)


def test_each_place_has_its_own_circle():
    from smmd_vlm import NumericObjective, NumericVocab

    vocab = NumericVocab.from_mapping({str(d): d for d in range(10)})
    runs = NumericObjective(vocab, "ntil").runs(torch.tensor([[-100, 5, 9]]))  # "59": 5 tens, 9 units
    module = SMMDLoss(DIGITS, period={0: 10, 1: 6})
    logits = torch.zeros(2, 10)
    logits[:, 0] = 60.0  # sure of 00
    tens, units = module(logits, torch.tensor([5, 9]), runs=runs).tolist()
    assert tens == pytest.approx(SMMDLoss(DIGITS, period=6)(logits[:1], torch.tensor([5])).item(), rel=1e-6)
    assert units == pytest.approx(SMMDLoss(DIGITS, period=10)(logits[:1], torch.tensor([9])).item(), rel=1e-6)
    assert units < SMMDLoss(DIGITS)(logits[:1], torch.tensor([9])).item()


def test_a_bandwidth_set_that_spans_the_range_ranks_far_errors():
    minutes = torch.arange(60.0)

    def at(gap: int, sigmas) -> float:
        logits = torch.zeros(1, 60)
        logits[0, 10 + gap] = 80.0
        return SMMDLoss(minutes, sigmas=sigmas, degree="constant")(logits, torch.tensor([10])).item()

    assert at(40, "span") - at(20, "span") > 0.2 > 1e-6 > at(40, (2.0,)) - at(20, (2.0,))
    assert SMMDLoss(DIGITS, sigmas="span").alpha == SMMDLoss(DIGITS).alpha  # (2,) for digits: the paper's


def test_squash_is_the_identity_on_digits_and_flattens_a_thousand_values():
    torch.testing.assert_close(SMMDLoss(DIGITS, squash=9.0).gram, SMMDLoss(DIGITS).gram)
    # LOSSES 2, T6: K(1), K(2), K(9), mean degree and alpha of 0..999
    module = SMMDLoss(torch.arange(1000.0), squash=9.0)
    assert module.gram[0, [1, 2, 9]].tolist() == pytest.approx([0.8825, 0.8807, 0.8680], abs=1e-4)
    assert module.degree.mean().item() == pytest.approx(325.7, abs=0.1) and module.alpha == pytest.approx(0.001535, abs=1e-6)
    plain = SMMDLoss(torch.arange(1000.0))
    assert plain.degree.mean().item() == pytest.approx(5.005, abs=1e-3) and plain.alpha == pytest.approx(0.0999, abs=1e-4)


@pytest.mark.parametrize(
    "options", [{"kernel": "random"}, {"kernel": "shuffled"}, {"kernel": "laplace"}, {"period": 10}, {"period": 6}]
)
def test_every_kernel_makes_a_form_that_is_never_negative(options):
    module = SMMDLoss(DIGITS, **options)
    assert (module.gram >= 0).all()
    assert torch.linalg.eigvalsh(module.gram).min() > -1e-9
    assert torch.linalg.eigvalsh(module.degree.diag() - module.gram).min() > -1e-9
