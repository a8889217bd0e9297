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
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import yaml

from smmd_vlm.config import LoraConfig, ModelConfig
from smmd_vlm.resume import newest_checkpoint
from smmd_vlm.textprocessor import TextProcessor

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, ProcessorMixin

_ATTENTION_AND_MLP = r"self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj"
_LINEAR_ATTENTION = r"linear_attn\.(in_proj_qkv|in_proj_z|out_proj)"


VISION = "model.visual"  # the vision tower and its projector, in every family that has one


@dataclass(frozen=True)
class Family:
    """Where a model family's linear layers are: patterns over full module names. Without a vision tower it reads text only."""

    language: str
    vision_tower: str | None = None
    projector: str | None = None  # Qwen's merger: the tower's features to the width of the language model

    @property
    def reads_images(self) -> bool:
        return self.vision_tower is not None

    @property
    def unquantised(self) -> tuple[str, ...]:
        """Beginnings of the names of what stays in 16 bit when the model is loaded in 4."""
        return (VISION, "lm_head") if self.reads_images else ("lm_head",)


def _vision_language(language: str, mlp: str, projector: str) -> Family:
    return Family(
        language=rf"model\.language_model\.layers\.\d+\.({language})",
        vision_tower=rf"model\.visual\.blocks\.\d+\.(attn\.(qkv|proj)|mlp\.({mlp}))",
        projector=rf"model\.visual\.({projector})",
    )


