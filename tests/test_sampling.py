"""Grouping by length: every sample once an epoch, less padding, nothing encoded beforehand, the same order after a resume."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smmd_vlm.cli import main
from smmd_vlm.collate import Encoder
from smmd_vlm.records import read_jsonl
from smmd_vlm.sampling import LengthGrouped


def padding(order: list[int], lengths: list[int], batch: int) -> int:
    """Padded positions of an epoch in batches of `batch`."""
    batches = [[lengths[i] for i in order[at : at + batch]] for at in range(0, len(order), batch)]
    return sum(max(each) * len(each) - sum(each) for each in batches)


@given(lengths=st.lists(st.integers(1, 500), min_size=1, max_size=200), group=st.integers(1, 16), epoch=st.integers(0, 3))
def test_every_sample_once_the_longest_first_and_the_same_order_again(lengths, group, epoch):
    sampler = LengthGrouped(lengths, group, seed=1, epoch=lambda: epoch)
    order = list(sampler)
    assert sorted(order) == list(range(len(lengths))) and len(sampler) == len(lengths)
    assert lengths[order[0]] == max(lengths)
    torch.rand(3)  # no other random number matters
    assert order == list(LengthGrouped(lengths, group, seed=1, epoch=lambda: epoch))


def test_padding_drops_and_epochs_differ():
    lengths = torch.randint(10, 500, (400,), generator=torch.Generator().manual_seed(0)).tolist()
    first, second = (list(LengthGrouped(lengths, 8, seed=0, epoch=lambda e=e: e)) for e in (0, 1))
    drawn = torch.randperm(400, generator=torch.Generator().manual_seed(0)).tolist()
    assert first != second
    assert padding(first, lengths, 8) < 0.2 * padding(drawn, lengths, 8)


@pytest.fixture
def flags(tiny, tmp_path):
    """Sums whose questions are of very different lengths."""
    rows = [{"id": f"s{i}", "question": "word " * (i * 7 % 40) + f"{i} + {i}?", "answer": str(2 * i)} for i in range(24)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def build(out, **options):
        settings = {
            "model.model_name_or_path": tiny(), "lora.r": 4, "data.dataset": tmp_path / "sums.jsonl", "train.output_dir": tmp_path / out,
            "train.num_train_epochs": 3, "train.per_device_train_batch_size": 2, "train.gradient_accumulation_steps": 2,
            "train.train_sampling_strategy": "group_by_length", "train.logging_steps": 1, "train.save_strategy": "steps",
            "train.save_steps": 8, "train.use_cpu": "true", "train.disable_tqdm": "true",
        } | {name.replace("__", "."): value for name, value in options.items()}  # fmt: skip
        return ["train", *(part for name, value in settings.items() for part in (f"--{name}", str(value)))]

    return build


def curve(run) -> list[float]:
    return [row["loss"] for _, row in read_jsonl(run / "metrics.jsonl") if "loss" in row]


def test_a_grouped_run_sees_every_record_and_resumes_in_the_middle_of_an_epoch(flags, tmp_path, monkeypatch):
    taken, encode = [], Encoder.batch

    def watched(self, records):
        taken.extend(record.id for record in records)
        return encode(self, records)

    monkeypatch.setattr(Encoder, "batch", watched)
    assert main(flags("straight")) == 0
    checked = len(taken) - 3 * 24  # check_sample and the sample shown
    assert checked == 2 and taken[0] == taken[1] == "s0"
    epochs = [taken[checked + 24 * e : checked + 24 * (e + 1)] for e in range(3)]
    assert all(sorted(ids) == sorted(f"s{i}" for i in range(24)) for ids in epochs) and epochs[0] != epochs[1]
    assert len(curve(tmp_path / "straight")) == 18
    assert main(flags("cut", train__max_steps=8, train__lr_scheduler_type="constant")) == 0  # ends in the second epoch
    assert main(flags("whole", train__lr_scheduler_type="constant")) == 0
    del taken[:]
    assert main([*flags("cut", train__lr_scheduler_type="constant"), "--resume"]) == 0
    assert taken[checked:] == [*epochs[1][8:], *epochs[2]]
    assert curve(tmp_path / "cut") == curve(tmp_path / "whole")


def test_another_order_would_encode_everything_and_is_refused(flags, capsys):
    assert main(flags("run", train__train_sampling_strategy="batch_rebalance")) == 2
    assert "must be random, sequential or group_by_length, got 'batch_rebalance'" in capsys.readouterr().err
