"""The chart generator: records, splits, held-out looks, storage, settings, and the command with its exit codes."""

import hashlib
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pyarrow.parquet as pq
import pytest

from synth import writer
from synth.chart_axis import NumberStyle, linear_axis, log_axis
from synth.chart_fonts import Font, text_width, wrap
from synth.chart_presets import PRESETS
from synth.chart_reading import Seen, mean, median, round_seen
from synth.charts import ChartConfig, main, read_config
from synth.looks import STYLES
from synth.writer import split_of, write_dataset

SMALL = {"preset": "plain", "questions_per_chart": 2}


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def write(out, workers=1, **changes):
    config = ChartConfig(**{"n": 24, "out": str(out), "shard_size": 6, **SMALL, **changes})
    return write_dataset(config.plan(), config.maker(), workers=workers)


def test_records_of_seed_0_stay_what_they_were():
    # Everything but the pixels, which belong to the versions of the drawing libraries: pinned, so that a change of any record is
    # noticed and GENERATOR_VERSION raised.
    state = hashlib.sha256()
    for preset in PRESETS:
        make = ChartConfig(preset=preset).maker()
        for chart in range(20):
            for record in make.records(chart):
                state.update(
                    json.dumps(
                        [record.id, record.question, record.answer, record.kind, record.meta], ensure_ascii=False
                    ).encode()
                )
    assert state.hexdigest()[:16] == "a89f8771cb74c00e"


def test_a_chart_depends_on_its_index_seed_and_settings_alone():
    make = ChartConfig(**SMALL).maker()
    again = ChartConfig(**SMALL, n=8, start=4, workers=7, out="elsewhere", shard_size=3).maker()
    assert make(9) == again(9) and make(4) == again(4)
    assert make(9).meta != ChartConfig(**SMALL, seed=1).maker()(9).meta


def test_records_of_a_chart_share_picture_group_and_split_and_differ_in_the_question():
    make = ChartConfig(questions_per_chart=5, splits={"train": 0.5, "test": 0.5}).maker()
    for chart in range(12):
        rows = make.records(chart)
        assert len({row.question for row in rows}) == len({row.id for row in rows}) == 5
        assert len({row.image for row in rows}) == len({row.group for row in rows}) == 1
        assert {row.split for row in rows} == {split_of(0, chart, {"train": 0.5, "test": 0.5})}
        for row in rows:
            template = json.loads(row.meta)["question"]["template"]
            assert row.kind == f"{json.loads(row.meta)['choices']['kind']} / {template}" and row.task == "chart"


def test_each_split_holds_whole_charts_and_each_file_too(tmp_path):
    write(tmp_path, n=40, questions_per_chart=4, shard_size=6, splits={"train": 0.6, "test": 0.4})
    for path in (tmp_path / "data").iterdir():
        groups = pq.read_table(path, columns=["group"])["group"].to_pylist()
        assert set(Counter(groups).values()) == {4}
        assert [group for k, group in enumerate(groups) if k % 4 == 0] == list(dict.fromkeys(groups))  # they stand together


def test_n_is_rounded_up_to_whole_charts(tmp_path, capsys):
    assert main(["--n", "9", "--out", str(tmp_path / "c"), "--preset", "embedded", "--workers", "1"]) == 0
    assert "12 records" in capsys.readouterr().out


def test_a_picture_is_stored_once_however_many_questions(tmp_path):
    sizes = {}
    for questions in (1, 4):
        out = tmp_path / str(questions)
        write(out, n=12 * questions, questions_per_chart=questions, splits={"train": 1.0}, shard_size=1000)
        (path,) = (out / "data").iterdir()
        column = next(
            c for c in map(pq.read_metadata(path).row_group(0).column, range(20)) if c.path_in_schema == "image.bytes"
        )
        sizes[questions] = column.total_compressed_size
    # The same twelve pictures; three more indices a chart are a few bytes.
    assert sizes[1] > 50_000 and sizes[4] <= 1.01 * sizes[1]


def test_held_out_looks_never_occur_in_training_and_do_elsewhere():
    config = ChartConfig(held_out_looks="pew,kind=area,kind=lines", questions_per_chart=1, splits={"train": 0.5, "test": 0.5})
    make = config.maker()
    seen = Counter()
    for chart in range(300):
        choices = make.made(chart).choices
        held = choices["look"] == "pew" or choices["kind"] in ("area", "lines")
        seen[split_of(0, chart, config.splits), held] += 1
    assert seen["train", True] == 0 and seen["test", True] > 20 < seen["test", False]
    record = next(r for r in map(make, range(300)) if json.loads(r.meta)["held_out"])
    assert record.split == "test" and record.kind.endswith(" / held-out look")
    assert config.plan().held_out == {"looks": ["look=pew", "kind=area", "kind=lines"]}


