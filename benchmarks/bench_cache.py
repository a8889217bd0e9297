"""Training with the vision tower, with its features from the cache, and with no tower at all.

    python benchmarks/bench_cache.py [--rounds 3]

A small Qwen3-VL whose tower does the same share of the work as Qwen3-VL-4B's at 400 image tokens (counted and printed), LoRA
on the language layers, one epoch of 24 clocks of 640 px at a time from the dataset folder, one thread. No tower: the same
samples, prepared, with a text token in the place of every image token. Speed is samples a second of CPU time, for the cores
are shared, with the wall clock's beside it; medians of all rounds, in which the three alternate.
Bound: the epoch without a tower. Wanted: at least 70 % of its speed with the cache (data.vision_cache), and losses equal to
the tower's to 1e-5. Exit code 1 when missed.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
from bench_train import arguments, clocks
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration, TrainingArguments
from transformers.utils import logging

from smmd_vlm import NumericObjective, NumericVocab
from smmd_vlm.collate import Collator, EncodedRecords, Encoder, set_image_budget
from smmd_vlm.config import LoraConfig
from smmd_vlm.dataset import load_records
from smmd_vlm.model import add_lora
from smmd_vlm.tiny import build_processor, compact_tokenizer
from smmd_vlm.trainer import NumericTrainer
from smmd_vlm.visioncache import VisionCache

BIG = Path(__file__).parents[1] / "configs" / "shapes" / "qwen3_vl_4b_instruct.json"
IMAGE_TOKENS, TEXT_TOKENS, ANSWER_TOKENS = 400, 25, 6
CLOCKS, PIXELS, BATCH = 24, 640, 4  # 640 px are 20 x 20 image tokens of 32 x 32
WANTED_SPEED, WANTED_LOSS = 0.7, 1e-5


def work(shape: dict[str, Any]) -> tuple[float, float]:
    """(tower, language model): multiply-adds of one sample's forward; `shape` as in configs/shapes."""
    vision, text = shape["vision_config"], shape["text_config"]
    h, merge = vision["hidden_size"], vision["spatial_merge_size"] ** 2
    patches = IMAGE_TOKENS * merge
    embedding = 3 * vision["temporal_patch_size"] * vision["patch_size"] ** 2 * h
    layer = 4 * h * h + 2 * h * vision["intermediate_size"] + 2 * patches * h  # projections, MLP, scores and sums of values
    merger = (merge * h) ** 2 + merge * h * vision["out_hidden_size"]
    mergers = 1 + len(vision["deepstack_visual_indexes"])
    tower = patches * (embedding + vision["depth"] * layer) + IMAGE_TOKENS * mergers * merger

    d, tokens = text["hidden_size"], IMAGE_TOKENS + TEXT_TOKENS
    queries, keys = (text[name] * text["head_dim"] for name in ("num_attention_heads", "num_key_value_heads"))
    layer = 2 * d * (queries + keys) + 3 * d * text["intermediate_size"] + 2 * tokens * queries
    return tower, tokens * text["num_hidden_layers"] * layer + ANSWER_TOKENS * d * text["vocab_size"]


def share(shape: dict[str, Any]) -> float:
    tower, language = work(shape)
    return tower / language


def small_shape(wanted: float, vocab_size: int) -> dict[str, Any]:
    """A tower of one layer, and six language layers of the width that brings its share of the work nearest to `wanted`."""
    vision = {
        "hidden_size": 64, "intermediate_size": 256, "depth": 1, "num_heads": 2, "patch_size": 16, "temporal_patch_size": 1,
        "spatial_merge_size": 2, "out_hidden_size": 192, "num_position_embeddings": 2304, "deepstack_visual_indexes": [0],
    }  # fmt: skip
    text = {
        "hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 32,
        "vocab_size": vocab_size,
    }  # fmt: skip
    shapes = [{"vision_config": vision, "text_config": text | {"intermediate_size": size}} for size in range(128, 1024, 32)]
    return min(shapes, key=lambda shape: abs(share(shape) - wanted))


def small_model(shape: dict[str, Any], tokenizer: Any) -> torch.nn.Module:
    """A Qwen3-VL of that shape with LoRA on its language layers; the same weights every time."""
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [6, 5, 5], "mrope_interleaved": True}
    names = {"image_token_id": "image_pad", "video_token_id": "video_pad", "vision_start_token_id": "vision_start",
             "vision_end_token_id": "vision_end"}  # fmt: skip
    torch.manual_seed(0)
    config = Qwen3VLConfig(
        text_config=shape["text_config"] | {"rope_parameters": rope, "initializer_range": 0.05, "tie_word_embeddings": True},
        vision_config=shape["vision_config"],
        tie_word_embeddings=True,
        **{name: tokenizer.convert_tokens_to_ids(f"<|{token}|>") for name, token in names.items()},
    )
    return add_lora(Qwen3VLForConditionalGeneration(config), LoraConfig(), load_in_4bit=False)


