"""NTL: number token loss, in its Wasserstein and its dot-product form.

Paper: arXiv 2411.02083 (ICML 2025), NTL-WAS and NTL-MSE. With p the softmax over the number tokens and y the true value:
    ntl_was = sum_j p_j |y - v_j|                 ntl_mse = f(sum_j p_j v_j - y),  f squared, Huber or absolute
Its authors add it to cross-entropy with weight 0.3.
Differs, as options of the `ntloss` package that are off here: `reweigh` (its default, and not the paper's loss)
mixes in 1.01 times the largest possible loss for the probability outside the number tokens; `squash` maps distances.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from smmd_vlm import kernels
from smmd_vlm.losses.base import LOG_Z, NumericLoss, given, lifted
from smmd_vlm.runs import Runs

Function = Literal["mse", "huber", "mae"]
_FUNCTIONS = {"mse": F.mse_loss, "huber": F.huber_loss, "mae": F.l1_loss}


def reweighed(loss: Tensor, logits: Tensor, log_z: Tensor, worst: float) -> Tensor:
    """(P,) loss, (P, N) logits, (P,) log_z -> m loss + 1.01 worst (1 - m), m the probability of all number tokens."""
    mass = (logits.logsumexp(-1) - log_z.to(logits)).exp()
    return mass * loss + 1.01 * worst * (1 - mass)


class NTLWASLoss(NumericLoss):
    """Mean distance under the predicted distribution.

    reweigh: as `ntloss` does by default; needs log_z. squash: its squash_factor, a number > 1; None is the paper.
    """

    def __init__(self, values: Tensor, *, reweigh: bool = False, squash: float | None = None) -> None:
        super().__init__(values, (LOG_Z,) if reweigh else ())
        gaps = kernels.distances(values)
        if squash is not None:
            gaps = kernels.squash(gaps, squash)
        self.reweigh, self.worst = reweigh, float(gaps.max())
        self.register_buffer("gaps", gaps, persistent=False)

    def forward(self, logits: Tensor, target: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        """(P, N) logits, (P,) target column -> (P,)."""
        logits = lifted(logits)
        loss = (logits.softmax(-1) * self.gaps.to(logits)[target]).sum(-1)
        return reweighed(loss, logits, given(log_z, LOG_Z), self.worst) if self.reweigh else loss


class NTLMSELoss(NumericLoss):
    """A distance between the expected and the true value; half on 0 and half on 8 is a perfect 4.

    function: mse, huber (delta 1) or mae. reweigh: as `ntloss` does by default; needs log_z.
    """

    def __init__(self, values: Tensor, *, function: Function = "mse", reweigh: bool = False) -> None:
        if function not in _FUNCTIONS:
            raise ValueError(f"function must be mse, huber or mae, got {function!r}")
        super().__init__(values, (LOG_Z,) if reweigh else ())
        self.function, self.reweigh = function, reweigh
        self.worst = float(_FUNCTIONS[function](self.values.max(), self.values.min()))

    def forward(self, logits: Tensor, target: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        """(P, N) logits, (P,) target column -> (P,)."""
        logits = lifted(logits)
        values = self.values.to(logits)
        # gaps to the target first: E[v] - y would cancel where both are large
        expected_gap = (logits.softmax(-1) * (values - values[target][:, None])).sum(-1)
        loss = _FUNCTIONS[self.function](expected_gap, torch.zeros_like(expected_gap), reduction="none")
        return reweighed(loss, logits, given(log_z, LOG_Z), self.worst) if self.reweigh else loss
