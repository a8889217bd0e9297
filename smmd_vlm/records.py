"""Records and predictions: the two rows that cross between synth, smmd_vlm and eval.

A dataset folder holds `Record`s (Parquet, see docs/formats.md), a predictions file holds `Prediction`s
(one JSON object a line). Both are plain frozen dataclasses that can be made by hand. Standard library only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from smmd_vlm.distribution import Distribution

SCHEMA_VERSION = 1
AnswerType = Literal["number", "time", "year", "text", "list"]
ANSWER_TYPES: tuple[str, ...] = get_args(AnswerType)
SPLITS = ("train", "validation", "test", "interpolation", "extrapolation")  # that a dataset folder may have


@dataclass(frozen=True, kw_only=True)
class Record:
    """One question about one image (or about none), with the exact text to be learned."""

    id: str  # stable and unique within the folder
    image: bytes | None = None  # encoded (PNG, JPEG, ...); None for text tasks
    question: str
    answer: str
    answer_type: AnswerType = "text"
    value: float | None = None  # the answer as a number; for a time: minutes after 12:00
    unit: str | None = None
    tolerance: float | None = None  # what a careful reader can be asked for, in units of `value`
    task: str = ""
    kind: str = ""  # style, chart type, template: what reports group by
    group: str = ""  # the cluster for statistics: the image
    split: str = "train"
    meta: str = "{}"  # JSON: seed, every drawing choice, geometry

    @property
    def images(self) -> tuple[bytes, ...]:
        """The image, or none; `rows.ManyImages` has more."""
        return () if self.image is None else (self.image,)

    def __post_init__(self) -> None:
        _require_text(self, "id", "question", "answer", "task", "kind", "group", "split", "meta")
        if self.unit is not None:
            _require_text(self, "unit")
        if self.answer_type not in ANSWER_TYPES:
            raise ValueError(
                f"record {self.id!r}: answer_type must be one of {', '.join(ANSWER_TYPES)}, got {self.answer_type!r}"
            )
        if not self.answer.strip():
            raise ValueError(f"record {self.id!r}: answer must not be empty; give the text the model should write")
        for name in ("id", "question", "answer"):
            try:
                getattr(self, name).encode("utf-8")
            except UnicodeEncodeError:  # half of a surrogate pair: no file could hold it
                raise ValueError(f"record {self.id!r}: {name} holds text that is not valid Unicode") from None
        for name in ("value", "tolerance"):
            number = getattr(self, name)
            if number is None:
                continue
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise ValueError(f"record {self.id!r}: {name} must be a finite number or null, got {number!r}")


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a model wrote for one record; nothing is judged here."""

    id: str
    question: str
    answer: str
    prediction: str  # raw text, outer whitespace removed
    answer_type: AnswerType | None = None
    group: str | None = None
    kind: str | None = None
    tolerance: float | None = None
    unit: str | None = None
    image: str | None = None
    finish_reason: Literal["stop", "length"] | None = None
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    distribution: Distribution | None = None  # over the values of the answer, where it was asked for

    def __post_init__(self) -> None:
        _require_text(self, "id", "question", "answer", "prediction")
        for name, kinds in _OPTIONAL.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise ValueError(
                    f"prediction {self.id!r}: {name} must be {kinds[-1].__name__} or absent, got {type(value).__name__}"
                )
        if self.tolerance is not None and not 0 <= self.tolerance < float("inf"):
            raise ValueError(
                f"prediction {self.id!r}: tolerance must be a finite number >= 0 or absent, got {self.tolerance!r}"
            )
        if self.answer_type is not None and self.answer_type not in ANSWER_TYPES:
            raise ValueError(
                f"prediction {self.id!r}: answer_type must be one of {', '.join(ANSWER_TYPES)} or absent, got {self.answer_type!r}"
            )

    def to_json(self) -> str:
        """One line of predictions.jsonl, optional fields left out when they are None."""
        row = asdict(self, dict_factory=lambda items: {k: v for k, v in items if v is not None})
        return json.dumps(row, ensure_ascii=False)

    @classmethod
    def from_mapping(cls, row: Mapping[str, Any], where: str = "prediction") -> Prediction:
        """A row of predictions.jsonl; unknown keys are ignored, missing ones named in a ValueError."""
        known = {f.name for f in fields(cls)}
        missing = [name for name in ("id", "question", "answer", "prediction") if name not in row]
        if missing:
            raise ValueError(f"{where}: expected the keys id, question, answer and prediction, {', '.join(missing)} missing")
        found = {k: v for k, v in row.items() if k in known}
        try:
            if found.get("distribution") is not None:
                found["distribution"] = Distribution.from_mapping(found["distribution"])
            return cls(**found)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{where}: {error}") from None


def read_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) for every non-blank line; a bad line is a ValueError that names it."""
    with open(path, encoding="utf-8-sig") as lines:
        for number, line in enumerate(utf8(lines, path), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}: expected one JSON object a line, got {line.strip()[:60]!r} ({error.msg})"
                ) from None
            if not isinstance(row, dict):
                raise ValueError(f"{path}, line {number}: expected a JSON object, got {type(row).__name__}")
            yield number, row


def utf8(lines: Iterable[str], path: str | Path) -> Iterator[str]:
    """The lines of an open file; bytes that are not UTF-8 are a ValueError that names it."""
    try:
        yield from lines
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: expected UTF-8 text, got the byte {error.object[error.start]:#04x}; save the file as UTF-8"
        ) from None


def read_predictions(path: str | Path) -> Iterator[Prediction]:
    """The predictions of a file in order; a row that does not fit, or an id seen before, is a ValueError with its line."""
    seen: set[str] = set()
    for number, row in read_jsonl(path):
        prediction = Prediction.from_mapping(row, where=f"{path}, line {number}")
        if prediction.id in seen:
            raise ValueError(f"{path}, line {number}: id {prediction.id!r} occurs twice; every prediction needs its own id")
        seen.add(prediction.id)
        yield prediction


def write_jsonl(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines (UTF-8), replacing the file."""
    with open(path, "w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


_OPTIONAL: dict[str, tuple[type, ...]] = {
    "group": (str,), "kind": (str,), "unit": (str,), "image": (str,), "finish_reason": (str,),
    "tolerance": (int, float), "prompt_tokens": (int,), "new_tokens": (int,),
    "distribution": (Distribution,),
}  # fmt: skip


def _require_text(row: Record | Prediction, *names: str) -> None:
    for name in names:
        value = getattr(row, name)
        if not isinstance(value, str):
            raise ValueError(f"{type(row).__name__.lower()} {row.id!r}: {name} must be text, got {type(value).__name__}")
