"""`smmd-vlm train` in two processes (gloo, CPU) has the curve of one process that takes their batches together.

Forty samples make whole steps: where the last step of an epoch is short, accelerate fills the ranks up with samples of its start.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from smmd_vlm.cli import main
from smmd_vlm.records import read_jsonl

ROOT = Path(__file__).parents[1]
CURVE = ("loss", "cross_entropy", "numeric_loss", "numeric_targets", "eval_loss", "eval_cross_entropy", "eval_exact")


def flags(model: Path, clocks: Path, out: Path, batch: int) -> list[str]:
    settings = {
        "model.model_name_or_path": model, "model.dtype": "float32", "lora.r": 4, "lora.lora_dropout": 0.0, "loss.name": "smmd",
        "data.dataset": clocks, "data.max_train_samples": 40, "data.image_max_tokens": 4, "eval.generate_samples": 4, "train.output_dir": out, "train.max_steps": 6,
        "train.per_device_train_batch_size": batch, "train.gradient_accumulation_steps": 2, "train.learning_rate": 1e-2,
        "train.logging_steps": 1, "train.eval_strategy": "steps", "train.eval_steps": 3, "train.save_strategy": "no",
        "train.use_cpu": "true", "train.disable_tqdm": "true",
    }  # fmt: skip
    return ["train", *(word for name, value in settings.items() for word in (f"--{name}", str(value)))]


def curve(run: Path) -> list[dict[str, float]]:
    rows = [{name: row[name] for name in CURVE if name in row} for _, row in read_jsonl(run / "metrics.jsonl")]
    return [row for row in rows if row]


def test_two_processes_have_the_curve_of_one(tiny, clocks, tmp_path):
    assert main(flags(tiny(), clocks, tmp_path / "one", batch=4)) == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "smmd_vlm", *flags(tiny(), clocks, tmp_path / "two", batch=2), "--train.ddp_backend", "gloo"],
            cwd=ROOT, env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        said = [rank.communicate(timeout=120)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
    one, two = curve(tmp_path / "one"), curve(tmp_path / "two")
    assert len(one) == len(two) >= 8
    for ours, theirs in zip(one, two, strict=True):
        assert theirs == pytest.approx(ours, abs=1e-5)
    assert json.loads((tmp_path / "two" / "passport.json").read_text())["recipe"]
