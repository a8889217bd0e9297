"""The trie against a model whose distribution is known, and against full forwards of every string on real architectures."""

from __future__ import annotations

import json
from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache

from smmd_vlm.cli import main
from smmd_vlm.collate import Collator, Encoder
from smmd_vlm.numerals import read_time
from smmd_vlm.predict import end_ids
from smmd_vlm.readout import ReadOut, clock_spellings, number_spellings
from smmd_vlm.records import Record, read_predictions
from smmd_vlm.tiny import build_model, build_processor, compact_tokenizer
from tests.support import png

TOKENIZER = compact_tokenizer()
END = TOKENIZER.eos_token_id
CLOCK = Record(id="clock", question="?", answer="03:00", answer_type="time")
COUNT = Record(id="count", question="?", answer="7", answer_type="number")

# ---- spellings -------------------------------------------------------------------------------------------------------


def test_a_time_counts_as_read_time_reads_it():
    clocks = clock_spellings()
    assert set(clocks.worth.values()) == set(range(720)) and len(clocks.worth) == 35 * 60
    assert all(read_time(text) == minute for text, minute in clocks.worth.items())
    assert {clocks.worth[text] for text in ("3:05", "03:05", "15:05")} == {185} and "3:05:00" not in clocks.worth
    assert {"1", "10", "10:", "10:0", "10:08"} <= clocks.prefixes and "25" not in clocks.prefixes


def test_which_texts_a_number_has():
    def texts(spellings, value):
        return {text for text, worth in spellings.worth.items() if worth == value}

    wholes = number_spellings(-20, 1200)
    assert texts(wholes, 7) == {"7", "07", "007", "0007"}
    assert texts(wholes, 1200) == {"1200", "1,200"} and texts(wholes, -5) == {"-5", "-05", "-005", "-0005"}
    assert not {"1201", "7.0", "-0", "-21", "+7", ""} & set(wholes.worth)
    tenths = number_spellings(0, 9, 2)
    assert texts(tenths, 7.5) == {"7.5", "7.50"} and texts(tenths, 7) == {"7", "7.0", "7.00"}
    assert texts(tenths, 0.05) == {"0.05"} and len(set(tenths.worth.values())) == 901


@given(st.integers(-300, 300), st.integers(0, 2))
def test_every_number_spells_its_own_value(value, decimals):
    spellings = number_spellings(-3, 3, decimals)
    exact = value / 10**decimals
    inside = abs(exact) <= 3
    assert (f"{exact:.{decimals}f}" in spellings.worth) == inside or exact == 0  # not -0.0
    assert all(float(text.replace(",", "")) == worth for text, worth in spellings.worth.items())


# ---- a model whose distribution is known -----------------------------------------------------------------------------


class TableModel(torch.nn.Module):
    """Writes `texts` with their probabilities, one token a character, and junk (`?`) with the rest."""

    def __init__(self, texts: dict[str, float]) -> None:
        super().__init__()
        rest = 1 - sum(texts.values())
        self.texts = {tuple(TOKENIZER.encode(text)): p for text, p in (texts | {"?": rest}).items()}

    def forward(self, input_ids, cache=None, **_):
        prefixes = input_ids.tolist() if cache is not None else [[]] * len(input_ids)
        logits = torch.full((len(prefixes), 1, len(TOKENIZER)), -torch.inf, dtype=torch.float64)
        for row, prefix in enumerate(map(tuple, prefixes)):
            follow: dict[int, float] = defaultdict(float)
            for ids, probability in self.texts.items():
                if ids[: len(prefix)] == prefix:
                    follow[ids[len(prefix)] if len(ids) > len(prefix) else END] += probability
            for token, probability in (follow or {END: 1.0}).items():  # a prefix that is never written may go on as it likes
                logits[row, 0, token] = torch.tensor(probability, dtype=torch.float64).log()
        return SimpleNamespace(logits=logits, cache=DynamicCache())


