"""`smmd-vlm train ... --dry-run`: what a run would do, before it costs anything.

Prints the resolved configuration, what would be quantised, adapted and trained (on the meta device, no weights), a decoded
sample with its supervised and numeric tokens marked, image tokens, lengths, a memory estimate against this machine, and
makes two rehearsal steps with the real batches on a tiny random model of the same class. Writes nothing.

A local model folder is read as it is. A hub model whose shape is known (configs/shapes/) is not downloaded: its shape is
read from there, and where its processor is not in the cache a stand-in with one token a digit counts the text.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import torch
import yaml
from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor, PretrainedConfig, ProcessorMixin

from smmd_vlm import memory, preflight, runfolder
from smmd_vlm.collate import Collator, EncodedRecords
from smmd_vlm.config import ModelConfig
from smmd_vlm.model import add_lora, family_of, freeze_vision, load_base
from smmd_vlm.prepare import Prepared, prepare
from smmd_vlm.runconfig import Config
from smmd_vlm.tiny import build_model, build_processor, compact_tokenizer
from smmd_vlm.trainer import terms_of
from smmd_vlm.visioncache import check_tower_is_frozen

SHAPES = Path(__file__).parents[1] / "configs" / "shapes"


def dry_run(config: Config) -> None:
    """Print the whole plan; a ValueError where the run itself would refuse."""
    runfolder.check_free(Path(config.train.output_dir), resuming=False)
    hf_config, source = _shape(config.model)
    family_of(hf_config.model_type)
    processor, words = _processor(config.model, hf_config)
    prepared = prepare(config, processor)
    print(yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True))
    print(f"model     {hf_config.model_type}, {source}; {words}")
    modules = _modules(hf_config, config)
    for name, (count, parameters) in modules.items():
        print(f"  {name:24} {parameters:>16,} parameters in {count} modules")
    stats = prepared.stats
    print(f"numbers   {prepared.vocab.describe()}\ntraining  {stats}")
    if prepared.leak:
        print(f"caution   {prepared.leak}")
    print(f"sample    {preflight.show_sample(prepared.records[0], prepared.encoder, prepared.vocab)}")
    print(f"images    {_histogram(stats.image_token_counts)}")
    print(f"memory    {_footprint(hf_config, config, prepared, modules)}; {_machine()}")
    losses = _rehearse(hf_config, config, prepared)
    print(f"rehearsal two steps on a tiny random {hf_config.model_type}: loss {losses[0]:.3f}, then {losses[1]:.3f}")
    print("dry run   nothing was trained or written")


def _shape(model: ModelConfig) -> tuple[PretrainedConfig, str]:
    name = model.model_name_or_path
    for path in sorted(SHAPES.glob("*.json")) if not Path(name).is_dir() else ():
        shape = json.loads(path.read_text(encoding="utf-8"))
        if shape.pop("model") == name:
            return AutoConfig.for_model(**shape), f"shape from configs/shapes/{path.name}"
    try:
        return AutoConfig.from_pretrained(name, revision=model.revision), f"shape from {name}"
    except OSError as error:
        raise ValueError(
            f"expected a model folder, a hub name or one of configs/shapes, got {name!r} ({str(error).splitlines()[0]})"
        ) from None


def _processor(model: ModelConfig, hf_config: PretrainedConfig) -> tuple[ProcessorMixin, str]:
    try:
        processor = AutoProcessor.from_pretrained(model.model_name_or_path, revision=model.revision, local_files_only=True)
        return processor, "its own processor"
    except OSError:
        stand_in = build_processor(
            compact_tokenizer(), hf_config.model_type, temporal_patch_size=hf_config.vision_config.temporal_patch_size
        )
        return stand_in, "its processor is not in the cache, so text is counted by a stand-in; image tokens are exact"


def _modules(hf_config: PretrainedConfig, config: Config) -> dict[str, tuple[int, int]]:
    """Kind -> (modules, parameters), from a model on the meta device."""
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(hf_config)
    family = family_of(hf_config.model_type)
    pattern = re.compile(config.lora.target_modules or family.lora)
    linear = {name: m for name, m in model.named_modules() if isinstance(m, torch.nn.Linear)}
    quantised = {
        n: m for n, m in linear.items() if config.model.load_in_4bit and not n.startswith(family.vision) and n != "lm_head"
    }
    adapted = {n: m for n, m in linear.items() if config.lora.enabled and pattern.fullmatch(n)}
    if config.lora.enabled and not adapted:
        raise ValueError(f"lora.target_modules {pattern.pattern!r} matches no linear layer of {type(model).__name__}")
    total = sum(p.numel() for p in model.parameters())
    four_bit = sum(m.weight.numel() for m in quantised.values())
    lora = sum(config.lora.r * (m.in_features + m.out_features) for m in adapted.values())
    vision = sum(p.numel() for n, p in model.named_parameters() if n.startswith(family.vision))
    return {
        "all": (sum(1 for _ in model.modules()), total),
        "vision tower": (sum(n.startswith(family.vision) for n, _ in model.named_modules()), vision),
        "quantised to 4 bit": (len(quantised), four_bit),
        "trained by LoRA" if config.lora.enabled else "trained": (
            len(adapted) if config.lora.enabled else len(linear),
            lora if config.lora.enabled else total,
        ),
    }


def _footprint(
    hf_config: PretrainedConfig, config: Config, prepared: Prepared, modules: dict[str, tuple[int, int]]
) -> memory.Footprint:
    text, stats, batch = hf_config.text_config, prepared.stats, config.train.per_device_train_batch_size
    trained = list(modules.values())[-1][1]
    quantised = modules["quantised to 4 bit"][1]
    frozen = modules["all"][1] - quantised if config.lora.enabled else 0
    return memory.estimate(
        frozen=frozen,
        quantised=quantised,
        trained=trained,
        weight_bytes=4 if config.model.dtype == "float32" else 2,
        hidden=text.hidden_size,
        intermediate=text.intermediate_size,
        layers=text.num_hidden_layers,
        tokens=batch * stats.longest,
        checkpointing=config.train.activation_checkpointing,
        kept_rows=batch * -(-stats.answer_tokens // stats.records),
        vocabulary=text.vocab_size,
    )


def _machine() -> str:
    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        return f"{torch.cuda.get_device_name()} has {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
    import os

    return f"no GPU here; this machine has {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB"


def _histogram(counts: dict[int, int]) -> str:
    """Image tokens a sample: eight classes at most, each with a bar."""
    low, high = min(counts), max(counts)
    width = max(1, -(-(high - low + 1) // 8))
    rows = []
    for start in range(low, high + 1, width):
        number = sum(count for tokens, count in counts.items() if start <= tokens < start + width)
        rows.append(f"{start:>6} to {start + width - 1:<6} {number:>8} {'#' * round(40 * number / sum(counts.values()))}")
    return "image tokens a sample\n" + "\n".join(rows)


def _rehearse(hf_config: PretrainedConfig, config: Config, prepared: Prepared) -> list[float]:
    """Two optimizer steps with the run's own batches, options and objective on a tiny model of the same class."""
    processor, vision = prepared.processor, hf_config.vision_config
    model = build_model(
        processor.tokenizer, hf_config.model_type, hidden=64, layers=2, temporal_patch_size=vision.temporal_patch_size
    )
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        options: dict[str, Any] = {"load_in_4bit": config.model.load_in_4bit, "dtype": config.model.dtype}
        model = load_base(ModelConfig(model_name_or_path=folder, **options))
    model = add_lora(model, config.lora, load_in_4bit=config.model.load_in_4bit)
    if config.data.vision_cache is not None:
        check_tower_is_frozen(model)
    if set(prepared.stats.image_token_counts) == {0}:
        freeze_vision(model)
    if config.train.activation_checkpointing:
        model.base_model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.train.learning_rate)
    size = min(config.train.per_device_train_batch_size, prepared.stats.records, 4)
    samples = EncodedRecords(prepared.records, prepared.encoder)
    batch = Collator(processor)([samples[index] for index in range(size)])
    batch = {name: value.to(model.device) if isinstance(value, torch.Tensor) else value for name, value in batch.items()}
    losses = []
    objective = prepared.objective.to(model.device)
    model.train()
    for _ in range(2):
        terms = terms_of(model, objective, batch)
        terms.loss.backward()
        preflight.check_gradients(model)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(terms.loss.item())
    return losses
