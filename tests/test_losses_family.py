"""Every loss of the table: a value worked out by hand, a slow twin in plain Python, and what holds for all of them."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_vlm import NumericVocab, losses
from smmd_vlm.losses.base import LOG_Z, RUNS
from smmd_vlm.objective import NumericObjective

DIGITS = torch.arange(10.0)
TOL = {
    torch.float64: dict(rtol=1e-9, atol=1e-12),
    torch.float32: dict(rtol=1e-5, atol=1e-6),
    torch.bfloat16: dict(rtol=2e-2, atol=2e-2),
}
VOCAB = NumericVocab.from_mapping({**{str(d): d for d in range(10)}, ".": 10})
TEXT = 11  # any other token

# every loss, once at its defaults and once for each option that changes what is computed
VARIANTS = [
    ("smmd", {}), ("smmd", {"kernel": "laplace"}), ("smmd", {"kernel": "random"}), ("smmd", {"kernel": "shuffled"}),
    ("smmd", {"term": "mmd"}), ("smmd", {"term": "smooth"}), ("smmd", {"degree": "constant"}), ("smmd", {"period": 10}),
    ("smmd", {"period": {0: 10, 1: 6}}), ("smmd", {"squash": 4.0}), ("smmd", {"sigmas": "span"}), ("smmd", {"place": "linear"}),
    ("brier", {}), ("restricted_ce", {}), ("restricted_ce", {"smoothing": 0.1}),
    ("gaussian_ce", {}), ("gaussian_ce", {"normaliser": "restricted"}),
    ("ntl_was", {}), ("ntl_was", {"reweigh": True}), ("ntl_was", {"place": "geometric"}),
    ("ntl_mse", {}), ("ntl_mse", {"function": "huber"}), ("ntl_mse", {"function": "mae"}), ("ntl_mse", {"reweigh": True}),
    ("ntil", {}), ("ntil", {"number_terms": "repeated"}), ("ntil", {"construction": "expected"}),
    ("dist2", {}), ("dist2", {"normaliser": "restricted", "tau": 2.0, "place": "linear"}), ("del", {}),
]  # fmt: skip
IDS = [f"{name}{'-' if options else ''}{'-'.join(f'{k}={v}' for k, v in options.items())}" for name, options in VARIANTS]
every = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=IDS)


def case(seed: int = 0, dtype=torch.float64, number: str = "3.015 42"):
    """(P, 10) logits, (P,) targets, log_z of a wider softmax and the runs of one written sample."""
    ids = [VOCAB.token_ids[int(c)] if c.isdigit() else VOCAB.point_id if c == "." else TEXT for c in number]
    runs = NumericObjective(VOCAB, "ntil").runs(torch.tensor([[-100, *ids]]))
    target = torch.tensor([int(c) for c in number if c.isdigit()])
    generator = torch.Generator().manual_seed(seed)
    wide = 2 * torch.randn(len(target), 16, generator=generator, dtype=torch.float64)
    return wide[:, :10].to(dtype), target, wide.logsumexp(-1), runs


def call(name, options, logits, target, log_z, runs):
    loss = losses.build(name, DIGITS, **options)
    given = {LOG_Z: {"log_z": log_z}, RUNS: {"runs": runs}}
    return loss(logits, target, **{k: v for need in loss.needs for k, v in given[need].items()})


# ---------------------------------------------------------------- values worked out by hand


def one(name, target, logits, *, log_z=None, number=None, **options) -> list[float]:
    """Losses of rows that all have the same logits."""
    targets = [target] if isinstance(target, int) else target
    _, _, _, runs = case(number=number or str(targets[0]))
    z = torch.tensor([logits] * len(targets), dtype=torch.float64)
    log_z = None if log_z is None else torch.full((len(targets),), log_z, dtype=torch.float64)
    return call(name, options, z, torch.tensor(targets), log_z, runs).tolist()


def sure_of(digit: int) -> list[float]:
    return [60.0 * (d == digit) for d in range(10)]


FLAT = [0.0] * 10


def test_ntl_was_is_the_mean_distance():
    assert one("ntl_was", 5, sure_of(2)) == pytest.approx([3.0])
    # a flat guess at 5: (5+4+3+2+1+0+1+2+3+4) / 10
    assert one("ntl_was", 5, FLAT) == pytest.approx([2.5])


def test_ntl_was_reweighed_adds_for_mass_outside():
    # ten flat logits of 0 in a vocabulary whose normaliser is twice theirs: m = 1/2, so 2.5/2 + 1.01 * 9 / 2
    assert one("ntl_was", 5, FLAT, log_z=math.log(20), reweigh=True) == pytest.approx([1.25 + 4.545])


def test_ntl_mse_looks_at_the_expected_value():
    assert one("ntl_mse", 5, FLAT) == pytest.approx([0.25])  # E = 4.5
    assert one("ntl_mse", 5, FLAT, function="mae") == pytest.approx([0.5])
    assert one("ntl_mse", 9, FLAT, function="huber") == pytest.approx([4.5 - 0.5])
    half = [40.0 * (d in (0, 8)) for d in range(10)]
    assert one("ntl_mse", 4, half) == pytest.approx([0.0], abs=1e-12)  # the known flaw: 0 or 8 is no 4


def test_restricted_ce_and_label_smoothing():
    assert one("restricted_ce", 5, FLAT) == pytest.approx([math.log(10)])
    # logits 1 at the target: log p_y = 1 - log(9 + e), log p_j = -log(9 + e)
    z = [float(d == 5) for d in range(10)]
    by_hand = 0.8 * -(1 - math.log(9 + math.e)) + 0.2 * -(0.1 - math.log(9 + math.e))
    assert one("restricted_ce", 5, z, smoothing=0.2) == pytest.approx([by_hand])


def test_gaussian_ce_spreads_the_target():
    # flat over 20 tokens: every log p is -log 20, whatever the target's shape
    assert one("gaussian_ce", 3, FLAT, log_z=math.log(20)) == pytest.approx([math.log(20)])
    assert one("gaussian_ce", 3, FLAT, normaliser="restricted") == pytest.approx([math.log(10)])


def test_dist2_is_zero_at_its_own_target_and_infinite_nowhere():
    z = [-float((d - 4) ** 2) for d in range(10)]  # logits of exp(-(v - y)^2 / 1)
    assert one("dist2", 4, z, normaliser="restricted") == pytest.approx([0.0], abs=1e-12)
    # the full normaliser adds the mass outside: twice the restricted one costs log 2
    log_z = math.log(2 * sum(math.exp(v) for v in z))
    assert one("dist2", 4, z, log_z=log_z) == pytest.approx([math.log(2)])


def test_ntil_of_199_read_as_200():
    # logits 60 on 2, 0, 0 for 1, 9, 9
    loss = losses.build("ntil", DIGITS)
    _, target, _, runs = case(number="199")
    logits = torch.tensor([sure_of(2), sure_of(0), sure_of(0)], dtype=torch.float64)
    digit = [1.44 * 1, 1.2 * 9, 9]
    number = 0.2 * 1 / 201 + 0.2 * math.log(201 / 200)
    assert loss(logits, target, runs=runs).tolist() == pytest.approx([d + number / 3 for d in digit])
    repeated = losses.build("ntil", DIGITS, number_terms="repeated")(logits, target, runs=runs)
    assert repeated.tolist() == pytest.approx([d + number for d in digit])


def test_ntil_reads_the_decimal_point():
    # 3.015 read as 3.016: |X - Y| = .001 and both near 3
    loss = losses.build("ntil", DIGITS, digit=0.0)
    _, target, _, runs = case(number="3.015")
    logits = torch.tensor([sure_of(3), sure_of(0), sure_of(1), sure_of(6)], dtype=torch.float64)
    by_hand = 0.2 * 0.001 / 4.016 + 0.2 * math.log(4.016 / 4.015)
    assert loss(logits, target, runs=runs).sum().item() == pytest.approx(by_hand, rel=1e-6)


def test_ntil_survives_numbers_longer_than_a_float():
    number = "9" * 60
    loss = losses.build("ntil", DIGITS, digit=0.0)
    _, target, _, runs = case(number=number)
    logits = torch.zeros(60, 10, requires_grad=True)  # arg max 0: X = 0
    values = loss(logits, target, runs=runs)
    assert values.isfinite().all() and values.sum().item() > 0.2
    values.sum().backward()
    assert logits.grad.isfinite().all()


def test_ntil_of_a_right_number_is_zero_with_zero_gradient():
    loss = losses.build("ntil", DIGITS, digit=0.0)
    _, target, _, runs = case(number="20.07")
    logits = torch.randn(4, 10, generator=torch.Generator().manual_seed(1))
    logits[range(4), target] = 9.0
    logits.requires_grad_()
    values = loss(logits, target, runs=runs)
    values.sum().backward()
    assert (values == 0).all() and (logits.grad == 0).all()


def test_del_weighs_by_place():
    # flat logits: BCE is log 2 everywhere and p = 1/10, so each position is w * log 2 / 10
    weights = [2.0, 1.02**-2, 1.02**-3, 1.02**-4]
    assert one("del", [3, 0, 1, 5], FLAT, number="3.015") == pytest.approx([w * math.log(2) / 10 for w in weights])
    assert one("del", [1, 2, 3], FLAT, number="123") == pytest.approx([w * math.log(2) / 10 for w in (6, 4, 2)])


def test_place_weights_average_one_over_each_number():
    even = torch.tensor(one("ntl_was", [1, 2, 3], FLAT, number="123"))
    linear = torch.tensor(one("ntl_was", [1, 2, 3], FLAT, number="123", place="linear"))
    torch.testing.assert_close(linear / even, torch.tensor([1.5, 1.0, 0.5]))
    steep = torch.tensor(one("ntl_was", [1, 2, 3], FLAT, number="123", place="geometric", place_base=2.0))
    torch.testing.assert_close(steep / even, torch.tensor([4.0, 2.0, 1.0]) * 3 / 7)


# ---------------------------------------------------------------- slow twins


def softmax(z):
    weights = [math.exp(v - max(z)) for v in z]
    return [w / sum(weights) for w in weights]


def twin(name: str, z: list[list[float]], target: list[int], log_z: list[float], number: str) -> list[float]:
    """The papers' sums, one position at a time."""
    out = []
    for row, y, norm in zip(z, target, log_z, strict=True):
        p = softmax(row)
        if name == "ntl_was":
            out.append(sum(p[j] * abs(y - j) for j in range(10)))
        elif name == "ntl_mse":
            out.append((sum(p[j] * j for j in range(10)) - y) ** 2)
        elif name == "restricted_ce":
            out.append(-math.log(p[y]))
        elif name == "brier":
            kernel = [[math.exp(-((a - b) ** 2) / 8) for b in range(10)] for a in range(10)]
            mean_degree = sum(map(sum, kernel)) / 10
            alpha = 1 / (2 * mean_degree)
            out.append((1 - alpha + 0.5) * sum((p[j] - (j == y)) ** 2 for j in range(10)))
        elif name in ("gaussian_ce", "dist2"):
            width = 2.0 if name == "gaussian_ce" else 1.0
            q = softmax([-((j - y) ** 2) / width for j in range(10)])
            out.append(sum(q[j] * ((name == "dist2" and math.log(q[j])) - (row[j] - norm)) for j in range(10)))
        elif name == "del":
            bce = [math.log1p(math.exp(-row[j] if j == y else row[j])) for j in range(10)]
            out.append(sum(bce[j] * p[j] for j in range(10)) / 10)
    if name == "del":
        whole, _, fraction = number.partition(".")
        weights = [2 * k for k in range(len(whole), 0, -1)] + [1.02 ** -(k + 2) for k in range(len(fraction))]
        out = [value * weight for value, weight in zip(out, weights, strict=True)]
    if name == "ntil":
        n = len(z)
        read = "".join(str(max(range(10), key=row.__getitem__)) for row in z)
        at = number.find(".")
        x = float(read[:at] + "." + read[at:]) if at >= 0 else float(read)
        y = float(number)
        whole = 0.2 * abs(x - y) / (max(x, y) + 1) + 0.2 * math.log((max(x, y) + 1) / (min(x, y) + 1))
        for i in range(n):
            distance = sum(pj * abs(target[i] - j) for j, pj in enumerate(softmax(z[i])))
            out.append(1.2 ** (n - i - 1) * distance + whole / n)
    return out