def read_table(texts: dict[str, float], record: Record, **options):
    spellings = (clock_spellings(), number_spellings(-9, 150))
    read = ReadOut(TableModel(texts), TOKENIZER, [END], spellings=spellings, **options)
    return read({"input_ids": torch.zeros(1, 3).long(), "attention_mask": torch.ones(1, 3).long()}, [record])[0]


def test_median_mean_and_intervals_are_those_of_the_table():
    found = read_table({"7": 0.3, "07": 0.1, "12": 0.2, "120": 0.05}, COUNT, prune=0)
    known = {value: p for value, p in zip(found.values, found.probabilities, strict=True) if p > 0}
    assert known == pytest.approx({7: 0.4, 12: 0.2, 120: 0.05}, abs=1e-6) and found.other == pytest.approx(0.35, abs=1e-6)
    assert found.mode == found.median == 7
    assert found.mean == pytest.approx((7 * 0.4 + 12 * 0.2 + 120 * 0.05) / 0.65, rel=1e-5)
    assert found.interval(0.8) == (7, 12)  # 0.6 / 0.65 is past 0.9
    assert found.interval(0.95) == (7, 120) and found.pruned == 0


def test_times_round_the_top():
    found = read_table({"11:58": 0.3, "12:01": 0.35, "00:02": 0.25, "6:00": 0.02, "12:01:30": 0.05}, CLOCK)
    known = dict(zip(found.values, found.probabilities, strict=True))
    assert known == pytest.approx({1: 0.35, 2: 0.25, 360: 0.02, 718: 0.3}, abs=1e-6)
    assert found.other == pytest.approx(0.08, abs=1e-6)  # the seconds and the junk
    assert found.median == 1 and found.interval(0.8) == (718, 2)


def test_what_is_pruned_is_kept_as_mass():
    found = read_table({"7": 0.6, "12": 0.3, "120": 0.05, "99": 0.04}, COUNT, prune=0.06)
    assert found.values == (7, 12) and found.pruned == pytest.approx(0.09, abs=1e-6)  # after 12 and before 9
    assert found.other == pytest.approx(0.01, abs=1e-6)


@settings(deadline=None, max_examples=25)
@given(st.dictionaries(st.sampled_from(["0", "00", "3", "03", "-3", "31", "310", "150", "1,0", "99.", "-"]), st.integers(1, 9)))
def test_any_table_comes_back(counts):
    texts = {text: count / 100 for text, count in counts.items()}
    found = read_table(texts, COUNT, prune=0, rows=3)
    worth = number_spellings(-9, 150).worth
    want: dict[float, float] = defaultdict(float)
    for text, probability in texts.items():
        if text in worth:
            want[worth[text]] += probability
    assert dict(zip(found.values, found.probabilities, strict=True)) == pytest.approx(want, abs=1e-6)
    assert found.other == pytest.approx(1 - sum(want.values()), abs=1e-5)


def test_logits_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="expected finite logits"):
        read_table({"7": float("nan")}, COUNT)


# ---- real architectures ----------------------------------------------------------------------------------------------

RECORDS = [
    Record(id="a", image=png(64, 64, "red"), question="What time does the clock show?", answer="3:00", answer_type="time"),
    Record(id="b", question="How many are there, and what is the difference between them?", answer="7", answer_type="number"),
    Record(id="c", image=png(), question="Which?", answer="The red one."),
    Record(id="d", image=png(40, 90, "blue"), question="How many?", answer="12", answer_type="number"),
]


def small(family: str, digits: int):
    """A random model whose head likes digits, colons and the end, so that answers have mass; (model, encoder)."""
    tokenizer = compact_tokenizer(digits)
    model = build_model(tokenizer, family, hidden=64, layers=2, seed=5).eval()
    old = model.lm_head
    model.lm_head = torch.nn.Linear(*old.weight.T.shape)
    with torch.no_grad():
        model.lm_head.weight.copy_(4 * old.weight)
        model.lm_head.bias.zero_()
        model.lm_head.bias[[i for key, i in tokenizer.get_vocab().items() if key == ":" or key.isdigit()]] = 10
        model.lm_head.bias[tokenizer.eos_token_id] = 11
    return model, Encoder(build_processor(tokenizer, family, tokens=(4, 6)), with_answer=False)


