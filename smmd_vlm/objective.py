"""The objective: cross-entropy on the answer tokens + weight x a numeric loss on the number tokens among them.

Labels are the model's own: (B, T) long, unshifted, -100 where nothing is learned. The shift is done here, once.
Two denominators, never one: cross-entropy is a mean over supervised tokens, the numeric term a mean over numeric
targets. Pass `counts` of the whole accumulation window (all ranks) and the weight means the same for any batch size,
accumulation and world size. With weight 0 the numeric term is not in the graph at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from smmd_vlm import losses
from smmd_vlm.losses import LOG_Z, RUNS
from smmd_vlm.losses.joint import cross_entropy_and_columns
from smmd_vlm.runs import Runs, find_runs
from smmd_vlm.vocab import NumericVocab

IGNORE_INDEX = -100


def supervised(labels: Tensor) -> Tensor:
    """(B, T) unshifted labels -> (B, T) bool, true at positions whose next token is supervised.

    This is the boolean `logits_to_keep` of transformers >= 5.21: the head then runs on these rows alone.
    """
    keep = torch.zeros_like(labels, dtype=torch.bool)
    keep[:, :-1] = labels[:, 1:] != IGNORE_INDEX
    return keep


def targets(labels: Tensor) -> Tensor:
    """(B, T) unshifted labels -> (R,) the supervised next tokens, in the order of the kept rows."""
    return labels[:, 1:][labels[:, 1:] != IGNORE_INDEX]


@dataclass(frozen=True)
class Terms:
    """What the objective says of some kept rows: `loss` carries the gradient, the rest is for people and logs.

    Sums are over the rows given, so they add up over micro-batches and ranks.
    """

    loss: Tensor  # scalar, float32: cross_entropy + weight * numeric
    cross_entropy: Tensor  # scalar: sum over tokens / counts[0]
    numeric: Tensor  # scalar: sum over numeric targets / counts[1], unweighted; 0 without a numeric target
    num_tokens: int  # R
    num_numbers: int  # P
    cross_entropy_sum: Tensor  # detached scalars from here on
    numeric_sum: Tensor
    numeric_correct: Tensor  # number tokens whose argmax over the whole vocabulary is the target
    numeric_error_sum: Tensor  # sum of |E[value] - value| under the restricted softmax
    token_losses: Tensor  # (R,) cross-entropy of every row


class NumericObjective(nn.Module):
    """CE + weight x numeric loss over the number tokens of `vocab`.

    loss: a name of `smmd_vlm.losses.LOSSES`, or "none"; options: that loss's own settings (sigmas=(2.0,), ...).
    """

    def __init__(self, vocab: NumericVocab, loss: str = "smmd", weight: float = 0.3, **options: Any) -> None:
        super().__init__()
        if not 0 <= weight < float("inf"):
            raise ValueError(f"weight must be a finite number >= 0, got {weight!r}")
        self.vocab, self.weight = vocab, float(weight)
        self.loss = None if loss == "none" else losses.build(loss, vocab.values, **options)
        self.needs = frozenset() if self.loss is None else self.loss.needs
        if RUNS in self.needs:
            self.register_buffer("digits", vocab.digits, persistent=False)
        self.register_buffer("ids", vocab.ids, persistent=False)
        self.register_buffer("values", vocab.values.float(), persistent=False)
        # token id -> column, -1 for the rest; ids past the last number token are out of reach of this table
        columns = torch.full((vocab.width,), -1, dtype=torch.long)
        columns[vocab.ids] = torch.arange(len(vocab))
        self.register_buffer("columns", columns, persistent=False)

    def column(self, target: Tensor) -> Tensor:
        """(R,) token ids -> (R,) columns of the number tokens, -1 where the target is no number."""
        inside = (target >= 0) & (target < len(self.columns))
        return torch.where(inside, self.columns[target.clamp(0, len(self.columns) - 1)], -1)

    def count(self, labels: Tensor) -> Tensor:
        """(B, T) unshifted labels -> (2,) float32 [supervised tokens, numeric targets].

        Sum it over an accumulation window (and ranks) and pass it as `counts`.
        """
        target = targets(labels)
        return torch.stack([torch.tensor(target.numel(), device=labels.device), (self.column(target) >= 0).sum()]).float()

    def count_window(self, batches: Sequence[dict[str, Tensor]], device: torch.device, accelerator: Any) -> Tensor | None:
        """`count` over the micro-batches of one optimizer step and all ranks of accelerate's `accelerator`; None without a batch.

        What a Trainer's _get_num_items_in_batch returns, so that it reaches the loss as `num_items_in_batch`.
        """
        if not batches:
            return None
        counts = sum(self.count(batch["labels"].to(device)) for batch in batches)
        return accelerator.reduce(counts, "sum") if accelerator.num_processes > 1 else counts

    def runs(self, labels: Tensor) -> Runs | None:
        """(B, T) unshifted labels -> which numeric targets form one number; None when the loss does not ask."""
        if RUNS not in self.needs:
            return None
        following = labels[:, 1:]
        if self.vocab.point_id is None:
            point = torch.zeros_like(following, dtype=torch.bool)
        else:
            point = following == self.vocab.point_id
        return find_runs(self.column(following), point, self.digits)

    def terms_of(self, restricted: Tensor, column: Tensor, *, log_z: Tensor | None = None, runs: Runs | None = None) -> Tensor:
        """(P, N) logits of the number tokens, (P,) target columns -> (P,) the loss of each numeric target, unreduced."""
        if RUNS in self.needs and runs is not None and len(runs.run) != len(column):
            raise ValueError(
                f"expected runs of the {len(column)} numeric targets given, got runs of {len(runs.run)}; "
                "take objective.runs(labels) of the same labels"
            )
        return self.loss(restricted, column, log_z=log_z, runs=runs)

    def forward(self, logits: Tensor, labels: Tensor, *, counts: Tensor | None = None) -> Terms:
        """(B, T, V) logits and (B, T) unshifted labels -> Terms."""
        if logits.ndim != 3 or logits.shape[:2] != labels.shape:
            raise ValueError(
                f"expected logits (B, T, V) with labels (B, T), got {tuple(logits.shape)} and {tuple(labels.shape)}; "
                "pass unshifted labels, the objective shifts them itself (use rows() for logits already kept)"
            )
        return self.rows(logits[supervised(labels)], targets(labels), counts=counts, runs=self.runs(labels))

    def rows(self, logits: Tensor, target: Tensor, *, counts: Tensor | None = None, runs: Runs | None = None) -> Terms:
        """(R, V) kept logits and their (R,) next tokens (`supervised`, `targets`) -> Terms.

        counts: (2,) [tokens, numbers] to divide by; default: those of these rows. runs: `runs(labels)`, which only some
        losses need; rows alone no longer tell where a number ends.
        """
        if logits.ndim != 2 or target.shape != logits.shape[:1]:
            raise ValueError(f"expected logits (R, V) with targets (R,), got {tuple(logits.shape)} and {tuple(target.shape)}")
        if logits.shape[1] < self.vocab.width:
            raise ValueError(
                f"number tokens reach id {self.vocab.width - 1}, but the head has {logits.shape[1]} columns; "
                "build the vocabulary from the tokenizer that belongs to this model"
            )
        column = self.column(target)
        index = (column >= 0).nonzero().squeeze(1)  # (P,)
        if counts is None:
            counts = torch.tensor([len(target), len(index)], device=logits.device)
        num_tokens, num_numbers = counts.to(logits.device, torch.float32).clamp(min=1)

        ce, restricted = cross_entropy_and_columns(logits, target, index, self.ids)  # (R,), (P, N)
        cross_entropy = ce.sum() / num_tokens  # 0 rows: an empty sum that keeps the graph
        numeric = cross_entropy.new_zeros(())
        here = column[index]
        if self.loss is not None and len(index):
            with torch.set_grad_enabled(torch.is_grad_enabled() and self.weight > 0):
                # the full normaliser is in cross-entropy already: -log p_y = log Z - logit_y
                log_z = ce[index] + restricted.gather(-1, here[:, None]).squeeze(1) if LOG_Z in self.needs else None
                numeric = self.terms_of(restricted, here, log_z=log_z, runs=runs).sum() / num_numbers
        # weight 0 and a batch without a number: the term is not in the graph at all, and 0 x NaN never arises
        loss = (
            cross_entropy + self.weight * numeric if self.loss is not None and self.weight > 0 and len(index) else cross_entropy
        )
        with torch.no_grad():
            expected = (restricted.softmax(-1) * self.values).sum(-1)
            return Terms(
                loss=loss,
                cross_entropy=cross_entropy,
                numeric=numeric,
                num_tokens=len(target),
                num_numbers=len(index),
                cross_entropy_sum=ce.detach().sum(),
                numeric_sum=numeric.detach() * num_numbers,
                numeric_correct=(logits[index].argmax(-1) == target[index]).sum(),
                numeric_error_sum=(expected - self.values[here]).abs().sum(),
                token_losses=ce.detach(),
            )
