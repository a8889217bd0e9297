"""Stopping and going on: bit-equal after a kill, nothing resumed from half a checkpoint, nothing changed under way."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smmd_vlm.cli import main
from smmd_vlm.config import ModelConfig
from smmd_vlm.model import load_base
from smmd_vlm.records import read_jsonl
from smmd_vlm.resume import check_same_run, cut_metrics, newest_checkpoint

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def flags(tiny, clocks):
    """LoRA with dropout, accumulation and workers: everything that could make a resumed run differ."""

    def build(out, **options):
        settings = {
            "model.model_name_or_path": tiny(), "lora.r": 4, "lora.lora_dropout": 0.2, "data.dataset": clocks, "data.image_max_tokens": 4,
            "train.output_dir": out, "train.max_steps": 12, "train.per_device_train_batch_size": 2, "train.gradient_accumulation_steps": 3,
            "train.save_strategy": "steps", "train.save_steps": 5, "train.logging_steps": 1, "train.dataloader_num_workers": 2,
            "train.use_cpu": "true", "train.disable_tqdm": "true",
        } | {name.replace("__", "."): value for name, value in options.items()}  # fmt: skip
        return ["train", *(part for name, value in settings.items() for part in (f"--{name}", str(value)))]

    return build


def weights(run: Path) -> bytes:
    return (run / "adapter_model.safetensors").read_bytes()


def losses(run: Path) -> list[tuple[int, float]]:
    return [(row["step"], row["loss"]) for _, row in read_jsonl(run / "metrics.jsonl") if "loss" in row]


@pytest.fixture
def start(tmp_path):
    """start(argv) -> a `python -m smmd_vlm` process whose output goes to `tmp_path / "log"`; `first` is run before it."""
    running = []

    def go(argv, first: str = "") -> subprocess.Popen:
        program = f"{first}\nimport sys\nfrom smmd_vlm.cli import main\nsys.exit(main(sys.argv[1:]))"
        with open(tmp_path / "log", "w") as log:
            running.append(
                subprocess.Popen([sys.executable, "-c", program, *argv], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
            )
        return running[-1]

    yield go
    for process in running:
        process.kill()
        process.wait()


def wait_for(path: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert path.exists()


@pytest.fixture(scope="module")
def straight(flags, tmp_path_factory) -> Path:
    """Twelve steps without a stop, checkpoints at 5 and 10."""
    out = tmp_path_factory.mktemp("runs") / "straight"
    assert main(flags(out)) == 0
    return out


def goes_on_to_the_same_bits(flags, killed: Path, straight: Path) -> None:
    assert main([*flags(killed), "--resume"]) == 0
    assert weights(killed) == weights(straight)
    assert losses(killed) == losses(straight) and len(losses(killed)) == 12
    assert newest_checkpoint(killed)[0].name == newest_checkpoint(straight)[0].name


def test_a_killed_run_goes_on_to_the_same_bits(flags, straight, start, tmp_path):
    killed = tmp_path / "killed"
    process = start(flags(killed))
    wait_for(killed / "checkpoint-5" / "trainer_state.json", process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    goes_on_to_the_same_bits(flags, killed, straight)


KILL_INSIDE_THE_SAVE_OF_STEP_10 = """
import os, signal
from transformers import Trainer

save = Trainer._save_rng_state
def save_rng_state(self, folder):
    if self.state.global_step == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    save(self, folder)
