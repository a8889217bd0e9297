"""Write a dataset folder: shards (Parquet files, or folders of pictures) for each split, manifest, card and preview, in parallel and resumable.

In:  a `Plan` and `make`, a picklable function index -> Record that depends on its index alone.   Out: OUT, complete.
Everything is made inside OUT/.partial; renaming its `data` folder into place is the last step but one, so OUT loads as
a dataset only when all of it is there. The same plan completes what is missing; any other plan is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial as partial_call
from importlib.metadata import version
from pathlib import Path
from typing import Any

from PIL import features
from tqdm import tqdm

from smmd_vlm.records import SCHEMA_VERSION, Record
from synth.card import CardText, contact_sheet, question_sheet, write_card
from synth.picturefolder import read_picture_folder, write_picture_folder
from synth.png import encode_png
from synth.shards import add_digests, content_hash, read_shard, write_shard
from synth.workers import run_jobs

SPLITS = ("train", "validation", "test")
DEFAULT_SHARES = {"train": 0.96, "validation": 0.02, "test": 0.02}
FORMATS = {"parquet": ".parquet", "imagefolder": ""}  # what a shard's name ends in; a shard of the latter is a folder
PREVIEW = 24
_PARTIAL = ".partial"
_FINISHED = ("README.md", "preview.png", "preview.md", "manifest.json", "data")  # moved in this order; data makes it load

Make = Callable[[int], Record]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What goes into the folder; `shard_size` cuts it into files and changes nothing else."""

    out: Path
    generator: str
    generator_version: int
    config: Mapping[str, Any]  # every setting that a record depends on
    seed: int
    n: int
    start: int = 0
    splits: tuple[str, ...] = SPLITS  # the names that shares may have
    shares: Mapping[str, float] = field(default_factory=DEFAULT_SHARES.copy)
    held_out: Mapping[str, Any] = field(default_factory=dict)
    shard_size: int = 1000
    format: str = "parquet"
    pictures: bool = True  # False: text alone, and a preview in words
    together: int = 1  # so many records share one picture: they share its split too, and one file
    card: CardText

    def __post_init__(self) -> None:
        if self.n <= 0:
            raise ValueError(f"n must be at least 1 record, got {self.n}")
        if self.start < 0:
            raise ValueError(f"start must be 0 or the index of a later record, got {self.start}")
        if self.shard_size <= 0:
            raise ValueError(f"shard_size must be at least 1 record a file, got {self.shard_size}")
        if self.n % self.together or self.start % self.together:
            raise ValueError(
                f"start and n must be multiples of the {self.together} records of one picture, got {self.start} and {self.n}"
            )
        if self.format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {self.format!r}")
        check_shares(self.shares, self.splits)

    @property
    def ending(self) -> str:
        return FORMATS[self.format]

    @property
    def preview(self) -> str:
        return "preview.png" if self.pictures else "preview.md"

    def identity(self) -> dict[str, Any]:
        """What two runs must share to be one dataset in the same files; plain JSON."""
        names = ("generator", "generator_version", "seed", "start", "n", "shares", "held_out", "config", "shard_size", "format")
        return json.loads(json.dumps({"schema_version": SCHEMA_VERSION, **{name: getattr(self, name) for name in names}}))


@dataclass(frozen=True)
class Shard:
    """The file name and the indices of its records, in order."""

    name: str
    indices: tuple[int, ...]


def check_shares(shares: Mapping[str, float], splits: Sequence[str] = SPLITS) -> None:
    unknown = [split for split in shares if split not in splits]
    if unknown:
        raise ValueError(f"splits are {', '.join(splits)}, got {unknown[0]!r}")
    if not all(share >= 0 for share in shares.values()) or not abs(sum(shares.values()) - 1) < 1e-9:
        raise ValueError(f"the splits' shares must be >= 0 and add up to 1, got {dict(shares)}")


