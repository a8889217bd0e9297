"""NumericObjective: the shift, the two denominators, and every batch that could make a NaN."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_vlm import NumericObjective, NumericVocab, losses
from smmd_vlm.objective import supervised, targets

VOCAB = NumericVocab.from_mapping({str(d): 20 - d for d in range(10)})  # ids 11 to 20
WIDTH = 24


def batch(seed: int = 0, shape=(3, 7), numbers: bool = True):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(*shape, WIDTH, generator=generator)
    labels = torch.randint(0, WIDTH if numbers else 11, shape, generator=generator)
    labels[torch.rand(shape, generator=generator) < 0.3] = -100
    return logits, labels


def by_hand(logits, labels, weight):
    """The definition, one position at a time."""
    loss, ces, nums = losses.build("smmd", VOCAB.values), [], []
    for b in range(labels.shape[0]):
        for t in range(labels.shape[1] - 1):
            target = int(labels[b, t + 1])
            if target == -100:
                continue
            ces.append(F.cross_entropy(logits[b, t][None], torch.tensor([target])))
            if target in VOCAB.token_ids:
                column = VOCAB.token_ids.index(target)
                nums.append(loss(logits[b, t, VOCAB.ids][None], torch.tensor([column]))[0])
    numeric = torch.stack(nums).mean() if nums else torch.tensor(0.0)
    return torch.stack(ces).mean() + weight * numeric


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_definition(seed):
    logits, labels = batch(seed)
    terms = NumericObjective(VOCAB, weight=0.7)(logits, labels)
    torch.testing.assert_close(terms.loss, by_hand(logits, labels, 0.7))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 3, 6]))
def test_the_cut_into_micro_batches_does_not_matter(seed, pieces):
    logits, labels = batch(seed, (6, 5))
    objective = NumericObjective(VOCAB, weight=0.5)
    counts = objective.count(labels)
    whole = logits.clone().requires_grad_()
    objective(whole, labels).loss.backward()
    cut = logits.clone().requires_grad_()
    for logit, label in zip(cut.chunk(pieces), labels.chunk(pieces), strict=True):
        objective(logit, label, counts=counts).loss.backward()
    torch.testing.assert_close(cut.grad, whole.grad, rtol=1e-5, atol=1e-7)


def test_counts_are_tokens_and_numbers():
    labels = torch.tensor([[11, -100, 20, 3, -100], [-100, -100, 12, 13, 2]])  # the first column has no row before it
    assert NumericObjective(VOCAB).count(labels).tolist() == [5, 3]


def test_weight_zero_equals_no_numeric_loss_to_the_bit():
    logits, labels = batch(5)
    grads = []
    for objective in (NumericObjective(VOCAB, weight=0.0), NumericObjective(VOCAB, "none")):
        z = logits.clone().requires_grad_()
        terms = objective(z, labels)
        terms.loss.backward()
        grads.append((terms.loss.detach(), z.grad))
    assert torch.equal(grads[0][0], grads[1][0]) and torch.equal(grads[0][1], grads[1][1])


def test_no_numeric_target_keeps_the_graph_and_is_no_nan():
    logits, labels = batch(1, numbers=False)
    logits.requires_grad_()
    terms = NumericObjective(VOCAB)(logits, labels)
    terms.loss.backward()
    assert terms.num_numbers == 0 and terms.numeric.item() == 0
    assert logits.grad.isfinite().all() and logits.grad.abs().sum() > 0


def test_nothing_supervised_is_zero_with_a_graph():
    logits = torch.randn(2, 4, WIDTH, requires_grad=True)
    terms = NumericObjective(VOCAB)(logits, torch.full((2, 4), -100))
    terms.loss.backward()
    assert terms.loss.item() == 0 and (logits.grad == 0).all()


def test_infinite_logits_elsewhere_do_not_reach_the_numeric_term():
    logits, labels = batch(2)
    logits[..., 0] = -torch.inf  # a masked token, never a target here
    labels[labels == 0] = 1
    terms = NumericObjective(VOCAB)(logits, labels)
    assert terms.loss.isfinite()


def test_bfloat16_logits():
    logits, labels = batch(3)
    exact = NumericObjective(VOCAB)(logits.bfloat16().double(), labels).loss
    half = NumericObjective(VOCAB)(logits.bfloat16(), labels).loss
    assert half.dtype == torch.float32
    torch.testing.assert_close(half.double(), exact.double(), rtol=1e-5, atol=1e-6)


def test_a_head_wider_than_the_tokenizer_changes_only_cross_entropy():
    logits, labels = batch(4)
    wide = torch.cat([logits, torch.randn(*logits.shape[:2], 100)], -1)
    objective = NumericObjective(VOCAB)
    torch.testing.assert_close(objective(wide, labels).numeric, objective(logits, labels).numeric)


def test_a_head_too_narrow_is_refused():
    logits, labels = batch(4)
    with pytest.raises(ValueError, match="reach id 20, but the head has 15 columns"):
        NumericObjective(VOCAB)(logits[..., :15], labels.clamp(max=14))


def test_kept_rows_are_the_rows_whose_next_token_is_supervised():
    logits, labels = batch(6)
    objective = NumericObjective(VOCAB)
    rows = objective.rows(logits[supervised(labels)], targets(labels))
    assert torch.equal(rows.loss, objective(logits, labels).loss)
    assert not supervised(labels)[:, -1].any()


def test_shifted_labels_are_noticed():
    logits, labels = batch()
    with pytest.raises(ValueError, match="pass unshifted labels"):
        NumericObjective(VOCAB)(logits[:, :-1], labels)


def test_logged_sums_are_what_they_say():
    labels = torch.tensor([[0, 13, 5]])  # id 13 is the digit 7
    logits = torch.zeros(1, 3, WIDTH)
    logits[0, 0, 11] = 100.0  # sure of the digit 9
    terms = NumericObjective(VOCAB)(logits, labels)
    assert terms.num_numbers == 1 and terms.numeric_correct.item() == 0
    assert terms.numeric_error_sum.item() == pytest.approx(2.0)


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_refuses_weights_that_are_no_weight(weight):
    with pytest.raises(ValueError, match="weight must be"):
        NumericObjective(VOCAB, weight=weight)
