"""The clock generator: times, splits, held-out times, settings, and the command with its exit codes."""

import io
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from smmd_vlm.numerals import read_time
from synth.clock_answers import ASKED
from synth.clock_look import ClockLook
from synth.clock_maker import held_out_minutes
from synth.clock_presets import PRESETS
from synth.clocks import ClockConfig, main, read_config

SMALL = {"preset": "plain", "size": 32}


def test_record_of_seed_0_stays_what_it_was():
    # Pinned, so that a change of the drawing of random numbers is noticed and GENERATOR_VERSION raised.
    record = ClockConfig(preset="plain", size=64).maker()(0)
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
    varied = ClockConfig(size=64).maker()(0)
    assert (varied.answer, varied.kind) == ("07:55", "no numerals")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**40), st.integers(0, 10**9), st.sampled_from(["plain", "varied"]))
def test_answer_value_and_meta_tell_one_time(seed, index, preset):
    record = ClockConfig(preset=preset, size=32, seed=seed).maker()(index)
    meta = json.loads(record.meta)
    assert read_time(record.answer) == record.value == meta["hour"] % 12 * 60 + meta["minute"]
    assert int(record.answer[:2]) == meta["hour"] in (range(24) if meta["choices"]["numerals"] == "24-hour" else range(1, 13))
    second = meta["second"] or 0
    assert meta["angles_deg"]["minute"] == pytest.approx(6 * (meta["minute"] + second / 60), abs=1e-3)
    of_hour = (meta["minute"] + second / 60) / 60
    all_day = meta["choices"]["numerals"] == "24-hour"
    assert meta["angles_deg"]["hour"] == pytest.approx(
        15 * (meta["hour"] + of_hour) if all_day else 30 * (meta["hour"] % 12 + of_hour), abs=1e-3
    )
    assert ("second" in meta["angles_deg"]) == (meta["second"] is not None) == meta["choices"]["second_hand"]
    assert set(meta["tips_px"]) == set(meta["angles_deg"])
    image = Image.open(io.BytesIO(record.image))
    assert (image.format, image.mode, image.size) == ("JPEG" if "jpeg" in meta.get("scene", {}) else "PNG", "RGB", (32, 32))
    assert preset == "varied" or "scene" not in meta


def test_a_record_depends_on_its_index_and_seed_alone():
    make = ClockConfig(**SMALL).maker()
    assert make(5) == ClockConfig(**SMALL, n=6, start=5, workers=7, out="elsewhere", shard_size=3).maker()(5)
    assert make(5) != make(6) and make(5).meta != ClockConfig(**SMALL, seed=1).maker()(5).meta


def test_the_size_changes_the_pixels_and_not_the_clock():
    small, large = (ClockConfig(size=size).maker()(11) for size in (64, 128))
    assert json.loads(small.meta)["choices"] == json.loads(large.meta)["choices"] and small.answer == large.answer
    for name, (x, y) in json.loads(small.meta)["tips_px"].items():
        assert json.loads(large.meta)["tips_px"][name] == pytest.approx([2 * x, 2 * y], abs=2.5)


def test_changing_one_factor_leaves_the_others_as_they_were():
    varied = PRESETS["varied"].look.sample(Random(4))
    changed = replace(PRESETS["varied"].look, numerals={"roman": 1.0}).sample(Random(4))
    assert {name for name in varied if varied[name] != changed[name]} <= {"numerals"}


def test_the_order_in_which_weights_are_written_does_not_matter():
    assert list(ClockLook(ticks={"none": 1, "hours": 2}).ticks) == ["hours", "none"]


