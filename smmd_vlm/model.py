"""Base model + NF4 + LoRA, for training and for prediction; the only file that knows peft and bitsandbytes.

Facts this file rests on (transformers 5.24, peft 0.21, bitsandbytes 0.50; each has a test):
- `llm_int8_skip_modules` matches from the start of a full module name, and any list replaces the default, so the vision
  tower and the head are skipped as "model.visual" and "lm_head";
- prepare_model_for_kbit_training would upcast the unquantised tower and embedding to float32: not used;
- on CPUs with AVX512-BF16 an eval() forward repacks 4-bit weights for good, after which training silently loses
  gradients: the packed path is switched off.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import yaml

from smmd_vlm.config import LoraConfig, ModelConfig

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, ProcessorMixin

_ATTENTION_AND_MLP = r"self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj"
_LINEAR_ATTENTION = r"linear_attn\.(in_proj_qkv|in_proj_z|out_proj)"


@dataclass(frozen=True)
class Family:
    """What differs between the supported model families, by `config.model_type`."""

    lora: str  # full names of the language layers' projections
    vision: str = "model.visual"  # the vision tower


def _language(layers: str) -> str:
    return rf"model\.language_model\.layers\.\d+\.({layers})"


FAMILIES: dict[str, Family] = {
    "qwen2_vl": Family(_language(_ATTENTION_AND_MLP)),
    "qwen2_5_vl": Family(_language(_ATTENTION_AND_MLP)),
    "qwen3_vl": Family(_language(_ATTENTION_AND_MLP)),
    "qwen3_5": Family(_language(f"{_ATTENTION_AND_MLP}|{_LINEAR_ATTENTION}")),
}


def family_of(model_type: str) -> Family:
    """The family of a `config.model_type`, or a ValueError that lists the supported ones."""
    if model_type not in FAMILIES:
        raise ValueError(f"expected a model of type {', '.join(FAMILIES)}, got {model_type!r}; choose a supported model")
    return FAMILIES[model_type]


def _check_place(name: str) -> None:
    """What is written like a path is one: asking the hub for it would only take long."""
    if name.startswith(("/", ".", "~")) and not Path(name).is_dir():
        raise ValueError(f"expected a model folder or hub name, got {name!r}, and there is no such folder")


def load_processor(config: ModelConfig) -> ProcessorMixin:
    """The processor saved beside the model (tokenizer, image processor, chat template)."""
    from transformers import AutoProcessor

    _check_place(config.model_name_or_path)
    try:
        processor = AutoProcessor.from_pretrained(
            config.model_name_or_path, revision=config.revision, trust_remote_code=config.trust_remote_code
        )
    except (OSError, ValueError) as error:
        raise ValueError(
            f"expected a model folder or hub name with a processor, got {config.model_name_or_path!r} ({str(error).splitlines()[0]})"
        ) from None
    if not getattr(processor, "chat_template", None):
        raise ValueError(
            f"{config.model_name_or_path} has no chat template; expected an instruction-tuned model, take one of its -Instruct kind"
        )
    return processor


def load_base(config: ModelConfig) -> PreTrainedModel:
    """The base model, in 4 bit when asked; every supported family as its ...ForConditionalGeneration class."""
    from transformers import AutoConfig, AutoModelForImageTextToText, BitsAndBytesConfig

    _check_place(config.model_name_or_path)
    where = {"revision": config.revision, "trust_remote_code": config.trust_remote_code}
    try:
        hf_config = AutoConfig.from_pretrained(config.model_name_or_path, **where)
    except OSError as error:
        raise ValueError(
            f"expected a model folder or hub name, got {config.model_name_or_path!r} ({str(error).splitlines()[0]})"
        ) from None
    family = family_of(hf_config.model_type)
    check_not_prequantised(hf_config, config.model_name_or_path)
    quantization = None
    if config.load_in_4bit:
        quantization = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
            bnb_4bit_quant_storage=getattr(torch, config.bnb_4bit_quant_storage),
            llm_int8_skip_modules=[family.vision, "lm_head"],
        )
    model = AutoModelForImageTextToText.from_pretrained(
        config.model_name_or_path,
        dtype=config.dtype if config.dtype == "auto" else getattr(torch, config.dtype),
        quantization_config=quantization,
        attn_implementation=config.attn_implementation,
        **where,
    )
    if config.load_in_4bit:
        check_quantised(model, family)
        keep_gradients_on_cpu(model)
    return model


def add_lora(model: PreTrainedModel, lora: LoraConfig, *, load_in_4bit: bool) -> torch.nn.Module:
    """LoRA on the language layers by an explicit pattern; full fine-tuning when lora.enabled is false."""
    if not lora.enabled:
        if load_in_4bit:
            raise ValueError(
                "expected LoRA on a 4-bit model, got lora.enabled=false; 4-bit weights cannot be trained, set model.load_in_4bit=false"
            )
        return model
    from peft import LoraConfig as PeftLoraConfig
    from peft import get_peft_model

    pattern = lora.target_modules or family_of(model.config.model_type).lora
    if not any(re.fullmatch(pattern, name) for name, _ in model.named_modules()):
        raise ValueError(
            f"lora.target_modules {pattern!r} matches no module of {type(model).__name__}; give a regular expression over full names"
        )
    return get_peft_model(
        model,
        PeftLoraConfig(
            r=lora.r,
            lora_alpha=lora.lora_alpha,
            lora_dropout=lora.lora_dropout,
            target_modules=pattern,
            task_type="CAUSAL_LM",
            bias="none",
        ),
    )


def load_for_prediction(path: str, **overrides: object) -> tuple[torch.nn.Module, ProcessorMixin]:
    """A run folder of `smmd-vlm train` (adapter or whole model), a model folder or a hub name -> (model, processor).

    A run's base model, precision and image-token budget are those it was trained with.
    """
    if not (Path(path) / "adapter_config.json").is_file():
        config = ModelConfig(model_name_or_path=path, **overrides)
        return load_base(config).eval(), load_processor(config)
    from transformers import AutoProcessor

    base = load_base(trained_model(path, **overrides))
    return _with_adapter(base, path).eval(), AutoProcessor.from_pretrained(path)


def load_merged(path: str, dtype: torch.dtype) -> PreTrainedModel:
    """A run with an adapter -> its base with the adapter merged, in `dtype`.

    A 4-bit base is dequantised first: the adapter was fitted to the rounded weights. Merging into 4-bit would round the sum
    again, merging into the original weights would undo the rounding that the adapter has learned to live with.
    """
    config = trained_model(path)
    base = load_base(config)
    base = base.dequantize(dtype) if config.load_in_4bit else base
    return _with_adapter(base.to(dtype), path).merge_and_unload().eval()


def trained_config(path: str) -> dict[str, Any] | None:
    """config.yaml of the run that `path` is, or a checkpoint-N inside it, or was exported from; None for other models."""
    folder = Path(path)
    for place in (folder, folder.parent) if folder.name.startswith("checkpoint-") else (folder,):
        if (place / "config.yaml").is_file():
            return yaml.safe_load((place / "config.yaml").read_text(encoding="utf-8"))
    return None


def trained_model(path: str, **overrides: object) -> ModelConfig:
    """The model section that an adapter was trained with, from the run's config.yaml (or the adapter's own note)."""
    config = trained_config(path)
    if config is not None:
        section = config["model"]
    else:
        note = json.loads((Path(path) / "adapter_config.json").read_text(encoding="utf-8"))
        section = {"model_name_or_path": note["base_model_name_or_path"]}
    return ModelConfig(**{**section, **overrides})


def trained_system_prompt(path: str) -> str | None:
    """The system prompt that a run was trained with; its answers without it would be another model's."""
    config = trained_config(path)
    return None if config is None else config["data"]["system_prompt"]


