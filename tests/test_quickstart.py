"""The tour from end to end at a toy budget: every stage and the files it promises."""

import json
from pathlib import Path

import pytest

from smmd_vlm.cli import main
from smmd_vlm.quickstart import CHOSEN_ON, CONTROLS, RUNS, WEIGHT, _train_command


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    out = tmp_path_factory.mktemp("tour") / "quickstart"
    budget = ["--steps", "6", "--train_clocks", "64", "--test_clocks", "100"]
    assert main(["quickstart", "--out", str(out), *budget]) == 0
    return out


def test_the_summary_has_every_run_and_stage(tour):
    summary = json.loads((tour / "summary.json").read_text())
    assert summary["runs"].keys() == {"ce-seed0", "smmd-seed0"}
    wanted = {"exact", "exact_seen", "exact_held_out", "within_1_min", "within_5_min", "mean_error_min"}
    assert all(wanted <= run.keys() for run in summary["runs"].values())
    assert summary["seconds"].keys() == {"clocks", "model", "train", "evaluate"}


def test_runs_differ_in_their_loss_alone(tour):
    import yaml

    configs = {path.name: yaml.safe_load((path / "config.yaml").read_text()) for path in (tour / "runs").iterdir()}
    for config in configs.values():
        config["train"].pop("output_dir")
    losses = {name: config.pop("loss") for name, config in configs.items()}
    assert configs["ce-seed0"] == configs["smmd-seed0"]
    assert (losses["ce-seed0"]["name"], losses["smmd-seed0"]["name"], losses["smmd-seed0"]["weight"]) == (
        "none",
        "smmd",
        WEIGHT,
    )


def test_the_weight_is_one_that_was_tried_on_seeds_that_are_not_shown(tour):
    from smmd_vlm.study import read_plan

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(__file__).parents[1])
        plan = read_plan(Path("configs/study_quickstart_weight.yaml"))
    assert plan.seeds == CHOSEN_ON and WEIGHT in {cell.changes["loss.weight"] for cell in plan.cells}
    assert not set(CHOSEN_ON) & set(json.loads((tour / "summary.json").read_text())["settings"]["seeds"])


def test_controls_have_the_strength_without_the_distances():
    assert {run["weight"] for run in CONTROLS.values()} == {RUNS["smmd"]["weight"]}
    command = _train_command(Path("out"), "shuffled-seed3", RUNS | CONTROLS, steps=10)
    assert command[command.index("--loss.options") + 1] == '{"kernel": "shuffled"}'
    assert command[command.index("--train.seed") + 1] == "3"


def test_the_figure_and_the_preview_are_pictures(tour):
    from PIL import Image

    for path in (tour / "quickstart.png", tour / "data" / "train" / "preview.png"):
        with Image.open(path) as picture:
            assert min(picture.size) > 200


def test_held_out_times_are_never_trained_on(tour):
    from smmd_vlm.dataset import load_records

    train, test = load_records(tour / "data" / "train", "train"), load_records(tour / "data" / "test", "test")
    seen = {record.answer for record in train}
    held_out = {record.answer for record in test if record.kind.endswith("/ held-out time")}
    assert held_out and not held_out & seen


def test_a_folder_in_use_is_refused(tour, capsys):
    assert main(["quickstart", "--out", str(tour)]) == 2
    assert "is not empty; name a new --out" in capsys.readouterr().err


def test_the_readmes_numbers_are_those_of_the_stored_run():
    root = Path(__file__).parents[1]
    runs = json.loads((root / "benchmarks" / "results" / "quickstart.json").read_text())["runs"]
    readme = (root / "README.md").read_text(encoding="utf-8")
    for name, label in (("ce-seed0", "CE"), ("smmd-seed0", "CE + SMMD")):
        shares = ("exact", "exact_seen", "exact_held_out", "within_1_min", "within_5_min")
        cells = [f"{100 * runs[name][share]:.1f}" for share in shares] + [f"{runs[name]['mean_error_min']:.2f}"]
        assert f"| {label} | {' | '.join(cells)} |" in readme
