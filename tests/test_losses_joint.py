"""Cross-entropy and columns in one: PyTorch's own values and gradients."""

import pytest
import torch
import torch.nn.functional as F

from smmd_vlm.losses.joint import cross_entropy_and_columns

R, V = 6, 12
ROWS, IDS = torch.tensor([0, 2, 5]), torch.tensor([3, 1, 7, 11])


def make(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(R, V, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()
    return logits, torch.randint(0, V, (R,), generator=generator)


def by_pytorch(logits, target, rows=ROWS):
    return F.cross_entropy(logits.float() if logits.dtype != torch.float64 else logits, target, reduction="none"), logits[rows][
        :, IDS
    ]


def test_gradcheck():
    logits, target = make()
    assert torch.autograd.gradcheck(lambda z: cross_entropy_and_columns(z, target, ROWS, IDS), logits)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [ROWS, ROWS[:0]], ids=["some", "none"])
def test_equals_pytorch(dtype, rows):
    logits, target = make(dtype)
    weights = torch.linspace(0.1, 1, R)
    found = []
    for ce, columns in (cross_entropy_and_columns(logits, target, rows, IDS), by_pytorch(logits, target, rows)):
        (gradient,) = torch.autograd.grad((ce * weights).sum() + columns.float().square().sum(), logits)
        found.append((ce.detach(), columns.detach().to(ce.dtype), gradient))
    assert found[0][0].dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    for mine, theirs in zip(*found, strict=True):
        rough = mine.dtype == torch.bfloat16  # PyTorch rounds two gradients and their sum, this one rounds once
        torch.testing.assert_close(mine, theirs, rtol=2e-2 if rough else 1e-5, atol=2e-2 if rough else 1e-6)


def test_columns_alone_and_no_rows_at_all():
    logits, target = make()
    _, columns = cross_entropy_and_columns(logits, target, ROWS, IDS)
    (gradient,) = torch.autograd.grad(columns.sum(), logits)
    assert gradient.sum().item() == len(ROWS) * len(IDS) and set(gradient.unique().tolist()) == {0.0, 1.0}
    empty = torch.zeros(0, V, requires_grad=True)
    ce, _ = cross_entropy_and_columns(empty, target[:0], ROWS[:0], IDS)
    ce.sum().backward()
    assert empty.grad.shape == (0, V)


def test_a_masked_column_has_no_gradient():
    logits, target = make()
    with torch.no_grad():
        logits[:, 0] = -torch.inf
        target[target == 0] = 1
    ce, _ = cross_entropy_and_columns(logits, target, ROWS, IDS)
    ce.sum().backward()
    assert logits.grad.isfinite().all() and (logits.grad[:, 0] == 0).all()
