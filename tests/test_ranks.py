"""Two processes give one process's gradients: uneven counts, and a rank without a number in a micro-batch.

Each rank is a process of its own (gloo, CPU), so that a hang or an abort is one failed test and not the whole run.
"""

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import torch

from smmd_vlm import NumericObjective
from tests.ranks import VOCAB, collate, model_of, sample

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 120


def whole(loss: str) -> dict[str, torch.Tensor]:
    """The objective over all eight samples at once, in this process."""
    model, batch = model_of(), collate([sample(index) for index in range(8)])
    NumericObjective(VOCAB, loss, 0.5)(model(input_ids=batch["input_ids"]).logits, batch["labels"]).loss.backward()
    return {name: p.grad for name, p in model.named_parameters()}


def two_ranks(cases: list[str], folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = os.environ | {
        "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.ranks", str(folder / "gradients.pt"), *cases]
    ranks = [
        subprocess.Popen(
            command, cwd=ROOT, env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        said = [rank.communicate(timeout=TIMEOUT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
    return torch.load(folder / "gradients.pt")


def test_two_ranks_of_every_trainer_give_the_gradients_of_one(tmp_path):
    cases = ["trainer:smmd", "trainer:ntil", "compute_loss:smmd"]
    if importlib.util.find_spec("trl"):
        cases.append("trl:dist2")
    same(two_ranks(cases, tmp_path))


def test_two_shards_of_fully_shard_give_the_gradients_of_one(tmp_path):
    same(two_ranks(["fsdp:smmd"], tmp_path))


def same(found: dict[str, dict[str, torch.Tensor]]) -> None:
    for case, gradients in found.items():
        wanted = whole(case.partition(":")[2])
        assert gradients.keys() == wanted.keys(), case
        scale = max(gradient.abs().max().item() for gradient in wanted.values())
        for name, gradient in wanted.items():
            torch.testing.assert_close(
                gradients[name], gradient, rtol=1e-4, atol=2e-6 * scale, msg=lambda text, at=f"{case} {name}": f"{at}: {text}"
            )
