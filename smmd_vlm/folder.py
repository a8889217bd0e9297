"""Write records as a dataset folder (docs/formats.md): Parquet files, manifest.json and a card, all or nothing.

In:  records in any order, one at a time.   Out: a folder that `datasets.load_dataset` and `load_records` read.
Memory stays at one row group a split. Everything is written into a hidden folder beside the target and renamed at the end;
a target that holds anything is refused. `synth` draws in parallel and resumes, so it has its own writer of the same format.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from smmd_vlm.records import SCHEMA_VERSION, SPLITS, Record

COLUMNS = tuple(each.name for each in fields(Record))
ROW_GROUP = 100
ROWS_PER_FILE = 5000
_NUMBERS = ("value", "tolerance")
_MARK = "unfinished"  # a file that says that a hidden folder is ours to remove
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10_000_000, "1M<n<10M"))


def _feature(name: str) -> dict[str, str]:
    return {"_type": "Image"} if name == "image" else {"dtype": "float64" if name in _NUMBERS else "string", "_type": "Value"}


def _arrow_type(name: str) -> pa.DataType:
    if name == "image":
        return pa.struct({"bytes": pa.binary(), "path": pa.string()})
    return pa.float64() if name in _NUMBERS else pa.string()


SCHEMA = pa.schema(
    [(name, _arrow_type(name)) for name in COLUMNS],
    metadata={"huggingface": json.dumps({"info": {"features": {name: _feature(name) for name in COLUMNS}}})},
)


@dataclass(frozen=True, kw_only=True)
class Card:
    """What the folder's README.md says about itself."""

    title: str
    summary: str  # Markdown
    command: str  # what makes the folder again
    license: str = "other"


def digest(record: Record) -> int:
    """A 256-bit number that stands for every field of the record."""
    row = [getattr(record, name) for name in COLUMNS if name != "image"]
    state = hashlib.sha256(json.dumps(row, ensure_ascii=False).encode(errors="surrogatepass"))
    state.update(b"\0" if record.image is None else b"\1" + record.image)
    return int.from_bytes(state.digest(), "big")


