"""The clock generator: times, splits, held-out times, settings, and the command with its exit codes."""

import io
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from smmd_vlm.numerals import read_time
from synth.clock_look import PRESETS, ClockLook
from synth.clocks import QUESTIONS, ClockConfig, ClockMaker, held_out_minutes, main, read_config

SMALL = {"preset": "plain", "size": 32}


def test_record_of_seed_0_stays_what_it_was():
    # Pinned, so that a change of the drawing of random numbers is noticed and GENERATOR_VERSION raised.
    record = ClockMaker(ClockConfig(preset="plain", size=64))(0)
    assert (record.id, record.answer, record.value, record.split, record.kind) == (
        "clock-0-00000000",
        "07:55",
        475.0,
        "train",
        "plain",
    )
    assert (record.unit, record.tolerance, record.task, record.group) == ("min", 1.0, "clock", record.id)
    assert record.question == "What time does the clock show? Answer HH:MM."
    meta = json.loads(record.meta)
    assert meta["angles_deg"] == {"hour": 237.5, "minute": 330.0}  # 475 / 2 and 55 * 6
    assert (meta["hour"], meta["minute"], meta["second"], meta["held_out"]) == (7, 55, None, False)
    varied = ClockMaker(ClockConfig(size=64))(0)
    assert (varied.answer, varied.kind) == ("07:55", "no numerals")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**40), st.integers(0, 10**9), st.sampled_from(["plain", "varied"]))
def test_answer_value_and_meta_tell_one_time(seed, index, preset):
    record = ClockMaker(ClockConfig(preset=preset, size=32, seed=seed))(index)
    meta = json.loads(record.meta)
    assert read_time(record.answer) == record.value == meta["hour"] % 12 * 60 + meta["minute"]
    assert 1 <= int(record.answer[:2]) <= 12
    second = meta["second"] or 0
    assert meta["angles_deg"]["minute"] == pytest.approx(6 * (meta["minute"] + second / 60), abs=1e-3)
    assert meta["angles_deg"]["hour"] == pytest.approx(30 * (meta["hour"] % 12) + (meta["minute"] + second / 60) / 2, abs=1e-3)
    assert ("second" in meta["angles_deg"]) == (meta["second"] is not None) == meta["choices"]["second_hand"]
    assert set(meta["tips_px"]) == set(meta["angles_deg"])
    image = Image.open(io.BytesIO(record.image))
    assert (image.format, image.mode, image.size) == ("PNG", "RGB", (32, 32))


def test_a_record_depends_on_its_index_and_seed_alone():
    make = ClockMaker(ClockConfig(**SMALL))
    assert make(5) == ClockMaker(ClockConfig(**SMALL, n=6, start=5, workers=7, out="elsewhere", shard_size=3))(5)
    assert make(5) != make(6) and make(5).meta != ClockMaker(ClockConfig(**SMALL, seed=1))(5).meta


def test_the_size_changes_the_pixels_and_not_the_clock():
    small, large = (ClockMaker(ClockConfig(size=size))(11) for size in (64, 128))
    assert json.loads(small.meta)["choices"] == json.loads(large.meta)["choices"] and small.answer == large.answer
    for name, (x, y) in json.loads(small.meta)["tips_px"].items():
        assert json.loads(large.meta)["tips_px"][name] == pytest.approx([2 * x, 2 * y], abs=2.5)


def test_changing_one_factor_leaves_the_others_as_they_were():
    varied = PRESETS["varied"].sample(Random(4))
    changed = replace(PRESETS["varied"], numerals={"roman": 1.0}).sample(Random(4))
    assert {name for name in varied if varied[name] != changed[name]} <= {"numerals"}


def test_the_order_in_which_weights_are_written_does_not_matter():
    assert list(ClockLook(ticks={"none": 1, "hours": 2}).ticks) == ["hours", "none"]


