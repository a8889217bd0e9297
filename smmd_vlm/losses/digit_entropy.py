"""DEL: digit entropy loss, a binary cross-entropy per number token weighted by its own probability and its place.

Paper: arXiv 2605.20369; code github.com/PolyU-VCLab/DEL. With z the logits of the N number tokens, p their softmax:
    loss = w(place) mean_j BCEWithLogits(z_j, 1[j = y]) p_j
    w = 2k for the k-th digit before the point, counted from it; 1.02^-(k + 1) for the k-th behind it
It has no distance in it, and it looks at the logits themselves, not only at their differences.
Differs: the code multiplies by 0.01 and averages over each micro-batch, which its 32 accumulation steps on 4 devices then
add up to an effective 1.28; here that factor is the objective's weight.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from smmd_vlm.losses.base import RUNS, NumericLoss, given, lifted
from smmd_vlm.runs import Runs


def place_weight(exponent: Tensor) -> Tensor:
    """(P,) powers of ten of digits -> (P,) float32: 2, 4, 6 ... from the units up, 1.02^-2, 1.02^-3 ... behind the point."""
    exponent = exponent.float()
    return torch.where(exponent >= 0, 2 * (exponent + 1), 1.02 ** (exponent - 1))


class DELLoss(NumericLoss):
    """No options; meant for the ten digits."""

    def __init__(self, values: Tensor) -> None:
        super().__init__(values, (RUNS,))

    def forward(self, logits: Tensor, target: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        """(P, N) logits, (P,) target column, runs -> (P,)."""
        logits = lifted(logits)
        wanted = F.one_hot(target, logits.shape[-1]).to(logits)
        entropy = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none") * logits.softmax(-1)
        return place_weight(given(runs, RUNS).exponent).to(logits) * entropy.mean(-1)
