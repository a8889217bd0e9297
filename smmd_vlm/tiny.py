"""A small model from a config, random weights, with its own processor, saved as an ordinary model folder.

    smmd-vlm tiny --out runs/tiny [--family qwen3_vl] [--seed 0]

What comes out loads through AutoProcessor / AutoModelForImageTextToText.from_pretrained like a hub model (a text-only
family through AutoTokenizer / AutoModelForCausalLM), so that training, prediction and evaluation run small on a CPU through
the very same code. The tokenizer is a byte-level BPE on the prompts of this project with Qwen's pre-tokenizer: one token a
digit, lossless on any UTF-8.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smmd_vlm.config import TinyConfig
from smmd_vlm.textprocessor import TextProcessor

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast, ProcessorMixin

SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip

# Qwen's turn layout, images and videos where the message holds them.
CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string -%}
{{ message.content }}
{%- else -%}
{%- for part in message.content -%}
{%- if part.type == 'image' -%}
<|vision_start|><|image_pad|><|vision_end|>
{%- elif part.type == 'video' -%}
<|vision_start|><|video_pad|><|vision_end|>
{%- else -%}
{{ part.text }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""

# The same layout as text models have it: a message's content is a string.
TEXT_CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""

# Split as Qwen does: contractions, words with a leading space, digits in groups of one (or of `group`), punctuation, line ends.
_PRETOKENIZER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,GROUP}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PROMPTS = (
    "user\nWhat time does the clock show? Answer HH:MM.\n", "assistant\n", "system\nYou are a helpful assistant.\n",
    "What is the value of the highest bar? What is the value of the bar? Answer with a number.",
    "How many are there? What is the difference between the highest and the lowest value? The answer is",
)  # fmt: skip

TEXT_FAMILIES = ("llama", "qwen2", "qwen3")
FAMILIES = ("qwen3_vl", "qwen2_5_vl", "qwen2_vl", "qwen3_5", *TEXT_FAMILIES)


def compact_tokenizer(digits_per_token: int = 1) -> PreTrainedTokenizerFast:
    """A Qwen-like byte-level BPE tokenizer of a few hundred tokens; the same every time.

    digits_per_token 2 makes every two-digit string one token ("05", "59"), so that a clock's minute is one token.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PRETOKENIZER.replace("GROUP", str(digits_per_token))), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        min_frequency=1,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    pairs = [f"{number:02d}" for number in range(100)] if digits_per_token == 2 else []
    tokenizer.train_from_iterator([*_PROMPTS, *pairs], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=[token for token in SPECIAL_TOKENS if token not in ("<|im_end|>", "<|endoftext|>")],
        clean_up_tokenization_spaces=False,
    )


def build_processor(
    tokenizer: PreTrainedTokenizerFast,
    family: str = "qwen3_vl",
    *,
    tokens: tuple[int, int] = (4, 4),
    temporal_patch_size: int = 1,
) -> ProcessorMixin | TextProcessor:
    """The family's own processor over `tokenizer`; images are scaled into tokens[0] to tokens[1] image tokens.

    A text-only family has none: `tokenizer` itself gets a chat template.
    """
    import transformers as hf

    from smmd_vlm.collate import set_image_budget

    _check_family(family)
    if family in TEXT_FAMILIES:
        tokenizer.chat_template = TEXT_CHAT_TEMPLATE
        return TextProcessor(tokenizer)
    qwen2 = family in ("qwen2_vl", "qwen2_5_vl")
    patch = 14 if qwen2 else 16
    vision = {"patch_size": patch, "temporal_patch_size": temporal_patch_size, "merge_size": 2}
    if not qwen2:
        vision |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    images = hf.Qwen2VLImageProcessor(**vision)
    if qwen2:
        processor_class = hf.Qwen2VLProcessor if family == "qwen2_vl" else hf.Qwen2_5_VLProcessor
        processor = processor_class(images, tokenizer, hf.Qwen2VLVideoProcessor(**vision), chat_template=CHAT_TEMPLATE)
    else:  # Qwen3.5 uses Qwen3-VL's processor
        processor = hf.Qwen3VLProcessor(images, tokenizer, hf.Qwen3VLVideoProcessor(**vision), chat_template=CHAT_TEMPLATE)
    set_image_budget(processor, *tokens)
    return processor


