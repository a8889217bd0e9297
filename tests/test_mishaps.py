"""What befalls a run under way is one sentence that says what to do, and the run goes on from its last whole checkpoint."""

import os
import signal
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from transformers import Trainer

from smmd_vlm import trainer
from smmd_vlm.cli import main
from smmd_vlm.collate import EncodedRecords, Encoder
from smmd_vlm.records import read_jsonl
from smmd_vlm.resume import newest_checkpoint


@pytest.fixture
def flags(tiny, clocks, tmp_path):
    def build(**options):
        settings = {
            "model.model_name_or_path": tiny(), "lora.r": 4, "data.dataset": clocks, "data.image_max_tokens": 4, "train.output_dir": tmp_path / "run",
            "train.max_steps": 4, "train.per_device_train_batch_size": 4, "train.save_strategy": "steps", "train.save_steps": 2,
            "train.logging_steps": 1, "train.use_cpu": "true", "train.disable_tqdm": "true", "eval.generate_samples": 2,
        } | {name.replace("__", "."): value for name, value in options.items()}  # fmt: skip
        return ["train", *(part for name, value in settings.items() for part in (f"--{name}", str(value)))]

    return build


def sentence(capsys) -> str:
    """The one line that the command leaves on standard error, after progress bars."""
    return capsys.readouterr().err.strip().splitlines()[-1]


def fail_in_step(monkeypatch, step: int, fail) -> None:
    """`fail` runs in the place of the model in that step."""
    calls, logits = [], trainer.kept_logits

    def kept_logits(model, inputs):
        calls.append(1)
        return fail() if len(calls) == step else logits(model, inputs)

    monkeypatch.setattr(trainer, "kept_logits", kept_logits)


def cuda_out_of_memory():
    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB\nSee docs"
    )


def cpu_out_of_memory():
    return torch.empty(1 << 55)


@pytest.mark.parametrize(
    ("fail", "words"),
    [(cuda_out_of_memory, "(CUDA out of memory. Tried to allocate 2.00 GiB."), (cpu_out_of_memory, "you tried to allocate")],
)
def test_out_of_memory_names_the_records_and_the_settings(flags, capsys, monkeypatch, fail, words):
    fail_in_step(monkeypatch, 3, fail)
    assert main(flags()) == 1
    message = sentence(capsys)
    assert message.startswith("smmd-vlm train: out of memory in step 3, with the records clock-0-") and words in message
    assert "the longest clock-0-" in message and " of 31 tokens" in message
    for setting in ("train.per_device_train_batch_size (now 4)", "train.gradient_accumulation_steps (now 1)",
                    "train.activation_checkpointing", "gradient_checkpointing", "data.image_max_tokens", "data.max_length"):  # fmt: skip
        assert setting in message
    assert "go on with --resume, from checkpoint-2" in message


def test_a_run_out_of_memory_goes_on_with_smaller_batches_to_the_same_curve(flags, tmp_path, capsys, monkeypatch):
    assert main(flags(train__output_dir=tmp_path / "straight")) == 0
    with monkeypatch.context() as broken:
        fail_in_step(broken, 4, cuda_out_of_memory)
        assert main(flags()) == 1
    smaller = {"train.per_device_train_batch_size": 2, "train.gradient_accumulation_steps": 2}
    assert main([*flags(train__per_device_train_batch_size=2), "--resume"]) == 2  # half the samples a step is another run
    assert "per_device_train_batch_size was 4, is 2" in capsys.readouterr().err
    assert main([*flags(**smaller), "--train.activation_checkpointing", "true", "--resume"]) == 0
    curves = [
        [row["loss"] for _, row in read_jsonl(tmp_path / name / "metrics.jsonl") if "loss" in row]
        for name in ("straight", "run")
    ]
    assert len(curves[0]) == 4 and curves[1] == pytest.approx(curves[0], rel=1e-5)


