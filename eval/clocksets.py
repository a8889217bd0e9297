"""Sets of clock pictures as items: a CSV of times, TIME's folder per class, ClockBench's JSON.

CSV:        file,hour,minute[,second][,split][,tol_min][,valid][,kind], pictures beside it; a minute may be a range, `4-5`.
TIME:       `{train,valid,test}/H-MM/*.jpg` (gpiosenka, "TIME - Image Dataset-Classification").
ClockBench: an input JSON {name: {image_url, question_time, question_shift, ...}} and an answers JSON {name: {answer_time, ...}}.

A range's answer is its lower end, its width the tolerance: `within_tolerance` judges it as the benchmark does. An invalid
clock's answer is `{"valid": false}`. Differs from ClockBench: date, month and weekday are kept in meta and not judged.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval.items import SPLIT_NAMES, Item, MissingSplit, Picture, read_json, split_name
from smmd_vlm.numerals import read_time

QUESTION = "What time does the clock show? Answer HH:MM."
QUESTION_SECONDS = "What time does the clock show? Answer HH:MM:SS."
INVALID = '{"valid": false}'
_PICTURES = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}
_TIME_CLASS = re.compile(r"(\d{1,2})[-_](\d{2})")


def read_clock_csv(data: Path, split: str) -> Iterator[Item]:
    """Rows of a CSV file; without a `split` column all of them are the test split."""
    path = data
    if data.is_dir():
        files = sorted(data.glob("*.csv"))
        if len(files) != 1:
            raise ValueError(
                f"expected one CSV file of file,hour,minute in {data}, found {len(files)}; pass the file itself as --data"
            )
        path = files[0]
    try:
        with open(path, encoding="utf-8-sig", newline="") as text:
            rows = list(csv.DictReader(text))
    except OSError as error:
        raise ValueError(f"expected a CSV file at {path}, got {error.strerror or error}") from None
    missing = [name for name in ("file", "hour", "minute") if not rows or name not in rows[0]]
    if missing:
        raise ValueError(
            f"{path}: expected rows under the head file,hour,minute[,second], {', '.join(missing)} missing or no rows"
        )
    if not any(split_name(row.get("split") or "test") == split for row in rows):
        raise MissingSplit(f"{path} has no rows of split {split!r}; rows without a split column are all test")
    return _csv_items(path, rows, split)


def _csv_items(path: Path, rows: list[dict[str, str]], split: str) -> Iterator[Item]:
    for number, row in enumerate(rows, start=2):
        if split_name(row.get("split") or "test") != split:
            continue
        item_id = f"{path.stem}-{row['file']}"
        fields: dict[str, Any] = {"hours": row["hour"], "minutes": row["minute"], "seconds": row.get("second") or None}
        fields["valid"] = (row.get("valid") or "1").strip().lower() not in ("0", "false", "no")
        yield _clock(
            item_id,
            fields,
            where=f"{path}, line {number}",
            kind=row.get("kind") or (Path(row["file"]).parts[0] if "/" in row["file"] else "clock"),
            split=split,
            image=Picture(path.parent, row["file"]),
            tolerance=float(row["tol_min"]) if row.get("tol_min") else None,
        )


def read_time_folders(data: Path, split: str) -> Iterator[Item]:
    """TIME: the class folder's name is the time."""
    folder = next((data / name for name in SPLIT_NAMES[split] if (data / name).is_dir()), None)
    if folder is None:
        raise MissingSplit(
            f"expected a folder {' or '.join(SPLIT_NAMES[split])} in {data} with a folder per time (3-05), found none"
        )
    return _time_items(folder, split)


def _time_items(folder: Path, split: str) -> Iterator[Item]:
    found = False
    for place in sorted(folder.iterdir()):
        match = _TIME_CLASS.fullmatch(place.name)
        if match is None or not place.is_dir():
            continue
        for path in sorted(place.iterdir()):
            if path.suffix.lower() in _PICTURES:
                found = True
                item_id = f"time-{split}-{place.name}-{path.stem}"
                yield _clock(
                    item_id,
                    {"hours": match[1], "minutes": match[2]},
                    where=str(path),
                    kind="TIME",
                    split=split,
                    image=Picture(place, path.name),
                )
    if not found:
        raise ValueError(f"expected folders named like 3-05 with pictures in {folder}, found none")