def test_times_are_uniform_over_the_dial():
    make = ClockMaker(ClockConfig(**SMALL, splits={"test": 1.0}))
    hours = Counter(int(make(index).value // 60) for index in range(2400))
    # 12 hours, 200 expected each: chi-square with 11 degrees of freedom stays below 31.3 in 99.9 % of seeds.
    assert sum((hours[hour] - 200) ** 2 / 200 for hour in range(12)) < 31.3


def test_held_out_times_never_occur_in_training_and_do_elsewhere():
    held = held_out_minutes(360, 0)
    seen = {"train": Counter(), "validation": Counter(), "test": Counter()}
    make = ClockMaker(ClockConfig(**SMALL, held_out_times=360, splits={"train": 0.6, "validation": 0.2, "test": 0.2}))
    for index in range(1000):
        record = make(index)
        kept_out = record.value in held
        assert json.loads(record.meta)["held_out"] == kept_out == record.kind.endswith(" / held-out time")
        seen[record.split][kept_out] += 1
    assert seen["train"][True] == 0 and seen["train"][False] > 500
    for split in ("validation", "test"):  # half of the times are held out; 200 records, four standard deviations are 28
        assert abs(seen[split][True] - seen[split][False]) < 60


def test_held_out_times_depend_on_their_own_seed_and_grow():
    assert held_out_minutes(10, 0) < held_out_minutes(72, 0) != held_out_minutes(72, 1)
    assert len(held_out_minutes(72, 0)) == 72
    assert ClockConfig(seed=0, held_out_times=9).plan().held_out == ClockConfig(seed=5, held_out_times=9).plan().held_out
    assert len(held_out_minutes(719, 3)) == 719


def test_phrasings():
    fixed = {ClockMaker(ClockConfig(**SMALL))(index).question for index in range(20)}
    varied = {ClockMaker(ClockConfig(**SMALL, phrasing="varied"))(index).question for index in range(80)}
    assert fixed == {QUESTIONS[0]} and varied == set(QUESTIONS)


def test_settings_come_from_preset_yaml_and_flags(tmp_path):
    assert read_config([]).look == PRESETS["varied"]
    assert read_config(["--preset", "plain"]).look == PRESETS["plain"] == ClockConfig(preset="plain").look
    file = tmp_path / "clocks.yaml"
    file.write_text("preset: plain\nsize: 96\nsplits: {train: 1}\nlook:\n  numerals: {roman: 1}\n  hour_length: [0.3, 0.4]\n")
    config = read_config(["--config", str(file), "--size", "64", "--look.tail", "[0.1, 0.2]"])
    assert (config.size, config.splits) == (64, {"train": 1.0})
    wanted = replace(PRESETS["plain"], numerals={"roman": 1.0}, hour_length=(0.3, 0.4), tail=(0.1, 0.2))
    assert config.look == wanted


def test_the_command_on_the_card_makes_the_same_records(tmp_path):
    argv = [
        "--n",
        "8",
        "--preset",
        "plain",
        "--size",
        "40",
        "--splits",
        '{"test": 1}',
        "--look.ticks",
        '{"minutes": 1}',
        "--seed",
        "3",
    ]
    config = read_config(argv)
    words = config.plan().card.command.split(" ", 3)
    assert words[:3] == ["python", "-m", "synth.clocks"]
    shown = subprocess.run(
        ["sh", "-c", f'printf "%s\\n" {words[3]}'], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    again = read_config([*shown, "--out", str(tmp_path)])
    assert again.plan().identity() == config.plan().identity()


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--n", "0"], "n must be at least 1"),
        (["--n", "many"], 'setting "n": Expected a int'),
        (["--size", "8"], "size must be 32 to 4096 pixels, got 8"),
        (["--size", "100000"], "size must be 32 to 4096"),
        (["--start", "-1"], "start must be 0"),
        (["--workers", "0"], "workers must be at least 1"),
        (["--shard-size", "0"], "shard_size must be at least 1"),
        (["--held-out-times", "720"], "held_out_times must leave a time"),
        (["--splits", '{"train": 0.5}'], "add up to 1"),
        (["--splits", '{"dev": 1.0}'], "splits are train, validation, test, got 'dev'"),
        (["--preset", "fancy"], "Literal['plain', 'varied']"),
        (["--colour", "red"], "unrecognized arguments: --colour"),
        (["--held", "3"], "unrecognized arguments: --held"),
        (["--config", "/nowhere.yaml"], "File does not exist"),
        (["--look.numerals", '{"greek": 1}'], "look.numerals knows arabic, roman, 12-3-6-9, none, got 'greek'"),
        (["--look.numerals", '{"arabic": 0}'], "of which one is above 0"),
        (["--look.radius", "[0.4, 0.3]"], "look.radius must be a range [low, high] within 0.2 to 0.49"),
        (["--look.second-hand", "1.5"], "look.second_hand must be a chance from 0 to 1"),
        (["--look.hour-length", "[0.5, 0.9]"], "ambiguous"),
    ],
)
def test_misuse_is_one_sentence_and_exit_code_2(argv, sentence, tmp_path, capsys):
    out = tmp_path / "clocks"
    assert main(["--out", str(out), *argv]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err and printed.err.count("\n") == 1 and printed.out == ""
    assert not out.exists()


def test_unknown_yaml_keys_are_refused(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text("sizes: 64\n")
    assert main(["--config", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "o")]) == 2
    assert "'sizes' is not accepted" in capsys.readouterr().err


def test_the_command_writes_says_so_and_is_idempotent(tmp_path, capsys):
    out = tmp_path / "clocks"
    argv = ["--n", "12", "--out", str(out), "--size", "32", "--workers", "1"]
    assert main(argv) == 0
    assert f"12 records (11 train, 1 test) to {out}" in capsys.readouterr().out.splitlines()[-1]
    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert main(argv) == 0
    assert "already complete" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == stamps


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom synth.clocks import main\n"
        "try: main(['--help'])\nexcept SystemExit as stop: assert stop.code in (0, None)\n"
        "heavy = {'torch', 'datasets', 'transformers', 'matplotlib'} & set(sys.modules)\nassert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--held-out-times" in done.stdout and "--look.numerals" in done.stdout