def test_out_of_memory_while_writing_answers_names_the_evaluations_batch(flags, capsys, monkeypatch):
    from smmd_vlm import train

    def answers(*_, **__):
        cuda_out_of_memory()

    monkeypatch.setattr(train, "answers", answers)
    assert main(flags(train__eval_strategy="steps", train__eval_steps=1)) == 1
    assert "out of memory in step 2, while writing answers (eval.batch_size)" in capsys.readouterr().err


def zip_writer_finds_no_space(checkpoint) -> None:
    """torch.save writes the optimizer to a device on which every write fails for want of space."""
    (checkpoint / "optimizer.pt").symlink_to("/dev/full")


def safetensors_find_no_space(checkpoint) -> None:
    """What safetensors raise on a file system that is really full; they write beside and rename, so no device can stand in."""
    raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize("fill", [zip_writer_finds_no_space, safetensors_find_no_space])
def test_a_full_disk_names_folder_and_need_and_its_checkpoint_does_not_count(flags, tmp_path, capsys, monkeypatch, fill):
    run, save = tmp_path / "run", Trainer._save_optimizer_and_scheduler

    def save_optimizer_and_scheduler(self, checkpoint):
        if self.state.global_step == 4:
            fill(Path(checkpoint))
        return save(self, checkpoint)

    with monkeypatch.context() as full:
        full.setattr(Trainer, "_save_optimizer_and_scheduler", save_optimizer_and_scheduler)
        assert main(flags()) == 1
    message = sentence(capsys)
    size = sum(path.stat().st_size for path in (run / "checkpoint-2").iterdir())
    assert message.startswith(f"smmd-vlm train: could not write to {run} (")
    assert f"a checkpoint needs about {size / 2**20:,.1f} MiB" in message and "MiB free; make room" in message
    assert "go on with --resume, from checkpoint-2" in message
    checkpoint, skipped = newest_checkpoint(run)
    assert checkpoint == run / "checkpoint-2" and skipped == ["checkpoint-4: trainer_state.json is missing or cut short"]
    (run / "checkpoint-4" / "optimizer.pt").unlink(missing_ok=True)  # room was made
    assert main([*flags(), "--resume"]) == 0
    assert newest_checkpoint(run) == (run / "checkpoint-4", [])


def test_a_full_disk_before_the_first_checkpoint_counts_weights_and_two_moments(flags, capsys, monkeypatch):
    def save_checkpoint(self, *_):
        trainable = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        print(f"needs about {3 * 4 * trainable / 2**20:,.1f} MiB")
        with open("/dev/full", "w") as full:
            full.write("x" * 100_000)

    monkeypatch.setattr(Trainer, "_save_checkpoint", save_checkpoint)
    assert main(flags()) == 1
    said = capsys.readouterr()
    need = next(line for line in said.out.splitlines() if line.startswith("needs about "))
    assert need in said.err and "from the start, for no checkpoint is whole yet" in said.err


def test_a_dead_data_worker_is_named_with_the_setting(flags, capsys, monkeypatch):
    def take(self, indices):
        assert torch.utils.data.get_worker_info() is not None
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(EncodedRecords, "__getitems__", take)
    assert main(flags(train__dataloader_num_workers=2)) == 1
    message = sentence(capsys)
    assert message.startswith("smmd-vlm train: a data worker died after step 0 (DataLoader worker (pid")
    assert "lower train.dataloader_num_workers (now 2; 0 reads in the training process)" in message


def test_a_record_that_fails_in_a_worker_keeps_its_own_sentence(flags, capsys, monkeypatch):
    encode = Encoder.batch

    def fail_in_workers(self, records):
        if torch.utils.data.get_worker_info() is not None:
            raise ValueError(f"record {records[0].id!r}: its image went away")
        return encode(self, records)

    monkeypatch.setattr(Encoder, "batch", fail_in_workers)
    assert main(flags(train__dataloader_num_workers=1)) == 2
    message = sentence(capsys)
    assert message.startswith("smmd-vlm train: record 'clock-0-") and message.endswith("': its image went away")


def test_other_errors_are_left_as_they_are(flags, monkeypatch):
    def fail():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    fail_in_step(monkeypatch, 1, fail)
    with pytest.raises(RuntimeError, match="^mat1 and mat2"):
        main(flags())
