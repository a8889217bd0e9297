"""Our own verbs as processes: one to its end, or many trainings side by side with one progress bar.

Runs share nothing but files, so several one-thread runs use the cores better than one run with many threads.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def start(module: str, arguments: list[str], *, threads: int | None = None, **options: Any) -> subprocess.Popen:
    """`python -m module arguments` on this very installation, whatever folder the user stands in."""
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH")) if part)
    environment = os.environ | {"PYTHONPATH": path, "TOKENIZERS_PARALLELISM": "false"}
    if threads is not None:
        environment |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    # -P: an `eval` folder where the user stands must not win over ours
    return subprocess.Popen([sys.executable, "-P", "-m", module, *arguments], env=environment, **options)


def run(module: str, *arguments: object) -> None:
    """One command to its end, its output to the screen only when it fails."""
    words = [str(argument) for argument in arguments]
    process = start(module, words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(
            f"`python -m {module} {shlex.join(words)}` ended with exit code {process.returncode}:\n{output[-4000:]}"
        )


def train_all(
    commands: dict[str, list[str]],
    runs: dict[str, Path],
    logs: Path,
    *,
    steps: int,
    parallel: int | None = None,
    done: Callable[[str], None] = lambda name: None,
) -> None:
    """`smmd-vlm` commands by name, as many side by side as there are cores (or `parallel`), one thread each.

    runs: their run folders, whose metrics.jsonl moves the bar; `done(name)` is called as each one ends well. The first that
    fails ends the others and is a RuntimeError with the end of its log.
    """
    from tqdm import tqdm

    logs.mkdir(parents=True, exist_ok=True)
    waiting, running, reached = list(commands), {}, dict.fromkeys(commands, 0)
    with tqdm(total=steps * len(commands), unit="step", desc="train") as bar:
        try:
            while waiting or running:
                while waiting and len(running) < (parallel or max(1, os.cpu_count() or 1)):
                    name = waiting.pop(0)
                    with open(logs / f"{name}.log", "w", encoding="utf-8") as log:
                        running[name] = start("smmd_vlm", commands[name], threads=1, stdout=log, stderr=subprocess.STDOUT)
                time.sleep(0.5)
                for name in list(running):
                    step = _last_step(runs[name] / "metrics.jsonl")
                    bar.update(step - reached[name])
                    reached[name] = step
                    if running[name].poll() is not None:
                        code = running.pop(name).returncode
                        if code:
                            tail = (logs / f"{name}.log").read_text(encoding="utf-8")[-4000:]
                            raise RuntimeError(f"training {name} ended with exit code {code}:\n{tail}")
                        done(name)
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait()


def _last_step(metrics: Path) -> int:
    try:
        last = metrics.read_bytes().rstrip(b"\n").rpartition(b"\n")[2]
        return int(json.loads(last)["step"])
    except (FileNotFoundError, json.JSONDecodeError):  # not there yet, or its last line is being written
        return 0
