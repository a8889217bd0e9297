"""Cross-entropy by kind of token and by place of the digit, against a count by hand."""

import pytest
import torch

from smmd_vlm.tiny import compact_tokenizer
from smmd_vlm.tokenkinds import TokenKinds
from smmd_vlm.vocab import NumericVocab

TOKENIZER = compact_tokenizer()
END = TOKENIZER.eos_token_id
KINDS = TokenKinds(TOKENIZER, NumericVocab.from_tokenizer(TOKENIZER), END)


def labels(*answers: str) -> torch.Tensor:
    """One row an answer: two prompt tokens, the answer, its end, right padding; -100 where nothing is learned."""
    rows = [[-100, -100, *TOKENIZER(answer, add_special_tokens=False)["input_ids"], END] for answer in answers]
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=-100)


def test_every_token_is_counted_once_by_kind_and_digits_by_place():
    batch = labels("-3.15", "12:05", "9 bars")
    losses = torch.arange(1.0, (batch[:, 1:] != -100).sum() + 1)
    found = dict(zip(KINDS.names, zip(*KINDS.sums(batch, losses).tolist(), strict=True), strict=True))
    # rows in order: - 3 . 1 5 end | 1 2 : 0 5 end | 9 " bars" as one or more tokens, end
    assert found["sign"] == (1, 1) and found["point"] == (3, 1) and found["separator"] == (9, 1)
    assert found["digit"] == (2 + 4 + 5 + 7 + 8 + 10 + 11 + 13, 8)
    assert found["digit_1"] == (2 + 7 + 10 + 13, 4)  # 3, 1 of 12, 0 of 05, 9
    assert found["digit_2"] == (4 + 8 + 11, 3) and found["digit_3"] == (5, 1) and found["digit_4"] == (0, 0)
    assert found["end"][1] == 3
    assert sum(found[kind][1] for kind in ("text", "digit", "sign", "point", "separator", "end")) == len(losses)


def test_kinds_that_do_not_occur_have_no_mean():
    batch = labels("7")
    metrics = KINDS.metrics(KINDS.sums(batch, torch.tensor([2.0, 0.5])))
    assert metrics == pytest.approx({"ce_digit": 2.0, "ce_end": 0.5, "ce_digit_1": 2.0})


def test_nothing_supervised_counts_nothing():
    assert KINDS.sums(torch.full((2, 4), -100), torch.zeros(0)).sum() == 0
