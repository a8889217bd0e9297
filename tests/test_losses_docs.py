"""docs/losses.md and docs/trainers.md say what is there: every loss, every option, and a loop that runs."""

import re
from pathlib import Path

import pytest
import torch

from smmd_vlm import losses

DOCS = Path(__file__).parents[1] / "docs"


def test_every_loss_and_option_has_a_row():
    text = (DOCS / "losses.md").read_text(encoding="utf-8")
    family = re.findall(r"^\| `(\w+)` \|", text.partition("## Options")[0], re.MULTILINE)
    assert family == list(losses.LOSSES)
    table = text.partition("## Options")[2].partition("## Where")[0]
    for name in losses.LOSSES:
        for option in losses.options(name):
            assert re.search(rf"^\|[^|]*\|[^|]*`{option}`", table, re.MULTILINE), f"{name}: {option}"
    known = {option for name in losses.LOSSES for option in losses.options(name)}
    named = {
        option for cell in re.findall(r"^\|[^|]*\|([^|]*)\|", table, re.MULTILINE) for option in re.findall(r"`(\w+)`", cell)
    }
    assert named == known


def test_the_sources_are_those_of_the_table():
    text = (DOCS / "losses.md").read_text(encoding="utf-8")
    for name, entry in losses.LOSSES.items():
        for paper in re.findall(r"\d{4}\.\d{5}", entry.paper):
            assert paper in text, name


def test_the_plain_loop_runs_as_written():
    from tests.ranks import collate, model_of, sample

    class Tokenizer:
        all_special_ids: list[int] = []

        def get_vocab(self):
            return {**{str(d): d for d in range(10)}, ".": 10}

    text = (DOCS / "trainers.md").read_text(encoding="utf-8")
    (loop,) = re.findall(r"```python\n(.*?)```", text.partition("## A plain")[2].partition("## transformers")[0], re.DOTALL)
    model = model_of()
    before = model.lm_head.weight.detach().clone()
    windows = [[collate([sample(2 * i), sample(2 * i + 1)]) for i in range(2)]]
    names = {
        "tokenizer": Tokenizer(),
        "model": model,
        "windows": windows,
        "optimizer": torch.optim.SGD(model.parameters(), 0.1),
    }
    exec(compile(loop, "docs/trainers.md", "exec"), names)
    assert names["terms"].num_numbers > 0 and not torch.equal(model.lm_head.weight, before)


def test_the_peers_named_are_refused_by_name():
    with pytest.raises(ValueError, match="loss must be one of"):
        losses.options("gce")
