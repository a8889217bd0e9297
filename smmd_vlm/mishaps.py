"""What can befall a run under way (no memory, a full disk, a dead data worker), each as one sentence that says what to do.

    with explained(trainer):
        trainer.train()

Nothing is lost by any of them: metrics are written line by line, and what is left of a checkpoint cut short does not count.
"""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError

from smmd_vlm.resume import newest_checkpoint

if TYPE_CHECKING:
    from smmd_vlm.trainer import NumericTrainer

_NO_MEMORY = re.compile(r"can't allocate memory|out of memory", re.IGNORECASE)
_DEAD_WORKER = re.compile(r"DataLoader worker .*(exited|killed)|unable to (write to|open) .*/torch_", re.DOTALL)
# a full disk as Rust's safetensors and torch's zip writer say it
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded|PytorchStreamWriter|inline_container")
_FROM_WORKER = re.compile(r"Caught ValueError in DataLoader worker .*^ValueError: (.*)", re.DOTALL | re.MULTILINE)
SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def explained(trainer: NumericTrainer) -> Iterator[None]:
    """Raise MemoryError, OSError or ChildProcessError of one sentence for these mishaps; everything else as it is."""
    try:
        yield
    except (RuntimeError, OSError, MemoryError, SafetensorError) as error:
        text = str(error)
        if isinstance(error, MemoryError | torch.OutOfMemoryError):
            raise MemoryError(_out_of_memory(trainer, error)) from error
        if _DEAD_WORKER.search(text):
            raise ChildProcessError(_dead_worker(trainer, error)) from error
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or _DISK_FULL.search(text):
            raise OSError(_disk_full(trainer, error)) from error
        if _NO_MEMORY.search(text):  # CPU allocations and some CUDA libraries raise plain RuntimeErrors
            raise MemoryError(_out_of_memory(trainer, error)) from error
        raise
    except ValueError as error:
        if found := _FROM_WORKER.search(str(error)):  # a record's own sentence, under a worker's traceback
            raise ValueError(found[1].strip()) from error
        raise


def _out_of_memory(trainer: NumericTrainer, error: BaseException) -> str:
    args = trainer.args
    ways = []
    if args.per_device_train_batch_size > 1:
        ways.append(
            f"halve train.per_device_train_batch_size (now {args.per_device_train_batch_size}) and double "
            f"train.gradient_accumulation_steps (now {args.gradient_accumulation_steps})"
        )
    if not args.activation_checkpointing:
        ways.append("set train.activation_checkpointing (once gradient_checkpointing)")
    way = f"{' or '.join(ways)} and {_go_on(trainer)}; " if ways else ""
    return (
        f"out of memory in step {trainer.state.global_step + 1}, {_batch(trainer)} ({_first_line(error)}); {way}"
        "a new run can lower data.image_max_tokens, or name by data.max_length the records that are too long"
    )


def _batch(trainer: NumericTrainer) -> str:
    """What the trainer was working on."""
    if trainer.batch is None:
        return "while writing answers (eval.batch_size)"
    ids, lengths = trainer.batch["ids"], trainer.batch["attention_mask"].sum(1).tolist()
    longest = max(range(len(ids)), key=lengths.__getitem__)
    named = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
    return f"with the records {named}, the longest {ids[longest]} of {lengths[longest]} tokens"


def _disk_full(trainer: NumericTrainer, error: BaseException) -> str:
    folder = Path(trainer.args.output_dir)
    checkpoint = newest_checkpoint(folder)[0]
    if checkpoint is not None:
        need = sum(path.stat().st_size for path in checkpoint.iterdir())
    else:  # weights and Adam's two moments
        need = 3 * sum(p.numel() * p.element_size() for p in trainer.model.parameters() if p.requires_grad)
    return (
        f"could not write to {folder} ({_first_line(error)}): a checkpoint needs about {_mib(need)} and the disk has "
        f"{_mib(shutil.disk_usage(folder).free)} free; make room or set train.save_total_limit, and {_go_on(trainer)}"
    )


def _dead_worker(trainer: NumericTrainer, error: BaseException) -> str:
    shared = f", of which {_mib(shutil.disk_usage(SHARED_MEMORY).free)} are free" if SHARED_MEMORY.is_dir() else ""
    return (
        f"a data worker died after step {trainer.state.global_step} ({_first_line(error)}), most likely for want of memory or of "
        f"shared memory{shared}; lower train.dataloader_num_workers (now {trainer.args.dataloader_num_workers}; 0 reads in the "
        f"training process) and {_go_on(trainer)}"
    )


def _go_on(trainer: NumericTrainer) -> str:
    checkpoint = newest_checkpoint(Path(trainer.args.output_dir))[0]
    return (
        f"go on with --resume, {f'from {checkpoint.name}' if checkpoint else 'from the start, for no checkpoint is whole yet'}"
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:160]


def _mib(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"