def read_clockbench(data: Path, split: str) -> Iterator[Item]:
    """All four questions of every clock: time, shift, angle, zone, each a kind. The public set is one test split."""
    if split != "test":
        raise MissingSplit(f"ClockBench is one test split, not {split!r}")
    tables = [(path, read_json(path)) for path in sorted(data.glob("*.json"))]
    inputs, answers = _table(tables, "image_url"), _table(tables, "answer_time")
    if inputs is None or answers is None:
        raise ValueError(
            f"expected ClockBench's two JSON files (questions with image_url, answers with answer_time) in {data}, found {len(tables)} JSON files"
        )
    return _clockbench_items(data, inputs, answers)


def _clockbench_items(data: Path, inputs: Mapping[str, Any], answers: Mapping[str, Any]) -> Iterator[Item]:
    for name, questions in inputs.items():
        url = str(questions["image_url"])
        image = Picture(data, url if (data / url).is_file() else Path(url).name)
        for key, question in questions.items():
            if not key.startswith("question_"):
                continue
            part = key.removeprefix("question_")
            written = (answers.get(name) or {}).get(f"answer_{part}")
            if written is None:
                raise ValueError(
                    f"ClockBench: expected answer_{part} for {name!r}, found none; the two files do not belong together"
                )
            yield _clock(
                f"clockbench-{name}-{part}",
                _loose_json(written, name),
                where=f"ClockBench {name} {part}",
                kind=part,
                split="test",
                image=image,
                question=question,
                group=f"clockbench-{name}",
            )


def _clock(
    item_id: str,
    fields: Mapping[str, Any],
    *,
    where: str,
    kind: str,
    split: str,
    image: Any,
    tolerance: float | None = None,
    question: str | None = None,
    group: str | None = None,
) -> Item:
    """Hours, minutes and seconds, each a number, a range or absent -> the item."""
    answer, value = INVALID, None
    if fields.get("valid", True):
        spans = [_span(fields.get(name), where) for name in ("hours", "minutes", "seconds")]
        if spans[0] is None or spans[1] is None:
            raise ValueError(f"{where}: expected an hour and a minute, got {dict(fields)}")
        answer = ":".join(f"{span[0]:02d}" for span in spans if span is not None)
        value = read_time(answer)
        if value is None:
            raise ValueError(f"{where}: {answer} is no time of day")
        width_min = sum((span[1] - span[0]) * unit for span, unit in zip(spans, (60, 1, 1 / 60), strict=True) if span)
        tolerance = max(tolerance or 0.0, width_min) or tolerance
    has_seconds = answer.count(":") == 2
    return Item(
        id=item_id,
        question=question or (QUESTION_SECONDS if has_seconds else QUESTION),
        answer=answer,
        answer_type="time",
        value=value,
        unit="min",
        tolerance=tolerance,
        task="clock",
        kind=kind,
        group=group or item_id,
        split=split,
        image=image,
        meta={"fields": {name: each for name, each in fields.items() if each not in (None, False)}},
    )


def _span(value: Any, where: str) -> tuple[int, int] | None:
    """3, "3", "4-5" or [4, 5] -> (low, high)."""
    if value is None or value is False or value == "":
        return None
    parts = value if isinstance(value, list) else re.split(r"\s*-\s*", str(value).strip())
    try:
        numbers = [int(part) for part in parts]
        return numbers[0], numbers[-1]
    except (ValueError, IndexError, TypeError):
        raise ValueError(f"{where}: expected a number or a range like 4-5, got {value!r}") from None


def _loose_json(text: Any, name: str) -> dict[str, Any]:
    """The answers are JSON written by hand, with a comma before the closing brace here and there."""
    if isinstance(text, dict):
        return text
    try:
        fields = json.loads(re.sub(r",\s*([}\]])", r"\1", text))
    except (ValueError, TypeError):
        raise ValueError(f"ClockBench: expected the answer of {name!r} to be JSON, got {text!r}") from None
    return fields if isinstance(fields, dict) else {}


def _table(tables: list[tuple[Path, Any]], key: str) -> dict[str, Any] | None:
    for _, table in tables:
        if isinstance(table, dict) and any(isinstance(row, dict) and key in row for row in table.values()):
            return table
    return None
