"""Stopping and going on: which checkpoint counts, what must not have changed, and an orderly end on SIGTERM.

The Trainer writes a checkpoint file by file, trainer_state.json last, and takes the highest number even if it was cut
short; here a checkpoint counts when its state parses and its weights and optimizer open.
"""

from __future__ import annotations

import json
import os
import signal
import zipfile
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import TrainerCallback

from smmd_vlm.records import read_jsonl

# what a resumed run must share with the run it goes on with, by its place in passport.json
_FIXED = (
    ("data", "hash"), ("data", "split"), ("model", "name_or_path"), ("model", "revision"), ("image_tokens",), ("chat_template_sha256",),
    ("numeric_vocabulary",), ("trainable", "names_sha256"), ("seed",), ("data_seed",),
)  # fmt: skip


# what a run that was out of memory may change, since no loss depends on it: how a step's samples are cut into batches, ...
_CUT = ("train.per_device_train_batch_size", "train.gradient_accumulation_steps")
# ... and what is computed twice instead of kept
_CHECKPOINTING = ("train.activation_checkpointing", "train.gradient_checkpointing")


def newest_checkpoint(run: Path) -> tuple[Path | None, list[str]]:
    """(the newest checkpoint that counts or None, why each newer one does not)."""
    skipped: list[str] = []
    found = [
        (int(path.name.rpartition("-")[2]), path) for path in run.glob("checkpoint-*") if path.name.rpartition("-")[2].isdigit()
    ]
    for _, path in sorted(found, reverse=True):
        reason = _broken(path)
        if reason is None:
            return path, skipped
        skipped.append(f"{path.name}: {reason}")
    return None, skipped


def check_not_ended(run: Path) -> None:
    """A finished run that kept no checkpoint cannot go on; starting over would overwrite it."""
    if list(run.glob("*.safetensors")):
        raise ValueError(
            f"the run in {run} has ended and kept no checkpoint, so nothing can go on; start a new train.output_dir"
        )


def check_goes_on(checkpoint: Path, max_steps: int) -> None:
    """There must be a step left to make after the checkpoint; max_steps: 0 or less where epochs end the run."""
    step = int(checkpoint.name.rpartition("-")[2])
    if 0 < max_steps < step:
        raise ValueError(
            f"expected train.max_steps of {step} or more to go on from {checkpoint.name}, got {max_steps}; raise it"
        )


def _broken(checkpoint: Path) -> str | None:
    """Why a checkpoint does not count; None when it does."""
    try:
        state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
        if state["global_step"] != int(checkpoint.name.rpartition("-")[2]):
            return f"trainer_state.json is of step {state['global_step']}"
    except (OSError, ValueError, KeyError):
        return "trainer_state.json is missing or cut short"
    weights = sorted(checkpoint.glob("*.safetensors"))
    if not weights:
        return "its weights are missing"
    for path in weights:
        try:
            with safe_open(path, framework="pt") as file:
                file.keys()
        except (OSError, SafetensorError):
            return f"{path.name} is cut short"
    states = sorted(path.name for path in checkpoint.glob("rng_state*.pth")) or ["rng_state.pth"]  # one a rank
    for name in ("optimizer.pt", "scheduler.pt", *states):
        if not zipfile.is_zipfile(checkpoint / name):
            return f"{name} is missing or cut short"
    return None


def check_same_run(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise with every difference between the passports of the run and of its continuation."""
    differences = []
    recipes = before.get("recipe", {}), now["recipe"]
    free = _CHECKPOINTING
    if _samples_a_step(recipes[0]) == _samples_a_step(recipes[1]):
        free += _CUT
    for key in sorted(recipes[0].keys() | recipes[1].keys()):
        old, new = recipes[0].get(key), recipes[1].get(key)
        if old != new and key not in free:
            differences.append(f"{key} was {_short(old)}, is {_short(new)}")
    for place in _FIXED:
        old, new = before, now
        for key in place:
            old, new = old.get(key), new.get(key)
        if old != new:
            differences.append(f"{'.'.join(place)} was {_short(old)}, is {_short(new)}")
    if differences:
        raise ValueError(
            f"a resumed run must go on as it began, but {'; '.join(differences)}; undo that, or start a new train.output_dir"
        )


def _samples_a_step(recipe: dict[str, Any]) -> int:
    """Samples of an optimizer step on one rank; a recipe leaves out what stands at TrainingArguments' default."""
    return recipe.get(_CUT[0], 8) * recipe.get(_CUT[1], 1)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def cut_metrics(run: Path, step: int) -> None:
    """Drop what metrics.jsonl holds past `step`, and a last line that was cut short."""
    path = run / "metrics.jsonl"
    if not path.is_file():
        return
    data = path.read_bytes()
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(data[: data.rfind(b"\n") + 1])
    kept = [json.dumps(row) + "\n" for _, row in read_jsonl(temporary) if row["step"] <= step and "train_runtime" not in row]
    temporary.write_text("".join(kept), encoding="utf-8")
    os.replace(temporary, path)


class StopOnSignal(TrainerCallback):
    """On SIGTERM: finish the optimizer step, save a checkpoint, end the training. A second SIGTERM ends at once."""

    def __init__(self) -> None:
        self.asked = False
        self._previous: Any = None

    def _ask(self, signum: int, frame: Any) -> None:
        self.asked = True
        signal.signal(signal.SIGTERM, self._previous)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._previous = signal.signal(signal.SIGTERM, self._ask)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.asked:
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        signal.signal(signal.SIGTERM, self._previous)
