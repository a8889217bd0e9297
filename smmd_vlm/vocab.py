"""NumericVocab: which token ids are numbers and what they are worth.

In:  a plain {decoded token text: id} map, or a tokenizer whose vocabulary is decoded token by token.
Out: ids (N,), values (N,), tokens; ASCII only, finite only. Looked up in the vocabulary, never probed through encode():
     SentencePiece's encode("5") is two tokens, and a probe of str(0)..str(999) misses "00".."09", the minutes of a clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from smmd_vlm.numerals import DIGIT, FLOAT, INTEGER

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Mode = Literal["digits", "integers", "floats"]
_PATTERNS: dict[str, re.Pattern[str]] = {"digits": DIGIT, "integers": INTEGER, "floats": FLOAT}


@dataclass(frozen=True)
class NumericVocab:
    """Number tokens in the order of their values: `tokens[i]` has id `ids[i]` and is worth `values[i]`."""

    tokens: tuple[str, ...]
    token_ids: tuple[int, ...]
    token_values: tuple[float, ...]
    mode: str = "digits"
    point_id: int | None = None  # the decimal point's token, where there is one; it joins digits to one number

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, int], mode: Mode = "digits") -> NumericVocab:
        """{decoded token text: id} -> the number tokens of `mode`.

        digits: the ten single digits; integers: every all-digit token, leading zeros included ("05" is worth 5);
        floats: an explicit pattern with at most one leading space, finite values only (no inf, nan, 1_0).
        A missing digit is a ValueError: every number could need it.
        """
        if mode not in get_args(Mode):
            raise ValueError(f"mode must be one of {', '.join(get_args(Mode))}, got {mode!r}")
        found = []
        for text, token_id in mapping.items():
            if _PATTERNS[mode].fullmatch(text):
                value = float(text)
                if abs(value) != float("inf"):
                    found.append((value, len(text), text, int(token_id)))
        missing = [digit for digit in "0123456789" if not any(text == digit for _, _, text, _ in found)]
        if missing:
            raise ValueError(
                f"expected the ten digits 0 to 9 as single tokens, {', '.join(missing)} missing among {len(mapping)} tokens; "
                "use a tokenizer that has them (or pass decoded token texts, not raw byte-level keys)"
            )
        found.sort()
        shared = {token_id for *_, token_id in found}
        if len(shared) != len(found):
            raise ValueError(
                f"expected one id per number token, got {len(found)} tokens on {len(shared)} ids; is an unknown-token id in the map?"
            )
        values, _, tokens, ids = zip(*found, strict=True)
        point = mapping.get(".")
        return cls(tokens=tokens, token_ids=ids, token_values=values, mode=mode, point_id=None if point is None else int(point))

    @classmethod
    def from_tokenizer(cls, tokenizer: PreTrainedTokenizerBase, mode: Mode = "digits") -> NumericVocab:
        """The number tokens of a Hugging Face tokenizer, added tokens included, special tokens left out."""
        special = set(tokenizer.all_special_ids)
        return cls.from_mapping({token_text(key): i for key, i in tokenizer.get_vocab().items() if i not in special}, mode)

    @cached_property
    def ids(self) -> Tensor:
        """(N,) long: the token ids, in the order of the values."""
        return torch.tensor(self.token_ids, dtype=torch.long)

    @cached_property
    def values(self) -> Tensor:
        """(N,) float64: what each token is worth."""
        return torch.tensor(self.token_values, dtype=torch.float64)

    @cached_property
    def digits(self) -> Tensor:
        """(N,) long: how many digits each token has; a ValueError when one is more than digits ("3.14", " 7", "-1")."""
        other = [token for token in self.tokens if not INTEGER.fullmatch(token)]
        if other:
            raise ValueError(
                f"expected number tokens of digits alone, got {', '.join(map(repr, other[:3]))} among {len(self)} (mode {self.mode!r}); "
                "a loss over whole numbers needs the vocabulary digits or integers"
            )
        return torch.tensor([len(token) for token in self.tokens], dtype=torch.long)

    @cached_property
    def width(self) -> int:
        """The least width of a head that has a column for every number token."""
        return max(self.token_ids) + 1

    def __len__(self) -> int:
        return len(self.tokens)

    def describe(self) -> str:
        """One line for people: how many tokens, which values, a few examples."""
        shown = [f"{token!r}={token_id}" for token, token_id in zip(self.tokens, self.token_ids, strict=True)]
        if len(shown) > 12:
            shown = [*shown[:6], "...", *shown[-3:]]
        return f"{len(self)} number tokens ({self.mode}), worth {self.token_values[0]:g} to {self.token_values[-1]:g}: {' '.join(shown)}"


def token_text(key: str) -> str:
    """A vocabulary key as it stands inside a sentence, as far as numbers go.

    Byte-level (U+0120) and SentencePiece (U+2581) keys mark a leading space; every other ASCII character is itself.
    """
    return " " + key[1:] if key.startswith(("\u0120", "\u2581")) else key
