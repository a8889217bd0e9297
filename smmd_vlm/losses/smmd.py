"""SMMD: smoothed maximum mean discrepancy between the predicted and the true number.

Paper: arXiv 2606.27731, sections 3.1-3.4 (eq. 1-4); worked values in tests/test_smmd.py.
With p the softmax over the N number tokens, q the one-hot target, r = p - q, K a kernel of value distance:
    loss = r'Kr + alpha r'(D - K)r = (1 - alpha) r'Kr + alpha sum_i D_ii r_i^2,   D_ii = sum_j K_ij,
    alpha = 1 / (2 mean_i D_ii) unless given.
Differs: the residual form in float32 instead of the released code's expanded pKp + K_tt - 2 K_t p, whose rounding
and clamp give a zero gradient at confident positions; the value is the same to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from smmd_vlm import kernels

Kernel = Literal["gaussian", "identity", "shuffled"]


def residual(logits: Tensor, target: Tensor) -> Tensor:
    """(P, N) logits, (P,) target column -> (P, N) r = softmax - one-hot, float32 (float64 stays).

    r at the target is minus the sum of the others rather than p - 1, which would round to 0 as p nears 1.
    """
    if not logits.dtype == torch.float64:
        logits = logits.float()
    others = logits.softmax(-1).scatter(-1, target[:, None], 0.0)
    return others.scatter(-1, target[:, None], -others.sum(-1, keepdim=True))


def smmd(residual: Tensor, gram: Tensor, degree: Tensor, alpha: float) -> Tensor:
    """(P, N) residual, (N, N) K, (N,) row sums of K -> (P,): r'Kr + alpha r'(D - K)r, unreduced."""
    return ((1 - alpha) * residual * (residual @ gram) + alpha * degree * residual.square()).sum(-1)


class SMMDLoss(nn.Module):
    """SMMD over a fixed set of values.

    values: (N,) the numbers' values in the order of the logit columns.
    sigmas: bandwidths of the Gaussian kernel, in units of the values; their kernels are averaged.
    alpha: weight of the smoothness term; None is the paper's 1 / (2 mean degree).
    kernel: `gaussian` (the paper's); two controls without numeric structure: `identity` (a Brier score, scaled so that
        the whole quadratic form has the trace that SMMD's has) and `shuffled` (the Gaussian on permuted values, `seed`).
    """

    def __init__(
        self,
        values: Tensor,
        *,
        sigmas: Sequence[float] = (2.0,),
        alpha: float | None = None,
        kernel: Kernel = "gaussian",
        seed: int = 42,
    ) -> None:
        super().__init__()
        if kernel not in ("gaussian", "identity", "shuffled"):
            raise ValueError(f"kernel must be gaussian, identity or shuffled, got {kernel!r}")
        if alpha is not None and not 0 <= alpha < float("inf"):
            raise ValueError(f"alpha must be a finite number >= 0 or null, got {alpha!r}")
        gram = kernels.gaussian(values, sigmas)
        if kernel == "shuffled":
            gram = kernels.shuffled(gram, seed)
        degree = gram.sum(-1)
        self.alpha = float(1 / (2 * degree.mean())) if alpha is None else float(alpha)
        if kernel == "identity":
            # mean diagonal of (1 - alpha) K + alpha D, the matrix of SMMD's quadratic form
            scale = (1 - self.alpha) * gram.diagonal().mean() + self.alpha * degree.mean()
            gram, degree = torch.eye(len(values), dtype=gram.dtype) * scale, scale.expand(len(values)).clone()
        # fixed by the values, so not part of a checkpoint
        self.register_buffer("gram", gram, persistent=False)
        self.register_buffer("degree", degree, persistent=False)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """(P, N) logits over the number tokens, (P,) long target column -> (P,) loss, float32 (float64 stays)."""
        r = residual(logits, target)
        return smmd(r, self.gram.to(r), self.degree.to(r), self.alpha)
