"""Records with their images: dataset folders (docs/formats.md), files of rows, hub datasets.

A records source is a sequence of `Record`s that reads images only when a record is taken. Images become RGB on white:
a transparent pixel is paper, not the colour hidden under it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from smmd_vlm.records import Record, read_jsonl
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
        counts = json.loads(manifest.read_text(encoding="utf-8")).get("counts", {})
        files = sorted(str(path) for path in (folder / "data").glob(f"{split}-*.parquet"))
        if not files:
            raise ValueError(f"{folder} has no split {split!r}; it has {', '.join(counts) or 'none'}")
        import datasets

        self.rows = datasets.Dataset.from_parquet(files, split=split)
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
        row["image"] = image["bytes"] if isinstance(image, dict) else image
        return Record(**{name: row[name] for name in _FIELDS if name in row})


class FileRecords(Sequence[Record]):
    """Rows of a .jsonl, .json or .csv file in any shape of rows.py; image paths are relative to the file and stay beside it.

    Rows without a `split` belong to every split.
    """

    def __init__(self, path: Path, split: str) -> None:
        self.path = path
        rows = list(_numbered_rows(path))
        self.rows = [(number, row) for number, row in rows if row.get("split") in (None, "", split)]
        if not self.rows:
            there = sorted({str(row.get("split")) for _, row in rows})
            raise ValueError(f"{path} has no rows of split {split!r}; it has {', '.join(there) or 'none'}")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Record:
        number, row = self.rows[index]
        return to_record(
            row, where=f"{self.path}, line {number}", default_id=f"{self.path.stem}-{number}", folder=self.path.parent
        )


def _numbered_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.suffix == ".jsonl":
        yield from read_jsonl(path)
    elif path.suffix == ".json":
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}: expected JSON, got an error in line {error.lineno} ({error.msg})") from None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{path}: expected a list of objects")
        yield from enumerate(rows, start=1)
    else:
        with open(path, encoding="utf-8", newline="") as lines:
            for number, row in enumerate(csv.DictReader(lines), start=2):
                yield number, {name: value for name, value in row.items() if name is not None and value != ""}


class HubRecords(Sequence[Record]):
    """One split of a Hugging Face dataset whose rows have a shape of rows.py."""

    def __init__(self, name: str, split: str) -> None:
        import datasets

        try:
            self.rows = datasets.load_dataset(name, split=split)
        except Exception as error:  # whatever the hub's client raises: no network, no such dataset, no such split
            raise ValueError(
                f"expected a dataset folder, a data file or a hub dataset, got {name!r} ({' '.join(str(error).split())[:200]})"
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


def open_image(data: bytes, record_id: str = "") -> Image.Image:
    """Encoded bytes -> RGB image, upright, transparency composited on white; undecodable bytes are a ValueError."""
    try:
        image = Image.open(io.BytesIO(data))
        image.load()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(
            f"record {record_id!r}: expected an image that Pillow can read, got {len(data)} bytes ({error})"
        ) from None
    image = ImageOps.exif_transpose(image)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return image.convert("RGB")


def check_image(data: bytes, record_id: str = "") -> None:
    """Raise the ValueError of `open_image` at a fraction of its cost: a PNG by its checksums, a JPEG at 1/8 scale."""
    try:
        image = Image.open(io.BytesIO(data))
        if image.format == "PNG":
            image.verify()
        else:
            image.draft("RGB", (max(1, image.width // 8), max(1, image.height // 8)))
            image.load()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(
            f"record {record_id!r}: expected an image that Pillow can read, got {len(data)} bytes ({error})"
        ) from None


def image_size(data: bytes) -> tuple[int, int]:
    """(width, height) in pixels as `open_image` would give them, read from the header."""
    image = Image.open(io.BytesIO(data))
    turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)  # EXIF orientations that swap the sides
    return (image.height, image.width) if turned else image.size
