"""A benchmark, start to end: convert, predict, score; killed and called again it goes on with the samples that are missing.

    OUT/run.json            what was asked, of which model, on which data (written first; another run's folder is refused)
    OUT/data/               the benchmark as a dataset folder
    OUT/predictions.jsonl   appended as answers come; predictions.meta.json beside it
    OUT/report/             scores and pages

Prediction is `smmd_vlm.predict`: batched, left-padded, greedy. Only here does `eval` reach into smmd_vlm's model code, and only
files come back; an engine of your own that writes predictions.jsonl replaces it (docs/vllm.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eval.convert import BENCHMARKS, Choice, convert, parse_splits
from eval.evaluate import HEADLINES, Summary, evaluate, score
from eval.intervals import wilson
from smmd_vlm.records import Prediction, read_predictions

RUN_FORMAT = "smmd-vlm evaluation run"
FOLDER = "folder"  # --benchmark folder: --data is a dataset folder already
_LARGEST_HASHED = 1 << 30  # bytes of weights; larger ones are named, not read through
_PACKAGES = ("smmd-vlm", "torch", "transformers", "peft", "bitsandbytes", "pillow")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the answers depend on; the same settings go on where a killed run stopped."""

    model: str
    benchmark: str
    data: str
    split: str
    sample: int | None
    seed: int
    prompt: str | None
    system_prompt: str | None
    max_new_tokens: int
    image_max_tokens: int | None
    dtype: str | None

    def __post_init__(self) -> None:
        if self.benchmark != FOLDER and self.benchmark not in BENCHMARKS:
            raise ValueError(f"expected a benchmark ({', '.join((*BENCHMARKS, FOLDER))}), got {self.benchmark!r}")
        if self.benchmark == FOLDER and (self.prompt or self.sample):
            raise ValueError("--benchmark folder takes the questions as they are; --prompt and --sample belong to `convert`")
        if len(parse_splits(self.split)) != 1:
            raise ValueError(f"--split takes one split to answer, got {self.split!r}")


def run(
    settings: Settings, out: Path, *, limit: int | None, batch_size: int, device: str | None
) -> tuple[Summary, dict[str, Any]]:
    """Do what is not done yet; (the scores of all answers, run.json's content)."""
    _claim(out, settings)
    folder = _dataset(settings, out)
    predictions = out / "predictions.jsonl"
    split = parse_splits(settings.split)[0]
    benchmark = BENCHMARKS.get(settings.benchmark)
    headline = benchmark.headline if benchmark else None
    with running_accuracy(predictions, headline):
        _predict(settings, folder, split, predictions, limit=limit, batch_size=batch_size, device=device)
    facts = _facts(settings, folder, predictions)
    _write_json(out / "run.json", facts)
    summary = evaluate(_wanted(predictions, limit), headline=headline)
    return summary, facts


def _wanted(predictions: Path, limit: int | None) -> Iterator[Prediction]:
    """Answers come in the order of the records, so a smaller --limit than before takes the first ones."""
    for number, prediction in enumerate(read_predictions(predictions)):
        if limit is None or number < limit:
            yield prediction


def _claim(out: Path, settings: Settings) -> None:
    """Refuse a folder that is not this run's; write run.json before anything else."""
    path = out / "run.json"
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder, {out} is a file; name a new or empty one")
    if path.is_file():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            known = found["settings"] if found["format"] == RUN_FORMAT else None
        except (ValueError, KeyError, TypeError):
            known = None
        if known is None:
            raise ValueError(f"{path} is not one of ours; name a new --out")
        for name, value in vars(settings).items():
            if known.get(name) != value:
                raise ValueError(f"{out} was run with {name} {known.get(name)!r}, this call has {value!r}; name a new --out")
        return
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"--out {out} holds other files and no run.json; name a new or empty folder")
    if not Path(settings.data).exists():
        raise ValueError(f"--data {settings.data} does not exist; name the folder with the files of {settings.benchmark}")
    out.mkdir(parents=True, exist_ok=True)
    _write_json(path, {"format": RUN_FORMAT, "version": 1, "settings": vars(settings)})


def _dataset(settings: Settings, out: Path) -> Path:
    if settings.benchmark == FOLDER:
        return Path(settings.data)
    choice = Choice(
        benchmark=settings.benchmark,
        data=Path(settings.data),
        splits=parse_splits(settings.split),
        sample=settings.sample,
        seed=settings.seed,
        prompt=settings.prompt,
    )
    convert(choice, out / "data")
    return out / "data"


