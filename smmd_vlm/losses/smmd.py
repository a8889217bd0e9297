"""SMMD: smoothed maximum mean discrepancy between the predicted and the true number.

Paper: arXiv 2606.27731, sections 3.1-3.4 (eq. 1-4); worked values in tests/test_smmd.py.
With p the softmax over the N number tokens, q the one-hot target, r = p - q, K a kernel of value distance:
    loss = r'Kr + alpha r'(D - K)r = (1 - alpha) r'Kr + alpha sum_i D_ii r_i^2,   D_ii = sum_j K_ij,
    alpha = 1 / (2 mean_i D_ii) unless given.
Differs: the residual form in float32 instead of the released code's expanded pKp + K_tt - 2 K_t p, whose rounding
and clamp give a zero gradient at confident positions; the value is the same to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from smmd_vlm import kernels
from smmd_vlm.losses.base import RUNS, NumericLoss, given, lifted
from smmd_vlm.runs import Runs

Kernel = Literal["gaussian", "laplace", "identity", "shuffled", "random"]
Term = Literal["smmd", "mmd", "smooth"]
Degree = Literal["row", "constant"]
_CHOICES = {
    "kernel": ("gaussian", "laplace", "identity", "shuffled", "random"),
    "term": ("smmd", "mmd", "smooth"),
    "degree": ("row", "constant"),
}


def residual(logits: Tensor, target: Tensor) -> Tensor:
    """(P, N) logits, (P,) target column -> (P, N) r = softmax - one-hot, float32 (float64 stays).

    r at the target is minus the sum of the others rather than p - 1, which would round to 0 as p nears 1.
    """
    others = lifted(logits).softmax(-1).scatter(-1, target[:, None], 0.0)
    return others.scatter(-1, target[:, None], -others.sum(-1, keepdim=True))


def smmd(residual: Tensor, gram: Tensor, degree: Tensor, alpha: float, mmd: float = 1.0) -> Tensor:
    """(P, N) residual, (N, N) K, (N,) row sums of K -> (P,): mmd r'Kr + alpha r'(D - K)r, unreduced."""
    with torch.autocast(residual.device.type, enabled=False):  # a product in bf16 would lose the last digits of small residuals
        smoothed = residual @ gram
    return ((mmd - alpha) * residual * smoothed + alpha * degree * residual.square()).sum(-1)


class SMMDLoss(NumericLoss):
    """SMMD over a fixed set of values.

    values: (N,) the numbers' values in the order of the logit columns.
    sigmas: bandwidths of the kernel, in units of the values, whose kernels are averaged; "span" takes a set up to a third
        of the values' range (2, 6, 18 for 0..59), which ranks far errors where sigma 2 hardly does.
    alpha: weight of the smoothness term; None is the paper's 1 / (2 mean degree).
    kernel: `gaussian` (the paper's), `laplace`; three controls without numeric structure: `identity` (a Brier score, scaled
        so that the whole quadratic form has the trace that SMMD's has), `shuffled` (the Gaussian on permuted values) and
        `random` (the Gaussian on values drawn at random), both by `seed`.
    term: `smmd`; `mmd`, the first term alone; `smooth`, alpha times the second alone.
    degree: `row` (the paper's D); `constant`, the mean degree everywhere: the cost then rises with distance at the ends of
        the range too, where D_ii is smaller and the paper's form charges 6 for 0 more than 9 for 0.
    squash: the released code's map of distances into [1, squash] (its default is 9); None is the paper.
    period: the values lie on a circle of this circumference (60 for minute tokens, 12 for hour tokens); a mapping
        {power of ten: period} gives each place its own ({0: 10, 1: 6} for the digits of minutes), other places none.
    """

    def __init__(
        self,
        values: Tensor,
        *,
        sigmas: Sequence[float] | Literal["span"] = (2.0,),
        alpha: float | None = None,
        kernel: Kernel = "gaussian",
        term: Term = "smmd",
        degree: Degree = "row",
        squash: float | None = None,
        period: float | Mapping[int, float] | None = None,
        seed: int = 42,
    ) -> None:
        for name, choice in (("kernel", kernel), ("term", term), ("degree", degree)):
            if choice not in _CHOICES[name]:
                *most, last = _CHOICES[name]
                raise ValueError(f"{name} must be {', '.join(most)} or {last}, got {choice!r}")
        if alpha is not None and not 0 <= alpha < float("inf"):
            raise ValueError(f"alpha must be a finite number >= 0 or null, got {alpha!r}")
        if term == "smooth" and degree == "constant":
            raise ValueError(
                "term smooth needs degree row, got constant; with one degree for all values D - K alone can be negative"
            )
        if squash is not None and period is not None:
            raise ValueError("squash and period exclude each other, got both; a circle has no released code to agree with")
        places = {int(place): float(p) for place, p in period.items()} if isinstance(period, Mapping) else {}
        super().__init__(values, (RUNS,) if places else ())
        if isinstance(sigmas, str):
            if sigmas != "span":
                raise ValueError(f'sigmas must be numbers or "span", got {sigmas!r}')
            sigmas = kernels.spanning_sigmas(values)
        if kernel == "random":
            values = kernels.random_values(values, seed)

        everywhere = None if places else period
        forms = [self._form(values, sigmas, alpha, kernel, degree, squash, p, seed) for p in (everywhere, *places.values())]
        grams, degrees, alphas = zip(*forms, strict=True)
        self.alphas = alphas  # of the first kernel, then of the places'
        self.mmd = 0.0 if term == "smooth" else 1.0
        self.smoothed = term != "mmd"
        self.places = tuple(places)
        self.register_buffer("grams", torch.stack(grams), persistent=False)
        self.register_buffer("degrees", torch.stack(degrees), persistent=False)

    @property
    def alpha(self) -> float:
        return self.alphas[0]

    @property
    def gram(self) -> Tensor:
        return self.grams[0]

    @property
    def degree(self) -> Tensor:
        return self.degrees[0]

    @staticmethod
    def _form(values, sigmas, alpha, kernel, degree, squash, period, seed) -> tuple[Tensor, Tensor, float]:
        """One kernel -> its (N, N) Gram matrix, (N,) degrees and alpha."""
        gaps = kernels.distances(values) if period is None else kernels.chords(values, period)
        if squash is not None:
            gaps = kernels.squash(gaps, squash)
        gram = (kernels.laplace_of if kernel == "laplace" else kernels.gaussian_of)(gaps, sigmas)
        if kernel == "shuffled":
            gram = kernels.shuffled(gram, seed)
        degrees = gram.sum(-1)
        alpha = float(1 / (2 * degrees.mean())) if alpha is None else float(alpha)
        if kernel == "identity":
            # mean diagonal of (1 - alpha) K + alpha D, the matrix of SMMD's quadratic form
            scale = (1 - alpha) * gram.diagonal().mean() + alpha * degrees.mean()
            return torch.eye(len(values), dtype=gram.dtype) * scale, scale.expand(len(values)).clone(), alpha
        if degree == "constant":
            degrees = degrees.mean().expand(len(values)).clone()
        return gram, degrees, alpha

    def forward(self, logits: Tensor, target: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        """(P, N) logits over the number tokens, (P,) long target column -> (P,) loss, float32 (float64 stays)."""
        r = residual(logits, target)
        losses = [
            smmd(r, gram.to(r), degree.to(r), alpha if self.smoothed else 0.0, self.mmd)
            for gram, degree, alpha in zip(self.grams, self.degrees, self.alphas, strict=True)
        ]
        loss = losses[0]
        for place, own in zip(self.places, losses[1:], strict=True):
            loss = torch.where(given(runs, RUNS).exponent == place, own, loss)
        return loss
