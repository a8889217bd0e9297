"""--dry-run: the plan of a big model without its weights, and the same refusals as the run itself."""

import os
from pathlib import Path

import pytest

from smmd_vlm import memory
from smmd_vlm.cli import main

ROOT = Path(__file__).parents[1]
QLORA = [
    "train",
    "--config",
    str(ROOT / "configs" / "clocks_qwen3vl_4b_qlora.yaml"),
    "--data.image_min_tokens",
    "4",
    "--dry-run",
]


def test_the_4b_plan_needs_no_weights_and_writes_nothing(clocks, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*QLORA, "--data.dataset", str(clocks)]) == 0
    said = capsys.readouterr().out
    assert "shape from configs/shapes/qwen3_vl_4b_instruct.json" in said
    assert "4,437,815,808 parameters" in said  # Qwen3-VL-4B as published: 4.4 B
    assert "3,633,315,840 parameters in 252 modules" in said  # 36 layers x 7 projections, tower and head left alone
    # 36 layers x r 16 x (in + out) of q, k, v, o, gate, up, down
    widths = [(2560, 4096), (2560, 1024), (2560, 1024), (4096, 2560), (2560, 9728), (2560, 9728), (9728, 2560)]
    assert f"{36 * 16 * sum(a + b for a, b in widths):,} parameters in 252 modules" in said
    assert "[:]" in said and "[<|im_end|>]" in said and "rehearsal two steps" in said
    assert os.listdir(tmp_path) == []


def test_a_local_model_is_planned_from_its_own_folder(tiny, clocks, capsys):
    argv = [
        "train",
        "--model.model_name_or_path",
        str(tiny()),
        "--data.dataset",
        str(clocks),
        "--train.output_dir",
        "never",
        "--dry-run",
    ]
    assert main(argv) == 0
    said = capsys.readouterr().out
    assert f"shape from {tiny()}; its own processor" in said
    assert not Path("never").exists()


def test_data_without_images_is_rehearsed_with_a_frozen_tower(tiny, tmp_path, capsys):
    (tmp_path / "sums.jsonl").write_text('{"question": "2 + 2?", "answer": "4"}\n')
    argv = [
        "train",
        "--model.model_name_or_path",
        str(tiny()),
        "--lora.enabled",
        "false",
        "--data.dataset",
        str(tmp_path / "sums.jsonl"),
    ]
    assert main([*argv, "--train.output_dir", str(tmp_path / "never"), "--dry-run"]) == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--lora.target_modules", "nothing"], "matches no linear layer"),
        (["--data.max_length", "9"], "exceed data.max_length=9"),
        (["--model.model_name_or_path", "no/such-model"], "expected a model folder, a hub name or one of configs/shapes"),
    ],
)
def test_it_refuses_what_the_run_would_refuse(clocks, capsys, flags, message):
    assert main([*QLORA, "--data.dataset", str(clocks), *flags]) == 2
    assert message in capsys.readouterr().err


def test_memory_by_hand():
    # 1000 parameters in 4 bit, 10 frozen in bf16, 5 trained with Adam; 2 layers of width 8 and 16, 3 tokens, 2 rows of 100
    shape = dict(hidden=8, intermediate=16, layers=2, tokens=3, kept_rows=2, vocabulary=100)
    full = memory.estimate(frozen=10, quantised=1000, trained=5, weight_bytes=2, checkpointing=False, **shape)
    assert full.weights == pytest.approx(1000 * 4.127 / 8 + 20)
    assert full.trained == 5 * 16 and full.logits == 2 * 100 * 18
    assert full.activations == 3 * 2 * 2 * (10 * 8 + 4 * 16)
    light = memory.estimate(frozen=10, quantised=1000, trained=5, weight_bytes=2, checkpointing=True, **shape)
    assert light.activations == 3 * (2 * 2 * 8 + 2 * (10 * 8 + 4 * 16))
    assert full.total == full.weights + full.trained + full.activations + full.logits
