"""`smmd-vlm export`: a run with an adapter -> one ordinary model folder, merged.

    smmd-vlm export --model runs/first --out exported --data data/clocks

An adapter trained on a 4-bit base was fitted to the rounded weights, so they are dequantised first and merged then: merging
into the original 16-bit base moves the logits about ten times as far. The difference is measured on real samples and printed.
Writes safetensors with processor, chat template and generation config. Refuses what would silently be wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import yaml

from smmd_vlm.collate import Collator, Encoder
from smmd_vlm.config import ExportConfig
from smmd_vlm.dataset import load_records
from smmd_vlm.model import load_for_prediction, load_merged, trained_config, trained_system_prompt

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

# a merged model in bfloat16 differs by rounding; beyond this the adapter has not arrived
WORST_RELATIVE_DIFFERENCE = 0.1


def export(config: ExportConfig) -> int:
    """Merge config.model into config.out; the folder appears whole or not at all."""
    out = Path(config.out)
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise ValueError(f"{out} is not empty; name a new --out")
    if not (Path(config.model) / "adapter_config.json").is_file():
        raise ValueError(
            f"expected a run with an adapter, got {config.model} without adapter_config.json; a whole model needs no export"
        )
    records = load_records(config.data, config.split)
    count = min(config.samples, len(records))
    model, processor = load_for_prediction(config.model)
    system_prompt = trained_system_prompt(config.model)
    encoder = Encoder(processor, with_answer=False, system_prompt=system_prompt)
    batch = Collator(processor, "left")([encoder(records[index]) for index in range(count)])
    batch.pop("ids")
    inputs = {name: value.to(model.device) for name, value in batch.items()}
    with torch.no_grad():
        adapted = model(**inputs, logits_to_keep=1).logits.float()
        with model.disable_adapter():
            base = model(**inputs, logits_to_keep=1).logits.float()
        del model
        merged = load_merged(config.model, getattr(torch, config.dtype)).to(inputs["input_ids"].device)
        exported = merged(**inputs, logits_to_keep=1).logits.float()
    moved, off = (adapted - base).square().mean().sqrt().item(), (exported - adapted).square().mean().sqrt().item()
    print(f"logits on {count} samples: the adapter moves them by {moved:.4g} (RMS), merging by {off:.4g}")
    if moved == 0:
        raise ValueError(f"the adapter of {config.model} changes no logit; it was not trained, or belongs to another model")
    if off > WORST_RELATIVE_DIFFERENCE * moved:
        raise ValueError(
            f"merging moves the logits by {off:.4g}, more than a tenth of what the adapter does ({moved:.4g}); use --dtype float32"
        )

    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        _write(Path(scratch) / "model", merged, processor, config, moved=moved, off=off)
        if out.exists():
            out.rmdir()
        os.replace(Path(scratch) / "model", out)
    print(f"wrote the merged model to {out}")
    return 0


def _write(
    folder: Path, merged: PreTrainedModel, processor: ProcessorMixin, config: ExportConfig, *, moved: float, off: float
) -> None:
    """Weights, processor, chat template, generation config, where it came from, and of the run its config.yaml (prompt and budget),
    passport, card, course and curves."""
    merged.save_pretrained(folder)
    processor.save_pretrained(folder)
    if merged.generation_config is not None:
        merged.generation_config.save_pretrained(folder)
    if (trained := trained_config(config.model)) is not None:
        (folder / "config.yaml").write_text(yaml.safe_dump(trained, sort_keys=False, allow_unicode=True), encoding="utf-8")
    for name in ("passport.json", "metrics.jsonl", "curves.png", "README.md"):
        if (written := Path(config.model) / name).is_file():  # a checkpoint has none
            shutil.copy(written, folder)
    if (card := folder / "README.md").is_file():
        text = card.read_text(encoding="utf-8").replace("library_name: peft", "library_name: transformers", 1)
        card.write_text(text.replace(f"--model {config.model} ", f"--model {config.out} ", 1), encoding="utf-8")
    origin = {
        "from": config.model,
        "dtype": config.dtype,
        "logit_rms_adapter": moved,
        "logit_rms_merge": off,
        "samples": config.samples,
    }
    (folder / "export.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
