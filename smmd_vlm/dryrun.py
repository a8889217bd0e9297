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
from transformers import AutoConfig, PretrainedConfig, ProcessorMixin

from smmd_vlm import memory, preflight, runfolder
from smmd_vlm.collate import Collator, EncodedRecords
from smmd_vlm.config import ModelConfig
from smmd_vlm.model import (
    VISION,
    Family,
    add_lora,
    auto_class,
    family_of,
    freeze_vision,
    load_base,
    lora_places,
    read_processor,
)
from smmd_vlm.prepare import Prepared, prepare
from smmd_vlm.runconfig import Config
from smmd_vlm.textprocessor import TextProcessor
from smmd_vlm.tiny import build_model, build_processor, compact_tokenizer
from smmd_vlm.trainer import terms_of
from smmd_vlm.visioncache import check_tower_is_frozen

SHAPES = Path(__file__).parents[1] / "configs" / "shapes"


def dry_run(config: Config) -> None:
    """Print the whole plan; a ValueError where the run itself would refuse."""
    runfolder.check_free(Path(config.train.output_dir), resuming=False)
    hf_config, source = _shape(config.model)
    family = family_of(hf_config.model_type)
    processor, words = _processor(config.model, hf_config, family)
    prepared = prepare(config, processor)
    print(yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True))
    print(f"model     {hf_config.model_type}, {source}; {words}")
    loaded, trained = _modules(hf_config, config, family)
    for name, (count, parameters) in (loaded | trained).items():
        print(f"  {name:24} {parameters:>16,} parameters in {count} modules")
    stats = prepared.stats
    print(f"numbers   {prepared.vocab.describe()}\ntraining  {stats}")
    print(f"plan      {preflight.show_plan(config.train, stats.records)}")
    for caution in prepared.cautions:
        print(f"caution   {caution}")
    print(f"sample    {preflight.show_sample(prepared.records[0], prepared.encoder, prepared.vocab)}")
    if family.reads_images:
        print(f"images    {_histogram(stats.image_token_counts)}")
    print(f"memory    {_footprint(hf_config, config, prepared, loaded, trained)}; {_machine()}")
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


def _processor(model: ModelConfig, hf_config: PretrainedConfig, family: Family) -> tuple[ProcessorMixin | TextProcessor, str]:
    kind = "processor" if family.reads_images else "tokenizer"
    try:
        processor = read_processor(family, model.model_name_or_path, revision=model.revision, local_files_only=True)
        return processor, f"its own {kind}"
    except OSError:
        stand_in = build_processor(compact_tokenizer(), hf_config.model_type, temporal_patch_size=_frames(hf_config))
        words = f"its {kind} is not in the cache, so text is counted, and number tokens are named, by a stand-in"
        return stand_in, f"{words}; image tokens are exact" if family.reads_images else words


def _frames(hf_config: PretrainedConfig) -> int:
    """Frames of an image patch, as the vision tower takes them; 1 where there is no tower."""
    vision = getattr(hf_config, "vision_config", None)
    return 1 if vision is None else vision.temporal_patch_size


Counts = dict[str, tuple[int, int]]  # kind -> (modules, parameters)


def _modules(hf_config: PretrainedConfig, config: Config, family: Family) -> tuple[Counts, Counts]:
    """What would be loaded, and what would be trained, from a model on the meta device."""
    with torch.device("meta"):
        model = auto_class(family).from_config(hf_config)
    linear = {name: m for name, m in model.named_modules() if isinstance(m, torch.nn.Linear)}
    loaded = {"all": (sum(1 for _ in model.modules()), sum(p.numel() for p in model.parameters()))}
    if family.reads_images:
        tower = model.get_submodule(VISION)
        loaded["vision tower"] = (sum(1 for _ in tower.modules()), sum(p.numel() for p in tower.parameters()))
    quantised = [m for n, m in linear.items() if config.model.load_in_4bit and not n.startswith(family.unquantised)]
    loaded["quantised to 4 bit"] = (len(quantised), sum(m.weight.numel() for m in quantised))
    if not config.lora.enabled:
        return loaded, {"trained": (len(linear), loaded["all"][1])}
    trained = {}
    for place, pattern in lora_places(family, config.lora).items():
        adapted = [m for n, m in linear.items() if re.fullmatch(pattern, n)]
        if not adapted:
            raise ValueError(f"lora.target_modules {pattern!r} matches no linear layer of {type(model).__name__}")
        parameters = sum(config.lora.r * (m.in_features + m.out_features) for m in adapted)
        trained[f"LoRA, {place}"] = (len(adapted), parameters)
    return loaded, trained


def _footprint(
    hf_config: PretrainedConfig, config: Config, prepared: Prepared, loaded: Counts, trained: Counts
) -> memory.Footprint:
    text, stats, batch = hf_config.get_text_config(), prepared.stats, config.train.per_device_train_batch_size
    quantised = loaded["quantised to 4 bit"][1]
    frozen = loaded["all"][1] - quantised if config.lora.enabled else 0
    return memory.estimate(
        frozen=frozen,
        quantised=quantised,
        trained=sum(parameters for _, parameters in trained.values()),
        weight_bytes=4 if config.model.dtype == "float32" else 2,
        hidden=text.hidden_size,
        intermediate=text.intermediate_size,
        layers=text.num_hidden_layers,
        tokens=batch * stats.longest,
        checkpointing=config.train.activation_checkpointing,
        kept_rows=batch * -(-stats.answer_tokens // stats.records),
        vocabulary=text.vocab_size,
        tower=_tower_activations(hf_config, config, prepared) if {"trained", "LoRA, vision tower"} & trained.keys() else 0,
    )


def _tower_activations(hf_config: PretrainedConfig, config: Config, prepared: Prepared) -> float:
    """Bytes that the vision tower keeps of a micro-batch of the most image tokens, when it is trained."""
    vision = getattr(hf_config, "vision_config", None)
    if vision is None:
        return 0.0
    tokens = max(prepared.stats.image_token_counts) * config.train.per_device_train_batch_size
    width = getattr(vision, "embed_dim", vision.hidden_size)  # Qwen2-VL's hidden_size is the language model's
    return memory.activations(
        hidden=width,
        intermediate=vision.intermediate_size if hasattr(vision, "intermediate_size") else int(width * vision.mlp_ratio),
        layers=vision.depth,
        tokens=tokens * vision.spatial_merge_size**2,
        checkpointing=config.train.activation_checkpointing,
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
    processor = prepared.processor
    model = build_model(processor.tokenizer, hf_config.model_type, hidden=64, layers=2, temporal_patch_size=_frames(hf_config))
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
