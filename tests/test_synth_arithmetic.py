"""The arithmetic generator: answers worked out again from the text, splits that never meet, folders, settings, the command."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_vlm.dataset import load_records
from smmd_vlm.records import Prediction
from synth import writer
from synth.arithmetic import ArithmeticConfig, main, read_config
from synth.arithmetic_maker import SPLITS, problem_key, side_of
from synth.arithmetic_numbers import digit_count, draw_decimal, draw_whole, places_of, write
from synth.arithmetic_presets import EXTRA_HOURS, HOURS, MODULES, PRESETS, Problems
from synth.arithmetic_problem import Draw
from synth.arithmetic_words import WORDS, in_words
from synth.writer import write_dataset
from tests.arithmetic_evaluator import DAYS, MONTHS, solve

SHARES = {"train": 0.4, "interpolation": 0.3, "extrapolation": 0.3}
EVERY = dict.fromkeys(MODULES, 1.0)
# Further than any preset: long decimals, many signs, long lists.
WIDE = Problems(modules=EVERY, digits=8, extra_digits=4, terms=7, extra_terms=5, decimal=0.7, places=6, negative=0.5)
SETTINGS = {**PRESETS, "wide": WIDE}


@cache
def records(name, n=3000, first=0):
    config = ArithmeticConfig(problems=SETTINGS[name], splits=SHARES)
    return [config.maker()(index) for index in range(first, first + n)]


def write_questions(out, workers=1, **changes):
    config = ArithmeticConfig(**{"n": 300, "out": str(out), "shard_size": 40, "splits": SHARES, **changes})
    return write_dataset(config.plan(), config.maker(), workers=workers)


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def rows(folder):
    found = [row for path in sorted((folder / "data").iterdir()) for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: row["id"])


# ---- what is true ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_answers_worked_out_again_from_the_text(name):
    seen = Counter()
    for record in records(name):
        module, answer = solve(record.question)
        assert module == record.kind, record.question
        if module in WORDS:
            assert answer == record.answer and record.value is None and record.answer_type == "text", record.question
            assert not any(character.isdigit() for character in record.answer)
        else:
            assert record.answer == plain(answer) and record.value == float(answer), record.question
            assert record.answer_type == "number" and record.tolerance is None
        seen[module, record.split] += 1
    asked = [module for module, weight in SETTINGS[name].modules.items() if weight]
    assert set(seen) == {(module, split) for module in asked for split in SPLITS} and min(seen.values()) > 15


def plain(number):
    """A Fraction as Decimal writes it, without exponent and without zeros at the end."""
    text = f"{Decimal(number.numerator) / Decimal(number.denominator):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@pytest.mark.parametrize(
    ("preset", "index", "question", "answer"),
    [
        ("varied", 473, "What is 110 + (-9454)?", "-9344"),  # 9454 - 110
        ("varied", 3180, "What is -563 minus -43250?", "42687"),  # 43250 - 563
        ("varied", 1899, "Add up 90895, -5202.57, 7, -32022.8.", "53676.63"),  # 90902 - 37225.37
        ("varied", 3184, "Multiply 2 by 1114.", "2228"),
        ("varied", 402, "What is 236 / 4?", "59"),  # 240 / 4 = 60, less 1
        ("varied", 2573, "What is 8 + 48 / 6?", "16"),  # the division first: 8 + 8
        ("varied", 2118, "If 36p + 5354 = 89p - 105, what is p?", "103"),  # 53p = 5459
        ("varied", 1149, "What is 28 mod 9?", "1"),  # 27 + 1
        ("varied", 293, "What is the highest common factor of 594 and 36?", "18"),  # 18 * 33, 18 * 2
        ("varied", 2181, "Calculate lcm(27, 63).", "189"),  # 27 * 7 = 63 * 3
        ("varied", 703, "What comes next: 870, 922, 970, 1014?", "1054"),  # 52, 48, 44, 40
        ("varied", 2119, "Give -6625.9 to the nearest hundred.", "-6600"),
        ("varied", 3268, "Name the units digit of 771.24.", "1"),
        ("varied", 1983, "Which is larger: 7 or 5.4?", "7"),
        ("varied", 3381, "Which of 542, -945, -11 is nearest to -9?", "-11"),  # 2 away
        ("varied", 3995, "Which number is the fourth smallest: 288.8, -2550.16, 1, 90.7?", "288.8"),
        ("varied", 3713, "Convert 9.6 hours to minutes.", "576"),  # 540 + 36
        ("varied", 1582, "How many minutes is it from 13:23 to 14:41?", "78"),
        ("words", 580, "Is the first or the second number larger: -70, 282?", "second"),
        ("words", 36, "True or false: -382.3 > -2.3.", "false"),
        ("words", 2979, "True or false: 46 divides 244.", "false"),  # 5 * 46 = 230
        ("words", 1265, "Is 21 an odd or an even number?", "odd"),
        ("words", 3545, "Which weekday comes 25 days after a Thursday?", "Monday"),  # 21 + 4
        ("words", 971, "It is July. What month is it in 9 months?", "April"),
        ("words", 2754, "Spell out the number 304.", "three hundred four"),
    ],
)
def test_a_worked_value_of_every_module(preset, index, question, answer):
    record = ArithmeticConfig(preset=preset).maker()(index)
    assert (record.question, record.answer) == (question, answer)


@given(st.integers(-(10**18), 10**18), st.integers(0, 12))
def test_a_number_is_written_whole_and_in_one_way(coefficient, places):
    number = Fraction(coefficient, 10**places)
    text = write(number)
    assert Fraction(text) == number  # nothing is lost
    assert "e" not in text.lower() and not text.startswith(("-0.0 ", "+", ".")) and text != "-0"
    assert "." not in text or not text.endswith(("0", "."))  # and nothing is there for show
    assert places_of(number) == len(text.partition(".")[2]) <= places
    assert write(coefficient) == str(coefficient)


@given(st.fractions())
def test_a_number_without_end_is_refused(number):
    twos_and_fives = number.denominator
    for prime in (2, 5):
        while twos_and_fives % prime == 0:
            twos_and_fives //= prime
    if twos_and_fives == 1:
        assert Fraction(write(number)) == number
    else:
        with pytest.raises(ValueError, match="expected a number whose decimals end"):
            write(number)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(0, 6))
def test_a_drawn_number_has_the_digits_asked_for(seed, digits, places):
    places = min(places, digits - 1)
    text = write(draw_decimal(Random(seed), digits, places))
    assert digit_count(text) == digits and len(text.partition(".")[2]) == places
    assert len(str(draw_whole(Random(seed), digits))) == digits


def test_short_numbers_are_as_frequent_as_long_ones():
    draw = Draw(Random(0), Problems(modules=EVERY).reach())
    lengths = Counter(len(str(draw.natural())) for _ in range(6000))
    # 1,000 of each of the six lengths, with a standard deviation of 29.
    assert set(lengths) == set(range(1, 7)) and all(abs(count - 1000) < 120 for count in lengths.values())


def test_words_of_numbers_at_the_joints():
    known = {
        0: "zero", 13: "thirteen", 20: "twenty", 99: "ninety-nine", 100: "one hundred", 1_000: "one thousand", 12_034: "twelve thousand thirty-four",
        1_000_001: "one million one", 500_000_000_000: "five hundred billion",
    }  # fmt: skip
    assert {number: in_words(number) for number in known} == known


# ---- splits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_no_problem_of_one_split_is_in_another_in_any_wording_or_seed(name):
    other = ArithmeticConfig(problems=SETTINGS[name], splits=SHARES, seed=1).maker()
    met = defaultdict(lambda: defaultdict(set))
    for record in [*records(name), *map(other, range(1500))]:
        met["problem"][record.group].add(record.split)
        met["question"][record.question].add(record.split)
    for kind in ("problem", "question"):
        assert all(len(splits) == 1 for splits in met[kind].values())
    assert len(met["problem"]) < 4500  # some do come twice, so there was something to keep apart


def test_a_problem_with_its_operands_exchanged_is_the_same_problem():
    reach = WIDE.reach()
    for name in ("add", "multiply", "gcd", "lcm", "compare", "kth", "nearest", "add many"):
        problem = next(filter(None, (MODULES[name].ask(Draw(Random(seed), reach)) for seed in range(9))))
        turned = replace(problem, operands=problem.operands[::-1])
        assert problem_key(name, turned) == problem_key(name, problem)
    sides = Counter(side_of(f"add: {a}; {b}") for a in range(100) for b in range(100))
    # One in eight of 10,000, with a standard deviation of 33.
    assert abs(sides["interpolation"] - 1250) < 130 and set(sides) == {"train", "interpolation"}


@pytest.mark.parametrize("name", SETTINGS)
def test_extrapolation_is_longer_than_anything_in_training(name):
    problems, sizes = SETTINGS[name], defaultdict(lambda: defaultdict(set))
    for record in records(name):
        meta = json.loads(record.meta)
        grows = MODULES[record.kind].grows
        assert (meta["module"], meta["split"]) == (record.kind, record.split)
        sizes[record.kind][record.split].add(measured(record, grows))
        assert meta[grows] == measured(record, grows)
    limits = {
        "digits": (problems.digits, problems.extra_digits),
        "terms": (problems.terms, problems.extra_terms),
        "hours": (HOURS, EXTRA_HOURS),
    }
    for module, found in sizes.items():
        limit, extra = limits[MODULES[module].grows]
        assert max(found["train"]) <= limit < min(found["extrapolation"]) <= max(found["extrapolation"]) <= limit + extra
        assert found["interpolation"] <= set(range(limit + 1))


def measured(record, grows):
    """What grows, read off the question."""
    if grows == "hours":
        return -(-int(record.answer) // 60)
    texts = re.findall(r"\d+(?:\.\d+)?", record.question)
    if grows == "digits":
        if record.kind == "round":
            texts = texts[:1]  # the other number is how many decimals are wanted
        return max(len(text.replace(".", "")) for text in texts)
    return len(texts) - (record.kind == "nearest")


@pytest.mark.parametrize("name", SETTINGS)
def test_limits_hold_in_every_split(name):
    problems = SETTINGS[name]
    for record in records(name):
        assert record.kind in WORDS or digit_count(record.answer) <= problems.answer_digits
        if problems.negative == 0:
            assert "-" not in record.answer and " (-" not in record.question
    if name == "small":  # what a model of a hundred million parameters learns in a thousand steps
        assert max(len(record.answer) for record in records(name)) == 4
        assert all(len(pieces(record.question)) <= 30 for record in records(name))


def pieces(text):
    """About what a tokenizer that splits digits makes of a text: words, the space before a number, single digits, other signs."""
    return re.findall(r"[A-Za-z]+| (?=\d)|\S", text)


def test_both_answers_of_a_question_with_two_are_equally_frequent():
    counts = defaultdict(Counter)
    for record in records("words"):
        counts[record.kind][record.answer] += 1
    for module in ("which", "order", "divisible", "parity"):
        (_, most), (_, least) = counts[module].most_common()
        # About 430 each; half of them with a standard deviation of 10.
        assert abs(most - least) < 0.25 * (most + least), (module, counts[module])
    assert set(counts["weekday"]) == set(DAYS) and set(counts["month"]) == set(MONTHS)


def test_wordings_vary_or_stay_fixed_and_change_nothing_else():
    config = ArithmeticConfig(problems=replace(WIDE, phrasing="fixed"))
    fixed, varied = config.maker(), ArithmeticConfig(problems=WIDE).maker()
    wordings = defaultdict(set)
    for index in range(1500):
        a, b = fixed(index), varied(index)
        assert (a.answer, a.group, a.split) == (b.answer, b.group, b.split) and json.loads(a.meta)["wording"] == 0
        wordings[b.kind].add(json.loads(b.meta)["wording"])
    assert all(len(found) >= 2 for found in wordings.values())


# ---- folders ---------------------------------------------------------------------------------------------------------


def test_records_of_seed_0_stay_what_they_were():
    # Pinned, so that a change of any record is noticed and GENERATOR_VERSION raised.
    state = hashlib.sha256()
    for preset in PRESETS:
        make = ArithmeticConfig(preset=preset).maker()
        for record in map(make, range(300)):
            state.update(json.dumps([record.id, record.question, record.answer, record.group, record.meta]).encode())
    assert state.hexdigest()[:16] == "b207dc40dc74b5b2"


def test_the_folder_holds_what_the_format_says(tmp_path):
    told = write_questions(tmp_path / "d")
    assert told.endswith(f"look at {tmp_path / 'd' / 'preview.md'}")
    assert {path.name for path in (tmp_path / "d").iterdir()} == {"data", "manifest.json", "README.md", "preview.md"}
    sheet = (tmp_path / "d" / "preview.md").read_text(encoding="utf-8").splitlines()
    first = rows(tmp_path / "d")[0]
    assert len(sheet) == 2 + writer.PREVIEW and sheet[2] == f"| {first['kind']} | {first['question']} | {first['answer']} |"
    card = (tmp_path / "d" / "README.md").read_text(encoding="utf-8")
    assert "path: data/extrapolation-*.parquet" in card and "- question-answering" in card and "](preview.md)" in card
    assert "visual" not in card and "preview.png" not in card and "drawing" not in card
    manifest = json.loads((tmp_path / "d" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["counts"] == Counter(row["split"] for row in rows(tmp_path / "d")) and set(manifest["counts"]) == set(
        SPLITS
    )
    assert all(row["image"] is None and row["task"] == "arithmetic" for row in rows(tmp_path / "d"))


def test_load_dataset_and_our_own_reader_find_the_splits(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    write_questions(tmp_path / "d")
    data = load_dataset(str(tmp_path / "d"), cache_dir=str(tmp_path / "cache"))
    assert set(data) == set(SPLITS) and sum(map(len, data.values())) == 300
    for split in SPLITS:
        ours = load_records(tmp_path / "d", split)
        assert len(ours) == len(data[split]) and ours[0].images == ()
        assert data[split][0] == {**data[split][0], "image": None, "question": ours[0].question, "split": split}


def test_same_bytes_for_any_number_of_workers_and_same_records_for_any_shard_size(tmp_path):
    write_questions(tmp_path / "one", workers=1)
    write_questions(tmp_path / "two", workers=2)
    write_questions(tmp_path / "large", shard_size=1000)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert rows(tmp_path / "one") == rows(tmp_path / "large")
    hashes = {json.loads((tmp_path / name / "manifest.json").read_text())["content_hash"] for name in ("one", "large")}
    assert len(hashes) == 1


def test_pieces_agree_with_the_whole(tmp_path):
    write_questions(tmp_path / "a", n=120)
    write_questions(tmp_path / "b", n=180, start=120)
    write_questions(tmp_path / "whole")
    assert rows(tmp_path / "a") + rows(tmp_path / "b") == rows(tmp_path / "whole")


def test_kills_and_the_same_command_again(tmp_path):
    out, kept = tmp_path / "killed", set()
    argv = ["--n", "8000", "--out", str(out), "--shard-size", "200", "--splits", json.dumps(SHARES)]
    data = out / ".partial" / "data"

    def finished():
        return {(path.name, path.stat().st_mtime_ns) for path in data.iterdir()} if data.exists() else set()

    for workers in (1, 2, 1):
        command = [sys.executable, "-m", "synth.arithmetic", *argv, "--workers", str(workers)]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while finished() == kept and time.monotonic() < deadline:
            time.sleep(0.002)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        assert not (out / "data").exists() and kept < finished()  # nothing that loads as a whole, nothing written again
        kept = finished()
    write_questions(out, n=8000, shard_size=200)
    assert all((out / "data" / name).stat().st_mtime_ns == stamp for name, stamp in kept)
    write_questions(tmp_path / "straight", n=8000, shard_size=200)
    assert content(out) == content(tmp_path / "straight")


@pytest.mark.parametrize("preset", PRESETS)
def test_data_check_accepts_the_folder_and_the_golds_score_full_marks(tmp_path, capsys, preset):
    from eval.cli import main as evaluate
    from smmd_vlm.cli import main as smmd_vlm

    write_questions(tmp_path / "d", preset=preset)
    assert smmd_vlm(["data", "check", str(tmp_path / "d")]) == 0
    assert "nothing to complain about" in capsys.readouterr().out
    with open(tmp_path / "golds.jsonl", "w", encoding="utf-8") as lines:
        for row in rows(tmp_path / "d"):
            given = {name: row[name] for name in ("id", "question", "answer", "answer_type", "kind", "group", "unit")}
            lines.write(Prediction(**given, prediction=row["answer"]).to_json() + "\n")
    assert evaluate(["score", str(tmp_path / "golds.jsonl"), "--out", str(tmp_path / "report")]) == 0
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    overall = report["other"]["overall"]
    assert "time" not in report and (overall["n"], overall["exact"], overall["unparsed"]) == (300, 1.0, 0)
    assert overall["numeric_equal"] == (None if preset == "words" else 1.0)


# ---- settings --------------------------------------------------------------------------------------------------------


def test_settings_come_from_preset_yaml_and_flags(tmp_path):
    assert read_config([]).problems == PRESETS["varied"]
    assert read_config(["--preset", "words"]).problems == PRESETS["words"] == ArithmeticConfig(preset="words").problems
    file = tmp_path / "sums.yaml"
    file.write_text("preset: small\nn: 7\nproblems:\n  modules: {gcd: 2, add: 1}\n  digits: 2\n")
    config = read_config(["--config", str(file), "--problems.negative", "0.5"])
    assert config.n == 7 and config.problems == replace(
        PRESETS["small"], modules={"add": 1.0, "gcd": 2.0}, digits=2, negative=0.5
    )


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[1] / "configs" / "synth").glob("arithmetic*.yaml")))
def test_shipped_settings_are_read(path):
    assert read_config(["--config", str(path)]).plan().n > 0


def test_the_command_on_the_card_makes_the_same_records(tmp_path):
    argv = ["--n", "8", "--preset", "small", "--problems.modules", '{"add": 1, "kth": 2}', "--seed", "3", "--start", "5"]
    config = read_config(argv)
    words = config.plan().card.command.split(" ", 3)
    assert words[:3] == ["python", "-m", "synth.arithmetic"]
    shown = subprocess.run(
        ["sh", "-c", f'printf "%s\\n" {words[3]}'], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert read_config([*shown, "--out", str(tmp_path)]).plan().identity() == config.plan().identity()


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--n", "0"], "n must be at least 1"),
        (["--start", "-4"], "start must be 0"),
        (["--workers", "0"], "workers must be at least 1"),
        (["--show", "-1"], "show must be 0"),
        (["--splits", '{"test": 1}'], "splits are train, interpolation, extrapolation, got 'test'"),
        (["--problems.modules", '{"sine": 1}'], "problems.modules knows add, subtract"),
        (["--problems.modules", '{"add": 0}'], "must hold weights >= 0 of which one is above 0"),
        (["--problems.digits", "0"], "problems.digits must be 1 to 11, got 0"),
        (["--problems.digits", "9", "--problems.extra-digits", "4"], "problems.extra_digits must be 1 to 3, got 4"),
        (["--problems.terms", "2"], "problems.terms must be 3 to 11, got 2"),
        (["--problems.answer-digits", "16"], "problems.answer_digits must be 1 to 15, got 16"),
        (["--problems.negative", "1.5"], "problems.negative must be a chance"),
        (
            ["--preset", "small", "--problems.answer-digits", "3", "--problems.modules", '{"add": 1}'],
            "'add' finds no question for split extrapolation",  # four digits and more sum to four at least
        ),
        (["--preset", "fancy"], "Literal['varied', 'small', 'words']"),
    ],
)  # fmt: skip
def test_misuse_is_one_sentence_and_exit_code_2(argv, sentence, tmp_path, capsys):
    out = tmp_path / "arithmetic"
    assert main(["--out", str(out), *argv]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err and printed.err.count("\n") == 1 and printed.out == ""
    assert not out.exists()


def test_show_prints_questions_and_writes_nothing(tmp_path, capsys):
    assert main(["--show", "12", "--out", str(tmp_path / "d")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 13 and lines[-1] == "12 questions, no dataset (seed 0)" and list(tmp_path.iterdir()) == []
    record = ArithmeticConfig().maker()(0)
    assert lines[0].split("  ")[-2:] == [record.question, record.answer]
