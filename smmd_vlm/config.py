"""The typed settings of every verb: one frozen dataclass each, a default, its help and its check in one place.

`smmd-vlm train` takes the sections model, lora, data, loss and eval from here (and `train`, see runconfig.py). Parsers are
derived by jsonargparse, which evaluates this module's annotations: nothing here imports torch, not even for type checking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Which model, in which numbers.

    Args:
        model_name_or_path: a hub name or a local folder (for example runs/tiny, made by `smmd-vlm tiny`)
        revision: hub revision of the model
        dtype: weights that are not quantised; auto takes the checkpoint's own
        load_in_4bit: NF4 with double quantisation and bf16 compute; vision tower and head stay unquantised
        bnb_4bit_quant_storage: type that 4-bit weights are stored as; FSDP can only shard bfloat16
        attn_implementation: sdpa, eager or flash_attention_2; null lets transformers choose
        trust_remote_code: run code that comes with the model; needed by none of the supported families
    """

    model_name_or_path: str
    revision: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    load_in_4bit: bool = False
    bnb_4bit_quant_storage: Literal["uint8", "bfloat16"] = "uint8"
    attn_implementation: str | None = None
    trust_remote_code: bool = False


@dataclass(frozen=True, kw_only=True)
class LoraConfig:
    """LoRA adapters; enabled: false trains every parameter.

    Args:
        enabled: train LoRA adapters (the default) rather than the whole model
        r: rank
        lora_alpha: scale of the update, alpha / r
        lora_dropout: dropout on the adapters' input
        vision_tower: also put adapters on the vision tower (LLaMA-Factory's freeze_vision_tower: false)
        multi_modal_projector: also on the projector behind it (LLaMA-Factory's freeze_multi_modal_projector: false)
        target_modules: regular expression over full module names; null takes the language layers of the model's family
    """

    enabled: bool = True
    r: int = 16
    lora_alpha: int = 32
    lora_dropout: float = 0.0
    vision_tower: bool = False
    multi_modal_projector: bool = False
    target_modules: str | None = None

    def __post_init__(self) -> None:
        if self.r < 1:
            raise ValueError(f"lora.r must be >= 1, got {self.r}; lora.enabled=false trains the whole model")
        try:
            re.compile(self.target_modules or "")
        except re.error as error:
            raise ValueError(
                f"lora.target_modules must be a regular expression, got {self.target_modules!r} ({error})"
            ) from None
        if not 0 <= self.lora_dropout < 1:
            raise ValueError(f"lora.lora_dropout must be in [0, 1), got {self.lora_dropout}")
        if self.vision_tower or self.multi_modal_projector:
            if not self.enabled:
                raise ValueError(
                    "lora.vision_tower and lora.multi_modal_projector place adapters, got lora.enabled=false, which trains every "
                    "parameter, theirs included; remove them"
                )
            if self.target_modules is not None:
                raise ValueError(
                    "expected lora.target_modules or lora.vision_tower and lora.multi_modal_projector, got both; "
                    "name the layers of the vision tower and the projector in target_modules too, or leave it null"
                )


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What is learned from, and how it becomes tokens.

    Args:
        dataset: dataset folder, a .jsonl, .json or .csv file of {image, question, answer}, or a hub dataset
        train_split: split to train on
        eval_dataset: dataset to evaluate on while training; null takes `dataset`
        eval_split: its split; used when train.eval_strategy asks for evaluation
        decontaminate: test sets: what asks one of their questions about the same images, byte by byte, is not trained on
        decontaminate_split: the split of those test sets
        max_train_samples: take only the first so many records (debugging)
        max_eval_samples: evaluate on the first so many records
        image_min_tokens: least image tokens per image; smaller images are scaled up
        image_max_tokens: most image tokens per image; larger images are scaled down; kept in the run's processor
        max_length: longest sample in tokens, image tokens included; a longer one is an error, never cut
        system_prompt: system message put before every question
        keep_processed: keep processed samples in memory after their first use (small datasets)
        vision_cache: folder that keeps the frozen vision tower's features of every image across epochs and runs
    """

    dataset: str
    train_split: str = "train"
    eval_dataset: str | None = None
    eval_split: str = "validation"
    decontaminate: list[str] = field(default_factory=list)
    decontaminate_split: str = "test"
    max_train_samples: int | None = None
    max_eval_samples: int | None = None
    image_min_tokens: int = 4
    image_max_tokens: int = 1024
    max_length: int = 4096
    system_prompt: str | None = None
    keep_processed: bool = False
    vision_cache: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.image_min_tokens <= self.image_max_tokens:
            raise ValueError(
                f"data.image_min_tokens must be between 1 and data.image_max_tokens, got {self.image_min_tokens} and {self.image_max_tokens}"
            )
        for name in ("max_train_samples", "max_eval_samples", "max_length"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"data.{name} must be >= 1, got {value}")


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """The numeric loss added to cross-entropy.

    Args:
        name: none (cross-entropy alone) or a numeric loss of smmd_vlm.losses
        weight: multiplier of the numeric term, lambda; 0 equals none
        vocab: which tokens are numbers: digits (single digits), integers (every all-digit token) or floats
        options: settings of the loss by name, {sigmas: [2.0]}; docs/losses.md lists them
    """

    name: str = "smmd"
    weight: float = 0.3
    vocab: Literal["digits", "integers", "floats"] = "digits"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf"):
            raise ValueError(f"loss.weight must be a finite number >= 0, got {self.weight}")


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """What is measured while training, besides the loss, each time train.eval_strategy asks.

    Args:
        generate_samples: write answers for the first so many evaluation records and score them; 0 turns it off
        max_new_tokens: longest answer
        batch_size: samples a batch while generating
    """

    generate_samples: int = 200
    max_new_tokens: int = 32
    batch_size: int = 16

    def __post_init__(self) -> None:
        if self.generate_samples < 0 or self.max_new_tokens < 1 or self.batch_size < 1:
            raise ValueError(
                "eval.generate_samples must be >= 0, eval.max_new_tokens and eval.batch_size >= 1, "
                f"got {self.generate_samples}, {self.max_new_tokens} and {self.batch_size}"
            )


MOST_VALUES = 100_000  # of a distribution: their spellings are kept in memory


@dataclass(frozen=True, kw_only=True)
class PredictConfig:
    """What `smmd-vlm predict` does.

    Args:
        model: run folder of smmd-vlm train, model folder or hub name
        data: dataset folder, a .jsonl, .json or .csv file of {image, question, answer}, or a hub dataset
        split: which split to answer
        out: predictions file to write; an existing one is completed
        batch_size: records a batch
        max_new_tokens: longest answer
        limit: only the first so many records
        system_prompt: system message; default the one the run was trained with
        image_max_tokens: most image tokens per image; default the budget kept with the model
        device: cpu, cuda, ...; default a GPU where there is one
        dtype: auto, float32, bfloat16 or float16; default as trained
        distribution: also keep the model's distribution over the value of every number or H:MM time (docs/readout.md)
        distribution_low: least number that is considered, a whole one
        distribution_high: greatest number that is considered, a whole one
        distribution_decimals: digits after the point of a number that is considered; 0 takes whole numbers alone
        distribution_prune: branches less likely than this are not followed; their probability is kept as `pruned`
    """

    model: str
    data: str
    split: str = "test"
    out: str = "predictions.jsonl"
    batch_size: int = 32
    max_new_tokens: int = 32
    limit: int | None = None
    system_prompt: str | None = None
    image_max_tokens: int | None = None
    device: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] | None = None
    distribution: bool = False
    distribution_low: int = 0
    distribution_high: int = 999
    distribution_decimals: int = 0
    distribution_prune: float = 1e-4

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_new_tokens", "limit", "image_max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"--{name} must be >= 1, got {value}")
        usual = {each.name: each.default for each in fields(self) if each.name.startswith("distribution_")}
        changed = [name for name, value in usual.items() if getattr(self, name) != value]
        if changed and not self.distribution:
            raise ValueError(f"--{changed[0]} is a setting of --distribution, which is off; add --distribution, or remove it")
        if not 0 <= self.distribution_decimals <= 6:
            raise ValueError(f"--distribution_decimals must be between 0 and 6, got {self.distribution_decimals}")
        count = (self.distribution_high - self.distribution_low) * 10**self.distribution_decimals + 1
        if not 1 <= count <= MOST_VALUES:
            raise ValueError(
                f"--distribution_low to --distribution_high must hold 1 to {MOST_VALUES:,} numbers, got {count:,} from "
                f"{self.distribution_low} to {self.distribution_high} with {self.distribution_decimals} decimals; narrow the range"
            )
        if not 0 <= self.distribution_prune < 1:
            raise ValueError(f"--distribution_prune must be in [0, 1), got {self.distribution_prune}")


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Merge a run's adapter into one ordinary model folder.

    Args:
        model: run folder with an adapter
        data: dataset folder or file; the merged model's logits are compared on its samples
        out: folder to write
        split: which split the samples are from
        samples: how many
        dtype: precision of the merged weights
    """

    model: str
    data: str
    out: str
    split: str = "test"
    samples: int = 8
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"--samples must be >= 1, got {self.samples}")