def split_of(seed: int, index: int, shares: Mapping[str, float], splits: Sequence[str] = SPLITS) -> str:
    """The split of record `index`: a hash of seed and index against the shares, nothing else."""
    digest = hashlib.blake2b(f"split/{seed}/{index}".encode(), digest_size=8).digest()
    left = int.from_bytes(digest, "big") / 2**64
    for split in splits:
        left -= shares.get(split, 0.0)
        if left < 0:
            return split
    return next(split for split in reversed(splits) if shares.get(split))  # the shares' sum fell short of 1 by rounding


def shards(plan: Plan) -> Iterator[Shard]:
    """The files of the plan, found by deciding splits alone; memory stays below one shard a split."""
    pending: dict[str, list[int]] = {split: [] for split in plan.splits}
    count = dict.fromkeys(plan.splits, 0)
    for index in range(plan.start, plan.start + plan.n):
        split = split_of(plan.seed, index // plan.together, plan.shares, plan.splits)
        pending[split].append(index)
        if len(pending[split]) >= plan.shard_size and len(pending[split]) % plan.together == 0:
            yield Shard(f"{split}-{count[split]:05d}{plan.ending}", tuple(pending[split]))
            count[split] += 1
            pending[split] = []
    for split in plan.splits:
        if pending[split]:
            yield Shard(f"{split}-{count[split]:05d}{plan.ending}", tuple(pending[split]))


def write_dataset(plan: Plan, make: Make, *, workers: int = 1) -> str:
    """Make or complete the folder; returns the sentence that says what lies where."""
    if workers <= 0:
        raise ValueError(f"workers must be at least 1 process, got {workers}")
    manifest = _complete(plan)
    if manifest is not None:
        return f"{plan.out} is already complete: {_describe(manifest['counts'])} (seed {plan.seed})"
    partial = _open_partial(plan)
    _draw_missing(plan, make, partial, workers)
    manifest = _finish(plan, make, partial)
    return f"wrote {_describe(manifest['counts'])} to {plan.out} (seed {plan.seed}); look at {plan.out / plan.preview}"


def _complete(plan: Plan) -> dict[str, Any] | None:
    """The manifest of a finished folder; None when there is work to do; a ValueError for a folder that is not ours to touch."""
    out = plan.out
    try:
        held = {entry.name for entry in out.iterdir()} if out.exists() else set()
        unfinished = (out / _PARTIAL / "plan.json").exists()
    except OSError as error:
        raise ValueError(
            f"{out} must be a folder that can be read, got {error.strerror or error}; choose another --out"
        ) from None
    if unfinished or not held - {_PARTIAL}:
        return None
    if not {"manifest.json", "data"} <= held:
        raise ValueError(
            f"{out} holds other files ({sorted(held)[0]}, ...) and no dataset of ours; choose an empty or new --out"
        )
    try:
        manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        files = manifest["files"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{out}/manifest.json is not one of ours; choose an empty or new --out") from None
    _require_same(plan, manifest, plan.identity())
    lost = [name for name in files if not (out / "data" / name).exists()]
    if lost:
        raise ValueError(f"{out} was complete but data/{lost[0]} is missing now; delete the folder and run the command again")
    shutil.rmtree(out / _PARTIAL, ignore_errors=True)  # of a run that was killed while it cleaned up
    return manifest


def _open_partial(plan: Plan) -> Path:
    """OUT/.partial with this plan written down, new or left over from a run of the same plan."""
    partial = plan.out / _PARTIAL
    wanted = {**plan.identity(), "libraries": libraries()}
    try:
        (partial / "scratch").mkdir(parents=True, exist_ok=True)
        if not (plan.out / "data").exists():
            (partial / "data").mkdir(exist_ok=True)
        if (partial / "plan.json").exists():
            _require_same(plan, json.loads((partial / "plan.json").read_text(encoding="utf-8")), wanted)
        else:
            _write_text(partial, "plan.json", _json(wanted))
    except OSError as error:
        raise ValueError(
            f"{plan.out} must be a folder that can be written, got {error.strerror or error}; choose another --out"
        ) from None
    foreign = {entry.name for entry in plan.out.iterdir()} - {_PARTIAL, *_FINISHED}
    if foreign:
        raise ValueError(f"{plan.out} holds other files ({sorted(foreign)[0]}); move them away or choose another --out")
    return partial


def _require_same(plan: Plan, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for key, value in wanted.items():
        if found.get(key) != value:
            name, was, now = key, found.get(key), value
            while isinstance(was, dict) and isinstance(now, dict):  # down to the one setting that differs
                name = next(each for each in {**was, **now} if was.get(each) != now.get(each))
                was, now = was.get(name), now.get(name)
            raise ValueError(
                f"{plan.out} was made with {name} {was!r}, this run has {now!r}; choose another --out or delete that folder"
            )


def _draw_missing(plan: Plan, make: Make, partial: Path, workers: int) -> None:
    """Draw the shards that are not there yet; none when a killed run had already moved them all into place."""
    if (plan.out / "data").exists():
        return
    data = partial / "data"
    with tqdm(total=plan.n, unit=" records", desc=str(plan.out), dynamic_ncols=True) as bar:

        def missing() -> Iterator[Shard]:
            for shard in shards(plan):
                if (data / shard.name).exists():
                    bar.update(len(shard.indices))
                else:
                    yield shard

        work = partial_call(_draw_shard, make, data, partial / "scratch")
        for rows in run_jobs(work, missing(), min(workers, -(-plan.n // plan.shard_size))):
            bar.update(rows)


def _draw_shard(make: Make, data: Path, scratch: Path, shard: Shard) -> int:
    records = [make(index) for index in shard.indices]
    write = write_shard if shard.name.endswith(FORMATS["parquet"]) else write_picture_folder
    return write(data / shard.name, records, scratch)


def _finish(plan: Plan, make: Make, partial: Path) -> dict[str, Any]:
    """Manifest, card and preview, then everything into place; goes on where a killed run stopped moving."""
    data = plan.out / "data" if (plan.out / "data").exists() else partial / "data"
    counts, total, files = dict.fromkeys(plan.splits, 0), 0, []
    for path in sorted(data.iterdir()):
        rows, digest = read_picture_folder(path) if path.is_dir() else read_shard(path)
        counts[path.name.split("-")[0]] += rows
        total = add_digests(total, digest)
        files.append(path.name)
    counts = {split: count for split, count in counts.items() if count}
    manifest = {
        **plan.identity(),
        "counts": counts,
        "content_hash": content_hash(total),
        "files": files,
        "libraries": libraries(),
    }
    preview = [make(index) for index in range(plan.start, plan.start + plan.n, plan.together)[:PREVIEW]]
    _write_text(
        partial,
        "README.md",
        write_card(plan.card, counts, preview[0], manifest["content_hash"], "*.parquet" if plan.format == "parquet" else "*/*"),
    )
    sheet = encode_png(contact_sheet(preview)) if plan.pictures else question_sheet(preview).encode()
    (partial / plan.preview).write_bytes(sheet)
    _write_text(partial, "manifest.json", _json(manifest))
    for name in _FINISHED:
        if (partial / name).exists():
            os.replace(partial / name, plan.out / name)
    shutil.rmtree(partial)
    return manifest


def libraries() -> dict[str, str]:
    """The versions that pixels and files depend on."""
    drawing = {name: version(name) for name in ("pillow", "numpy", "matplotlib", "pyarrow")}
    return {**drawing, "freetype": features.version("freetype2") or "none", "zlib": zlib.ZLIB_RUNTIME_VERSION}


def _describe(counts: Mapping[str, int]) -> str:
    parts = ", ".join(f"{count:,} {split}" for split, count in counts.items())
    return f"{sum(counts.values()):,} records ({parts})"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _write_text(folder: Path, name: str, text: str) -> None:
    unfinished = folder / "scratch" / name
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, folder / name)