@settings(deadline=None, max_examples=25)
@given(
    name=st.sampled_from(["brier", "restricted_ce", "gaussian_ce", "ntl_was", "ntl_mse", "ntil", "dist2", "del"]),
    number=st.from_regex(r"[0-9]{1,5}(\.[0-9]{1,4})?", fullmatch=True),
    seed=st.integers(0, 1000),
)
def test_equals_the_slow_twin(name, number, seed):
    logits, target, log_z, runs = case(seed, number=number)
    got = call(name, {}, logits, target, log_z, runs)
    want = twin(name, logits.tolist(), target.tolist(), log_z.tolist(), number)
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64), rtol=1e-7, atol=1e-9)


# ---------------------------------------------------------------- what holds for all


# an arg max has no derivative; its straight-through gradient is tested apart
SMOOTH = [v for v in VARIANTS if v[0] != "ntil" or v[1].get("construction") == "expected"]


@pytest.mark.parametrize(("name", "options"), SMOOTH)
def test_gradcheck(name, options):
    logits, target, log_z, runs = case(2)
    outside = torch.randn(len(target), dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    def loss(z):  # the normaliser moves with the logits
        return call(name, options, z, target, torch.logaddexp(z.logsumexp(-1), outside), runs)

    assert torch.autograd.gradcheck(loss, logits.requires_grad_())


def test_ntil_straight_through_has_the_gradient_of_the_softmax():
    logits, target, _, runs = case(4, number="27")
    loss = losses.build("ntil", DIGITS, digit=0.0, magnitude=0.0)
    logits.requires_grad_()
    loss(logits, target, runs=runs).sum().backward()
    soft = logits.detach().clone().requires_grad_()
    values = ((soft / 0.1).softmax(-1) @ DIGITS.double())[0] * 10 + ((soft / 0.1).softmax(-1) @ DIGITS.double())[1]
    x = float(soft[0].argmax() * 10 + soft[1].argmax())
    sign = 1.0 if x > 27 else -1.0
    # d/dX |X - Y| / (max(X, Y) + 1), with X > Y: (Y + 1) / (X + 1)^2; with X < Y: -1 / (Y + 1)
    slope = (27 + 1) / (x + 1) ** 2 if x > 27 else sign / 28
    (0.2 * slope * values).backward()
    torch.testing.assert_close(logits.grad, soft.grad, **TOL[torch.float64])


@every
def test_half_precision_is_lifted(name, options):
    logits, target, log_z, runs = case(5)
    half = logits.bfloat16().requires_grad_()
    loss = call(name, options, half, target, log_z, runs)
    exact = call(name, options, half.detach().double(), target, log_z, runs)
    assert loss.dtype == torch.float32 and loss.shape == target.shape
    torch.testing.assert_close(loss.double(), exact, **TOL[torch.float32])
    loss.sum().backward()
    assert half.grad.dtype == torch.bfloat16 and half.grad.isfinite().all()


@every
def test_no_position_keeps_the_graph(name, options):
    logits = torch.zeros(0, 10, requires_grad=True)
    runs = NumericObjective(VOCAB, "ntil").runs(torch.tensor([[-100, TEXT]]))
    loss = call(name, options, logits, torch.zeros(0, dtype=torch.long), torch.zeros(0), runs)
    loss.sum().backward()
    assert loss.shape == (0,) and logits.grad.shape == (0, 10)


@every
def test_extreme_logits_stay_finite(name, options):
    _, target, _, runs = case()
    logits = torch.full((len(target), 10), -80.0)
    logits[range(len(target)), 9 - target] = 80.0
    logits.requires_grad_()
    loss = call(name, options, logits, target, logits.detach().logsumexp(-1), runs)
    loss.sum().backward()
    assert loss.isfinite().all() and logits.grad.isfinite().all()


# the others have their least elsewhere: at a spread target, or with every logit far below 0
PEAKED = [v for v in VARIANTS if v[0] not in ("gaussian_ce", "dist2", "del") and "smoothing" not in v[1]]


@pytest.mark.parametrize(("name", "options"), PEAKED)
def test_being_right_is_cheapest(name, options):
    _, target, _, runs = case()
    right = torch.zeros(len(target), 10, dtype=torch.float64)
    right[range(len(target)), target] = 30.0
    others, _, _, _ = case(7)
    best = call(name, options, right, target, right.logsumexp(-1), runs).sum()
    assert best < call(name, options, others, target, others.logsumexp(-1), runs).sum()


@pytest.mark.parametrize("name", losses.LOSSES)
def test_the_table_knows_its_options(name):
    options = losses.options(name)
    losses.build(name, DIGITS, **options)  # the defaults are options themselves
    assert losses.LOSSES[name].paper
    with pytest.raises(ValueError, match=f"loss '{name}' takes"):
        losses.build(name, DIGITS, sigmaa=1)


@every
def test_says_what_it_needs(name, options):
    loss = losses.build(name, DIGITS, **options)
    logits, target, _, _ = case()
    for need in sorted(loss.needs):
        with pytest.raises(ValueError, match=f"this loss needs ({LOG_Z}|{RUNS}), got none; pass"):
            loss(logits, target)
        assert need in (LOG_Z, RUNS)
    if not loss.needs:
        loss(logits, target)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("smmd", {"term": "both"}, "term must be smmd, mmd or smooth"),
        ("smmd", {"degree": "flat"}, "degree must be row or constant"),
        ("smmd", {"term": "smooth", "degree": "constant"}, "term smooth needs degree row"),
        ("smmd", {"squash": 9.0, "period": 10}, "exclude each other"),
        ("smmd", {"squash": 1.0}, "squash must be a finite number > 1"),
        ("smmd", {"period": -1}, "period must be a positive"),
        ("smmd", {"sigmas": "wide"}, 'sigmas must be numbers or "span"'),
        ("smmd", {"place": "last"}, "place must be even, linear or geometric"),
        ("smmd", {"place": "geometric", "place_base": 0.5}, "place_base must be"),
        ("restricted_ce", {"smoothing": 1.0}, "smoothing must be in"),
        ("gaussian_ce", {"sigma": 0.0}, "restricted_ce is its limit"),
        ("gaussian_ce", {"normaliser": "partial"}, "normaliser must be full or restricted"),
        ("dist2", {"tau": -1.0}, "tau must be"),
        ("ntl_mse", {"function": "rmse"}, "function must be mse, huber or mae"),
        ("ntil", {"relative": math.nan}, "relative must be"),
        ("ntil", {"construction": "gumbel"}, "construction must be"),
        ("ntil", {"number_terms": "twice"}, "number_terms must be"),
        ("ntil", {"temperature": 0.0}, "digit_base and temperature must be"),
        ("ntil", {"place": "linear"}, "loss 'ntil' takes the options"),
        ("del", {"tau": 1.0}, "loss 'del' takes no options"),
    ],
)
def test_refuses_options_in_one_sentence(name, options, message):
    with pytest.raises(ValueError, match=message):
        losses.build(name, DIGITS, **options)


def test_whole_number_losses_refuse_a_vocabulary_of_floats():
    vocab = NumericVocab.from_mapping({**{str(d): d for d in range(10)}, "3.14": 10, " 7": 11}, "floats")
    with pytest.raises(ValueError, match="needs the vocabulary digits or integers"):
        NumericObjective(vocab, "ntil")