def test_kinds_looks_and_templates_all_occur():
    make = ChartConfig().maker()
    made = [make.made(chart) for chart in range(250)]
    kinds = {name for name, weight in PRESETS["varied"].kind.items() if weight}
    assert {each.choices["kind"] for each in made} == kinds and {each.choices["look"] for each in made} == set(STYLES)
    templates = Counter(question.template for chart, each in enumerate(made) for question in make.asked(chart, each))
    assert len(templates) >= 33 and max(templates.values()) < 0.2 * sum(templates.values())


def test_answers_are_of_all_types_and_yes_and_no_are_balanced():
    make = ChartConfig().maker()
    questions = [question for chart in range(250) for question in make.asked(chart, make.made(chart))]
    assert {question.answer_type for question in questions} == {"number", "year", "text", "list"}
    yes, no = (sum(question.answer == word for question in questions) for word in ("Yes", "No"))
    assert 0.5 < yes / no < 2


@pytest.mark.parametrize("workers", [1, 2])
def test_same_bytes_for_any_number_of_workers(tmp_path, workers):
    write(tmp_path / "a")
    write(tmp_path / "b", workers=workers)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_pieces_agree_with_the_whole(tmp_path):
    write(tmp_path / "whole")
    for start in (0, 12):
        write(tmp_path / f"from-{start}", n=12, start=start)

    def rows(*names):
        tables = [pq.read_table(path) for name in names for path in (tmp_path / name / "data").iterdir()]
        return sorted((row for table in tables for row in table.to_pylist()), key=lambda row: row["id"])

    assert rows("whole") == rows("from-0", "from-12")


def test_a_killed_run_goes_on_and_ends_in_the_same_bytes(tmp_path, monkeypatch):
    write(tmp_path / "whole")
    shard, drawn = writer.write_shard, []

    def fails_at_the_third(path, records, scratch):
        drawn.append(path)
        if len(drawn) == 3:
            raise KeyboardInterrupt
        return shard(path, records, scratch)

    monkeypatch.setattr(writer, "write_shard", fails_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "cut")
    assert not (tmp_path / "cut" / "data").exists()
    monkeypatch.undo()
    write(tmp_path / "cut")
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    assert "already complete" in write(tmp_path / "cut")


def test_settings_come_from_preset_yaml_and_flags(tmp_path):
    assert read_config([]).look == PRESETS["varied"]
    assert read_config(["--preset", "hard"]).look == PRESETS["hard"] == ChartConfig(preset="hard").look
    file = tmp_path / "charts.yaml"
    file.write_text("preset: plain\nquestions_per_chart: 2\nlook:\n  kind: {line: 1}\n  bar_width: [0.5, 0.6]\n")
    config = read_config(["--config", str(file), "--seed", "3", "--look.labels", '{"some": 1}'])
    assert (config.seed, config.questions_per_chart) == (3, 2)
    assert config.look == replace(PRESETS["plain"], kind={"line": 1.0}, bar_width=(0.5, 0.6), labels={"some": 1.0})