def without_images(sample: dict[str, Any], text_id: int) -> dict[str, Any]:
    """The sample with a text token in the place of every image token."""
    image = sample["mm_token_type_ids"] > 0
    return {
        "id": sample["id"],
        "labels": sample["labels"],
        "input_ids": sample["input_ids"].masked_fill(image, text_id),
        "mm_token_type_ids": torch.zeros_like(sample["mm_token_type_ids"]),
    }


def epoch(trainer: NumericTrainer) -> tuple[float, float, list[float]]:
    """(seconds of CPU, of the wall, the losses) of one epoch."""
    cpu, wall = time.process_time(), time.perf_counter()
    with redirect_stdout(io.StringIO()):  # the Trainer prints every log
        trainer.train()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu, wall, [row["loss"] for row in trainer.state.log_history if "loss" in row]


def measure(shape: dict[str, Any], folder: Path, rounds: int) -> dict[str, list[tuple[float, float, list[float]]]]:
    """Contender -> what `epoch` gave in every round."""
    tokenizer = compact_tokenizer()
    processor = build_processor(tokenizer)
    set_image_budget(processor, IMAGE_TOKENS, IMAGE_TOKENS)
    records = load_records(clocks(folder / "clocks", CLOCKS, PIXELS), "train")
    base = small_model(shape, tokenizer).get_base_model().eval()
    cache = VisionCache(folder / "features", base, processor)
    cache.fill(base, (record.image for record in records), batch_size=BATCH)
    encoder = Encoder(processor)
    text_id = tokenizer("a")["input_ids"][0]
    samples: dict[str, Sequence[Any]] = {
        "no tower": [without_images(encoder(record), text_id) for record in records],
        "cached features": EncodedRecords(records, Encoder(processor, features=cache.load)),
        "tower": EncodedRecords(records, encoder),
    }
    settings = {"per_device_train_batch_size": BATCH, "max_steps": -1, "num_train_epochs": 1, "logging_steps": 1}
    trainers = {
        name: NumericTrainer(
            model=small_model(shape, tokenizer),
            args=arguments(TrainingArguments, str(folder / "run"), **settings),
            objective=NumericObjective(NumericVocab.from_tokenizer(tokenizer)),
            data_collator=Collator(processor),
            train_dataset=found,
        )
        for name, found in samples.items()
    }
    found: dict[str, list[tuple[float, float, list[float]]]] = {name: [] for name in trainers}
    for _ in range(rounds):
        for name, trainer in trainers.items():
            found[name].append(epoch(trainer))
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args(argv).rounds
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    big = json.loads(BIG.read_text(encoding="utf-8"))
    small = small_shape(share(big), len(compact_tokenizer()))
    for name, shape in ((big["model"], big), ("the small model", small)):
        tower, language = work(shape)
        print(f"{name}: tower {tower / 1e9:.2f}, language model {language / 1e9:.2f} billion multiply-adds a forward "
              f"({IMAGE_TOKENS} image and {TEXT_TOKENS} text tokens): {tower / language:.3f}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        found = measure(small, Path(folder), rounds)
    cpu = {name: statistics.median(run[0] for run in runs) for name, runs in found.items()}
    for name, runs in found.items():
        wall = statistics.median(run[1] for run in runs)
        print(f"{name:18}{CLOCKS / cpu[name]:8.2f} samples a second of CPU, {CLOCKS / wall:.2f} of the wall, "
              f"last loss {runs[0][2][-1]:.6f}")  # fmt: skip
    speed = cpu["no tower"] / cpu["cached features"]
    gap = max(abs(a - b) for a, b in zip(found["tower"][0][2], found["cached features"][0][2], strict=True))
    checks = [
        (f"cached features reach {speed:.0%} of the speed without a tower", f">= {WANTED_SPEED:.0%}", speed >= WANTED_SPEED),
        (f"their losses are the tower's to {gap:.1e}", f"<= {WANTED_LOSS:g}", gap <= WANTED_LOSS),
    ]
    for sentence, wanted, fine in checks:
        print(f"{sentence:62} wanted {wanted:8}{'' if fine else '  MISSED'}")
    return 0 if all(fine for *_, fine in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
