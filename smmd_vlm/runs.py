"""Runs: which numeric targets form one number, and what each of their digits is worth there.

In:  (B, T) labels seen as columns of the number tokens, before rows are flattened: afterwards the gaps are gone and
     numbers of different turns or samples would run together.
Out: one entry per numeric target, in the order of the kept rows.

A number is what stands together in one sample: number tokens side by side, joined by one decimal point. `3.015` is one
number (leading zeros of the fraction count), `12:05` is two, and in `192.168.0.1` or `12.05.2024` no point is a decimal
point, so those are four and three. A point with no digit before it opens a fraction: `.5`. A comma ends a number, for
`1,024` and `1,2` cannot be told apart. Signs are left to cross-entropy: they scale nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Runs:
    """All (P,) long. P numeric targets; `run` counts up through the batch."""

    run: Tensor  # which number
    index: Tensor  # place among the number's tokens, 0 = leftmost
    length: Tensor  # how many tokens the number has
    exponent: Tensor  # power of ten of the token's last digit: 3.015 -> 0, -1, -2, -3; tokens 123 45 -> 2, 0
    sample: Tensor  # which row of the batch

    def total(self, part: Tensor) -> Tensor:
        """(P,) -> (P,) the sum over the number that each position belongs to."""
        return part.new_zeros(len(part)).index_add(0, self.run, part)[self.run]

    def most(self, part: Tensor) -> Tensor:
        """(P,) -> (P,) the largest over the number that each position belongs to."""
        return part.new_zeros(len(part)).scatter_reduce(0, self.run, part, "amax", include_self=False)[self.run]


def find_runs(column: Tensor, point: Tensor, digits: Tensor) -> Runs:
    """The runs of a batch of next tokens.

    column: (B, T) long, the number token's column, -1 where the next token is none or not supervised
    point:  (B, T) bool, the next token is a supervised decimal point
    digits: (N,) long, how many digits each number token has
    """
    number = column >= 0
    # a point between two digits, or before one; not the last of an ellipsis, not a full stop
    joint = point & _after(number) & ~_before(point)
    chain = number | joint
    chain_id = (chain & ~_before(chain)).flatten().cumsum(0).reshape(chain.shape) - 1  # of chains so far; -1 before any
    slots = column.numel() + 1
    here = chain_id.clamp(min=0)
    points = torch.zeros(slots, dtype=torch.long, device=column.device).index_add(0, here.flatten(), joint.long().flatten())
    decimal = joint & (points[here] == 1)

    follows = _before(number) | (_before(decimal) & _before(_before(number)))
    start = number & ~follows
    flat = number.flatten()
    run = (start.flatten().cumsum(0) - 1)[flat]  # (P,)
    order = torch.arange(len(run), device=run.device)
    first = torch.zeros_like(run).scatter_reduce(0, run, order, "amin", include_self=False)[run] if len(run) else run
    length = torch.zeros_like(run).index_add(0, run, torch.ones_like(run))[run]

    # digits before the point minus digits up to and including this token
    width = digits.to(column.device)[column.flatten()[flat]]
    upto = width.cumsum(0)
    upto = upto - (upto - width)[first] if len(run) else upto
    behind_point = (decimal.cumsum(1) - _at_chain_start(decimal, chain)).flatten()[flat] > 0
    whole = torch.zeros_like(run).index_add(0, run, width * ~behind_point)[run]
    sample = torch.arange(column.shape[0], device=column.device)[:, None].expand_as(column).flatten()[flat]
    return Runs(run=run, index=order - first, length=length, exponent=whole - upto, sample=sample)


def _before(mask: Tensor) -> Tensor:
    """(B, T) bool -> whether it held one position to the left; False at the start of a sample."""
    return torch.nn.functional.pad(mask[:, :-1], (1, 0))


def _after(mask: Tensor) -> Tensor:
    """(B, T) bool -> whether it holds one position to the right; False at the end of a sample."""
    return torch.nn.functional.pad(mask[:, 1:], (0, 1))


def _at_chain_start(decimal: Tensor, chain: Tensor) -> Tensor:
    """(B, T) -> decimal points of the sample before the chain that each position lies in."""
    before = decimal.cumsum(1) - decimal.long()
    start = chain & ~_before(chain)
    return torch.where(start, before, 0).cummax(1).values
