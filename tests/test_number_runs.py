"""Runs: which number tokens form one number, on digit and on 1-3-digit vocabularies, against a loop over characters."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_vlm import NumericObjective, NumericVocab
from smmd_vlm.runs import find_runs

OTHERS = [".", ":", ",", " ", "x", "-"]
DIGITS = NumericVocab.from_mapping({text: i for i, text in enumerate([*map(str, range(10)), *OTHERS])})
LONG = NumericVocab.from_mapping(
    {text: i for i, text in enumerate([*map(str, range(10)), "00", "05", "12", "45", "123", "456", "007", *OTHERS])}, "integers"
)


def labels_of(vocab: NumericVocab, texts: list[list[str]]) -> torch.Tensor:
    """Token texts -> (B, T) labels with an unsupervised first position; None is an unsupervised token."""
    ids = dict(zip(vocab.tokens, vocab.token_ids, strict=True)) | {text: 900 + i for i, text in enumerate(OTHERS)}
    ids["."] = vocab.point_id
    rows = [[-100, *(-100 if text is None else ids[text] for text in row)] for row in texts]
    width = max(map(len, rows))
    return torch.tensor([row + [-100] * (width - len(row)) for row in rows])


def runs_of(vocab: NumericVocab, *texts: list[str]):
    return NumericObjective(vocab, "ntil").runs(labels_of(vocab, list(texts)))


def listed(runs) -> list[tuple[int, int, int, int]]:
    """(run, index, length, exponent) of each numeric target."""
    return list(zip(*(getattr(runs, name).tolist() for name in ("run", "index", "length", "exponent")), strict=True))


def test_a_decimal_is_one_number_with_its_leading_zeros():
    assert listed(runs_of(DIGITS, list("3.015"))) == [(0, 0, 4, 0), (0, 1, 4, -1), (0, 2, 4, -2), (0, 3, 4, -3)]


def test_a_time_is_two_numbers():
    assert listed(runs_of(DIGITS, list("12:05"))) == [(0, 0, 2, 1), (0, 1, 2, 0), (1, 0, 2, 1), (1, 1, 2, 0)]


def test_a_full_stop_ends_a_number_and_belongs_to_none():
    assert listed(runs_of(DIGITS, list("7.x5"))) == [(0, 0, 1, 0), (1, 0, 1, 0)]
    assert listed(runs_of(DIGITS, list("7. 5"))) == [(0, 0, 1, 0), (1, 0, 1, 0)]
    assert listed(runs_of(DIGITS, list("7..5"))) == [(0, 0, 1, 0), (1, 0, 1, 0)]


def test_a_leading_point_opens_a_fraction():
    assert listed(runs_of(DIGITS, list("x.05"))) == [(0, 0, 2, -1), (0, 1, 2, -2)]


def test_dates_and_addresses_have_no_decimal_point():
    runs = runs_of(DIGITS, list("12.05.24"))
    assert runs.run.tolist() == [0, 0, 1, 1, 2, 2] and runs.exponent.tolist() == [1, 0, 1, 0, 1, 0]


def test_two_decimals_in_one_sample():
    runs = runs_of(DIGITS, list("1.5 2.25"))
    assert runs.run.tolist() == [0, 0, 1, 1, 1] and runs.exponent.tolist() == [0, -1, 0, -1, -2]


def test_numbers_never_join_across_samples():
    runs = runs_of(DIGITS, list("x12"), list("34"), list(".5x"))
    assert runs.run.tolist() == [0, 0, 1, 1, 2] and runs.sample.tolist() == [0, 0, 1, 1, 2]
    assert runs.exponent.tolist() == [1, 0, 1, 0, -1]


def test_unsupervised_tokens_end_a_number():
    assert runs_of(DIGITS, ["1", None, "2"]).run.tolist() == [0, 1]
    assert runs_of(DIGITS, ["1", ".", None, "2"]).run.tolist() == [0, 1]


def test_tokens_of_several_digits_know_their_place():
    runs = runs_of(LONG, ["123", "456", "7"], ["12", ".", "05", "5"])
    assert runs.exponent.tolist() == [4, 1, 0, 0, -2, -3]
    assert runs.length.tolist() == [3, 3, 3, 3, 3, 3] and runs.run.tolist() == [0, 0, 0, 1, 1, 1]


def test_no_number_at_all():
    runs = runs_of(DIGITS, list("x:"), list("."))
    assert len(runs.run) == 0 and len(runs.total(torch.zeros(0))) == 0


def test_totals_go_back_to_every_position():
    runs = runs_of(DIGITS, list("12:345"))
    assert runs.total(torch.arange(1.0, 6.0)).tolist() == [3, 3, 12, 12, 12]
    assert runs.most(runs.exponent).tolist() == [1, 1, 2, 2, 2]


def test_without_a_point_in_the_vocabulary_nothing_is_one():
    vocab = NumericVocab.from_mapping({str(d): d for d in range(10)})
    assert vocab.point_id is None
    labels = torch.tensor([[-100, 1, -101, 2]])  # an id that is no token
    assert NumericObjective(vocab, "ntil").runs(labels).run.tolist() == [0, 1]


def test_losses_that_need_no_runs_compute_none():
    assert NumericObjective(DIGITS, "smmd").runs(labels_of(DIGITS, [list("12")])) is None


def slow_runs(tokens: list[str], first: int) -> list[tuple[int, int, int, int]]:
    """The rules read aloud, one chain of digits and points at a time."""
    out, run, at = [], first, 0
    while at < len(tokens):
        chain, end = [], at
        while end < len(tokens) and (
            tokens[end].isdigit()
            or (tokens[end] == "." and end + 1 < len(tokens) and tokens[end + 1].isdigit() and tokens[end - 1 : end] != ["."])
        ):
            chain.append(tokens[end])
            end += 1
        if not chain:
            at += 1
            continue
        if chain.count(".") == 1:
            whole, fraction = chain[: chain.index(".")], chain[chain.index(".") + 1 :]
            numbers = [(whole, fraction)]
        else:
            numbers = [(part.split(), []) for part in " ".join(chain).split(".") if part.strip()]
        for whole, fraction in numbers:
            length, place = len(whole) + len(fraction), sum(map(len, whole))
            for index, token in enumerate([*whole, *fraction]):
                place -= len(token)
                out.append((run, index, length, place))
            run += 1
        at = end
    return out


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.lists(st.sampled_from(["1", "0", "7", "12", "05", "123", ".", ".", ":", "x"]), max_size=12), min_size=1, max_size=3
    )
)
def test_equals_the_rules_read_aloud(samples):
    got = listed(runs_of(LONG, *samples))
    want: list[tuple[int, int, int, int]] = []
    for sample in samples:
        want += slow_runs(sample, want[-1][0] + 1 if want else 0)
    assert got == want


def test_the_order_is_that_of_the_kept_rows():
    labels = labels_of(DIGITS, [list("x1"), list("23")])
    objective = NumericObjective(DIGITS, "ntil")
    column = objective.column(labels[:, 1:])
    runs = find_runs(column, torch.zeros_like(column, dtype=torch.bool), DIGITS.digits)
    assert runs.sample.tolist() == (column >= 0).nonzero()[:, 0].tolist()


def test_labels_too_short_to_predict_anything():
    for labels in (torch.zeros(2, 1, dtype=torch.long), torch.zeros(0, 4, dtype=torch.long)):
        assert len(NumericObjective(DIGITS, "ntil").runs(labels).run) == 0
