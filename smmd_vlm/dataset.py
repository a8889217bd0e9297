"""Records with their images: dataset folders (docs/formats.md) and .jsonl files of {image, question, answer}.

A records source is a sequence of `Record`s that reads images only when a record is taken. Images become RGB on white:
a transparent pixel is paper, not the colour hidden under it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from smmd_vlm.records import Record, read_jsonl

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


class JsonlRecords(Sequence[Record]):
    """Rows {image, question, answer} with optional Record fields; image paths are relative to the file and stay beside it."""

    def __init__(self, path: Path, split: str) -> None:
        self.path = path
        self.rows: list[tuple[int, dict[str, Any]]] = []
        splits = set()
        for number, row in read_jsonl(path):
            missing = [name for name in ("question", "answer") if name not in row]
            if missing:
                raise ValueError(
                    f"{path}, line {number}: expected the keys image, question and answer, {', '.join(missing)} missing"
                )
            splits.add(row.get("split"))
            if row.get("split") in (None, split):
                self.rows.append((number, row))
        if not self.rows:
            raise ValueError(
                f"{path} has no rows of split {split!r}; it has {', '.join(sorted(str(s) for s in splits)) or 'none'}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Record:
        number, row = self.rows[index]
        where = f"{self.path}, line {number}"
        row = {"id": f"{self.path.stem}-{number}", "group": row.get("image") or "", **row}
        if row.get("image") is not None:
            image = (self.path.parent / row["image"]).resolve()
            if not image.is_relative_to(self.path.parent.resolve()):
                raise ValueError(
                    f"{where}: image {row['image']!r} lies outside {self.path.parent}; keep images beside the file"
                )
            try:
                row["image"] = image.read_bytes()
            except OSError as error:
                raise ValueError(f"{where}: expected an image at {image}, got {error.strerror or error}") from None
        try:
            return Record(**{name: row[name] for name in _FIELDS if name in row})
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def load_records(path: str | Path, split: str) -> Sequence[Record]:
    """The records of one split of a dataset folder or .jsonl file; anything else is a ValueError that says what it is."""
    path = Path(path)
    if path.is_dir():
        return FolderRecords(path, split)
    if path.suffix == ".jsonl" and path.is_file():
        return JsonlRecords(path, split)
    raise ValueError(
        f"expected a dataset folder or a .jsonl file, got {path}, which {'is neither' if path.exists() else 'does not exist'}"
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
