"""Answers of a model for the records of a dataset, appended to predictions.jsonl as they come.

    smmd-vlm predict --model RUN_OR_NAME --data data/clocks --split test --out predictions.jsonl

Batched, greedy, left-padded. Killed and called again it goes on with the records that are missing. What identifies the
run (model, data, versions, image-token budget) stands once, in predictions.meta.json beside the file.
With --distribution, answers that are numbers or times also keep what the model holds likely (readout.py, docs/readout.md).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from smmd_vlm.collate import Collator, Encoder, image_budget, set_image_budget
from smmd_vlm.config import PredictConfig
from smmd_vlm.dataset import Picked, fingerprint, load_records
from smmd_vlm.readout import ReadOut, clock_spellings, number_spellings
from smmd_vlm.records import Prediction, Record, read_jsonl

if TYPE_CHECKING:
    from transformers import ProcessorMixin


def end_ids(model: torch.nn.Module, encoder: Encoder) -> list[int]:
    """Token ids that end an answer: the template's end of turn and whatever the model's generation config names."""
    configured = model.generation_config.eos_token_id
    configured = configured if isinstance(configured, list) else [configured]
    return sorted({encoder.end_id, *(token for token in configured if token is not None)})


@torch.no_grad()
def answers(
    model: torch.nn.Module,
    encoder: Encoder,
    records: Sequence[Record],
    *,
    batch_size: int,
    max_new_tokens: int,
    read: ReadOut | None = None,
) -> Iterator[Prediction]:
    """Greedy answers in the order of the records, with `read` their distributions; the model is in eval mode and stays where
    it is."""
    tokenizer, collate = encoder.tokenizer, Collator(encoder.processor, "left")
    stop = end_ids(model, encoder)
    for start in range(0, len(records), batch_size):
        batch = [records[index] for index in range(start, min(start + batch_size, len(records)))]
        inputs = {name: value.to(model.device) for name, value in collate(encoder.batch(batch)).items() if name != "ids"}
        output = model.generate(
            **inputs, max_new_tokens=max_new_tokens, do_sample=False, num_beams=1, eos_token_id=stop, pad_token_id=collate.pad_id,
            temperature=None, top_p=None, top_k=None,
        )  # fmt: skip
        written = output[:, inputs["input_ids"].shape[1] :].tolist()
        distributions = [None] * len(batch) if read is None else read(inputs, batch)
        for record, ids, mask, distribution in zip(batch, written, inputs["attention_mask"], distributions, strict=True):
            length = next((i for i, token in enumerate(ids) if token in stop), None)
            yield Prediction(
                id=record.id,
                question=record.question,
                answer=record.answer,
                prediction=tokenizer.decode(ids if length is None else ids[:length], skip_special_tokens=True).strip(),
                answer_type=record.answer_type,
                group=record.group or None,
                kind=record.kind or None,
                tolerance=record.tolerance,
                unit=record.unit,
                finish_reason="length" if length is None else "stop",
                prompt_tokens=int(mask.sum()),
                new_tokens=len(ids) if length is None else length + 1,
                distribution=distribution,
            )


def predict(config: PredictConfig) -> int:
    """`smmd-vlm predict`: write config.out. Errors are ValueErrors, raised before the model is loaded where they can be."""
    from tqdm import tqdm

    from smmd_vlm.model import load_for_prediction, trained_system_prompt
    from smmd_vlm.preflight import check_records

    out = Path(config.out)
    records = load_records(config.data, config.split)
    ids = [record.id for record in check_records(records, config.limit)]
    identity = {
        "model": _place(config.model), "data": _place(config.data),
        "data_hash": fingerprint(config.data), "split": config.split, "max_new_tokens": config.max_new_tokens,
        "system_prompt": config.system_prompt, "image_max_tokens": config.image_max_tokens, "dtype": config.dtype,
        "weights": _weights(config.model),
    }  # fmt: skip
    if config.distribution:
        identity["distribution"] = {
            "low": config.distribution_low, "high": config.distribution_high,
            "decimals": config.distribution_decimals, "prune": config.distribution_prune,
        }  # fmt: skip
    done = _finished(out, identity)
    todo = Picked(records, [index for index, record_id in enumerate(ids) if record_id not in done])
    if not todo:
        print(f"{out} already holds all {len(ids)} answers")
        return 0

    overrides: dict[str, Any] = {} if config.dtype is None else {"dtype": config.dtype}
    model, processor = load_for_prediction(config.model, **overrides)
    if config.image_max_tokens is not None:
        set_image_budget(processor, min(image_budget(processor)[0], config.image_max_tokens), config.image_max_tokens)
    device = config.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if not getattr(model, "is_quantized", False):
        try:
            model.to(device)
        except RuntimeError as error:
            raise ValueError(
                f"--device {device} cannot be used ({str(error).splitlines()[0]}); name another, or leave it out"
            ) from None
    system_prompt = trained_system_prompt(config.model) if config.system_prompt is None else config.system_prompt
    encoder = Encoder(processor, with_answer=False, system_prompt=system_prompt)
    read = _read_out(config, model, encoder) if config.distribution else None
    spelled = 0
    for record in todo:  # before anything is written
        encoder.check_text(record)
        spelled += read is not None and read.spelled(record) is not None
    out.parent.mkdir(parents=True, exist_ok=True)
    _write_meta(out, identity, processor, model)
    with (
        open(out, "a", encoding="utf-8") as lines,
        tqdm(total=len(ids), initial=len(ids) - len(todo), unit="answer", desc="predict") as bar,
    ):
        for prediction in answers(
            model, encoder, todo, batch_size=config.batch_size, max_new_tokens=config.max_new_tokens, read=read
        ):
            lines.write(prediction.to_json() + "\n")
            lines.flush()
            bar.update()
    if read is not None:
        print(
            f"{spelled} of the {len(todo)} new answers have a distribution"
            + (_WITHOUT.format(**identity["distribution"]) if spelled < len(todo) else "")
        )
    print(f"wrote {len(ids)} answers to {out}")
    return 0


_WITHOUT = (
    "; for the others the right answer is no H:MM time and no number from {low} to {high} with at most {decimals} decimals"
)


def _read_out(config: PredictConfig, model: torch.nn.Module, encoder: Encoder) -> ReadOut:
    numbers = number_spellings(config.distribution_low, config.distribution_high, config.distribution_decimals)
    return ReadOut(
        model,
        encoder.tokenizer,
        end_ids(model, encoder),
        spellings=(clock_spellings(), numbers),
        prune=config.distribution_prune,
        rows=config.batch_size,
    )


def _meta_path(out: Path) -> Path:
    return out.with_suffix(".meta.json")


def _finished(out: Path, identity: dict[str, Any]) -> set[str]:
    """Ids already answered in `out` by the same run; a half-written last line is cut off, another run's file is refused."""
    if not out.exists():
        return set()
    meta = _meta_path(out)
    try:
        written = json.loads(meta.read_text(encoding="utf-8")).get("run") if meta.is_file() else None
    except (json.JSONDecodeError, AttributeError):
        raise ValueError(f"{meta} is not readable, so nothing says who wrote {out}; remove both, or name a new --out") from None
    if written != identity:
        differs = "it has no .meta.json" if written is None else ", ".join(
            f"{name} {written.get(name)!r} instead of {identity.get(name)!r}"
            for name in {**identity, **written} if written.get(name) != identity.get(name)
        )  # fmt: skip
        raise ValueError(f"{out} was written by another run ({differs}); name a new --out, or remove the file")
    data = out.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) != len(data):
        with open(out, "r+b") as lines:  # killed in the middle of a line
            lines.truncate(len(whole))
    return {row["id"] for _, row in read_jsonl(out)}


def _write_meta(out: Path, identity: dict[str, Any], processor: ProcessorMixin, model: torch.nn.Module) -> None:
    import transformers

    import smmd_vlm

    low, high = image_budget(processor)
    meta = {
        "schema_version": 1,
        "run": identity,
        "image_tokens": {"min": low, "max": high},
        "decoding": "greedy",
        "loaded": {"revision": getattr(model.config, "_commit_hash", None), "dtype": str(model.dtype).removeprefix("torch.")},
        "versions": {"smmd_vlm": smmd_vlm.__version__, "transformers": transformers.__version__, "torch": torch.__version__},
    }
    temporary = _meta_path(out).with_suffix(".tmp")
    temporary.write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(temporary, _meta_path(out))


def _place(name: str) -> str:
    """A local path in one spelling; a hub name as it is."""
    return str(Path(name).resolve()) if Path(name).exists() else name


def _weights(model: str) -> str | None:
    """SHA-256 of a local model's or adapter's safetensors, so that answers of a retrained run are not mixed with older ones."""
    files = sorted(Path(model).glob("*.safetensors")) if Path(model).is_dir() else []
    digest = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest() if files else None
