"""ChartQA as items: the official folder, or Parquet files and rows of the Hugging Face mirrors.

Official: `ChartQA Dataset/{train,val,test}/{split}_{human,augmented}.json`, rows {imgname, query, label}, pictures in `png/`.
Mirrors:  HuggingFaceM4/ChartQA (label a list of one, human_or_machine 0 human 1 machine), lmms-lab/ChartQA (question, answer,
          type `human_test`), ahmed-masry/ChartQA (picture as plain bytes), VLMEvalKit's split `test_human`.
Paper: Masry et al. 2022. Kinds are `human` and `augmented`; overall on the official test is the mean of two equal halves.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eval.items import SPLIT_NAMES, Item, MissingSplit, Picture, answer_text, field_of, read_image, rows_of, split_name

KINDS = {"human": "human", "h": "human", "augmented": "augmented", "machine": "augmented", "m": "augmented", "0": "human", "1": "augmented"}  # fmt: skip


def read_chartqa(data: Path, split: str) -> Iterator[Item]:
    """One split from the official folder (or its parent), or from a folder of a mirror's Parquet files."""
    for root in (data, data / "ChartQA Dataset"):
        for name in SPLIT_NAMES[split]:
            folder = root / name
            files = [(kind, folder / f"{name}_{kind}.json") for kind in ("human", "augmented")]
            if any(path.is_file() for _, path in files):
                return _official(folder, [(kind, path) for kind, path in files if path.is_file()], split)
    parquet = [path for path in sorted(data.rglob("*.parquet")) if _parquet_split(path) == split]
    if parquet:
        return from_rows(_parquet_rows(parquet), split)
    raise MissingSplit(
        f"expected {split}/{split}_human.json, in {data} or its 'ChartQA Dataset', or {split}-*.parquet of a mirror; found neither"
    )


def from_rows(rows: Iterable[Mapping[str, Any]], split: str) -> Iterator[Item]:
    """Items of a mirror's rows, as `datasets` or Parquet gives them; rows of another split (`test_human`) are left out."""
    counts: dict[str, int] = {}
    for number, row in enumerate(rows):
        where = f"row {number} of {split}"
        kind = _kind(row, where)
        if row.get("split") is not None and split_name(re.sub(r"_?(human|augmented|machine)_?", "", str(row["split"]))) not in (
            split,
            "",
        ):
            continue
        place = counts[kind] = counts.get(kind, -1) + 1
        item_id = f"chartqa-{split}-{kind}-{place}"
        image = read_image(field_of(row, ("image",), where), item_id)
        name = row.get("imgname") or hashlib.sha256(image or b"").hexdigest()[:16]
        yield _item(item_id, row, kind, split, str(name), image, where)


def _official(folder: Path, files: list[tuple[str, Path]], split: str) -> Iterator[Item]:
    """Rows about one picture together, pictures in the order of their first question."""
    by_image: dict[str, list[Item]] = {}
    for kind, path in files:
        for place, row in enumerate(rows_of(path)):
            where, item_id = f"{path}, row {place}", f"chartqa-{split}-{kind}-{place}"
            name = str(field_of(row, ("imgname", "image"), where))
            by_image.setdefault(name, []).append(_item(item_id, row, kind, split, name, Picture(folder / "png", name), where))
    for items in by_image.values():
        yield from items


def _item(item_id: str, row: Mapping[str, Any], kind: str, split: str, name: str, image: Any, where: str) -> Item:
    return Item(
        id=item_id,
        question=str(field_of(row, ("query", "question"), where)).strip(),
        answer=answer_text(field_of(row, ("label", "answer"), where)),
        task="chart",
        kind=kind,
        group=f"chartqa-{name.removesuffix('.png')}",
        split=split,
        image=image,
        meta={"imgname": name},
    )


def _kind(row: Mapping[str, Any], where: str) -> str:
    """`human` or `augmented`, from human_or_machine, type or split in any of the mirrors' spellings."""
    for name in ("human_or_machine", "type", "split"):
        for word in re.split(r"[^a-z0-9]+", str(row.get(name, "")).lower()):
            if word in KINDS:
                return KINDS[word]
    raise ValueError(f"{where}: expected human or augmented in human_or_machine, type or split, got the keys {', '.join(row)}")


def _parquet_split(path: Path) -> str:
    return split_name(re.split(r"[-_.]", path.name)[0])


def _parquet_rows(files: list[Path]) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=100):
            yield from batch.to_pylist()
