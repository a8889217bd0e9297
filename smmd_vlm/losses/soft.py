"""Losses that are a cross-entropy against a target spread over the number tokens.

restricted_ce  -log p_y over the number tokens alone; with `smoothing` e, the target (1 - e) one-hot + e / N.
               DIST2's "vocabulary" control (arXiv 2503.02379); has no distance in it.
gaussian_ce    target q_j ~ exp(-((v_j - y) / sigma)^2 / 2), cross-entropy -sum_j q_j log p_j.
               The label smoother of the NTL code (arXiv 2411.02083), sigma 1 and the full vocabulary's softmax; SMMD's
               baseline "GCE" (its sigma is not published).
dist2          target q_j ~ exp(-(v_j - y)^2 / tau), KL(q || p).
               arXiv 2503.02379 (ICLR 2026): tau 1, the full vocabulary's softmax, weight 0.1.
               Differs: public implementations take the restricted softmax, tau 2 or 4, weight 1 and a linear weight by
               place; options normaliser="restricted", tau and place="linear" are those.

The full softmax needs no full logits: log p_j = logit_j - log_z.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from smmd_vlm import kernels
from smmd_vlm.losses.base import NumericLoss, check_normaliser, lifted, log_probabilities
from smmd_vlm.runs import Runs

Normaliser = Literal["full", "restricted"]


class RestrictedCELoss(NumericLoss):
    """Cross-entropy over the number tokens alone; smoothing: share of the target spread evenly over them."""

    def __init__(self, values: Tensor, *, smoothing: float = 0.0) -> None:
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must be in [0, 1), got {smoothing!r}")
        super().__init__(values)
        self.smoothing = float(smoothing)

    def forward(self, logits: Tensor, target: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        """(P, N) logits, (P,) target column -> (P,)."""
        log_p = lifted(logits).log_softmax(-1)
        loss = -log_p.gather(-1, target[:, None]).squeeze(-1)
        return (1 - self.smoothing) * loss - self.smoothing * log_p.mean(-1) if self.smoothing else loss


class SoftTargetLoss(NumericLoss):
    """-sum_j q_j log p_j with q ~ exp(-(v_j - y)^2 / width); `divergence` subtracts the entropy of q (KL: 0 when p = q)."""

    def __init__(self, values: Tensor, width: float, normaliser: Normaliser, divergence: bool) -> None:
        super().__init__(values, check_normaliser(normaliser))
        self.normaliser = normaliser
        log_q = (-kernels.distances(values).square() / width).log_softmax(-1)
        q = log_q.exp()
        self.register_buffer("q", q, persistent=False)
        entropy = -torch.xlogy(q, q).sum(-1)
        self.register_buffer("constant", entropy if divergence else torch.zeros_like(entropy), persistent=False)

    def forward(self, logits: Tensor, target: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        """(P, N) logits, (P,) target column, (P,) log_z for the full normaliser -> (P,)."""
        log_p = log_probabilities(lifted(logits), log_z, self.normaliser)
        return -(self.q.to(log_p)[target] * log_p).sum(-1) - self.constant.to(log_p)[target]


class GaussianCELoss(SoftTargetLoss):
    """sigma: width of the target, in units of the values. normaliser: `full` (the code's) or `restricted`."""

    def __init__(self, values: Tensor, *, sigma: float = 1.0, normaliser: Normaliser = "full") -> None:
        if not 0 < sigma < float("inf"):
            raise ValueError(f"sigma must be a positive finite number, got {sigma!r}; restricted_ce is its limit 0")
        super().__init__(values, 2 * sigma**2, normaliser, divergence=False)


class DIST2Loss(SoftTargetLoss):
    """tau: temperature of squared distances. normaliser: `full` (the paper's) or `restricted` (public code)."""

    def __init__(self, values: Tensor, *, tau: float = 1.0, normaliser: Normaliser = "full") -> None:
        if not 0 < tau < float("inf"):
            raise ValueError(f"tau must be a positive finite number, got {tau!r}")
        super().__init__(values, tau, normaliser, divergence=True)
