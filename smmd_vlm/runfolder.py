"""What a run leaves behind: config.yaml, passport.json, metrics.jsonl, curves and a model card.

Written by `smmd-vlm train`; nothing here trains. A run folder is never silently reused.
"""

from __future__ import annotations

import hashlib
import html
import json
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from transformers import TrainerCallback

from smmd_vlm.collate import image_budget
from smmd_vlm.dataset import fingerprint
from smmd_vlm.records import Prediction, read_jsonl

if TYPE_CHECKING:
    from transformers import ProcessorMixin

    from smmd_vlm.runconfig import Config
    from smmd_vlm.vocab import NumericVocab


def check_free(folder: Path, *, resuming: bool) -> None:
    """Refuse a folder that already holds something, unless the run in it is being resumed."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"train.output_dir {folder} is a file; name a new folder")
    used = folder.is_dir() and any(folder.iterdir())
    if resuming and not (folder / "config.yaml").is_file():
        raise ValueError(
            f"expected a run with config.yaml to resume in {folder}, got {'another folder' if used else 'nothing'}"
        )
    if used and not resuming:
        way = ", or go on with the run in it by --resume" if (folder / "config.yaml").is_file() else ""
        raise ValueError(f"train.output_dir {folder} is not empty; name a new folder (nothing is ever overwritten){way}")


def write_config(folder: Path, config: Config) -> None:
    """The configuration as resolved; `smmd-vlm train --config` reads it back."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True), encoding="utf-8")


# settings that a resumed run may change: where and how often things are written, and how long it goes on
_FREE = ("output_dir", "max_steps", "num_train_epochs", "save_", "eval_", "logging_", "dataloader_", "report_to", "disable_tqdm", "run_name",
         "per_device_eval_batch_size", "use_cpu", "do_eval", "metric_for_best_model", "greater_is_better", "load_best_model_at_end")  # fmt: skip


def changed_ends(folder: Path, config: Config) -> list[str]:
    """How the end of the run in `folder` was set otherwise than in `config`."""
    before = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))["train"]
    now = config.to_dict()["train"]
    ends = ("max_steps", "num_train_epochs")
    return [f"train.{key} was {before.get(key)}, is {now.get(key)}" for key in ends if before.get(key) != now.get(key)]


def recipe(config: Config) -> dict[str, Any]:
    """What is learned and how, as `section.key`: the settings that a resumed run must share with its beginning."""
    content = config.to_dict()
    found = {f"{section}.{key}": value for section in ("model", "lora", "loss") for key, value in content[section].items()}
    for key in ("train_split", "max_train_samples", "max_length", "system_prompt"):
        found[f"data.{key}"] = content["data"][key]
    if config.data.decontaminate:  # an earlier release's run has no word of it
        found["data.decontaminate"] = [fingerprint(test) or test for test in config.data.decontaminate]
        found["data.decontaminate_split"] = config.data.decontaminate_split
    return found | {f"train.{key}": value for key, value in content["train"].items() if not key.startswith(_FREE)}


def passport(config: Config, processor: ProcessorMixin, vocab: NumericVocab, model: Any) -> dict[str, Any]:
    """Everything that has to agree for two runs, or a run and its evaluation, to be compared."""
    from importlib.metadata import version

    packages = ("smmd-vlm", "torch", "transformers", "peft", "bitsandbytes", "accelerate", "datasets")
    low, high = image_budget(processor)
    trainable = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    return {
        "schema_version": 1,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "seed": config.train.seed,
        "data_seed": config.train.data_seed,
        "data": {"dataset": config.data.dataset, "split": config.data.train_split, "hash": fingerprint(config.data.dataset)},
        "model": {
            "name_or_path": config.model.model_name_or_path,
            "revision": getattr(model.config, "_commit_hash", None),
            "type": model.config.model_type,
        },
        "recipe": recipe(config),
        "image_tokens": {"min": low, "max": high},
        "chat_template_sha256": hashlib.sha256(str(processor.chat_template).encode()).hexdigest(),
        "numeric_vocabulary": {
            "mode": vocab.mode,
            "tokens": list(vocab.tokens),
            "ids": list(vocab.token_ids),
            "values": list(vocab.token_values),
        },
        "trainable": {
            "tensors": len(trainable),
            "names_sha256": hashlib.sha256("\n".join(sorted(trainable)).encode()).hexdigest(),
        },
    }