def _with_adapter(base: PreTrainedModel, path: str) -> torch.nn.Module:
    """The base with the adapter of `path`; one that misses weights (keys renamed, another model) is a ValueError."""
    from peft import PeftModel
    from safetensors import safe_open

    model = PeftModel.from_pretrained(base, path)
    names = {name for name, _ in model.named_parameters() if "lora_" in name}
    with safe_open(Path(path) / "adapter_model.safetensors", framework="pt") as weights:
        saved = set(weights.keys())
    missing = sorted(name for name in names if name.replace(".default", "") not in saved)
    if missing:
        raise ValueError(
            f"{path}: {len(missing)} of {len(names)} adapter weights are missing, for example {missing[0]}; was it made for another model?"
        )
    return model


def quantised_modules(model: torch.nn.Module) -> list[str]:
    """Names of the 4-bit linear layers."""
    import bitsandbytes as bnb

    return [name for name, module in model.named_modules() if isinstance(module, bnb.nn.Linear4bit)]


def check_not_prequantised(hf_config: PretrainedConfig, name: str) -> None:
    """A GPTQ, AWQ or FP8 checkpoint can neither be merged nor quantised again; the 16-bit base is what to train on."""
    settings = getattr(hf_config, "quantization_config", None)
    if settings is not None:
        method = settings.get("quant_method") if isinstance(settings, dict) else settings.quant_method
        raise ValueError(
            f"expected 16-bit weights, got {name} quantised with {method}; name its 16-bit base and set model.load_in_4bit=true"
        )


def check_quantised(model: torch.nn.Module, family: Family) -> None:
    """Raise unless the language layers, and neither vision tower nor head, are in 4 bit."""
    names = quantised_modules(model)
    wrong = [name for name in names if name.startswith(family.vision) or name.endswith("lm_head")]
    if wrong:
        raise ValueError(
            f"expected the vision tower and the head to stay unquantised, got {len(wrong)} 4-bit layers there, for example {wrong[0]}"
        )
    if not names:
        raise ValueError("expected 4-bit language layers, got none; is the checkpoint of an unknown layout?")
    import bitsandbytes as bnb

    modules = dict(model.named_modules())
    hollow = [name for name in names if not isinstance(modules[name].weight, bnb.nn.Params4bit)]
    if hollow:
        raise ValueError(
            f"expected 4-bit weights in every 4-bit layer, got {len(hollow)} with 16-bit weights, for example {hollow[0]}"
        )


def keep_gradients_on_cpu(model: torch.nn.Module) -> None:
    """Switch off bitsandbytes' AVX512-BF16 packing, which an eval() forward makes permanent and autograd cannot follow."""
    import bitsandbytes as bnb

    for module in model.modules():
        if isinstance(module, bnb.nn.Linear4bit):
            module.support_avx512bf16_for_cpu = False


def freeze_vision(model: torch.nn.Module) -> None:
    """Nothing in the vision tower is trained, adapters in it included."""
    for name, parameter in model.named_parameters():
        if ".visual." in name:
            parameter.requires_grad_(False)


def describe(model: torch.nn.Module) -> str:
    """Parameters by kind, for the start of a run."""
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    dtypes = sorted({str(p.dtype).removeprefix("torch.") for p in model.parameters()})
    return f"{trainable:,} of {total:,} parameters trainable ({100 * trainable / total:.2f} %), dtypes {', '.join(dtypes)}"
