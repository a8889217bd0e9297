"""Samples of like length in one batch, so that little of it is padding: train.train_sampling_strategy group_by_length.

The lengths come from the scan before step 1; nothing is encoded to learn them. The order depends on the seed and the epoch
alone, so it is the same on every rank and after a resume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch.utils.data import Sampler
from transformers.trainer_pt_utils import get_length_grouped_indices


class LengthGrouped(Sampler[int]):
    """Every index once an epoch; `group` consecutive ones are of like length, and the very longest comes first.

    lengths: tokens of every sample. group: samples of an optimizer step on all ranks. epoch: asked when an epoch begins.
    """

    def __init__(self, lengths: Sequence[int], group: int, *, seed: int, epoch: Callable[[], int]) -> None:
        self.lengths, self.group, self.seed, self.epoch = lengths, group, seed, epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch())
        return iter(get_length_grouped_indices(self.lengths, self.group, generator=generator))