def write_passport(folder: Path, content: dict[str, Any]) -> None:
    (folder / "passport.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_passport(folder: Path) -> dict[str, Any]:
    if not (folder / "passport.json").is_file():
        raise ValueError(f"{folder} has no passport.json, so its run never began; start it anew in a new folder")
    return json.loads((folder / "passport.json").read_text(encoding="utf-8"))


class MetricsFile(TrainerCallback):
    """Appends every log of the Trainer to metrics.jsonl, one JSON object a line with its step.

    begin: writes the run's other files when training begins.
    """

    def __init__(self, folder: Path, begin: Callable[[], None]) -> None:
        self.path, self.begin = folder / "metrics.jsonl", begin

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """What could fail has been built by now, so the folder is claimed here and not earlier."""
        if state.is_world_process_zero:
            self.begin()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        if state.is_world_process_zero and logs:
            with open(self.path, "a", encoding="utf-8") as lines:
                lines.write(json.dumps({"step": state.global_step, **logs}) + "\n")


def write_samples(folder: Path, predictions: Sequence[Prediction]) -> None:
    """samples.md: what the model wrote at the last evaluation, so that a person can look; the wrong ones first."""
    rows = sorted(predictions, key=lambda p: p.prediction == p.answer)[:40]
    cells = ((p.id, p.question, p.answer, p.prediction) for p in rows)
    lines = (
        "| "
        + " | ".join(html.escape(" ".join(cell.split())[:120]).replace("|", "&#124;").replace("[", "&#91;") for cell in row)
        + " |"
        for row in cells
    )
    table = "\n".join(("| id | question | answer | written |", "|---|---|---|---|", *lines))
    (folder / "samples.md").write_text(table + "\n", encoding="utf-8")


# one panel each: (title, training series, evaluation series); drawn when it was logged
_PANELS = (
    ("cross-entropy", "cross_entropy", "eval_cross_entropy"),
    ("numeric loss, unweighted", "numeric_loss", "eval_numeric_loss"),
    ("numeric-token accuracy, teacher-forced", "numeric_token_accuracy", "eval_numeric_token_accuracy"),
    ("exact answers, written out", None, "eval_exact"),
    ("mean error of the answers (minutes)", None, "eval_mean_error_min"),
    ("mean absolute error of the answers", None, "eval_mean_absolute_error"),
)


def plot_curves(folder: Path) -> Path | None:
    """curves.png from metrics.jsonl; None while nothing is logged."""
    path = folder / "metrics.jsonl"
    rows = [row for _, row in read_jsonl(path)] if path.is_file() else []
    panels = [panel for panel in _PANELS if any(name in row for row in rows for name in panel[1:] if name)]
    if not panels:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(panels), 3.2), layout="constrained")
    for axes, (title, train, evaluation) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for name, label, style in ((train, "training", "-"), (evaluation, "evaluation", "o-")):
            points = [(row["step"], row[name]) for row in rows if name in row]
            if points:
                axes.plot(*zip(*points, strict=True), style, label=label, markersize=3, linewidth=1.2)
        axes.set(title=title, xlabel="step")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(folder / "curves.png", dpi=110)
    return folder / "curves.png"


def write_card(folder: Path, config: Config, metrics: dict[str, float]) -> None:
    """README.md: a model card with what was trained on what, and the last evaluation."""
    loss = config.loss
    recipe = "cross-entropy" if loss.name == "none" or loss.weight == 0 else f"cross-entropy + {loss.weight:g} x {loss.name}"
    front = {
        "library_name": "peft" if config.lora.enabled else "transformers",
        "base_model": config.model.model_name_or_path,
        "tags": ["smmd-vlm"],
    }
    rows = "\n".join(
        f"| {name.removeprefix('eval_')} | {value:.4g} |" for name, value in sorted(metrics.items()) if name.startswith("eval_")
    )
    table = f"\n## Last evaluation\n\n| metric | value |\n|---|---|\n{rows}\n" if rows else ""
    how = "4-bit QLoRA" if config.model.load_in_4bit else "LoRA" if config.lora.enabled else "full fine-tuning"
    (folder / "README.md").write_text(
        f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n\n# {folder.resolve().name}\n\n"
        f"`{config.model.model_name_or_path}` after {how} on `{config.data.dataset}` (split `{config.data.train_split}`) with {recipe}, "
        f"seed {config.train.seed}. Everything as resolved is in `config.yaml` and `passport.json`, the course in `metrics.jsonl`.\n\n"
        f"![curves](curves.png)\n{table}\n"
        f"## Use\n\n```\nsmmd-vlm predict --model {folder} --data {config.data.dataset} --split test --out predictions.jsonl\n"
        "python -m eval score predictions.jsonl --out report\n```\n",
        encoding="utf-8",
    )
