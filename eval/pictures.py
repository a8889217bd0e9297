"""The pictures of some records of a dataset, small, for a page: found by id, shown on white, as JPEG.

Only the records that are asked for are read; a dataset of a million pictures costs its id columns.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

from smmd_vlm.dataset import load_records, open_image
from smmd_vlm.records import read_jsonl

THUMBNAIL_PX = 420


def find_pictures(data: Path, ids: Iterable[str]) -> dict[str, bytes]:
    """id -> encoded picture as stored, of a dataset folder or .jsonl file; ids without a picture are left out."""
    wanted = set(ids)
    if data.is_dir():
        return _from_folder(data, wanted)
    found: dict[str, bytes] = {}
    splits = {str(row.get("split") or "train") for _, row in read_jsonl(data)} if data.is_file() else {"train"}
    for split in sorted(splits):
        records = load_records(data, split)
        for index in range(len(records)):
            record = records[index]
            if record.id in wanted and record.image is not None:
                found[record.id] = record.image
    return found


def _from_folder(data: Path, wanted: set[str]) -> dict[str, bytes]:
    import pyarrow.parquet as pq

    files = sorted((data / "data").glob("*.parquet"))
    if not files:
        raise ValueError(f"expected a dataset folder with data/*.parquet, got {data}; pass the folder that was predicted on")
    found: dict[str, bytes] = {}
    for path in files:
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            ids = file.read_row_group(group, columns=["id"]).column("id").to_pylist()
            rows = [row for row, each in enumerate(ids) if each in wanted]
            if rows:
                images = file.read_row_group(group, columns=["image"]).column("image").take(rows).to_pylist()
                for row, image in zip(rows, images, strict=True):
                    encoded = image.get("bytes") if isinstance(image, dict) else image
                    if encoded is not None:
                        found[ids[row]] = encoded
    return found


def thumbnail(encoded: bytes) -> bytes | None:
    """A JPEG no wider or higher than THUMBNAIL_PX; None for what is no picture."""
    try:
        image = open_image(encoded)
    except ValueError:
        return None
    image.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=82)
    return out.getvalue()
