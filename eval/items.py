"""What every benchmark reader yields, and how it becomes a record: prompt, answer type, picture.

    items = read_chartqa(folder, "test")            # cheap: no picture is opened
    record = to_record(item, prompt="short")

A reader knows its benchmark's files and nothing of prompts, sampling or dataset folders.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from eval.answers import read_gold
from smmd_vlm.numerals import write_number
from smmd_vlm.records import AnswerType, Record

# The wording moves scores by points, so it has a name, stands in the manifest and in every report.
PROMPTS: dict[str, str] = {
    "plain": "{question}",
    "short": "{question}\nAnswer the question using a single word or phrase.",  # VLMEvalKit, LLaVA
    "single_word": "{question}\nAnswer the question with a single word.",  # lmms-eval, with 16 new tokens
    "qwen": "{question}\nAnswer the question with short words or phrases if possible.",  # Qwen2.5-VL's reported numbers
    "final_answer": "{question}\nThink step by step, then end with one line: Final Answer: X",  # after mistral-evals; needs ~1,000 new tokens
    "number": "{question}\nAnswer with the number alone.",
    "clockqa": "What time is shown on the clock in the given image? Answer H:MM:SS.",  # Lost in Time (arXiv 2502.05092)
}
_SPLITS = {"val": "validation", "valid": "validation", "dev": "validation"}
SPLIT_NAMES = {
    "train": ("train",),
    "validation": ("val", "validation", "valid", "dev"),
    "test": ("test",),
}  # ours -> folders' and files'


class MissingSplit(ValueError):
    """The benchmark's files have no such split."""


@dataclass(frozen=True)
class Picture:
    """A file that a row names, which must lie in its folder; it is looked for and opened when the record is made."""

    folder: Path
    name: str

    def read(self, item_id: str) -> bytes:
        path = (self.folder / self.name).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise ValueError(
                f"item {item_id!r}: picture {self.name!r} lies outside {self.folder}; benchmarks keep pictures inside"
            )
        try:
            return _file_bytes(path)
        except OSError as error:
            raise ValueError(f"item {item_id!r}: expected a picture at {path}, got {error.strerror or error}") from None


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question of a benchmark. `image`: a Picture, encoded bytes, a PIL image, or None for text tasks."""

    id: str
    question: str
    answer: str
    answer_type: AnswerType | None = None  # None: what the answer looks like
    value: float | None = None
    unit: str | None = None
    tolerance: float | None = None
    task: str
    kind: str
    group: str
    split: str
    image: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict)


def split_name(text: str) -> str:
    """`val`, `valid` and `dev` are `validation`."""
    return _SPLITS.get(text.lower(), text.lower())


def answer_text(answer: Any) -> str:
    """A label as benchmarks store it -> the text: a list of one is its item, a longer list `[a, b]`, a float loses its noise."""
    if isinstance(answer, (list, tuple)):
        texts = [answer_text(each) for each in answer]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    if isinstance(answer, bool):
        return "Yes" if answer else "No"
    if isinstance(answer, int):
        return str(answer)
    return write_number(answer) if isinstance(answer, float) else str(answer).strip()


def to_record(item: Item, *, prompt: str) -> Record:
    """Read the picture and settle type and value; `prompt` is a name of PROMPTS."""
    answer_type, value = item.answer_type, item.value
    if answer_type is None:
        gold = read_gold(item.answer)
        answer_type = gold.kind if gold.kind in ("number", "year", "list") else "text"
        value = gold.value if answer_type in ("number", "year") else None
    return Record(
        id=item.id,
        image=read_image(item.image, item.id),
        question=PROMPTS[prompt].replace("{question}", item.question),
        answer=item.answer,
        answer_type=answer_type,
        value=value,
        unit=item.unit,
        tolerance=item.tolerance,
        task=item.task,
        kind=item.kind,
        group=item.group,
        split=item.split,
        meta=json.dumps({"question": item.question, **item.meta}, ensure_ascii=False),
    )


def read_image(image: Any, item_id: str) -> bytes | None:
    """The picture's encoded bytes as they are; a PIL image is saved as PNG."""
    if image is None or isinstance(image, bytes):
        return image
    if isinstance(image, (bytearray, memoryview)):
        return bytes(image)
    if isinstance(image, Picture):
        return image.read(item_id)
    if isinstance(image, Mapping) and isinstance(image.get("bytes"), bytes):  # how datasets stores one
        return image["bytes"]
    if hasattr(image, "save"):
        out = io.BytesIO()
        image.save(out, "PNG")
        return out.getvalue()
    raise ValueError(
        f"item {item_id!r}: expected a picture as a file, bytes, {{'bytes': ...}} or a PIL image, got {type(image).__name__}"
    )


@lru_cache(maxsize=4)  # rows about one picture stand together
def _file_bytes(path: Path) -> bytes:
    return path.read_bytes()


def read_json(path: Path) -> Any:
    """A whole JSON file (not for PlotQA's gigabytes)."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON, got {error}") from None
    except OSError as error:
        raise ValueError(f"expected a file at {path}, got {error.strerror or error}") from None


def rows_of(path: Path) -> list[dict[str, Any]]:
    """A JSON array of objects, also wrapped as {"data": [...]}."""
    rows = read_json(path)
    if isinstance(rows, dict):
        rows = next((rows[key] for key in ("data", "rows", "questions") if isinstance(rows.get(key), list)), None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f'{path}: expected an array of objects, or one under "data"')
    return rows


def field_of(row: Mapping[str, Any], names: tuple[str, ...], where: str) -> Any:
    """The first of several spellings that the row has."""
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise ValueError(f"{where}: expected one of {', '.join(names)}, got the keys {', '.join(map(str, row))}")
