"""NTIL: numerical token integrity loss, digits weighted by place and the number as a whole.

Paper: arXiv 2505.13077 (ACL 2025). For a number of n tokens with values y_i, written sum_i y_i 10^e_i:
    digit      (1 + 0.2)^(n - i - 1) sum_j p_ij |y_i - v_j|                     i from the left
    relative   0.2 |X - Y| / (max(X, Y) + 1)                    X the predicted, Y the true number
    magnitude  0.2 ln((max(X, Y) + 1) / (min(X, Y) + 1))
X takes each position's most likely token; its gradient is that of the softmax at temperature 0.1 (straight through).

Differs from the released code (github.com/xfey/NTIL):
- `3.015` is one number with a fraction, not 3 and 15; numbers never join across samples;
- no noise on the logits before the arg max (released: Gumbel, scale 0.01), so that the loss is a function of its inputs;
- the two number terms count once per number (`number_terms="once"`, spread over its positions); "repeated" puts them
  on every position, which after the mean over positions is the released balance for a sample of one number;
- no adaptive scale CE / loss: it would make the weight depend on how a batch is cut. Give a weight (released: 0.3).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from smmd_vlm import kernels
from smmd_vlm.losses.base import RUNS, NumericLoss, given, lifted
from smmd_vlm.runs import Runs

Construction = Literal["straight_through", "expected"]
NumberTerms = Literal["once", "repeated"]
_SMALLEST = 30  # 10^-30 still is a float32


class NTILLoss(NumericLoss):
    """digit, relative, magnitude: weights of the three terms. digit_base: weight of a place over the one to its right.

    construction: the predicted token values, `straight_through` (the most likely ones, gradient of the softmax) or
    `expected` (the softmax's own mean). temperature: of that softmax. number_terms: see above.
    """

    def __init__(
        self,
        values: Tensor,
        *,
        digit: float = 1.0,
        digit_base: float = 1.2,
        relative: float = 0.2,
        magnitude: float = 0.2,
        temperature: float = 0.1,
        construction: Construction = "straight_through",
        number_terms: NumberTerms = "once",
    ) -> None:
        super().__init__(values, (RUNS,))
        if (self.values < 0).any():
            raise ValueError("ntil needs number tokens >= 0, got a negative one; use the vocabulary digits or integers")
        for name, weight in (("digit", digit), ("relative", relative), ("magnitude", magnitude)):
            if not 0 <= weight < float("inf"):
                raise ValueError(f"{name} must be a finite number >= 0, got {weight!r}")
        if not (digit_base > 0 and temperature > 0):
            raise ValueError(f"digit_base and temperature must be > 0, got {digit_base!r} and {temperature!r}")
        if construction not in ("straight_through", "expected"):
            raise ValueError(f"construction must be straight_through or expected, got {construction!r}")
        if number_terms not in ("once", "repeated"):
            raise ValueError(f"number_terms must be once or repeated, got {number_terms!r}")
        self.digit, self.digit_base, self.relative, self.magnitude = digit, digit_base, relative, magnitude
        self.temperature, self.construction, self.number_terms = temperature, construction, number_terms
        self.register_buffer("gaps", kernels.distances(values), persistent=False)

    def forward(self, logits: Tensor, target: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        """(P, N) logits, (P,) target column, runs -> (P,)."""
        runs, logits = given(runs, RUNS), lifted(logits)
        behind = (runs.length - 1 - runs.index).to(logits)
        loss = self.digit * self.digit_base**behind * (logits.softmax(-1) * self.gaps.to(logits)[target]).sum(-1)
        if self.relative or self.magnitude:
            relative, magnitude = self.numbers(logits, target, runs)
            terms = self.relative * relative + self.magnitude * magnitude
            loss = loss + (terms / runs.length if self.number_terms == "once" else terms)
        return loss

    def numbers(self, logits: Tensor, target: Tensor, runs: Runs) -> tuple[Tensor, Tensor]:
        """-> (P,) the relative and the (P,) magnitude term of the number that each position belongs to."""
        values = self.values.to(logits)
        # all in units of the number's highest place, so that long numbers do not overflow; "+ 1" becomes `one`
        highest = runs.most(runs.exponent)
        place = 10.0 ** (runs.exponent - highest).to(logits)
        one = 10.0 ** -highest.clamp(max=_SMALLEST).to(logits)
        probs = (logits / self.temperature).softmax(-1)
        token = (probs * values).sum(-1)
        if self.construction == "straight_through":
            token = values[logits.argmax(-1)] + token - token.detach()
        # summed apart from X - Y: an X summed on its own differs from a Y it equals by the order of summation on a GPU,
        # and a Y + (X - Y) would not be 0 where X is
        difference = runs.total((token - values[target]) * place)
        true, predicted = runs.total(values[target] * place), runs.total(token * place)
        predicted = torch.where(difference == 0, true + difference, predicted)
        relative = difference.abs() / (torch.maximum(predicted, true) + one)
        magnitude = ((predicted + one).log() - (true + one).log()).abs()
        return relative, magnitude
