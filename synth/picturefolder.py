"""One folder of records as picture files and a metadata.jsonl, written whole or not at all: the `imagefolder` layout.

The twin of shards.py for people who want to see files; it keeps its digest in a hidden file beside them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from smmd_vlm.records import Record
from synth.shards import COLUMNS, add_digests, digest

METADATA, _DIGEST = "metadata.jsonl", ".digest.json"
_ENDINGS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpg"}


def write_picture_folder(path: Path, records: Sequence[Record], scratch: Path) -> int:
    """Make the folder in `scratch` and rename it, so that `path` is never half there; returns the number of records."""
    unfinished = scratch / f"{path.name}.{os.getpid()}"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    with open(unfinished / METADATA, "w", encoding="utf-8") as lines:
        for record in records:
            if record.image is None:
                raise ValueError(f"record {record.id!r} has no picture; format imagefolder needs one, choose parquet")
            name = f"{record.id}.{next(ending for head, ending in _ENDINGS.items() if record.image.startswith(head))}"
            (unfinished / name).write_bytes(record.image)
            row = {"file_name": name, **{column: getattr(record, column) for column in COLUMNS if column != "image"}}
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
    told = {"rows": len(records), "digest": f"{add_digests(*map(digest, records)):x}"}
    (unfinished / _DIGEST).write_text(json.dumps(told), encoding="utf-8")
    os.replace(unfinished, path)
    return len(records)


def read_picture_folder(path: Path) -> tuple[int, int]:
    """Number of records and digest sum of a finished folder."""
    told = json.loads((path / _DIGEST).read_text(encoding="utf-8"))
    return told["rows"], int(told["digest"], 16)
