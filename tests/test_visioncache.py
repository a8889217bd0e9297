"""Cached features of a frozen tower: the same samples, logits and curve as with the tower, and never stale."""

import pytest
import torch

from smmd_vlm.cli import main
from smmd_vlm.collate import Collator, Encoder, set_image_budget
from smmd_vlm.config import ModelConfig
from smmd_vlm.model import load_base, load_processor
from smmd_vlm.records import read_jsonl
from smmd_vlm.rows import to_record
from smmd_vlm.trainer import kept_logits
from smmd_vlm.visioncache import VisionCache, check_tower_is_frozen
from tests.support import png

FAMILIES = ["qwen2_5_vl", "qwen3_vl", "qwen3_5"]
ROWS = [
    {"image": png(color="navy"), "question": "How many?", "answer": "3"},
    {"images": [png(96, 64, color="red"), png(64, 128)], "question": "Left <image> or right <image>?", "answer": "12"},
    {"question": "2 + 2?", "answer": "4"},
]


def parts(tiny, family):
    config = ModelConfig(model_name_or_path=str(tiny(family)))
    processor = load_processor(config)
    set_image_budget(processor, 4, 16)
    return load_base(config).eval(), processor


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_and_logits_are_those_of_the_tower(tiny, tmp_path, family):
    model, processor = parts(tiny, family)
    records = [to_record(row, where=str(i), default_id=str(i), folder=None) for i, row in enumerate(ROWS)]
    cache = VisionCache(tmp_path, model, processor)
    images = [image for record in records for image in record.images]
    assert cache.fill(model, images, batch_size=2) == 3
    assert cache.fill(model, images, batch_size=2) == 0
    whole, cached = Encoder(processor), Encoder(processor, features=cache.load)
    for record in records:
        a, b = whole(record), cached(record)
        assert "pixel_values" not in b
        for name in ("input_ids", "labels", "mm_token_type_ids", "image_grid_thw"):
            assert name not in a or torch.equal(a[name], b[name]), name
    collate = Collator(processor)
    with torch.no_grad():
        expected = kept_logits(model, collate([whole(r) for r in records]))
        got = kept_logits(model, collate([cached(r) for r in records]))
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_another_budget_or_tower_is_another_folder(tiny, tmp_path):
    model, processor = parts(tiny, "qwen3_vl")
    first = VisionCache(tmp_path, model, processor).folder
    set_image_budget(processor, 4, 8)
    assert VisionCache(tmp_path, model, processor).folder != first
    set_image_budget(processor, 4, 16)
    assert VisionCache(tmp_path, model, processor).folder == first
    with torch.no_grad():
        model.model.visual.blocks[0].attn.qkv.weight[0, 0] += 1e-3
    assert VisionCache(tmp_path, model, processor).folder != first


def test_a_trained_tower_is_refused(tiny, clocks, tmp_path, capsys):
    model, _ = parts(tiny, "qwen3_vl")
    with pytest.raises(ValueError, match="needs a frozen vision tower"):
        check_tower_is_frozen(model)


def curve(tiny, clocks, out, *more):
    settings = {
        "model.model_name_or_path": tiny(), "lora.r": 4, "data.dataset": clocks, "data.image_max_tokens": 4, "train.output_dir": out,
        "train.max_steps": 6, "train.per_device_train_batch_size": 4, "train.learning_rate": 1e-2, "train.logging_steps": 1,
        "train.eval_strategy": "steps", "train.eval_steps": 3, "train.save_strategy": "no", "train.use_cpu": "true",
        "train.disable_tqdm": "true", "eval.generate_samples": 4, "train.dataloader_num_workers": 2,
    }  # fmt: skip
    assert main(["train", *(part for name, value in settings.items() for part in (f"--{name}", str(value))), *more]) == 0
    return [
        row.get("loss", row.get("eval_loss"))
        for _, row in read_jsonl(out / "metrics.jsonl")
        if "loss" in row or "eval_loss" in row
    ]


def test_the_curve_is_that_of_the_tower(tiny, clocks, tmp_path):
    whole = curve(tiny, clocks, tmp_path / "whole")
    cached = curve(tiny, clocks, tmp_path / "cached", "--data.vision_cache", str(tmp_path / "features"))
    assert len(whole) == 8 and cached == pytest.approx(whole, abs=1e-5)
    assert whole[-1] < whole[0]
