"""Public benchmarks -> dataset folders, so that training, prediction and scoring know one format only.

    python -m eval convert chartqa --data "ChartQA Dataset" --out data/chartqa --split all

A sample is the N rows with the smallest hash of seed and id: the same rows whatever the order of the files, and a sample of
1,000 holds the sample of 100. Its ids are published in sample_ids.txt and can be asked for with --ids.
"""

from __future__ import annotations

import hashlib
import heapq
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from eval.chartqa import read_chartqa
from eval.clocksets import read_clock_csv, read_clockbench, read_time_folders
from eval.items import PROMPTS, SPLIT_NAMES, Item, MissingSplit, split_name, to_record
from eval.plotqa import read_plotqa
from eval.textmath import read_gsm8k, read_mathematics, read_svamp
from smmd_vlm.folder import Card, existing, write_folder

CONVERTER_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """How a benchmark is read, asked and judged."""

    title: str
    read: Callable[[Path, str], Iterator[Item]]
    prompt: str
    license: str
    headline: str | None = None  # a scorer other than the usual one
    max_new_tokens: int = 32


BENCHMARKS: dict[str, Benchmark] = {
    "chartqa": Benchmark(title="ChartQA", read=read_chartqa, prompt="short", license="gpl-3.0"),
    "plotqa": Benchmark(title="PlotQA", read=read_plotqa, prompt="short", license="cc-by-4.0"),
    "plotqa_v1": Benchmark(title="PlotQA V1", read=partial(read_plotqa, version=1), prompt="short", license="cc-by-4.0"),
    "plotqa_v2": Benchmark(title="PlotQA V2", read=partial(read_plotqa, version=2), prompt="short", license="cc-by-4.0"),
    "clocks": Benchmark(title="Clocks of a CSV file", read=read_clock_csv, prompt="plain", license="other"),
    "time": Benchmark(title="TIME", read=read_time_folders, prompt="plain", license="cc0-1.0"),
    "clockbench": Benchmark(title="ClockBench", read=read_clockbench, prompt="plain", license="mit", max_new_tokens=128),
    "gsm8k": Benchmark(title="GSM8K", read=read_gsm8k, prompt="number", license="mit", headline="numeric_equal"),
    "svamp": Benchmark(title="SVAMP", read=read_svamp, prompt="number", license="mit", headline="numeric_equal"),
    "mathematics": Benchmark(
        title="DeepMind mathematics", read=read_mathematics, prompt="plain", license="apache-2.0", headline="numeric_equal"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What is asked for, checked."""

    benchmark: str
    data: Path
    splits: tuple[str, ...]  # () takes every split there is
    sample: int | None = None
    seed: int = 0
    prompt: str | None = None
    ids: frozenset[str] | None = None
    solutions: bool = False  # training answers are the worked solution, then `#### ` and the answer

    def __post_init__(self) -> None:
        if self.benchmark not in BENCHMARKS:
            raise ValueError(f"expected a benchmark ({', '.join(BENCHMARKS)}), got {self.benchmark!r}")
        if self.prompt is not None and self.prompt not in PROMPTS:
            raise ValueError(f"expected a prompt ({', '.join(PROMPTS)}), got {self.prompt!r}")
        if self.sample is not None and self.sample < 1:
            raise ValueError(f"--sample must be at least 1, got {self.sample}")
        if not self.data.exists():
            raise ValueError(f"--data {self.data} does not exist; name the folder with the files of {self.benchmark}")

    @property
    def prompt_name(self) -> str:
        return self.prompt or BENCHMARKS[self.benchmark].prompt

    def identity(self) -> dict[str, Any]:
        config: dict[str, Any] = {
            "source": str(self.data),
            "splits": list(self.splits) or "all",
            "sample": self.sample,
            "prompt": self.prompt_name,
            "prompt_text": PROMPTS[self.prompt_name],
        }
        if self.solutions:
            config["solutions"] = True
        if self.ids is not None:
            config["ids_sha256"] = hashlib.sha256("\n".join(sorted(self.ids)).encode()).hexdigest()
        return {"generator": f"eval convert {self.benchmark}", "generator_version": CONVERTER_VERSION, "seed": self.seed, "config": config}  # fmt: skip


def parse_splits(text: str) -> tuple[str, ...]:
    """`test`, `train,validation` or `all` -> our split names; () for all."""
    if text.strip().lower() == "all":
        return ()
    splits = tuple(dict.fromkeys(split_name(part.strip()) for part in text.split(",") if part.strip()))
    unknown = [split for split in splits if split not in SPLIT_NAMES]
    if unknown or not splits:
        raise ValueError(f"--split takes {', '.join(SPLIT_NAMES)}, several with commas, or all; got {text!r}")
    return splits


def convert(choice: Choice, out: Path) -> tuple[dict[str, Any], bool]:
    """Write the folder, or find it there already; (its manifest, whether it was made now)."""
    manifest = existing(out, choice.identity())
    if manifest is not None:
        return manifest, False
    benchmark = BENCHMARKS[choice.benchmark]
    items = pick(choice)
    extra = {}
    if choice.sample is not None or choice.ids is not None:
        chosen = list(items)
        _require_unique(chosen)
        if choice.ids is not None and len(chosen) < len(choice.ids):
            lost = min(choice.ids - {item.id for item in chosen})
            raise ValueError(
                f"{len(choice.ids) - len(chosen)} of {len(choice.ids)} ids are not in {choice.data}, for example {lost!r}"
            )
        extra["sample_ids.txt"] = "".join(f"{item.id}\n" for item in chosen)
        items = iter(chosen)
    out.parent.mkdir(parents=True, exist_ok=True)
    card = Card(
        title=benchmark.title,
        summary=f"{benchmark.title}, converted row by row; pictures are embedded as they came. Licence of the original: {benchmark.license}.\n\n"
        f"Prompt `{choice.prompt_name}`: {PROMPTS[choice.prompt_name]!r}.",
        command=_command(choice, out),
        license=benchmark.license,
    )
    records = (to_record(item, prompt=choice.prompt_name) for item in items)
    return write_folder(out, records, identity=choice.identity(), card=card, extra=extra), True


def pick(choice: Choice) -> Iterator[Item]:
    """The items asked for, split by split: all, those of --ids, or a sample of each split."""
    for split, items in _by_split(choice):
        if choice.ids is not None:
            items = (item for item in items if item.id in choice.ids)
        if choice.sample is not None:
            numbered = heapq.nsmallest(choice.sample, enumerate(items), key=lambda pair: _draw(choice.seed, pair[1].id))
            if len(numbered) < choice.sample:
                raise ValueError(
                    f"--sample {choice.sample} is more than the {len(numbered)} rows of {split}; leave it out to take all"
                )
            items = (item for _, item in sorted(numbered, key=lambda pair: pair[0]))
        yield from map(_worked, items) if choice.solutions and split == "train" else items


def _worked(item: Item) -> Item:
    """The item with its solution as the answer: a text, whose number `eval` reads behind `####` as it does in GSM8K."""
    if "solution" not in item.meta:
        raise ValueError(f"--solutions is for gsm8k and svamp, whose training rows have one; item {item.id!r} has none")
    return replace(item, answer=f"{item.meta['solution']}\n#### {item.answer}", answer_type="text", value=None)


def _by_split(choice: Choice) -> Iterator[tuple[str, Iterator[Item]]]:
    read, found = BENCHMARKS[choice.benchmark].read, False
    for split in choice.splits or tuple(SPLIT_NAMES):
        try:
            items = iter(read(choice.data, split))
            first = next(items, None)  # a generator says only now that the split is missing
        except MissingSplit:
            if choice.splits:
                raise
            continue
        if first is not None:
            found = True
            yield split, chain([first], items)
        elif choice.splits:
            raise ValueError(f"{choice.data} has no rows of split {split!r}")
    if not found:
        raise ValueError(
            f"found no split of {choice.benchmark} in {choice.data}; expected {', '.join(SPLIT_NAMES)} as that benchmark ships them"
        )


def _draw(seed: int, item_id: str) -> bytes:
    return hashlib.blake2b(f"{seed}/{item_id}".encode(errors="surrogatepass"), digest_size=16).digest()


def _require_unique(items: list[Item]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise ValueError(f"id {item.id!r} occurs twice; every question needs its own")
        seen.add(item.id)


def _command(choice: Choice, out: Path) -> str:
    words = ["python", "-m", "eval", "convert", choice.benchmark, "--data", str(choice.data), "--out", str(out)]
    words += ["--split", ",".join(choice.splits) or "all", "--prompt", choice.prompt_name]
    if choice.sample is not None:
        words += ["--sample", str(choice.sample), "--seed", str(choice.seed)]
    if choice.solutions:
        words += ["--solutions", "true"]
    return shlex.join(words)