def batch_of(encoder: Encoder, records: list[Record]) -> dict:
    batch = Collator(encoder.processor, "left")([encoder(record) for record in records])
    return {name: value for name, value in batch.items() if name != "ids"}


def reader(model, encoder: Encoder, **options) -> ReadOut:
    spellings = (clock_spellings(), number_spellings(0, 12))
    return ReadOut(model, encoder.tokenizer, end_ids(model, encoder), spellings=spellings, **options)


def full_forward(model, encoder: Encoder, record: Record, text: str, tokens: dict[int, str]) -> float:
    """The probability that the model writes `text` and ends, over all its cuts into tokens: one whole forward for each cut."""

    def cuts(rest: str):
        if not rest:
            yield []
        for token, piece in tokens.items():
            if rest.startswith(piece):
                yield from ([token, *more] for more in cuts(rest[len(piece) :]))

    total = 0.0
    for ids in cuts(text):
        inputs = batch_of(encoder, [record])
        answer = torch.tensor([ids])
        length = inputs["input_ids"].shape[1]
        more = {"input_ids": answer, "attention_mask": torch.ones_like(answer), "mm_token_type_ids": torch.zeros_like(answer)}
        inputs |= {name: torch.cat([inputs[name], more[name]], dim=1) for name in more.keys() & inputs.keys()}
        with torch.no_grad():
            logs = model(**inputs).logits[0, length - 1 :].double().log_softmax(-1)
        steps = logs[range(len(ids)), ids].sum()
        total += sum((steps + logs[-1, end]).exp().item() for end in end_ids(model, encoder))
    return total


@pytest.mark.parametrize(("family", "digits"), [("qwen3_vl", 1), ("qwen3_vl", 2), ("qwen2_5_vl", 1), ("qwen3_5", 1)])
def test_the_trie_equals_full_forwards(family, digits):
    model, encoder = small(family, digits)
    read = reader(model, encoder, prune=0, rows=256)
    found = read(batch_of(encoder, RECORDS), RECORDS)
    assert found[2] is None and min(found[i].mass for i in (1, 3)) > 1e-4
    numbers = number_spellings(0, 12)
    for place, value in ((1, 7), (1, 12), (3, 0), (3, 10)):
        texts = [text for text, worth in numbers.worth.items() if worth == value]
        want = sum(full_forward(model, encoder, RECORDS[place], text, read.tokens) for text in texts)
        assert found[place].probability(value) == pytest.approx(want, rel=1e-4) and want > 0
    for minute in (185, 0):
        texts = [text for text, worth in clock_spellings().worth.items() if worth == minute]
        want = sum(full_forward(model, encoder, RECORDS[0], text, read.tokens) for text in texts)
        assert found[0].probability(minute) == pytest.approx(want, rel=1e-4) and want > 0


def test_a_text_model_has_no_image_positions():
    model, encoder = small("llama", 1)
    records = [RECORDS[1], Record(id="e", question="Why?", answer="3", answer_type="number")]
    read = reader(model, encoder, prune=0, rows=256)
    found = read(batch_of(encoder, records), records)
    for record, distribution in zip(records, found, strict=True):
        want = full_forward(model, encoder, record, "11", read.tokens)
        assert distribution.probability(11) == pytest.approx(want, rel=1e-4) and want > 0