def test_the_command_on_the_card_makes_the_same_records(tmp_path):
    argv = ["--n", "8", "--preset", "hard", "--look.grid", '{"both": 1}', "--held-out-looks", "bokeh", "--seed", "3"]
    config = read_config(argv)
    words = config.plan().card.command.split(" ", 3)
    assert words[:3] == ["python", "-m", "synth.charts"]
    shown = subprocess.run(
        ["sh", "-c", f'printf "%s\\n" {words[3]}'], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert read_config([*shown, "--out", str(tmp_path)]).plan().identity() == config.plan().identity()


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--n", "0"], "n must be at least 1"),
        (["--questions-per-chart", "13"], "questions_per_chart must be 1 to 12, got 13"),
        (["--preset", "embedded", "--questions-per-chart", "5"], "must be 1 to 4 for charts without text"),
        (["--start", "2"], "start must be a multiple of questions_per_chart, 4, got 2"),
        (["--start", "-4"], "start must be 0"),
        (["--workers", "0"], "workers must be at least 1"),
        (["--held-out-looks", "excel"], "look knows plain, statista, owid, pew, bokeh"),
        (["--held-out-looks", "plain,statista,owid,pew,bokeh"], "must leave a look.look to train on"),
        (["--look.kind", '{"pie": 1}'], "look.kind knows bars"),
        (["--look.bar-width", "[0.9, 0.2]"], "look.bar_width must be a range"),
        (["--preset", "fancy"], "Literal['plain', 'varied', 'hard', 'embedded']"),
        (["--colour", "red"], "unrecognized arguments: --colour"),
        (["--show", "-1"], "show must be 0"),
    ],
)
def test_misuse_is_one_sentence_and_exit_code_2(argv, sentence, tmp_path, capsys):
    out = tmp_path / "charts"
    assert main(["--out", str(out), *argv]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err and printed.err.count("\n") == 1 and printed.out == ""
    assert not out.exists()


def test_show_draws_a_sheet_and_no_dataset(tmp_path, capsys):
    assert main(["--show", "2", "--out", str(tmp_path / "c")]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["c.png"] and "drew 2 charts" in capsys.readouterr().out


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom synth.charts import main\n"
        "try: main(['--help'])\nexcept SystemExit as stop: assert stop.code in (0, None)\n"
        "heavy = {'torch', 'datasets', 'transformers', 'matplotlib'} & set(sys.modules)\nassert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--questions-per-chart" in done.stdout and "--look.kind" in done.stdout


def test_axis_has_round_ticks_over_all_numbers():
    axis = linear_axis([Decimal(12), Decimal(87)], from_zero=True, ticks=5)
    assert [str(tick) for tick in axis.ticks] == ["0", "20", "40", "60", "80", "100"] and axis.fraction(Decimal(25)) == 0.25
    axis = linear_axis([Decimal("-0.3"), Decimal("0.5")], from_zero=True, ticks=4)
    assert axis.ticks[0] <= Decimal("-0.3") and axis.ticks[-1] >= Decimal("0.5") and Decimal(0) in axis.ticks
    # 3 to 700: decades 1 to 1000; 31.6 is half of three decades
    axis = log_axis([Decimal(3), Decimal(700)])
    assert [str(tick) for tick in axis.ticks] == ["1", "10", "100", "1000"]
    assert axis.fraction(Decimal("31.6227766")) == pytest.approx(0.5)


def test_numbers_are_written_in_each_form():
    number, axis = Decimal("-1234567.5"), linear_axis([Decimal(0), Decimal(800_000)], from_zero=True, ticks=4)
    assert NumberStyle(form="plain").write(number) == "-1234567.5"
    assert NumberStyle(form="comma", before="$").write(number) == "-$1,234,567.5"
    assert NumberStyle(form="space", after="%").write(number) == "-1\u00a0234\u00a0567.5%"
    assert NumberStyle(form="scientific").ticks(axis) == ["0.0e+0", "2.0e+5", "4.0e+5", "6.0e+5", "8.0e+5"]


def test_readings_add_their_slacks_and_are_rounded_to_them():
    a, b = Seen(Fraction(10), Decimal("0.5")), Seen(Fraction(4), Decimal("0.2"))
    assert (a - b) == Seen(Fraction(6), Decimal("0.7"))
    # 10 / 4 = 2.5; (0.5 + 2.5 * 0.2) / 4 = 0.25
    assert a.over(b) == Seen(Fraction(5, 2), Decimal("0.25"))
    assert mean([a, b]) == Seen(Fraction(7), Decimal("0.35")) and median([a, b]).slack == Decimal("0.5")
    assert a.surely_above(b) and not Seen(Fraction(4), Decimal("6.5")).surely_above(b)
    assert round_seen(Seen(Fraction(1234), Decimal(25)), 1) == (Decimal(1230), Decimal(10))
    assert round_seen(Seen(Fraction(2, 3), Decimal(0)), 2) == (Decimal("0.67"), Decimal("0.01"))
    assert round_seen(Seen(Fraction(25, 10), Decimal("0.01")), 2) == (Decimal("2.5"), Decimal("0.1"))


def test_texts_are_measured_by_the_fonts_own_widths():
    # DejaVu Sans: "1" is 1303 of 2048 units wide
    assert text_width("11", Font("sans", 20.48)) == pytest.approx(26.06)
    assert wrap("one two three", Font("sans", 10), 50) == ["one two", "three"]
