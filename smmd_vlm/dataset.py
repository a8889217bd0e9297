"""Records with their images: dataset folders (docs/formats.md), files of rows, hub datasets.

A records source is a sequence of `Record`s that reads images only when a record is taken. Images become RGB on white:
a transparent pixel is paper, not the colour hidden under it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from smmd_vlm.records import Record, read_jsonl, utf8
from smmd_vlm.rows import to_record

_FIELDS = [f.name for f in fields(Record)]


class FolderRecords(Sequence[Record]):
    """One split of a dataset folder, memory-mapped by `datasets`."""

    def __init__(self, folder: Path, split: str) -> None:
        manifest = folder / "manifest.json"
        if not manifest.is_file():
            raise ValueError(
                f"expected a dataset folder with manifest.json and data/*.parquet, got {folder}; "
                "make one with `python -m synth.clocks --out FOLDER`, or pass a .jsonl file of {image, question, answer}"
            )
        content = _json(manifest)
        counts = content.get("counts", {}) if isinstance(content, dict) else None
        if not isinstance(counts, dict):
            raise ValueError(f"{manifest}: expected an object with counts for every split; make the folder again")
        files = sorted(str(path) for path in (folder / "data").glob(f"{split}-*.parquet"))
        if not files:
            raise ValueError(f"{folder} has no split {split!r}; it has {', '.join(counts) or 'none'}")
        import datasets

        try:
            self.rows = datasets.Dataset.from_parquet(files, split=split)
        except Exception as error:  # whatever pyarrow and datasets raise on a file that is cut short
            raise ValueError(
                f"{folder}: expected readable Parquet files, got an error ({' '.join(str(error).split())[:200]}); make the folder again"
            ) from None
        if not len(self.rows):
            raise ValueError(f"{folder} has no records of split {split!r}")
        self.folder = folder
        missing = [name for name in ("id", "image", "question", "answer") if name not in self.rows.column_names]
        if missing:
            raise ValueError(f"{folder}: expected the columns id, image, question and answer, {', '.join(missing)} missing")
        if isinstance(self.rows.features["image"], datasets.Image):
            self.rows = self.rows.cast_column("image", datasets.Image(decode=False))
        if split in counts and counts[split] != len(self.rows):
            raise ValueError(
                f"{folder}: manifest.json promises {counts[split]} {split} records, the files hold {len(self.rows)}; make the folder again"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Record:
        row = self.rows[index]
        image = row["image"]
        if isinstance(image, dict):
            if image["bytes"] is None:
                raise ValueError(
                    f"{self.folder}: record {row['id']!r} holds an image's path instead of its bytes; write the images into the Parquet files"
                )
            image = image["bytes"]
        row["image"] = image
        needed = ("id", "question", "answer")  # a null elsewhere is what the field is without one
        return Record(**{name: row[name] for name in _FIELDS if name in needed or row.get(name) is not None})


class FileRecords(Sequence[Record]):
    """Rows of a .jsonl, .json or .csv file in any shape of rows.py; image paths are relative to the file and stay beside it.

    Rows without a `split` belong to every split.
    """

    def __init__(self, path: Path, split: str) -> None:
        self.path = path
        rows = list(numbered_rows(path))
        self.rows = [(number, row) for number, row in rows if row.get("split") in (None, "", split)]
        if not self.rows:
            there = sorted({str(row.get("split")) for _, row in rows})
            raise ValueError(f"{path} has no rows of split {split!r}; it has {', '.join(there) or 'none'}")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Record:
        number, row = self.rows[index]
        place = "row" if self.path.suffix == ".json" else "line"
        return to_record(
            row, where=f"{self.path}, {place} {number}", default_id=f"{self.path.stem}-{number}", folder=self.path.parent
        )


def numbered_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line or row number, row) of a .jsonl, .json or .csv file, as it stands there."""
    if path.suffix == ".jsonl":
        yield from read_jsonl(path)
    elif path.suffix == ".json":
        rows = _json(path)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{path}: expected a list of objects")
        yield from enumerate(rows, start=1)
    else:
        csv.field_size_limit(2**31 - 1)
        with open(path, encoding="utf-8-sig", newline="") as lines:
            for number, row in enumerate(csv.DictReader(utf8(lines, path)), start=2):
                if None in row:
                    raise ValueError(
                        f"{path}, line {number}: more cells than the header has; put quotes around text that holds a comma"
                    )
                yield number, {name: value for name, value in row.items() if value not in ("", None)}


def _json(path: Path) -> Any:
    try:
        with open(path, encoding="utf-8-sig") as lines:
            return json.loads("".join(utf8(lines, path)))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: expected JSON, got an error in line {error.lineno} ({error.msg})") from None