@dataclass(frozen=True, kw_only=True)
class TinyConfig:
    """A small model from a config, random weights, saved as an ordinary model folder.

    Args:
        out: folder to make
        family: qwen3_vl, qwen2_5_vl, qwen2_vl or qwen3_5; or llama, qwen2 or qwen3, which read text only
        hidden: width of the vision tower and the language model, a multiple of 32
        layers: layers of each
        image_tokens: image tokens of every image until a training run sets its own budget
        digits_per_token: 1 as Qwen's tokenizers, or 2 for whole-number tokens 00 to 99
        seed: seed of the weights
    """

    out: str = "runs/tiny"
    family: str = "qwen3_vl"
    hidden: int = 128
    layers: int = 3
    image_tokens: int = 4
    digits_per_token: Literal[1, 2] = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.hidden < 32 or self.hidden % 32:
            raise ValueError(f"--hidden must be a positive multiple of 32, got {self.hidden}")
        if self.layers < 1 or self.image_tokens < 1:
            raise ValueError(f"--layers and --image_tokens must be >= 1, got {self.layers} and {self.image_tokens}")


@dataclass(frozen=True, kw_only=True)
class VocabConfig:
    """Which tokens of a tokenizer are numbers.

    Args:
        model: model folder or hub name; only its tokenizer is loaded
        mode: digits (single digits), integers (every all-digit token) or floats, as loss.vocab
        revision: hub revision
    """

    model: str
    mode: Literal["digits", "integers", "floats"] = "digits"
    revision: str | None = None


@dataclass(frozen=True, kw_only=True)
class QuickstartConfig:
    """The tour on two CPU cores.

    Args:
        out: folder to make, with data, models, runs, reports, figure and summary.json
        seeds: how many seeds, one after the other
        with_controls: also train the Brier and the shuffled-kernel control
        steps: optimizer steps of every run, batches of 32
        train_clocks: clocks to learn from
        test_clocks: fresh clocks over all 720 times to be tested on
    """

    out: str = "runs/quickstart"
    seeds: int = 1
    with_controls: bool = False
    steps: int = 2400
    train_clocks: int = 20000
    test_clocks: int = 1000

    def __post_init__(self) -> None:
        for name, least in (("seeds", 1), ("steps", 1), ("train_clocks", 1), ("test_clocks", 100)):  # 100: held-out times occur
            if getattr(self, name) < least:
                raise ValueError(f"--{name} must be >= {least}, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class StudyConfig:
    """Compare losses on one task.

    Args:
        file: study file (YAML); configs/study_clocks.yaml and smmd_vlm/study.py show what one looks like
    """

    file: str