_TEXT = Family(rf"model\.layers\.\d+\.({_ATTENTION_AND_MLP})")
FAMILIES: dict[str, Family] = {  # by `config.model_type`
    "qwen2_vl": _vision_language(_ATTENTION_AND_MLP, r"fc[12]", r"merger\.mlp\.[02]"),
    "qwen2_5_vl": _vision_language(_ATTENTION_AND_MLP, r"(gate|up|down)_proj", r"merger\.mlp\.[02]"),
    "qwen3_vl": _vision_language(_ATTENTION_AND_MLP, r"linear_fc[12]", r"(merger|deepstack_merger_list\.\d+)\.linear_fc[12]"),
    "qwen3_5": _vision_language(f"{_ATTENTION_AND_MLP}|{_LINEAR_ATTENTION}", r"linear_fc[12]", r"merger\.linear_fc[12]"),
    "qwen2": _TEXT,
    "qwen3": _TEXT,
    "llama": _TEXT,
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


def _check_whole(folder: Path) -> None:
    """A folder must hold a model; a run that was stopped holds checkpoints only."""
    if not folder.is_dir() or (folder / "config.json").is_file():
        return
    if (folder / "adapter_config.json").is_file():
        raise ValueError(
            f"expected a whole model, got the adapter in {folder}; `smmd-vlm export --model {folder}` makes one of it"
        )
    checkpoint, _ = newest_checkpoint(folder)
    if checkpoint is None:
        raise ValueError(f"expected a model folder, got {folder} without config.json; name the folder with the weights")
    raise ValueError(f"the run in {folder} has not ended; go on with `train --resume`, or name its {checkpoint.name}")


def read_processor(family: Family, name: str, **where: Any) -> ProcessorMixin | TextProcessor:
    """What `name`, a folder or a hub name, holds to make a family's inputs: a processor, or a text-only model's tokenizer."""
    from transformers import AutoProcessor, AutoTokenizer

    if family.reads_images:
        return AutoProcessor.from_pretrained(name, **where)
    return TextProcessor(AutoTokenizer.from_pretrained(name, **where))


def load_processor(config: ModelConfig) -> ProcessorMixin | TextProcessor:
    """What is saved beside the model: tokenizer and chat template, and the image processor of a model that reads images."""
    family = family_of(_hf_config(config).model_type)
    try:
        processor = read_processor(
            family, config.model_name_or_path, revision=config.revision, trust_remote_code=config.trust_remote_code
        )
    except (OSError, ValueError) as error:
        raise ValueError(
            f"expected a model folder or hub name with a {'processor' if family.reads_images else 'tokenizer'}, got {config.model_name_or_path!r} ({str(error).splitlines()[0]})"
        ) from None
    if not getattr(processor, "chat_template", None):
        raise ValueError(
            f"{config.model_name_or_path} has no chat template; expected an instruction-tuned model, take one of its -Instruct kind"
        )
    return processor


def _hf_config(config: ModelConfig) -> PretrainedConfig:
    """The model's own configuration."""
    from transformers import AutoConfig

    _check_place(config.model_name_or_path)
    _check_whole(Path(config.model_name_or_path))
    try:
        return AutoConfig.from_pretrained(
            config.model_name_or_path, revision=config.revision, trust_remote_code=config.trust_remote_code
        )
    except OSError as error:
        raise ValueError(
            f"expected a model folder or hub name, got {config.model_name_or_path!r}, no folder in {Path.cwd()} "
            f"({str(error).splitlines()[0]})"
        ) from None


def auto_class(family: Family) -> type:
    """The auto class that gives ...ForConditionalGeneration where there is a vision tower, ...ForCausalLM where there is none."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    return AutoModelForImageTextToText if family.reads_images else AutoModelForCausalLM


def load_base(config: ModelConfig) -> PreTrainedModel:
    """The base model, in 4 bit when asked; its class is that of `auto_class`."""
    from transformers import BitsAndBytesConfig

    hf_config = _hf_config(config)
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
            llm_int8_skip_modules=list(family.unquantised),
        )
    model = auto_class(family).from_pretrained(
        config.model_name_or_path,
        revision=config.revision,
        trust_remote_code=config.trust_remote_code,
        dtype=config.dtype if config.dtype == "auto" else getattr(torch, config.dtype),
        quantization_config=quantization,
        attn_implementation=config.attn_implementation,
    )
    if config.load_in_4bit:
        check_quantised(model, family)
        keep_gradients_on_cpu(model)
    return model


def lora_places(family: Family, lora: LoraConfig) -> dict[str, str]:
    """Where `lora` puts adapters: a name for reports -> a pattern over full module names."""
    if lora.target_modules is not None:
        return {"target_modules": lora.target_modules}
    if (lora.vision_tower or lora.multi_modal_projector) and not family.reads_images:
        raise ValueError(
            "expected a model with a vision tower for lora.vision_tower and lora.multi_modal_projector, got a text-only one; remove them"
        )
    places = {"language layers": family.language}
    if lora.vision_tower:
        places["vision tower"] = family.vision_tower
    if lora.multi_modal_projector:
        places["projector"] = family.projector
    return places


def add_lora(model: PreTrainedModel, lora: LoraConfig, *, load_in_4bit: bool) -> torch.nn.Module:
    """LoRA where `lora_places` says, by one explicit pattern; full fine-tuning when lora.enabled is false."""
    if not lora.enabled:
        if load_in_4bit:
            raise ValueError(
                "expected LoRA on a 4-bit model, got lora.enabled=false; 4-bit weights cannot be trained, set model.load_in_4bit=false"
            )
        return model
    from peft import LoraConfig as PeftLoraConfig
    from peft import get_peft_model

    pattern = "|".join(lora_places(family_of(model.config.model_type), lora).values())
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


def load_for_prediction(path: str, **overrides: object) -> tuple[torch.nn.Module, ProcessorMixin | TextProcessor]:
    """A run folder of `smmd-vlm train` (adapter or whole model), a model folder or a hub name -> (model, processor).

    A run's base model, precision and image-token budget are those it was trained with.
    """
    if not (Path(path) / "adapter_config.json").is_file():
        config = ModelConfig(model_name_or_path=path, **overrides)
        return load_base(config).eval(), load_processor(config)
    base = load_base(trained_model(path, **overrides))
    return _with_adapter(base, path).eval(), read_processor(family_of(base.config.model_type), path)


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
    wrong = [name for name in names if name.startswith(family.unquantised)]
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


def _size(parameter: torch.nn.Parameter) -> int:
    """Numbers in a parameter; a 4-bit one stores two a byte."""
    state = getattr(parameter, "quant_state", None)
    return parameter.numel() if state is None else prod(state.shape)


def describe(model: torch.nn.Module) -> str:
    """Parameters by kind, for the start of a run."""
    total = sum(map(_size, model.parameters()))
    trainable = sum(_size(p) for p in model.parameters() if p.requires_grad)
    dtypes = sorted({str(p.dtype).removeprefix("torch.") for p in model.parameters()})
    return f"{trainable:,} of {total:,} parameters trainable ({100 * trainable / total:.2f} %), dtypes {', '.join(dtypes)}"
