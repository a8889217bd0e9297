"""What an answer's tokens are: digit, sign, point, separator, end of turn or text; and which digit of its number.

For evaluation while training: a loss that falls on the text and stays on the third digit looks like a healthy mean.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from smmd_vlm.objective import targets
from smmd_vlm.runs import find_runs
from smmd_vlm.vocab import NumericVocab

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

KINDS = ("text", "digit", "sign", "point", "separator", "end")
PLACES = 4  # digits told apart from the left; the rest count as "digit" alone
_PATTERNS = {"digit": "[0-9]+", "sign": "[-+\u2212]", "point": r"\.", "separator": "[:,/%]"}


class TokenKinds:
    """Kinds of every token of a vocabulary. `names` are those of the sums: each kind, then digit_1 to digit_4."""

    names = (*KINDS, *(f"digit_{place + 1}" for place in range(PLACES)))

    def __init__(self, tokenizer: PreTrainedTokenizerBase, vocab: NumericVocab, end_id: int) -> None:
        self.vocab = vocab
        self.table = torch.zeros(max(tokenizer.get_vocab().values()) + 1, dtype=torch.long)
        for key, token_id in tokenizer.get_vocab().items():
            text = key.lstrip("\u0120\u2581")  # the markers of a leading space
            for kind, pattern in _PATTERNS.items():
                if re.fullmatch(pattern, text):
                    self.table[token_id] = KINDS.index(kind)
        self.table[end_id] = KINDS.index("end")
        self.columns = torch.full((vocab.width,), -1, dtype=torch.long)
        self.columns[vocab.ids] = torch.arange(len(vocab))

    def sums(self, labels: Tensor, token_losses: Tensor) -> Tensor:
        """(B, T) unshifted labels and the (R,) losses of their supervised tokens -> (2, len(names)) float64 [sum, count]."""
        labels, token_losses = labels.cpu(), token_losses.double().cpu()
        kind = self.table[targets(labels)]
        found = torch.zeros(2, len(self.names), dtype=torch.float64)
        found[0].index_add_(0, kind, token_losses)
        found[1].index_add_(0, kind, torch.ones_like(token_losses))

        following = labels[:, 1:]
        column = torch.where(
            (following >= 0) & (following < len(self.columns)), self.columns[following.clamp(0, len(self.columns) - 1)], -1
        )
        point = following == (self.vocab.point_id if self.vocab.point_id is not None else -1)
        place = find_runs(column, point, self.vocab.digits).index
        numbers = token_losses[(column >= 0)[following != -100]]
        for at in range(PLACES):
            found[0, len(KINDS) + at] = numbers[place == at].sum()
            found[1, len(KINDS) + at] = (place == at).sum()
        return found

    def metrics(self, sums: Tensor) -> dict[str, float]:
        """Mean cross-entropy of each kind that occurs."""
        return {f"ce_{name}": (total / count).item() for name, total, count in zip(self.names, *sums, strict=True) if count}
