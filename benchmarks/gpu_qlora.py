"""QLoRA steps of a Qwen3-VL-4B-shaped model with random weights: ours beside the stock Trainer's cross-entropy, one run.

    python benchmarks/gpu_qlora.py --out benchmarks/results/gpu_qlora.json            # on one large GPU
    python benchmarks/gpu_qlora.py --layers 2 --steps 3 --batch 2 --device cpu        # the rehearsal

The model is made here from configs/shapes/ and saved, then loaded in 4 bit through the same code as a hub model; speed and
memory do not depend on what the weights are. Both sides train the same adapters on the same clocks in the same order.
Bound: the head and cross-entropy on supervised rows alone; wanted: no slower and no more memory than stock (exit 1 else).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import torch
from transformers import AutoConfig, Trainer, TrainerCallback, TrainingArguments

from smmd_vlm.collate import Collator, EncodedRecords, Encoder, set_image_budget
from smmd_vlm.config import LoraConfig, ModelConfig
from smmd_vlm.dataset import load_records
from smmd_vlm.model import add_lora, describe, load_base
from smmd_vlm.objective import NumericObjective
from smmd_vlm.tiny import build_processor, compact_tokenizer
from smmd_vlm.trainer import NumericTrainer
from smmd_vlm.vocab import NumericVocab
from synth.clocks import main as clocks

SHAPE = Path(__file__).parents[1] / "configs" / "shapes" / "qwen3_vl_4b_instruct.json"
WARM_UP = 3  # steps not timed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=None, help="layers of tower and language model (default: the shape's)")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--image-tokens", type=int, default=196)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args(argv)
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("no GPU here; the rehearsal is --layers 2 --steps 3 --batch 2 --device cpu")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_model(folder / "model", args)
        clocks(
            [
                "--n",
                str(max(64, args.steps * args.batch)),
                "--size",
                "448",
                "--splits",
                '{"train": 1}',
                "--out",
                str(folder / "clocks"),
            ]
        )
        sides = {name: measure(name, folder, args) for name in ("stock", "ours")}
    result = {
        "device": torch.cuda.get_device_name() if args.device == "cuda" else "cpu",
        "torch": torch.__version__,
        "shape": SHAPE.stem,
        "settings": {name: value for name, value in vars(args).items() if name != "out"},
        **sides,
        "speed_ratio": sides["ours"]["samples_per_second"] / sides["stock"]["samples_per_second"],
        "memory_ratio": sides["ours"]["peak_gib"] / sides["stock"]["peak_gib"],
    }
    print(json.dumps(result, indent=2, default=str))
    if args.out:
        args.out.write_text(json.dumps(result, indent=2, default=str) + "\n")
    if args.device == "cpu":  # a rehearsal: three steps time nothing
        return 0
    return 0 if result["speed_ratio"] >= 1 and result["memory_ratio"] <= 1 else 1


def make_model(folder: Path, args: argparse.Namespace) -> None:
    """Random bf16 weights in the shape of the 4B model, saved with a processor of its patch layout."""
    shape = json.loads(SHAPE.read_text())
    shape.pop("model")
    if args.layers is not None:
        shape["text_config"]["num_hidden_layers"] = shape["vision_config"]["depth"] = args.layers
        shape["vision_config"]["deepstack_visual_indexes"] = [0]
    tokenizer = compact_tokenizer()
    ids = {
        "image_token_id": tokenizer.convert_tokens_to_ids("<|image_pad|>"),
        "video_token_id": tokenizer.convert_tokens_to_ids("<|video_pad|>"),
        "vision_start_token_id": tokenizer.convert_tokens_to_ids("<|vision_start|>"),
        "vision_end_token_id": tokenizer.convert_tokens_to_ids("<|vision_end|>"),
    }
    from transformers import Qwen3VLForConditionalGeneration

    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(args.device):
        model = Qwen3VLForConditionalGeneration(AutoConfig.for_model(**shape, **ids))
    torch.set_default_dtype(torch.float32)
    model.save_pretrained(folder)
    del model
    if args.device == "cuda":
        torch.cuda.empty_cache()


def measure(side: str, folder: Path, args: argparse.Namespace) -> dict[str, float]:
    processor = build_processor(compact_tokenizer(), temporal_patch_size=2)
    set_image_budget(processor, args.image_tokens, args.image_tokens)
    records = EncodedRecords(load_records(folder / "clocks", "train"), Encoder(processor))
    torch.manual_seed(0)
    model = load_base(ModelConfig(model_name_or_path=str(folder / "model"), load_in_4bit=True, dtype="bfloat16"))
    model = add_lora(model, LoraConfig(r=16, lora_alpha=32), load_in_4bit=True)
    watch = Watch(args)
    training = TrainingArguments(
        output_dir=str(folder / side),
        max_steps=args.steps,
        per_device_train_batch_size=args.batch,
        learning_rate=1e-4,
        bf16=args.device == "cuda",
        activation_checkpointing=True,
        activation_checkpointing_kwargs={"use_reentrant": False},
        dataloader_num_workers=0 if args.device == "cpu" else 8,
        remove_unused_columns=False,
        label_names=["labels"],
        save_strategy="no",
        report_to="none",
        logging_steps=1,
        use_cpu=args.device == "cpu",
        disable_tqdm=True,
    )
    common = dict(model=model, args=training, train_dataset=records, callbacks=[watch])
    if side == "ours":
        objective = NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer))
        trainer = NumericTrainer(objective=objective, data_collator=Collator(processor), **common)
    else:
        collate = Collator(processor)
        trainer = Trainer(data_collator=lambda samples: {k: v for k, v in collate(samples).items() if k != "ids"}, **common)
    if args.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    result = {
        "samples_per_second": watch.samples_per_second(),
        "peak_gib": watch.peak_gib(),
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "model": describe(model),
    }
    del trainer, model
    if args.device == "cuda":
        torch.cuda.empty_cache()
    return result


class Watch(TrainerCallback):
    """Times the steps after the warm-up."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.start, self.end = args, 0.0, 0.0
        self.warm_up = min(WARM_UP, args.steps - 1)

    def _now(self) -> float:
        if self.args.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def on_step_end(self, args, state, control, **_) -> None:
        if state.global_step == self.warm_up:
            self.start = self._now()
        self.end = self._now()

    def samples_per_second(self) -> float:
        return (self.args.steps - self.warm_up) * self.args.batch / (self.end - self.start)

    def peak_gib(self) -> float:
        if self.args.device == "cuda":
            return torch.cuda.max_memory_allocated() / 2**30
        import psutil

        return psutil.Process().memory_info().rss / 2**30


if __name__ == "__main__":
    sys.exit(main())
