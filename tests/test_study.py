"""`smmd-vlm study` at a toy budget: cells, grids, resuming, the table, and what is refused."""

import json
import subprocess
import sys
import time

import pytest
import yaml

from eval.cli import main as score
from smmd_vlm.cli import main
from smmd_vlm.study import _check_cells, _check_options, _make_models
from smmd_vlm.study_plan import read_plan
from smmd_vlm.study_report import _difference, write_study
from tests.support import check_page


@pytest.fixture
def file(tmp_path, clocks):
    """write(**changes) -> the path of a study of two cells and one seed, two steps each."""
    base = {
        "model": {"model_name_or_path": "set by the study"},
        "lora": {"enabled": False},
        "data": {"dataset": str(clocks), "image_max_tokens": 4},
        "train": {
            "output_dir": "set by the study", "max_steps": 2, "per_device_train_batch_size": 8, "learning_rate": 1e-3, "logging_steps": 1,
            "eval_strategy": "steps", "eval_steps": 1, "save_strategy": "no", "use_cpu": True,
        },
        "eval": {"generate_samples": 4},
    }  # fmt: skip
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    study = {
        "out": str(tmp_path / "study"), "base": str(tmp_path / "base.yaml"), "test": {"data": str(clocks), "max_new_tokens": 6, "distribution": True},
        "also": {"few": {"data": str(clocks), "max_new_tokens": 6, "limit": 4}},
        "seeds": [1], "against": ["ce"], "tiny": {"hidden": 32, "layers": 1},
        "cells": {"ce": {"loss.name": "none"}, "smmd": {"loss.name": "smmd", "grid": {"loss.weight": [1.0]}}},
    }  # fmt: skip

    def write(**changes):
        path = tmp_path / "study.yaml"
        path.write_text(yaml.safe_dump(study | changes))
        return path

    return write


def content(out):
    """study.json without the one thing that differs from time to time."""
    found = json.loads((out / "study.json").read_text())
    for row in found["cells"]:
        row.pop("train_seconds")
    return found