def existing(out: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """The manifest of a folder made before with this identity, None for a new or empty one; anything else is a ValueError."""
    if not out.exists():
        return None
    if not out.is_dir():
        raise ValueError(f"{out} is a file; name a new or empty folder")
    names = sorted(entry.name for entry in out.iterdir())
    if not names:
        return None
    try:
        manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        found = {name: manifest.get(name) for name in identity}
    except (OSError, ValueError, AttributeError):
        raise ValueError(
            f"{out} holds other files ({names[0]}, ...) and no dataset of ours; name a new or empty folder"
        ) from None
    for name, value in identity.items():
        was, now = found[name], value
        while isinstance(was, dict) and isinstance(now, dict) and was != now:  # down to the one setting that differs
            name = next(each for each in {**was, **now} if was.get(each) != now.get(each))
            was, now = was.get(name), now.get(name)
        if was != now:
            raise ValueError(
                f"{out} was made with {name} {was!r}, this run has {now!r}; name another folder or delete that one"
            )
    return manifest


def write_folder(
    out: Path,
    records: Iterable[Record],
    *,
    identity: Mapping[str, Any],
    card: Card,
    extra: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Write the whole folder and return its manifest. `identity` goes into the manifest as it is; `extra`: more text files."""
    existing(out, identity)  # refuses what is not ours
    hidden = out.parent / f".{out.name}.unfinished"
    _remove_unfinished(hidden)
    (hidden / "data").mkdir(parents=True)
    (hidden / _MARK).touch()
    try:
        counts, total, files = _write_files(hidden / "data", records)
        manifest = {
            "schema_version": SCHEMA_VERSION,
            **identity,
            "counts": counts,
            "content_hash": f"sha256-sum:{total:064x}",
            "files": files,
        }
        texts = {
            "README.md": _card(card, counts, manifest["content_hash"]),
            **(extra or {}),
            "manifest.json": json.dumps(manifest, indent=2) + "\n",
        }
        for name, text in texts.items():
            (hidden / name).write_text(text, encoding="utf-8", errors="replace")
        (hidden / _MARK).unlink()
        os.replace(hidden, out)  # POSIX lets a folder replace an empty one
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return manifest


class _File:
    """One open Parquet file: rows wait for a full row group, the digests' sum goes into the footer."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows, self.total, self.waiting = path, 0, 0, []
        self.writer = pq.ParquetWriter(path, SCHEMA, compression="zstd")

    def add(self, record: Record) -> None:
        self.waiting.append(record)
        self.rows += 1
        self.total += digest(record)
        if len(self.waiting) == ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        columns: dict[str, list[Any]] = {name: [getattr(record, name) for record in self.waiting] for name in COLUMNS}
        columns["image"] = [None if image is None else {"bytes": image, "path": None} for image in columns["image"]]
        self.writer.write_table(pa.table(columns, schema=SCHEMA), row_group_size=ROW_GROUP)
        self.waiting = []

    def close(self) -> None:
        if self.waiting:
            self._flush()
        self.writer.add_key_value_metadata({"smmd_vlm.digest": f"{self.total % (1 << 256):x}"})
        self.writer.close()


def _write_files(folder: Path, records: Iterable[Record]) -> tuple[dict[str, int], int, list[str]]:
    """(records a split, sum of digests, file names); at least one record, or a ValueError."""
    open_files: dict[str, _File] = {}
    made: dict[str, int] = dict.fromkeys(SPLITS, 0)
    counts: dict[str, int] = dict.fromkeys(SPLITS, 0)
    total = 0
    try:
        for record in records:
            if record.split not in SPLITS:
                raise ValueError(f"record {record.id!r}: split must be one of {', '.join(SPLITS)}, got {record.split!r}")
            file = open_files.get(record.split)
            if file is None or file.rows >= ROWS_PER_FILE:
                if file is not None:
                    file.close()
                    total += file.total
                file = open_files[record.split] = _File(folder / f"{record.split}-{made[record.split]:05d}.parquet")
                made[record.split] += 1
            file.add(record)
            counts[record.split] += 1
    finally:
        for file in open_files.values():
            file.close()
            total += file.total
    if not sum(counts.values()):
        raise ValueError("expected at least one record to write, got none")
    return (
        {split: count for split, count in counts.items() if count},
        total % (1 << 256),
        sorted(path.name for path in folder.iterdir()),
    )


def _remove_unfinished(hidden: Path) -> None:
    """Clear what a killed run left; a folder of that name that is not ours stays."""
    if not hidden.exists():
        return
    if not (hidden / _MARK).exists() and any(hidden.iterdir()) and not (hidden / "manifest.json").exists():
        raise ValueError(f"{hidden} is in the way and not ours; remove it")
    shutil.rmtree(hidden)


def _card(card: Card, counts: Mapping[str, int], content: str) -> str:
    n = sum(counts.values())
    size = next((name for limit, name in _SIZES if n < limit), "n>10M")
    files = "".join(f"  - split: {split}\n    path: data/{split}-*.parquet\n" for split in counts)
    table = "".join(f"| {split} | {count:,} |\n" for split, count in counts.items())
    return (
        f"---\npretty_name: {json.dumps(card.title)}\nlicense: {card.license}\ntask_categories:\n- visual-question-answering\n"
        f"size_categories:\n- {size}\nconfigs:\n- config_name: content-{content[-12:]}\n  data_files:\n{files}---\n\n"
        f"# {card.title}\n\n{card.summary}\n\n| split | records |\n|---|---|\n{table}\n"
        "```python\nfrom datasets import load_dataset\n\ndata = load_dataset('path/to/this/folder')\n```\n\n"
        f"Made by\n\n```bash\n{card.command}\n```\n\n`manifest.json` holds the settings and a hash of the content.\n"
    )