class HubRecords(Sequence[Record]):
    """One split of a Hugging Face dataset whose rows have a shape of rows.py."""

    def __init__(self, name: str, split: str) -> None:
        import datasets

        try:
            self.rows = datasets.load_dataset(name, split=split)
        except Exception as error:  # whatever the hub's client raises: no network, no such dataset, no such split
            raise ValueError(
                f"expected a dataset folder, a data file or a hub dataset, got {name!r}, which is no folder here and could not be had from the hub ({' '.join(str(error).split())[:200]})"
            ) from None
        for column, feature in self.rows.features.items():
            if isinstance(feature, datasets.Image):
                self.rows = self.rows.cast_column(column, datasets.Image(decode=False))
        self.name, self.split = name, split

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Record:
        where = f"{self.name} ({self.split}), row {index}"
        return to_record(self.rows[index], where=where, default_id=f"{self.split}-{index}", folder=None)


def load_records(path: str | Path, split: str) -> Sequence[Record]:
    """The records of one split of a dataset folder, a .jsonl/.json/.csv file or a hub dataset (`owner/name`).

    Anything else is a ValueError that says what it is.
    """
    source = Path(path)
    if source.is_dir():
        return FolderRecords(source, split)
    if source.is_file() and source.suffix in (".jsonl", ".json", ".csv"):
        return FileRecords(source, split)
    if not source.exists() and re.fullmatch(r"[\w.-]+/[\w.-]+", str(path)) and not source.suffix:
        return HubRecords(str(path), split)
    raise ValueError(
        f"expected a dataset folder, a .jsonl, .json or .csv file or a hub dataset, got {path}, which {'is neither' if source.exists() else 'does not exist'}"
    )


class Picked(Sequence[Record]):
    """Some records of a source, by their indices."""

    def __init__(self, records: Sequence[Record], indices: Sequence[int]) -> None:
        self.records, self.indices = records, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Record:
        return self.records[self.indices[index]]


def content_of(record: Record) -> bytes:
    """A hash of the question and the images, byte by byte: what two records share that ask the same."""
    return hashlib.sha256(
        record.question.encode() + b"".join(hashlib.sha256(image).digest() for image in record.images)
    ).digest()


def decontaminated(records: Sequence[Record], tests: Sequence[Sequence[Record]]) -> Picked:
    """The records that ask nothing that a test asks too."""
    asked = {content_of(test[index]) for test in tests for index in range(len(test))}
    return Picked(records, [index for index in range(len(records)) if content_of(records[index]) not in asked])


def open_image(data: bytes, record_id: str = "") -> Image.Image:
    """Encoded bytes -> RGB image, upright, transparency composited on white; undecodable bytes are a ValueError."""
    with _named(data, record_id):
        image = Image.open(io.BytesIO(data))
        image.load()
        image = ImageOps.exif_transpose(image)
    _refuse_float(image, record_id)
    if image.mode.startswith("I"):  # 16 bits; a plain conversion would clip everything above 255 to white
        image = Image.fromarray((np.asarray(image).astype(np.int64).clip(0, 65535) // 257).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return image.convert("RGB")


def check_image(data: bytes, record_id: str = "") -> None:
    """Raise the ValueError of `open_image` at a fraction of its cost: a PNG by its checksums, a JPEG at 1/8 scale."""
    with _named(data, record_id):
        image = Image.open(io.BytesIO(data))
        _refuse_float(image, record_id)
        if image.format == "PNG":
            image.verify()
        else:
            image.draft("RGB", (max(1, image.width // 8), max(1, image.height // 8)))
            image.load()


@contextmanager
def _named(data: bytes, record_id: str) -> Iterator[None]:
    """Pillow's errors as a ValueError with the record's id."""
    try:
        yield
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if str(error).startswith("record "):
            raise
        why = "no image format that Pillow knows" if isinstance(error, UnidentifiedImageError) else error
        raise ValueError(
            f"record {record_id!r}: expected an image that Pillow can read, got {len(data)} bytes ({why})"
        ) from None


def _refuse_float(image: Image.Image, record_id: str) -> None:
    if image.mode == "F":
        raise ValueError(
            f"record {record_id!r}: expected 8 or 16 bits a channel, got floating-point pixels, whose range nothing says; save it as PNG"
        )


def fingerprint(path: str | Path) -> str | None:
    """What identifies a dataset: a folder's content hash from its manifest, a file's SHA-256; None for a hub dataset."""
    source = Path(path)
    if source.is_dir():
        content = _json(source / "manifest.json")
        if "content_hash" in content:
            return str(content["content_hash"])
        source = source / "manifest.json"
    return "sha256:" + hashlib.sha256(source.read_bytes()).hexdigest() if source.is_file() else None


def image_size(data: bytes) -> tuple[int, int]:
    """(width, height) in pixels as `open_image` would give them, read from the header."""
    image = Image.open(io.BytesIO(data))
    turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)  # EXIF orientations that swap the sides
    return (image.height, image.width) if turned else image.size
