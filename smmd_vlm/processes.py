"""Our own verbs as processes: one to its end, or many jobs side by side with one progress bar.

Runs share nothing but files, so several one-thread runs use the cores better than one run with many threads, and several GPUs.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any


class JobFailed(RuntimeError):
    """A command of ours ended badly; the message holds the end of its output."""


def start(
    module: str, arguments: list[str], *, more: Mapping[str, str] = MappingProxyType({}), **options: Any
) -> subprocess.Popen:
    """`python -m module arguments` on this very installation, whatever folder the user stands in; more: environment."""
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH")) if part)
    environment = os.environ | {"PYTHONPATH": path, "TOKENIZERS_PARALLELISM": "false"} | more
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


def visible_gpus() -> list[str]:
    """The numbers or names of the CUDA devices this process may use, as CUDA_VISIBLE_DEVICES would have them."""
    import torch

    count = torch.cuda.device_count()
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return (named or [str(number) for number in range(count)])[:count]


def run_jobs(
    jobs: dict[str, Job],
    logs: Path,
    *,
    steps: int,
    parallel: int | None = None,
    gpus: Sequence[str] = (),
    lock: int | None = None,
) -> None:
    """Jobs by name, side by side: as many as there are `gpus`, each seeing one of them, else as there are cores; or `parallel`.

    The cores are shared out: one thread each where a job has no GPU. steps: optimizer steps of each job, for the bar. lock: of
    alone_in. The first job that fails ends the others and is a JobFailed with the end of its log.
    """
    from tqdm import tqdm

    logs.mkdir(parents=True, exist_ok=True)
    cores = os.cpu_count() or 1
    places = list(range(parallel or len(gpus) or cores))  # the free ones
    threads = str(max(1, cores // len(places)) if gpus else 1)
    shared = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    waiting, running, place = dict(jobs), {}, {}

    def go_on(name: str, mode: str) -> None:
        gpu = {"CUDA_VISIBLE_DEVICES": gpus[place[name] % len(gpus)]} if gpus else {}
        running[name] = _next(left[name], logs / f"{name}.log", mode, shared | gpu, lock)

    left = {name: list(job.commands) for name, job in jobs.items()}
    reached = dict.fromkeys(jobs, 0)
    with tqdm(total=steps * len(jobs), unit="step", desc="runs") as bar, _sigterm_unwinds():
        try:
            while waiting or running:
                while waiting and places:
                    name = next(iter(waiting))
                    del waiting[name]
                    place[name] = places.pop(0)
                    go_on(name, "w")
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
                        go_on(name, "a")
                    else:
                        del running[name]
                        places.append(place[name])
                        jobs[name].done()
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait()


def _next(
    left: list[tuple[str, list[str]]], log: Path, mode: str, environment: Mapping[str, str], lock: int | None
) -> subprocess.Popen:
    module, arguments = left.pop(0)
    fds = () if lock is None else (lock,)
    with open(log, mode, encoding="utf-8") as out:
        return start(module, arguments, more=environment, stdout=out, stderr=subprocess.STDOUT, pass_fds=fds)


def _last_step(metrics: Path) -> int:
    try:
        last = metrics.read_bytes().rstrip(b"\n").rpartition(b"\n")[2]
        return int(json.loads(last)["step"])
    except (FileNotFoundError, json.JSONDecodeError):  # not there yet, or its last line is being written
        return 0