def test_times_are_uniform_over_the_dial():
    make = ClockConfig(**SMALL, splits={"test": 1.0}).maker()
    hours = Counter(int(make(index).value // 60) for index in range(2400))
    # 12 hours, 200 expected each: chi-square with 11 degrees of freedom stays below 31.3 in 99.9 % of seeds.
    assert sum((hours[hour] - 200) ** 2 / 200 for hour in range(12)) < 31.3


def test_held_out_times_never_occur_in_training_and_do_elsewhere():
    held = held_out_minutes(360, 0)
    seen = {"train": Counter(), "validation": Counter(), "test": Counter()}
    make = ClockConfig(**SMALL, held_out_times=360, splits={"train": 0.6, "validation": 0.2, "test": 0.2}).maker()
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
    fixed = {ClockConfig(**SMALL).maker()(index).question for index in range(20)}
    varied = {ClockConfig(**SMALL, phrasing="varied").maker()(index).question for index in range(80)}
    assert fixed == {"What time does the clock show? Answer HH:MM."}
    assert varied == {f"{asked.format(clock='the clock')} Answer HH:MM." for asked in ASKED}


def test_settings_come_from_preset_yaml_and_flags(tmp_path):
    assert read_config([]).sections == PRESETS["varied"]
    assert read_config(["--preset", "plain"]).sections == PRESETS["plain"] == ClockConfig(preset="plain").sections
    file = tmp_path / "clocks.yaml"
    file.write_text("preset: plain\nsize: 96\nsplits: {train: 1}\nlook:\n  numerals: {roman: 1}\n  hour_length: [0.3, 0.4]\n")
    config = read_config(["--config", str(file), "--size", "64", "--look.tail", "[0.1, 0.2]"])
    assert (config.size, config.splits) == (64, {"train": 1.0})
    wanted = replace(PRESETS["plain"].look, numerals={"roman": 1.0}, hour_length=(0.3, 0.4), tail=(0.1, 0.2))
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
        (["--preset", "fancy"], "Literal['plain', 'varied', 'photo']"),
        (["--colour", "red"], "unrecognized arguments: --colour"),
        (["--held", "3"], "unrecognized arguments: --held"),
        (["--config", "/nowhere.yaml"], "File does not exist"),
        (
            ["--look.numerals", '{"greek": 1}'],
            "look.numerals knows arabic, roman, 12-3-6-9, none, dots, 12 and 24, 24-hour, got 'greek'",
        ),
        (["--look.numerals", '{"arabic": 0}'], "of which one is above 0"),
        (["--look.radius", "[0.4, 0.3]"], "look.radius must be a range [low, high] within 0.05 to 0.6"),
        (["--look.second-hand", "1.5"], "look.second_hand must be a chance from 0 to 1"),
        (["--look.hour-length", "[0.5, 0.9]"], "ambiguous"),
        (["--scene.camera", "2"], "scene.camera must be a chance from 0 to 1"),
        (["--extras.turn", '{"upside down": 1}'], "extras.turn knows none, tilted, quarter, any, got 'upside down'"),
        (["--scene.fog", "0.5"], "unrecognized arguments: --scene.fog"),
        (["--impossible", "1.5"], "impossible must be a share from 0 to 1"),
        (["--answer-format", "minutes"], "Literal['HH:MM', 'HH:MM:SS', 'JSON']"),
        (["--format", "zip"], "Literal['parquet', 'imagefolder']"),
        (["--show", "-3"], "show must be 0 or the number of clocks"),
        (["--held-out-style", "roman"], "held_out_style must be factor=name"),
        (["--held-out-style", "numerals=greek"], "numerals knows arabic, roman"),
        (["--held-out-style", "look.radius=big"], "held_out_style must be factor=name"),
        (
            ["--preset", "plain", "--held-out-style", "hand_shape=baton"],
            "held_out_style must leave a look.hand_shape to train on",
        ),
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


def test_held_out_styles_never_occur_in_training_and_do_elsewhere():
    styles = "numerals=roman,hand_shape=spade,behind=wood"
    make = ClockConfig(size=32, held_out_style=styles, splits={"train": 0.5, "test": 0.5}).maker()
    seen = {"train": Counter(), "test": Counter()}
    for index in range(600):
        record = make(index)
        meta = json.loads(record.meta)
        chosen = {**meta["choices"], **meta.get("scene", {})}
        unseen = [pair for pair in styles.split(",") if chosen.get(pair.split("=")[0]) == pair.split("=")[1]]
        assert meta["held_out_style"] == bool(unseen) == record.kind.endswith(" / held-out style")
        seen[record.split].update(unseen)
    assert not seen["train"] and len(seen["test"]) == 3
    assert ClockConfig(held_out_style=styles).plan().held_out["styles"] == styles.split(",")


def test_a_piece_that_holds_styles_out_leaves_other_records_as_they_were():
    plain = ClockConfig(size=32, splits={"test": 1.0}).maker()
    held = ClockConfig(size=32, splits={"test": 1.0}, held_out_style="numerals=roman").maker()
    assert [plain(index).image for index in range(20)] == [held(index).image for index in range(20)]


@pytest.mark.parametrize("form", ["HH:MM", "HH:MM:SS", "JSON"])
def test_answers_in_every_form(form):
    make = ClockConfig(size=32, answer_format=form, splits={"test": 1.0}).maker()
    kinds = set()
    for index in range(60):
        record = make(index)
        meta = json.loads(record.meta)
        hour, minute, second = meta["hour"], meta["minute"], meta["second"]
        kinds.add(second is None)
        if form == "JSON":
            wanted = {"valid": True, "hours": hour, "minutes": minute, "seconds": False if second is None else second}
            assert json.loads(record.answer) == wanted and "JSON" in record.question
        else:
            told = [hour, minute] if form == "HH:MM" or second is None else [hour, minute, second]
            assert [int(part) for part in record.answer.split(":")] == told
            assert read_time(record.answer) == record.value
        tells_seconds = form != "HH:MM" and second is not None
        assert record.value == pytest.approx(hour % 12 * 60 + minute + (second / 60 if tells_seconds else 0))
        assert record.tolerance == (1 / 60 if tells_seconds else 1.0)
    assert kinds == {True, False}


def test_impossible_clocks_are_a_labelled_share_and_truly_impossible():
    make = ClockConfig(size=32, impossible=0.3, splits={"test": 1.0}).maker()
    impossible = 0
    for index in range(400):
        record = make(index)
        meta = json.loads(record.meta)
        impossible += not meta["valid"]
        # How far the hour hand is from every place that goes with the minute hand, in hours.
        hours = 24 if meta["choices"]["numerals"] == "24-hour" else 12
        off = (meta["angles_deg"]["hour"] / 360 * hours - meta["angles_deg"]["minute"] / 360 + 0.5) % 1 - 0.5
        assert abs(off) < 1e-3 if meta["valid"] else abs(off) > 0.29
        if not meta["valid"]:
            assert (record.answer, record.answer_type, record.value, record.tolerance) == ("impossible", "text", None, None)
            assert (record.kind.split(" /")[0], meta["hour"], meta["minute"]) == ("impossible", None, None)
        assert "impossible" in record.question
    assert 80 < impossible < 160  # 120 expected, four standard deviations are 37
    answer = ClockConfig(size=32, impossible=1.0, answer_format="JSON").maker()(0).answer
    assert json.loads(answer) == {"valid": False}  # as ClockBench writes it


def test_poses_have_their_hands_over_or_opposite_each_other():
    for pose, wanted in (("overlapping", 0.0), ("opposite", 180.0)):
        extras = replace(PRESETS["varied"].extras, pose={pose: 1.0})
        make = ClockConfig(size=32, extras=extras, look=replace(PRESETS["plain"].look, second_hand=0.0)).maker()
        for index in range(30):
            angles = json.loads(make(index).meta)["angles_deg"]
            assert abs((angles["minute"] - angles["hour"] - wanted + 180) % 360 - 180) < 3.3


def test_with_several_clocks_the_question_says_which():
    scene = replace(PRESETS["plain"].scene, clocks={"two": 1, "three": 1, "four": 1}, occlusion=1.0)
    make = ClockConfig(preset="plain", size=96, scene=scene).maker()
    places = set()
    for index in range(40):
        record = make(index)
        meta = json.loads(record.meta)
        assert f"the clock {meta['asked']} show?" in record.question
        x, y = meta["center_px"]
        assert ("left" in meta["asked"]) <= (x < 48) and ("right" in meta["asked"]) <= (x > 48)
        assert ("top" in meta["asked"]) <= (y < 48) and ("bottom" in meta["asked"]) <= (y > 48)
        assert len(meta["others"]) in (1, 2, 3) and "occlusion" not in meta["scene"]
        places.add(meta["asked"])
    assert len(places) == 7


def test_changing_a_scene_factor_leaves_the_clock_and_the_other_factors_as_they_were():
    scene = replace(PRESETS["photo"].scene, glare=1.0)
    for index in range(10):
        before, after = (
            json.loads(ClockConfig(preset="photo", size=48, scene=each).maker()(index).meta) for each in (None, scene)
        )
        assert before["choices"] == after["choices"] and before["tips_px"] == after["tips_px"]
        changed = {
            name for name in {**before["scene"], **after["scene"]} if before["scene"].get(name) != after["scene"].get(name)
        }
        assert changed <= {"glare", "glare_radius", "glare_depth"}


def test_dials_that_do_not_tell_where_their_12_is_stay_upright():
    make = ClockConfig(size=32, look=replace(PRESETS["varied"].look, numerals={"none": 1, "dots": 1})).maker()
    for index in range(200):
        choices = json.loads(make(index).meta)["choices"]
        assert "mirrored" not in choices and ("turn" not in choices or "twelve_mark" in choices)


def test_a_range_that_gives_zero_is_there_all_the_same():
    zeros = replace(PRESETS["photo"].scene, light=1.0, warmth=(0.0, 0.0), vignette=(0.0, 0.0), tilt_deg=(0.0, 0.0))
    meta = json.loads(ClockConfig(preset="photo", size=48, scene=zeros).maker()(3).meta)
    assert (meta["scene"]["warmth"], meta["scene"]["vignette"]) == (0.0, 0.0)


def test_show_draws_a_sheet_and_no_dataset(tmp_path, capsys):
    assert main(["--show", "7", "--size", "32", "--out", str(tmp_path / "look")]) == 0
    assert capsys.readouterr().out == f"drew 7 clocks on {tmp_path / 'look.png'}, no dataset (seed 0)\n"
    assert [path.name for path in tmp_path.iterdir()] == ["look.png"]
    assert Image.open(io.BytesIO((tmp_path / "look.png").read_bytes())).size == (6 * 170 + 10, 2 * 192 + 10)


def test_every_factor_can_be_reached_from_yaml_and_flags(tmp_path):
    file = tmp_path / "clocks.yaml"
    file.write_text("preset: photo\nextras: {brand: 1.0}\nscene:\n  behind: {brick: 1}\n  tilt_deg: [5, 10]\n")
    config = read_config(["--config", str(file), "--scene.jpeg-quality", "[70, 80]", "--extras.turn", '{"quarter": 1}'])
    photo = PRESETS["photo"]
    assert config.look == photo.look
    assert config.extras == replace(photo.extras, brand=1.0, turn={"quarter": 1.0})
    assert config.scene == replace(photo.scene, behind={"brick": 1.0}, tilt_deg=(5.0, 10.0), jpeg_quality=(70.0, 80.0))


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[1] / "configs" / "synth").glob("clocks_*.yaml")), ids=lambda path: path.stem
)
def test_ready_configurations_draw(path):
    config = read_config(["--config", str(path), "--size", "48"])
    assert config.maker()(0).image and config.plan().n == config.n
