"""One Parquet file of records: the schema, writing it whole or not at all, reading back what it holds.

The file's own metadata carries the Hugging Face features (so that `datasets` decodes the images by itself) and the
sum of its records' digests. A digest covers every field; sums add up, so any cut into shards gives the same total.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from smmd_vlm.records import Record

COLUMNS = tuple(each.name for each in fields(Record))
_NUMBERS = ("value", "tolerance")
_DIGEST_KEY = b"smmd_vlm.digest"
_DIGEST_BITS = 256
ROW_GROUP = 100


def _feature(name: str) -> dict[str, str]:
    if name == "image":
        return {"_type": "Image"}
    return {"dtype": "float64" if name in _NUMBERS else "string", "_type": "Value"}


def _arrow_type(name: str) -> pa.DataType:
    if name == "image":
        return pa.struct({"bytes": pa.binary(), "path": pa.string()})
    return pa.float64() if name in _NUMBERS else pa.string()


SCHEMA = pa.schema(
    [(name, _arrow_type(name)) for name in COLUMNS],
    metadata={"huggingface": json.dumps({"info": {"features": {name: _feature(name) for name in COLUMNS}}})},
)


def digest(record: Record) -> int:
    """A 256-bit number that stands for every field of the record."""
    row = [getattr(record, name) for name in COLUMNS if name != "image"]
    state = hashlib.sha256(json.dumps(row, ensure_ascii=False).encode())
    state.update(b"\0" if record.image is None else b"\1" + record.image)
    return int.from_bytes(state.digest(), "big")


def add_digests(*digests: int) -> int:
    return sum(digests) % (1 << _DIGEST_BITS)


def content_hash(total: int) -> str:
    return f"sha256-sum:{total:0{_DIGEST_BITS // 4}x}"


def write_shard(path: Path, records: Sequence[Record], scratch: Path) -> int:
    """Write the records to `path` through a file in `scratch`, so that `path` is never half a shard; returns the rows."""
    columns = {name: [getattr(record, name) for record in records] for name in COLUMNS}
    columns["image"] = [None if image is None else {"bytes": image, "path": None} for image in columns["image"]]
    total = add_digests(*map(digest, records))
    schema = SCHEMA.with_metadata({**(SCHEMA.metadata or {}), _DIGEST_KEY: f"{total:x}".encode()})
    unfinished = scratch / f"{path.name}.{os.getpid()}"
    pq.write_table(
        pa.table(columns, schema=schema),
        unfinished,
        compression="zstd",
        row_group_size=ROW_GROUP,
        # Rows about one picture stand together and store it once: equal values are, as long as the dictionary may grow.
        dictionary_pagesize_limit=1 << 30,
    )
    os.replace(unfinished, path)
    return len(records)


def read_shard(path: Path) -> tuple[int, int]:
    """Rows and digest sum of a finished shard, from its footer alone."""
    footer = pq.read_metadata(path)
    return footer.num_rows, int((footer.metadata or {})[_DIGEST_KEY], 16)