Trainer._save_rng_state = save_rng_state
"""


def test_a_run_killed_inside_a_save_goes_on_to_the_same_bits(flags, straight, start, tmp_path, capsys):
    killed = tmp_path / "killed"
    assert start(flags(killed), first=KILL_INSIDE_THE_SAVE_OF_STEP_10).wait(timeout=120) == -signal.SIGKILL
    left = {path.name for path in (killed / "checkpoint-10").iterdir()}
    assert {"optimizer.pt", "scheduler.pt"} <= left and not {"rng_state.pth", "trainer_state.json"} & left
    goes_on_to_the_same_bits(flags, killed, straight)
    assert "skipped checkpoint-10: trainer_state.json is missing" in capsys.readouterr().out


@pytest.mark.parametrize("moment", range(10))
def test_a_kill_at_any_moment_of_a_save_is_survived(flags, straight, tmp_path, moment):
    """What a kill leaves of the save of step 10: some files whole, the next one cut short, the rest not begun."""
    killed = tmp_path / "killed"
    shutil.copytree(straight, killed, ignore=shutil.ignore_patterns("adapter_*", "checkpoint-10", "checkpoint-12"))
    shutil.copytree(straight / "checkpoint-5", killed / "checkpoint-5", dirs_exist_ok=True)
    written = sorted((straight / "checkpoint-10").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len(written) >= 10 and written[-1].name == "trainer_state.json"
    whole = len(written) - 10 + moment
    (killed / "checkpoint-10").mkdir()
    for path in written[: whole + 1]:
        shutil.copy(path, killed / "checkpoint-10")
    cut = killed / "checkpoint-10" / written[whole].name
    os.truncate(cut, cut.stat().st_size // 2)
    assert newest_checkpoint(killed)[0].name == "checkpoint-5"
    goes_on_to_the_same_bits(flags, killed, straight)


def test_sigterm_saves_and_ends_clean(flags, start, tmp_path):
    out = tmp_path / "run"
    process = start(flags(out, train__save_strategy="no", train__max_steps=2000))
    wait_for(out / "metrics.jsonl", process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 128 + signal.SIGTERM
    said = (tmp_path / "log").read_text()
    assert "by SIGTERM after step" in said and "wrote the run" not in said and "Traceback" not in said
    checkpoint, skipped = newest_checkpoint(out)
    assert checkpoint is not None and not skipped
    with pytest.raises(ValueError, match=f"has not ended; go on with `train --resume`, or name its {checkpoint.name}"):
        load_base(ModelConfig(model_name_or_path=str(out)))


def test_a_run_may_end_elsewhere_than_it_was_to_and_says_so(flags, straight, tmp_path, capsys):
    again = tmp_path / "again"
    shutil.copytree(straight, again)
    assert main([*flags(again, train__max_steps=9), "--resume"]) == 2
    assert "expected train.max_steps of 12 or more to go on from checkpoint-12, got 9" in capsys.readouterr().err
    assert main([*flags(again, train__max_steps=13), "--resume"]) == 0
    said = capsys.readouterr().out
    assert "train.max_steps was 12, is 13; the learning rate follows the new schedule" in said
    assert "plan      13 steps of 6 samples (2 a device x 3 accumulated x 1 processes)" in said


def test_a_resumed_run_must_go_on_as_it_began(flags, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(flags(out, train__max_steps=1, train__dataloader_num_workers=0)) == 0
    changed = flags(
        out, train__max_steps=2, train__dataloader_num_workers=0, lora__target_modules=r".*self_attn\.q_proj", train__seed=7
    )
    assert main([*changed, "--resume"]) == 2
    message = capsys.readouterr().err
    assert "trainable.names_sha256 was" in message and "seed was 42, is 7" in message


def test_another_loss_or_adapter_is_not_a_continuation(flags, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(flags(out, train__max_steps=1, train__dataloader_num_workers=0)) == 0
    before = (out / "config.yaml").read_text()
    for name, value in (
        ("loss.name", "none"),
        ("lora.r", "8"),
        ("data.system_prompt", "hello"),
        ("train.learning_rate", "0.1"),
    ):
        assert main([*flags(out, train__max_steps=2), f"--{name}", value, "--resume"]) == 2
        assert f"{name} was" in capsys.readouterr().err
    assert (out / "config.yaml").read_text() == before


def test_a_finished_run_without_checkpoints_is_not_overwritten(flags, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(flags(out, train__max_steps=1, train__save_strategy="no", train__dataloader_num_workers=0)) == 0
    before = weights(out), (out / "metrics.jsonl").read_bytes()
    assert main([*flags(out, train__max_steps=1, train__save_strategy="no"), "--resume"]) == 2
    assert "has ended and kept no checkpoint" in capsys.readouterr().err
    assert (weights(out), (out / "metrics.jsonl").read_bytes()) == before


def test_resuming_nothing_is_refused(flags, tmp_path, capsys):
    assert main([*flags(tmp_path / "nothing"), "--resume"]) == 2
    assert "expected a run with config.yaml to resume" in capsys.readouterr().err


def test_the_trainers_own_resume_is_owned(flags, tmp_path, capsys):
    assert main([*flags(tmp_path / "x"), "--train.resume_from_checkpoint", "true"]) == 2
    assert "use --resume" in capsys.readouterr().err


@pytest.mark.parametrize("victim", ["trainer_state.json", "adapter_model.safetensors", "optimizer.pt", "rng_state.pth"])
def test_every_cut_file_disqualifies_a_checkpoint(flags, tmp_path, victim):
    out = tmp_path / "run"
    assert main(flags(out, train__max_steps=2, train__save_steps=1, train__dataloader_num_workers=0)) == 0
    path = out / "checkpoint-2" / victim
    os.truncate(path, path.stat().st_size // 2)
    checkpoint, skipped = newest_checkpoint(out)
    assert checkpoint.name == "checkpoint-1" and victim in skipped[0]


def test_metrics_are_cut_back_to_the_step(tmp_path):
    rows = [{"step": 1, "loss": 3.0}, {"step": 2, "loss": 2.0}, {"step": 3, "loss": 1.0}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 4, "lo')
    cut_metrics(tmp_path, 2)
    assert [row for _, row in read_jsonl(tmp_path / "metrics.jsonl")] == rows[:2]


def test_same_passports_are_the_same_run():
    passport = {"data": {"hash": "a", "split": "train"}, "model": {}, "trainable": {}, "seed": 1}
    passport["recipe"] = {"loss.name": "smmd"}
    check_same_run(passport, dict(passport))
    with pytest.raises(ValueError, match='data.hash was "a", is "b"'):
        check_same_run(passport, passport | {"data": {"hash": "b", "split": "train"}})


def test_a_loss_that_is_not_finite_names_its_records(tiny, clocks, tmp_path, capsys, monkeypatch):
    import torch

    from smmd_vlm import trainer

    monkeypatch.setattr(trainer, "kept_logits", lambda model, inputs: torch.full((48, 377), torch.nan, requires_grad=True))
    settings = {
        "model.model_name_or_path": tiny(), "lora.enabled": "false", "data.dataset": clocks, "data.image_max_tokens": 4,
        "train.output_dir": tmp_path / "run", "train.max_steps": 2, "train.per_device_train_batch_size": 8, "train.use_cpu": "true",
    }  # fmt: skip
    assert main(["train", *(part for name, value in settings.items() for part in (f"--{name}", str(value)))]) == 1
    message = capsys.readouterr().err
    assert "expected a finite loss, got nan in the step after 0" in message and "for the records clock-0-" in message
