"""Cross-entropy over all columns and a few columns for the numeric term, with one gradient between them.

Taking columns out of (R, V) logits by index costs, backward, a (R, V) tensor of zeros and its addition to cross-entropy's
gradient: a third of cross-entropy itself. Here the few entries are added in place, so the numeric term is nearly free.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smmd_vlm.losses.base import lifted


class _Joint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, rows: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        log_p = lifted(logits).log_softmax(-1)
        ctx.save_for_backward(log_p, target, rows, ids)
        ctx.dtype = logits.dtype
        return -log_p.gather(-1, target[:, None]).squeeze(-1), lifted(logits[rows[:, None], ids])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, ce_grad: Tensor, columns_grad: Tensor) -> tuple[Tensor, None, None, None]:
        log_p, target, rows, ids = ctx.saved_tensors
        grad = log_p.exp().mul_(ce_grad[:, None])  # softmax - one-hot, times what comes from above
        grad.scatter_add_(-1, target[:, None], -ce_grad[:, None])
        if len(rows):
            grad.index_put_((rows[:, None], ids), columns_grad, accumulate=True)
        return grad.to(ctx.dtype), None, None, None


def cross_entropy_and_columns(logits: Tensor, target: Tensor, rows: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """(R, V) logits, (R,) target ids, (P,) rows and (N,) ids -> (R,) cross-entropy and (P, N) logits, in float32 at least."""
    return _Joint.apply(logits, target, rows, ids)
