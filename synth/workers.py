"""Run jobs in processes: results as they come, memory flat in the number of jobs, nothing left behind.

Processes are spawned, so that every platform behaves alike and no thread's lock is copied; with one worker all runs here.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

Job = TypeVar("Job")


def run_jobs(work: Callable[[Job], Any], jobs: Iterable[Job], workers: int) -> Iterator[Any]:
    """work(job) for every job, in any order; `work` must be picklable. Jobs are taken only as fast as they are done."""
    if workers == 1:
        yield from map(work, jobs)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_start_worker) as pool:
        running: set[Future] = set()
        try:
            for job in jobs:
                running.add(pool.submit(work, job))
                if len(running) > 2 * workers:  # one in hand and one waiting for each
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            raise OSError("a worker process died, most likely for want of memory; fewer workers need less") from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it even when it is killed outright."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
