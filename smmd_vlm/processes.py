"""Our own verbs as processes: one to its end, or many jobs side by side with one progress bar.

Runs share nothing but files, so several one-thread runs use the cores better than one run with many threads.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class JobFailed(RuntimeError):
    """A command of ours ended badly; the message holds the end of its output."""


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
        raise JobFailed(
            f"`python -m {module} {shlex.join(words)}` ended with exit code {process.returncode}:\n{output[-4000:]}"
        )


@contextmanager
def alone_in(folder: Path) -> Iterator[int]:
    """Wait until nobody else works in `folder`; yields the lock's file descriptor, for run_jobs.

    Processes that inherit it keep the lock, so that what a killed call left running is waited for, not written over.
    """
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        with suppress(ImportError):  # Windows has no fcntl, and no lock then
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"{folder} is in use, by another call or by runs that a killed one left behind; waiting", flush=True)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


@contextmanager
def _sigterm_unwinds() -> Iterator[None]:
    """SIGTERM leaves through `finally`, as Ctrl-C does."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass
class Job:
    """Commands (module, arguments) that run one after another, and the run folder whose metrics.jsonl tells how far it is.

    done: called once the last command has ended well.
    """

    commands: list[tuple[str, list[str]]]
    run: Path
    done: Callable[[], object] = lambda: None


def run_jobs(jobs: dict[str, Job], logs: Path, *, steps: int, parallel: int | None = None, lock: int | None = None) -> None:
    """Jobs by name, as many side by side as there are cores (or `parallel`), one thread each.

    steps: optimizer steps of each job, for the bar. lock: of alone_in. The first job that fails ends the others and is a JobFailed with the
    end of its log.
    """
    from tqdm import tqdm

    logs.mkdir(parents=True, exist_ok=True)
    waiting, running = dict(jobs), {}
    left = {name: list(job.commands) for name, job in jobs.items()}
    reached = dict.fromkeys(jobs, 0)
    with tqdm(total=steps * len(jobs), unit="step", desc="runs") as bar, _sigterm_unwinds():
        try:
            while waiting or running:
                while waiting and len(running) < (parallel or max(1, os.cpu_count() or 1)):
                    name = next(iter(waiting))
                    del waiting[name]
                    running[name] = _next(left[name], logs / f"{name}.log", "w", lock)
                time.sleep(0.2)
                for name in list(running):
                    step = min(steps, _last_step(jobs[name].run / "metrics.jsonl"))
                    bar.update(step - reached[name])
                    reached[name] = step
                    code = running[name].poll()
                    if code is None:
                        continue
                    if code:
                        tail = (logs / f"{name}.log").read_text(encoding="utf-8")[-4000:]
                        raise JobFailed(f"{name} ended with exit code {code}:\n{tail}")
                    if left[name]:
                        running[name] = _next(left[name], logs / f"{name}.log", "a", lock)
                    else:
                        del running[name]
                        jobs[name].done()
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait()


def _next(left: list[tuple[str, list[str]]], log: Path, mode: str, lock: int | None) -> subprocess.Popen:
    module, arguments = left.pop(0)
    with open(log, mode, encoding="utf-8") as out:
        return start(
            module, arguments, threads=1, stdout=out, stderr=subprocess.STDOUT, pass_fds=() if lock is None else (lock,)
        )


def _last_step(metrics: Path) -> int:
    try:
        last = metrics.read_bytes().rstrip(b"\n").rpartition(b"\n")[2]
        return int(json.loads(last)["step"])
    except (FileNotFoundError, json.JSONDecodeError):  # not there yet, or its last line is being written
        return 0
