"""Every loss inside the objective: the same however a batch is cut, ordered, padded or wide."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_vlm import NumericObjective, NumericVocab
from smmd_vlm.losses import LOSSES
from smmd_vlm.objective import supervised, targets

POINT, TEXT = 10, 11
VOCAB = NumericVocab.from_mapping({**{str(d): d for d in range(10)}, ".": POINT})
WIDTH = 14
every = pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in LOSSES), ("ntl_was", {"reweigh": True}), ("smmd", {"place": "linear"}), ("smmd", {"period": {0: 10}})],
)  # fmt: skip


def batch(seed: int = 0, samples: int = 6, tokens: int = 9):
    """Labels rich in digits and points, every third position ignored."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(samples, tokens, WIDTH, generator=generator)
    labels = torch.randint(0, WIDTH, (samples, tokens), generator=generator)
    labels[torch.rand(labels.shape, generator=generator) < 0.25] = -100
    labels[0] = TEXT  # a sample without a number
    return logits, labels


@every
@pytest.mark.parametrize("pieces", [2, 3, 6])
def test_the_cut_into_micro_batches_does_not_matter(name, options, pieces):
    logits, labels = batch(1)
    objective = NumericObjective(VOCAB, name, 0.5, **options)
    counts = objective.count(labels)
    whole, cut = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    terms = objective(whole, labels)
    terms.loss.backward()
    parts = [objective(z, y, counts=counts) for z, y in zip(cut.chunk(pieces), labels.chunk(pieces), strict=True)]
    sum(part.loss for part in parts).backward()
    torch.testing.assert_close(cut.grad, whole.grad, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(sum(part.numeric for part in parts), terms.numeric, rtol=1e-5, atol=1e-6)


@every
def test_the_order_of_samples_does_not_matter(name, options):
    logits, labels = batch(2)
    objective = NumericObjective(VOCAB, name, 0.5, **options)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(objective(logits[order], labels[order]).loss, objective(logits, labels).loss)


@every
def test_padding_does_not_matter(name, options):
    logits, labels = batch(3)
    objective = NumericObjective(VOCAB, name, 0.5, **options)
    wanted = objective(logits, labels).loss
    noise, ignored = torch.randn(len(labels), 3, WIDTH), torch.full((len(labels), 3), -100)
    right = objective(torch.cat([logits, noise], 1), torch.cat([labels, ignored], 1)).loss
    torch.testing.assert_close(right, wanted)
    # on the left, so the first label, which no position predicts, must stay unpredicted
    labels = labels.clone()
    labels[:, 0] = -100
    left = objective(torch.cat([noise, logits], 1), torch.cat([ignored, labels], 1)).loss
    torch.testing.assert_close(left, wanted)


@every
def test_a_batch_without_a_number_is_cross_entropy(name, options):
    logits, labels = batch(4)
    labels[(labels >= 0) & (labels < 10)] = TEXT
    z = logits.clone().requires_grad_()
    terms = NumericObjective(VOCAB, name, 0.5, **options)(z, labels)
    terms.loss.backward()
    assert torch.equal(terms.loss, NumericObjective(VOCAB, "none")(logits, labels).loss)
    assert terms.numeric.item() == 0 and z.grad.isfinite().all()


@every
def test_ignored_labels_do_not_reach_the_loss(name, options):
    logits, labels = batch(5)
    objective = NumericObjective(VOCAB, name, 0.5, **options)
    wanted = objective(logits, labels).loss
    wild = logits.clone()
    wild[~supervised(labels)] = float("nan")
    torch.testing.assert_close(objective(wild, labels).loss, wanted)


@every
def test_columns_without_a_token_change_only_the_normaliser(name, options):
    logits, labels = batch(6)
    objective = NumericObjective(VOCAB, name, 0.5, **options)
    wide = torch.cat([logits, torch.full((*logits.shape[:2], 50), -torch.inf)], -1)
    torch.testing.assert_close(objective(wide, labels).loss, objective(logits, labels).loss)


@every
def test_weight_zero_equals_no_numeric_loss_to_the_bit(name, options):
    logits, labels = batch(7)
    found = []
    for objective in (NumericObjective(VOCAB, name, 0.0, **options), NumericObjective(VOCAB, "none")):
        z = logits.clone().requires_grad_()
        loss = objective(z, labels).loss
        loss.backward()
        found.append((loss.detach(), z.grad))
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])


@every
def test_evaluation_counts_the_term_too(name, options):
    logits, labels = batch(8)
    objective = NumericObjective(VOCAB, name, 0.5, **options)
    with torch.no_grad():
        quiet = objective(logits, labels)
    torch.testing.assert_close(quiet.loss, objective(logits.clone().requires_grad_(), labels).loss.detach())
    torch.testing.assert_close(quiet.loss, quiet.cross_entropy + 0.5 * quiet.numeric)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(["gaussian_ce", "dist2"]))
def test_the_full_normaliser_comes_out_of_cross_entropy(seed, name):
    """log_z = CE + logit_y equals the log-sum-exp of the row, in value and in gradient."""
    logits, labels = batch(seed)
    objective = NumericObjective(VOCAB, name, 1.0)
    z = logits.clone().requires_grad_()
    objective(z, labels).numeric.backward()
    direct = logits.clone().requires_grad_()
    rows, target = direct[supervised(labels)], targets(labels)
    here = target < 10
    if not here.any():
        return
    objective.loss(rows[here][:, :10], target[here], log_z=rows[here].logsumexp(-1)).mean().backward()
    torch.testing.assert_close(z.grad, direct.grad, rtol=1e-5, atol=1e-7)


def test_rows_alone_cannot_tell_where_a_number_ends():
    logits, labels = batch(9)
    objective = NumericObjective(VOCAB, "ntil")
    rows, target = logits[supervised(labels)], targets(labels)
    with pytest.raises(ValueError, match=r"this loss needs runs, got none; pass runs=objective.runs\(labels\)"):
        objective.rows(rows, target)
    with pytest.raises(ValueError, match="expected runs of the"):
        objective.rows(rows, target, runs=objective.runs(labels[:2]))
    torch.testing.assert_close(objective.rows(rows, target, runs=objective.runs(labels)).loss, objective(logits, labels).loss)


def test_a_number_cut_by_the_start_of_the_next_sample_stays_two():
    # 1 | 2 in neighbouring samples and 12 in one: the whole-number terms differ
    objective = NumericObjective(VOCAB, "ntil", 1.0, digit=0.0)
    logits = torch.zeros(2, 3, WIDTH)
    apart = objective(logits, torch.tensor([[TEXT, TEXT, 1], [-100, 2, TEXT]])).numeric_sum
    # X = 0 for both: 1/2 * .2 + .2 ln 2 and 2/3 * .2 + .2 ln 3
    assert apart.item() == pytest.approx(0.2 * (0.5 + 2 / 3 + torch.tensor([2.0, 3.0]).log().sum().item()), rel=1e-5)


@every
def test_autocast_changes_nothing(name, options):
    # a plain loop often holds the loss inside its autocast; products there would run in bf16
    logits, labels = batch(10)
    objective = NumericObjective(VOCAB, name, 0.5, **options)
    wanted, found = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss = objective(wanted, labels).loss
    loss.backward()
    with torch.autocast("cpu", torch.bfloat16):
        inside = objective(found, labels).loss
    inside.backward()
    assert torch.equal(inside, loss) and torch.equal(found.grad, wanted.grad)
