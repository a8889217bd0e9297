"""The whole configuration of `smmd-vlm train`: our sections plus transformers.TrainingArguments itself.

`train` is TrainingArguments minus the fields that this trainer owns (OWNED, refused with the reason); unknown keys are
errors, 4.x names get the new name. YAML files and flags are parsed by jsonargparse.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from smmd_vlm.config import DataConfig, EvalConfig, LoraConfig, LossConfig, ModelConfig

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace
    from transformers import TrainingArguments

Options = TypeVar("Options")

SECTIONS = {"model": ModelConfig, "lora": LoraConfig, "data": DataConfig, "loss": LossConfig, "eval": EvalConfig}

# TrainingArguments that this trainer sets itself; a config that names one is refused with the reason.
OWNED: dict[str, str] = {
    "remove_unused_columns": "the collator needs every column",
    "label_names": "labels are always `labels`",
    "prediction_loss_only": "evaluation never keeps logits",
    "logging_nan_inf_filter": "a NaN loss must be seen, so it is always off",
    "average_tokens_across_devices": "losses are always means over all devices' tokens, so it is always on",
    "label_smoothing_factor": "smoothing over all tokens would bypass the objective; choose a loss instead",
    "use_liger_kernel": "fused cross-entropy returns no logits; only supervised rows go through the head already",
    "liger_kernel_config": "fused cross-entropy returns no logits",
    "activation_checkpointing_kwargs": "checkpointing is always non-reentrant, or frozen inputs would get no gradient",
    "gradient_checkpointing_kwargs": "checkpointing is always non-reentrant, or frozen inputs would get no gradient",
    "include_for_metrics": "evaluation never keeps logits",
    "batch_eval_metrics": "evaluation never keeps logits",
    "resume_from_checkpoint": "use --resume, which takes the newest checkpoint that is whole",
    "do_train": "`smmd-vlm train` trains",
    "do_predict": "use `smmd-vlm predict`",
}

# transformers 4.x names -> what 5.x calls them
RENAMED: dict[str, str] = {
    "group_by_length": 'train.train_sampling_strategy: "group_by_length"',
    "evaluation_strategy": "train.eval_strategy",
    "warmup_ratio": "train.warmup_steps (a fraction below 1 is a ratio)",
    "per_gpu_train_batch_size": "train.per_device_train_batch_size",
    "no_cuda": "train.use_cpu",
    "overwrite_output_dir": "a new train.output_dir (an existing run is never overwritten)",
    "logging_dir": "the environment variable TENSORBOARD_LOGGING_DIR",
    "save_safetensors": "nothing: weights are always saved as safetensors",
    "torch_dtype": "model.dtype",
    "tokenizer": "nothing: the processor is saved with the run",
    "include_tokens_per_second": "train.include_num_input_tokens_seen",
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole run, as resolved."""

    model: ModelConfig
    lora: LoraConfig
    data: DataConfig
    loss: LossConfig
    eval: EvalConfig
    train: TrainingArguments
    train_settings: dict[str, Any]  # what was asked of `train`: the settings that differ from TrainingArguments' defaults

    def to_dict(self) -> dict[str, Any]:
        """Plain data for config.yaml, which `smmd-vlm train --config` reads back."""
        return {name: asdict(getattr(self, name)) for name in SECTIONS} | {"train": dict(self.train_settings)}


def train_parser(prog: str = "smmd-vlm train", *, with_training_arguments: bool = True) -> ArgumentParser:
    """The parser of `smmd-vlm train`. TrainingArguments loads torch; leave it out to print --help quickly."""
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(
        prog=prog,
        description="Fine-tune a vision-language model with a numeric loss.",
        epilog="train.NAME: every field of transformers.TrainingArguments (smmd-vlm train --help-train lists them).",
        exit_on_error=False,
    )
    parser.add_argument("--config", action="config", help="YAML file with the sections below; flags after it win")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run in train.output_dir, from its newest whole checkpoint"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what the run would do, rehearse two steps on a tiny model, write nothing"
    )
    for name, section in SECTIONS.items():
        parser.add_class_arguments(section, name)
    if with_training_arguments:
        from transformers import TrainingArguments

        parser.add_class_arguments(TrainingArguments, "train", skip=set(OWNED))
    return parser