def _predict(
    settings: Settings, folder: Path, split: str, out: Path, *, limit: int | None, batch_size: int, device: str | None
) -> None:
    """The one place where evaluation meets a model."""
    from smmd_vlm.config import PredictConfig
    from smmd_vlm.predict import predict

    predict(
        PredictConfig(
            model=settings.model,
            data=str(folder),
            split=split,
            out=str(out),
            batch_size=batch_size,
            max_new_tokens=settings.max_new_tokens,
            limit=limit,
            system_prompt=settings.system_prompt,
            image_max_tokens=settings.image_max_tokens,
            device=device,
            dtype=settings.dtype,
        )
    )


@contextmanager
def running_accuracy(predictions: Path, headline: str | None = None, *, every_s: float = 15.0) -> Iterator[None]:
    """While answers are appended, say now and then how many of them are right so far."""
    done = threading.Event()

    def watch() -> None:
        at = right = n = 0
        while not done.wait(every_s):
            if not predictions.is_file():
                continue
            with open(predictions, "rb") as lines:
                lines.seek(at)
                new = lines.read()
            whole = new[: new.rfind(b"\n") + 1]
            at += len(whole)
            for line in whole.splitlines():
                row = Prediction.from_mapping(json.loads(line))
                right += score(row, headline=headline or HEADLINES["other"]).outcome == "right"
                n += 1
            if whole:
                low, high = wilson(right, n)
                print(f"  {n} answers, {right / n:.1%} right so far ({low:.1%} to {high:.1%})", flush=True)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join(timeout=1)


def _facts(settings: Settings, folder: Path, predictions: Path) -> dict[str, Any]:
    """run.json: what another person needs to know to get, or to doubt, the same number."""
    from eval.items import PROMPTS

    meta = json.loads(predictions.with_suffix(".meta.json").read_text(encoding="utf-8"))
    manifest_path = folder / "manifest.json"
    manifest = json.loads(manifest_path.read_text(encoding="utf-8")) if manifest_path.is_file() else {}
    prompt = None if settings.benchmark == FOLDER else settings.prompt or BENCHMARKS[settings.benchmark].prompt
    return {
        "format": RUN_FORMAT,
        "version": 1,
        "settings": vars(settings),
        "prompt": {"name": prompt, "text": PROMPTS.get(prompt or ""), "system": settings.system_prompt},
        "dataset": {"content_hash": manifest.get("content_hash"), "counts": manifest.get("counts")},
        "model": model_facts(settings.model, settings.dtype),
        "image_tokens": meta.get("image_tokens"),
        "decoding": f"{meta.get('decoding')}, at most {settings.max_new_tokens} new tokens, left-padded",
        "backend": "transformers",
        "versions": {**meta.get("versions", {}), **{name: _version(name) for name in _PACKAGES}},
    }


def model_facts(model: str, dtype: str | None = None) -> dict[str, Any]:
    """Which weights these are: the hub commit of a name, the hash of an adapter or of small weights, what they were trained from."""
    folder = Path(model)
    facts: dict[str, Any] = {"name": model, "dtype": dtype}
    if not folder.is_dir():
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(model, "config.json")
        facts["revision"] = Path(cached).parent.name if isinstance(cached, str) else None
        return facts
    adapter, weights = folder / "adapter_model.safetensors", sorted(folder.glob("model*.safetensors"))
    if adapter.is_file():
        facts["adapter_sha256"] = _sha256([adapter])
    elif weights and sum(path.stat().st_size for path in weights) <= _LARGEST_HASHED:
        facts["weights_sha256"] = _sha256(weights)
    for place in (folder, folder.parent):  # a checkpoint-N lies inside its run
        passport = place / "passport.json"
        if passport.is_file():
            facts["base"] = json.loads(passport.read_text(encoding="utf-8")).get("model")
            break
    config = folder / "config.json"
    if dtype is None and config.is_file():
        read = json.loads(config.read_text(encoding="utf-8"))
        facts["dtype"] = read.get("dtype") or read.get("torch_dtype")
    return facts


def _sha256(paths: list[Path]) -> str:
    state = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as data:
            while chunk := data.read(1 << 20):
                state.update(chunk)
    return state.hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _write_json(path: Path, value: dict[str, Any]) -> None:
    beside = path.with_name(path.name + ".tmp")
    beside.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", errors="replace")
    os.replace(beside, path)