def test_batches_and_rows_change_nothing():
    model, encoder = small("qwen3_vl", 2)
    together = reader(model, encoder, prune=1e-6, rows=64)(batch_of(encoder, RECORDS), RECORDS)
    for record, found in zip(RECORDS, together, strict=True):
        read = reader(model, encoder, prune=1e-6, rows=37)
        alone = read(batch_of(encoder, [record]), [record])[0]
        if found is None:
            assert alone is None and read.forwards == 0
            continue
        assert alone.mass > 0 and alone.values == found.values
        assert alone.probabilities == pytest.approx(found.probabilities, rel=1e-3, abs=1e-6)
        assert (alone.pruned, alone.other) == pytest.approx((found.pruned, found.other), abs=1e-5)


def test_pruning_moves_mass_to_pruned_alone():
    model, encoder = small("qwen3_vl", 1)
    inputs = batch_of(encoder, RECORDS)
    whole, some = (reader(model, encoder, prune=prune)(inputs, RECORDS)[3] for prune in (0, 0.02))
    assert len(some.values) < len(whole.values)
    assert all(0 < some.probability(value) <= whole.probability(value) for value in some.values)  # 7 may have lost its "07"
    assert some.pruned >= whole.mass - some.mass - 1e-6 > 0  # a pruned branch may also end in text that is no value


# ---- the command -----------------------------------------------------------------------------------------------------


def test_predict_keeps_distributions_and_goes_on(tiny, clocks, tmp_path, capsys):
    out = tmp_path / "p.jsonl"
    argv = ["predict", "--model", str(tiny()), "--data", str(clocks), "--out", str(out), "--max_new_tokens", "4"]
    assert main([*argv, "--limit", "5", "--distribution", "--distribution_prune", "1e-9"]) == 0
    assert "5 of the 5 new answers have a distribution" in capsys.readouterr().out
    lines = out.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = list(read_predictions(out))
    assert all(row.distribution.period == 720 and row.distribution.other > 0 for row in whole)
    out.write_text("".join(lines[:2]) + lines[2][:20], encoding="utf-8")  # killed in the middle of a line
    assert main([*argv, "--limit", "5", "--distribution", "--distribution_prune", "1e-9"]) == 0
    assert [row.id for row in read_predictions(out)] == [row.id for row in whole]
    assert json.loads((tmp_path / "p.meta.json").read_text(encoding="utf-8"))["run"]["distribution"]["prune"] == 1e-9
    capsys.readouterr()
    for other in (["--distribution"], []):
        assert main([*argv, *other]) == 2
        assert "distribution {'low': 0, 'high': 999, 'decimals': 0, 'prune': 1e-09} instead of" in capsys.readouterr().err


def test_records_without_a_spelled_answer_are_counted(tiny, tmp_path, capsys):
    answers = ["7", "1500", "7.5", "The red one.", "03:00", "03:00:10"]
    rows = [{"question": f"How many are there, {i}?", "answer": answer} for i, answer in enumerate(answers)]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    out = tmp_path / "p.jsonl"
    argv = [
        "predict",
        "--model",
        str(tiny()),
        "--data",
        str(tmp_path / "own.jsonl"),
        "--out",
        str(out),
        "--max_new_tokens",
        "2",
    ]
    assert main([*argv, "--distribution"]) == 0
    said = capsys.readouterr().out
    assert "2 of the 6 new answers have a distribution; for the others the right answer is no H:MM time" in said
    assert [row.distribution is not None for row in read_predictions(out)] == [True, False, False, False, True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--distribution_low", "9", "--distribution_high", "3"], "must hold 1 to 100,000 numbers, got -5"),
        (["--distribution_decimals", "3"], "got 999,001 from 0 to 999 with 3 decimals; narrow the range"),
        (["--distribution_decimals", "-1"], "must be between 0 and 6"),
        (["--distribution_prune", "1"], "must be in [0, 1), got 1"),
        (
            ["--distribution", "false", "--distribution_high", "9"],
            "--distribution_high is a setting of --distribution, which is off",
        ),
    ],
)
def test_misuse_is_one_sentence(options, message, capsys):
    assert main(["predict", "--model", "nowhere", "--data", "nowhere", "--distribution", *options]) == 2
    assert message in capsys.readouterr().err