def parse_options(config: type[Options], argv: list[str], *, prog: str, description: str = "") -> Options:
    """A verb's flags (and --config FILE with the same) as its dataclass; argparse.ArgumentError or ValueError says what is wrong."""
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(prog=prog, description=description, exit_on_error=False)
    parser.add_argument("--config", action="config", help="YAML file with the options below")
    parser.add_class_arguments(config)
    parsed = parser.parse_args(argv).as_dict()
    parsed.pop("config")
    return config(**parsed)


def explain_train_keys(keys: list[str]) -> None:
    """Raise one sentence when a `train` key is ours or a 4.x name (the parser alone would only call it unknown)."""
    for key in keys:
        if key in OWNED:
            raise ValueError(f"train.{key} is set by smmd-vlm and cannot be changed: {OWNED[key]}; remove it")
        if key in RENAMED:
            raise ValueError(f"train.{key} is a transformers 4.x name; use {RENAMED[key]} instead")


def resolve(parsed: Namespace, defaults: Namespace, *, plan_only: bool = False) -> Config:
    """The parser's result as a Config, our own TrainingArguments fields put in; `defaults` are the parser's own.

    plan_only: a GPU's plan can be tried anywhere.
    """
    import torch
    from transformers import TrainingArguments

    train = dict(parsed.train.as_dict())
    settings = {name: value for name, value in train.items() if value != defaults.train.as_dict().get(name)}
    if not train.get("output_dir"):
        raise ValueError("train.output_dir must name the run folder to write, for example --train.output_dir runs/first")
    if not torch.cuda.is_available() and not train.get("use_cpu"):
        if plan_only:
            train["use_cpu"] = True
        elif train.get("bf16") or train.get("fp16"):
            raise ValueError(
                "train.bf16 and train.fp16 need a GPU and there is none; --dry-run plans the run, configs/clocks_tiny.yaml runs on a CPU"
            )
    if train.get("report_to") is None:
        train["report_to"] = "none"
    best = train.get("metric_for_best_model")
    if best and train.get("greater_is_better") is None:  # the Trainer would take every metric but the loss for better when high
        train["greater_is_better"] = not any(word in best for word in ("loss", "cross_entropy", "error", "unparsed"))
    train |= {
        "remove_unused_columns": False,
        "label_names": ["labels"],
        "prediction_loss_only": True,
        "logging_nan_inf_filter": False,
        "average_tokens_across_devices": True,
        "activation_checkpointing_kwargs": {"use_reentrant": False},
    }
    sections = {name: section(**parsed[name].as_dict()) for name, section in SECTIONS.items()}
    return Config(**sections, train=TrainingArguments(**train), train_settings=settings)


def multiple_gpus_without_launcher() -> int:
    """How many GPUs a plain `python` would wrap in nn.DataParallel; 0 when a launcher started this process."""
    if "LOCAL_RANK" in os.environ:
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.device_count() > 1 else 0


def parse(argv: list[str]) -> tuple[Config, Namespace]:
    """Flags and YAML -> (Config, the parser's result with `resume` and `dry_run`); every mistake is a ValueError of one sentence."""
    keys = [arg.removeprefix("--train.").partition("=")[0] for arg in argv if arg.startswith("--train.")]
    for place, flag in enumerate(argv):
        path = argv[place + 1] if flag == "--config" and place + 1 < len(argv) else None
        path = flag.removeprefix("--config=") if flag.startswith("--config=") else path
        if path is not None:
            keys += _train_keys(Path(path))
    explain_train_keys(keys)
    parser = train_parser()
    parsed = parser.parse_args(argv)
    return resolve(parsed, parser.get_defaults(), plan_only=parsed.dry_run), parsed


def _train_keys(path: Path) -> list[str]:
    """The keys of the `train` section of a YAML file."""
    if not path.is_file():
        raise ValueError(
            f"expected a YAML file after --config, got {str(path)!r}, which {'is a folder' if path.is_dir() else 'does not exist'}"
        )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected YAML, got an error ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected the sections {', '.join(SECTIONS)} and train, got {type(content).__name__}")
    section = content.get("train") or {}
    if not isinstance(section, dict):
        raise ValueError(f"{path}: expected train to be a section of TrainingArguments, got {type(section).__name__}")
    return [*section, *(key.removeprefix("train.") for key in content if str(key).startswith("train."))]