def build_model(
    tokenizer: PreTrainedTokenizerFast,
    family: str = "qwen3_vl",
    *,
    hidden: int = 128,
    layers: int = 3,
    seed: int = 0,
    temporal_patch_size: int = 1,
) -> PreTrainedModel:
    """A random model of the family, float32; about 1.6 M parameters at the defaults, with a vision tower.

    One frame a patch (temporal_patch_size 1, the hub models have 2) halves the pixels to keep and embed.
    """
    import torch
    import transformers as hf

    _check_family(family)
    heads, ids = hidden // 32, tokenizer.convert_tokens_to_ids
    special = {
        "image_token_id": ids("<|image_pad|>"),
        "video_token_id": ids("<|video_pad|>"),
        "vision_start_token_id": ids("<|vision_start|>"),
        "vision_end_token_id": ids("<|vision_end|>"),
        "tie_word_embeddings": True,
    }
    text: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": max(1, heads // 2),
        "max_position_embeddings": 4096,
        "initializer_range": 0.05,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
        "tie_word_embeddings": True,
    }
    vision: dict[str, Any] = {
        "depth": layers,
        "hidden_size": hidden,
        "num_heads": heads,
        "out_hidden_size": hidden,
        "temporal_patch_size": temporal_patch_size,
        "initializer_range": 0.05,
    }
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [6, 5, 5]}
    if family == "qwen3_vl":
        config = hf.Qwen3VLConfig(
            text_config=text | {"head_dim": 32, "rope_parameters": rope | {"mrope_interleaved": True}},
            vision_config=vision
            | {"intermediate_size": 2 * hidden, "num_position_embeddings": 16, "deepstack_visual_indexes": [layers // 2]},
            **special,
        )
        model_class = hf.Qwen3VLForConditionalGeneration
    elif family == "qwen2_5_vl":
        config = hf.Qwen2_5_VLConfig(
            text_config=text | {"rope_parameters": rope},
            vision_config=vision
            | {"intermediate_size": 2 * hidden, "window_size": 112, "fullatt_block_indexes": list(range(layers))},
            **special,
        )
        model_class = hf.Qwen2_5_VLForConditionalGeneration
    elif family == "qwen2_vl":  # its vision_config calls the tower's width embed_dim, and the language model's hidden_size
        config = hf.Qwen2VLConfig(
            text_config=text | {"rope_parameters": rope},
            vision_config=vision | {"embed_dim": hidden, "mlp_ratio": 2},
            **special,
        )
        model_class = hf.Qwen2VLForConditionalGeneration
    elif family in TEXT_FAMILIES:
        rope = {"rope_type": "default", "rope_theta": 10000.0}
        config = hf.AutoConfig.for_model(family, **text, head_dim=32, rope_parameters=rope)
        model_class = hf.AutoModelForCausalLM.from_config
    else:
        linear = {
            "linear_num_key_heads": heads,
            "linear_num_value_heads": heads,
            "linear_key_head_dim": 32,
            "linear_value_head_dim": 32,
        }
        config = hf.Qwen3_5Config(
            text_config=text
            | linear
            | {
                "head_dim": 64,
                "layer_types": ["linear_attention"] * (layers - 1) + ["full_attention"],
                "rope_parameters": rope
                | {"mrope_section": [3, 3, 2], "mrope_interleaved": True, "partial_rotary_factor": 0.25},
            },
            vision_config=vision | {"intermediate_size": 2 * hidden, "num_position_embeddings": 16},
            **special,
        )
        model_class = hf.Qwen3_5ForConditionalGeneration
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = model_class(config)
    torch.random.set_rng_state(state)
    model.generation_config.eos_token_id = [ids("<|im_end|>"), ids("<|endoftext|>")]
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def save_tiny(config: TinyConfig) -> int:
    """`smmd-vlm tiny`: build and save model and processor into config.out, which must not hold anything yet.

    The folder appears whole or not at all.
    """
    out = Path(config.out)
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise ValueError(f"{out} is not empty; name a new folder for the tiny model")
    tokenizer = compact_tokenizer(config.digits_per_token)
    model = build_model(tokenizer, config.family, hidden=config.hidden, layers=config.layers, seed=config.seed)
    processor = build_processor(tokenizer, config.family, tokens=(config.image_tokens, config.image_tokens))
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        model.save_pretrained(Path(scratch) / "model")
        processor.save_pretrained(Path(scratch) / "model")
        if out.exists():
            out.rmdir()
        os.replace(Path(scratch) / "model", out)
    print(f"wrote a {config.family} model of {sum(p.numel() for p in model.parameters()):,} parameters to {out}")
    return 0


def _check_family(family: str) -> None:
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}")