def test_a_study_from_end_to_end_and_again_after_a_loss(file, tmp_path, capsys):
    path, out = file(), tmp_path / "study"
    assert main(["study", str(path)]) == 0
    said = capsys.readouterr().out
    assert "2 cells x 1 seeds, 2 runs to make" in said
    table = (out / "study.md").read_text()
    assert all(
        name in table
        for name in (
            "| ce |",
            "| smmd-weight1.0 |",
            "exact % against ce",
            "CRPS, min against ce",
            "few, exact %",
            "few, exact % against ce",
        )
    )
    assert len((out / "cells" / "ce" / "seed-1" / "predictions-few.jsonl").read_text().splitlines()) == 4
    configs = {
        p.parents[2].name + p.parents[1].name: yaml.safe_load(p.read_text()) for p in out.glob("cells/*/*/run/config.yaml")
    }
    assert configs["smmd-weight1.0seed-1"]["loss"]["weight"] == 1.0 and configs["smmd-weight1.0seed-1"]["train"]["seed"] == 1
    models = {config["model"]["model_name_or_path"] for config in configs.values()}
    assert len(models) == 1  # one for each seed, shared by the cells
    first = content(out)

    # killed while the first cell's run is made again, it goes on; the other cell is left alone, and the table is the same
    (out / "cells" / "ce" / "seed-1" / "cell.json").unlink()
    (out / "study.json").unlink()
    kept = (out / "cells" / "smmd-weight1.0" / "seed-1" / "predictions.jsonl").stat().st_mtime_ns
    running = subprocess.Popen([sys.executable, "-m", "smmd_vlm", "study", str(path)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while (out / "cells" / "ce" / "seed-1" / "predictions.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(1)
    running.kill()
    running.wait()
    assert not (out / "study.json").exists()
    assert main(["study", str(path)]) == 0
    assert "1 runs to make" in capsys.readouterr().out
    assert (out / "cells" / "smmd-weight1.0" / "seed-1" / "predictions.jsonl").stat().st_mtime_ns == kept
    assert content(out) == first

    page = (out / "study.html").read_text()
    check_page(page)
    assert 'src="data:image/png;base64,' in page
    file(seeds=[0, 2])
    assert main(["study", str(path)]) == 2
    assert "holds another study (seeds differ" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": 1}, "expected the keys out, base, test, seeds and cells"),
        ({"against": ["gce"]}, "against names 'gce', but the cells are ce, smmd-weight1.0"),
        ({"seeds": 0}, "seeds must be a list, got 0"),
        ({"cells": ["ce"]}, "cells must be a mapping"),
        ({"against": "ce"}, "against must be a list, got 'ce'"),
        ({"cells": {"smmd": {"grid": {"loss.weight": 0.3}}}}, "must map settings to lists of values"),
        ({"seeds": [1, 1]}, "seeds must be different whole numbers"),
        ({"base": "nowhere.yaml"}, "base nowhere.yaml does not exist"),
        ({"cells": {"../x": {}}}, "a name is that of a folder"),
        ({"also": {"a/b": {"data": "x"}}}, "a name is that of a folder"),
        ({"also": {"words": "x"}}, "also.words must be a mapping"),
        ({"also": {"words": {"limit": 3}}}, "must name its `data`"),
        ({"out": "c", "also": {"words": {"data": "nowhere"}}}, "nowhere"),
        ({"out": 5}, "out must be a text, got 5"),
        ({"base": 5}, "base must be a text, got 5"),
        ({"test": {"data": 5}}, "must name its `data`"),
        ({"cells": {"ce": {"tiny": 3}}}, "cells.ce.tiny must be a mapping, got 3"),
        ({"cells": {}}, "expected at least one cell"),
        ({"parallel": 0}, "parallel must be a whole number from 1 on, got 0"),
        ({"seeds": [-1]}, "seeds must be different whole numbers from 0 on"),
        ({"settings": {"train.seed": 3}}, "train.seed is what the study sets itself"),
        ({"settings": {"train.output_dir": "x"}}, "train.output_dir is what the study sets itself"),
        ({"settings": {"model.model_name_or_path": "x"}}, "model.model_name_or_path is what the study sets itself"),
        ({"tiny": {"out": "x"}}, "out is what the study sets itself"),
        ({"test": {"data": "x", "model": "y"}}, "model is what the study sets itself"),
        # in a folder of its own, for what is found out only after the folder was claimed
        ({"out": "a", "cells": {"ce": {}, "late": {"loss.name": "nope"}}}, "cell 'late': loss must be one of smmd"),
        ({"out": "d", "tiny": {"hidden": 33}}, "cell 'ce': --hidden must be a positive multiple of 32"),
        ({"out": "b", "cells": {"ce": {}, "late": {"loss.sigma": 2}}}, "cell 'late': "),
    ],
)
def test_bad_studies_are_one_sentence_before_the_first_run(file, changes, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["study", str(file(**changes))]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("*/cells"))


def test_what_a_test_asks_is_looked_at_before_the_first_run(file, clocks, tmp_path, capsys):
    mixed = tmp_path / "mixed.jsonl"
    rows = [{"question": "When?", "answer": "10:08"}, {"question": "How many?", "answer": "3"}]
    mixed.write_text("".join(json.dumps(row | {"split": "test"}) + "\n" for row in rows))
    assert main(["study", str(file(test={"data": str(mixed)}))]) == 2
    assert "asks for clock times and for other answers" in capsys.readouterr().err
    assert main(["study", str(file(test={"data": str(clocks), "bogus": 1}))]) == 2  # no run began, so the folder is free
    assert "test: " in (said := capsys.readouterr().err) and "bogus" in said
    assert not (tmp_path / "study" / "cells").exists()


def test_what_is_asked_and_trained_on_too_is_counted(file, clocks, tmp_path, capsys):
    """Train and test on the same 20 clocks; leaving them out of training leaves nothing, which is said before the first run."""
    both = {"data": str(clocks), "split": "train", "limit": 20}
    path = file(test=both, also={}, seeds=[1], cells={"ce": {"loss.name": "none"}}, against=[])
    plan = read_plan(path)
    asked = _check_options(plan)
    missing = list(plan.jobs())
    _make_models(plan, missing)
    assert _check_cells(plan, missing, {"": asked[""][:10] * 2}) == {"ce": {"": 20}}  # records, not different questions
    assert f"caution   20 of 20 questions of {clocks} are trained on too" in capsys.readouterr().out
    left_out = {"data.decontaminate": [str(clocks)], "data.decontaminate_split": "train"}
    assert main(["study", str(file(out=str(tmp_path / "other"), test=both, also={}, settings=left_out))]) == 2
    assert "train records of" in (said := capsys.readouterr().err) and "are in data.decontaminate too" in said


def test_a_grid_is_every_combination(file):
    grid = {"loss.weight": [0.3, 1], "loss.options": [{"sigmas": [2.0]}, {"sigmas": [2.0, 6.0]}]}
    plan = read_plan(file(cells={"ce": {}, "smmd": {"loss.name": "smmd", "grid": grid}}, seeds=[0, 1]))
    assert len(plan.cells) == 5 and len(list(plan.jobs())) == 10
    assert plan.cells[-1].changes == {"loss.name": "smmd", "loss.weight": 1, "loss.options": {"sigmas": [2.0, 6.0]}}
    assert len({cell.name for cell in plan.cells}) == 5
    assert plan.cells[-1].name == "smmd-optionssigmas2.0_6.0-weight1"


def test_cells_can_start_from_models_of_their_own(file):
    plan = read_plan(file(cells={"digits": {}, "whole": {"tiny": {"digits_per_token": 2}}}, against=[]))
    digits, whole = plan.cells
    assert digits.tiny == {"hidden": 32, "layers": 1}
    assert whole.tiny == {"hidden": 32, "layers": 1, "digits_per_token": 2}


def answered(plan, answers, trained_on=0):
    """A whole study made by hand: what each (cell, seed) answered to questions whose answer is 4; scored as ever."""
    for cell, seed in plan.jobs():
        folder = plan.folder(cell, seed)
        (folder / "run").mkdir(parents=True)
        (folder / "run" / "metrics.jsonl").write_text('{"step": 1, "eval_exact": 0.0}\n{"step": 2, "train_runtime": 2.0}\n')
        rows = [
            {"id": str(k), "question": "?", "answer": "4", "prediction": said, "answer_type": "number"}
            for k, said in enumerate(answers[cell.name, seed])
        ]
        (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert score(["score", str(folder / "predictions.jsonl"), "--out", str(folder / "report")]) == 0
        (folder / "cell.json").write_text(json.dumps({"trained_on": {"report": trained_on}}))


def test_what_could_not_be_read_is_said(file, tmp_path):
    """Two seeds; one of `ce` says nothing that is a number, and each of its answers is the same."""
    plan = read_plan(file(also={}, seeds=[1, 5]))
    answers = {
        ("ce", 1): ["3", "4"] * 20,
        ("ce", 5): ["no"] * 40,
        ("smmd-weight1.0", 1): ["4"] * 40,
        ("smmd-weight1.0", 5): ["4"] * 40,
    }
    answered(plan, answers, trained_on=7)
    said = "\n".join(write_study(plan))
    table, page = (plan.out / "study.md").read_text(), (plan.out / "study.html").read_text()
    assert (
        f"40 questions of {plan.test['data']} (test), 7 of which are trained on too, with the same images if any; 2 seeds (1, 5)"
        in table
    )
    assert "| ce | 25.00 | 25.00 | 0.50 (1 of 2 seeds) | 50.00 |" in table and "Every answer was read" not in table
    concern = "ce, seed 5: answers: 100% of the predictions could not be read"
    assert f"**Look here**: {concern}" in table and f"look here: {concern}" in said and concern in page
    assert content(plan.out)["cells"][0]["unparsed_rate"] == {"per_seed": [0.0, 1.0], "mean": 0.5}


def test_when_all_was_read_one_sentence_says_so(file):
    plan = read_plan(file(also={}))
    answered(plan, {("ce", 1): ["3", "4"], ("smmd-weight1.0", 1): ["4", "4"]})
    list(write_study(plan))
    table = (plan.out / "study.md").read_text()
    assert "Every answer was read." in table and "unread" not in table and "trained on" not in table
    assert "training took 4 seconds" in table and "With one seed the noise of training is not covered" in table


@pytest.mark.parametrize(
    ("difference", "low", "high", "settled", "shown"),
    [
        (1.25, -8.0, 10.5, False, "+1.2 [-8.0, +10.5]"),
        (-0.001, -0.04, 0.03, False, "-0.001 [-0.040, +0.030]"),
        (-1.4, -2.9, -0.04, True, "-1.40 [-2.90, -0.04] *"),
        (0.0, 0.0, 0.0, False, "+0.0 [+0.0, +0.0]"),
        (-3e66, -9e66, 3e66, False, "-3.0e+66 [-9.0e+66, +3.0e+66]"),
    ],
)
def test_a_difference_has_the_places_its_interval_needs(difference, low, high, settled, shown):
    assert _difference({"difference": difference, "interval": [low, high], "settled": settled}, 1) == shown


@pytest.mark.parametrize(("written", "shown"), [("2 + 2\n#### {}", True), ("{}", False)])
def test_answers_in_words_are_judged_by_the_number_in_them(file, tmp_path, written, shown):
    """Three of four right in `ce`, four in `smmd`; a column of their own only where the words are more than the number."""
    plan = read_plan(file(also={}))
    answered(plan, {("ce", 1): [written.format(n) for n in "4445"], ("smmd-weight1.0", 1): [written.format(4)] * 4})
    assert "wrote" in list(write_study(plan))[-1]
    ce, smmd = content(plan.out)["cells"]
    table = (plan.out / "study.md").read_text()
    assert ("equal %" in table) == ("equal % against ce" in table) == ("numeric_equal" in ce) == shown
    assert (ce["numeric_equal" if shown else "exact"]["mean"], smmd["numeric_equal" if shown else "exact"]["mean"]) == (0.75, 1)
