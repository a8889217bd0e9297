"""One row of anybody's data -> a Record: {image, question, answer}, `messages` + `images`, or LLaVA's `conversations` + `image`.

Images are a path beside the file, bytes, {"bytes", "path"} as `datasets` stores them, or PIL images. A row that does not
fit is a ValueError that says what is missing; nothing is guessed, cut or replaced.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from smmd_vlm.numerals import FLOAT, read_time
from smmd_vlm.records import Record

IMAGE_MARK = "<image>"  # where an image stands in a text; without marks images come before the text
_FIELDS = {f.name for f in fields(Record)}
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
# what others call our columns
_ALIASES = {"question": ("query", "prompt"), "answer": ("label", "response")}
_ROLES = {"human": "user", "gpt": "assistant", "user": "user", "assistant": "assistant", "system": "system"}


@dataclass(frozen=True, kw_only=True)
class ManyImages(Record):
    """A record with further images after the first; its question may say where each stands with <image> marks."""

    more_images: tuple[bytes, ...]

    @property
    def images(self) -> tuple[bytes, ...]:
        return (self.image, *self.more_images)


def to_record(row: Mapping[str, Any], *, where: str, default_id: str, folder: Path | None) -> Record:
    """`where` starts every message; image paths are relative to `folder` and must stay inside it (None: no paths)."""
    flat = {name: value for name, value in row.items() if name in _FIELDS and name != "image" and value is not None}
    turns = row.get("messages") or row.get("conversations")
    if turns is not None:
        flat["question"], flat["answer"], embedded = _one_turn(turns, where)
    else:
        embedded = []
        for name, others in _ALIASES.items():
            given = next((other for other in (name, *others) if row.get(other) is not None), None)
            if given is None:
                raise ValueError(
                    f"{where}: expected the keys image, question and answer (or messages, or conversations), {name} missing"
                )
            flat[name] = _text(row[given], f"{where}: {given}")
    listed = row.get("images") if row.get("images") is not None else row.get("image")
    listed = [] if listed is None else listed if isinstance(listed, list) else [listed]
    other = [name for name in row if str(name).lower().startswith(("image", "img")) and name not in ("image", "images")]
    if other and not listed and not embedded:
        raise ValueError(f"{where}: expected an image under `image` or `images`, got the key {other[0]!r}; rename it")
    images = [_image_bytes(image, where, folder) for image in [*listed, *embedded]]
    marks = flat["question"].count(IMAGE_MARK)
    if marks not in (0, len(images)):
        raise ValueError(f"{where}: expected as many {IMAGE_MARK} marks as images, got {marks} marks and {len(images)} images")
    path = next((image for image in listed if isinstance(image, str)), "")
    flat = {"id": default_id, "group": path, **flat}
    flat["id"] = str(flat["id"])
    for name in ("value", "tolerance"):  # a CSV file has only text
        if isinstance(flat.get(name), str):
            try:
                flat[name] = float(flat[name])
            except ValueError:
                raise ValueError(f"{where}: {name} must be a number, got {flat[name]!r}") from None
    if "answer_type" not in flat:
        flat["answer_type"], flat["value"] = _kind_of(flat["answer"], flat.get("value"))
    if images:
        flat["image"] = images[0]
    try:
        return ManyImages(**flat, more_images=tuple(images[1:])) if len(images) > 1 else Record(**flat)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _kind_of(answer: str, value: float | None) -> tuple[str, float | None]:
    """(answer_type, value) of a row that does not say: a time, a year, a number or a text, as `eval` reads an untyped gold."""
    text = answer.strip()
    if (minutes := read_time(text)) is not None:
        return "time", minutes
    if re.fullmatch(r"(1[89]|20)[0-9]{2}", text):
        return "year", float(text)
    plain = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    if FLOAT.fullmatch(plain) and abs(float(plain)) < float("inf"):
        return "number", float(plain)
    return "text", value


def _one_turn(turns: Sequence[Mapping[str, Any]], where: str) -> tuple[str, str, list[Any]]:
    """(question, answer, images inside the content) of a conversation of one user and one assistant turn."""
    if not isinstance(turns, list) or not all(isinstance(turn, Mapping) for turn in turns):
        raise ValueError(f"{where}: expected a list of turns, each an object with role and content, got {type(turns).__name__}")
    roles = [_ROLES.get(str(turn.get("role", turn.get("from")))) for turn in turns]
    if roles != ["user", "assistant"]:
        hint = "; put a system message into data.system_prompt" if "system" in roles else "; make one row of every question"
        shown = ", ".join(str(turn.get("role", turn.get("from"))) for turn in turns)
        raise ValueError(f"{where}: expected one user and one assistant turn, got {shown}{hint}")
    texts, images = [], []
    for turn in turns:
        content = turn.get("content", turn.get("value"))
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
            raise ValueError(f"{where}: expected a turn's content to be text or a list of parts, got {type(content).__name__}")
        text = []
        for part in parts:
            if part.get("type") == "image":
                given = next((part[name] for name in ("image", "url", "path") if part.get(name) is not None), None)
                images += [] if given is None else [given]
                text.append(IMAGE_MARK)
            else:
                text.append(_text(part.get("text"), f"{where}: content"))
        texts.append("".join(text))
    return texts[0], texts[1], images


def _text(value: Any, where: str) -> str:
    """A text, or a list of one text as the ChartQA mirrors have it."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise ValueError(f"{where} must be text, got {type(value).__name__}; write numbers as the text to be learned")
    return value


def _require_bytes(data: Any, where: str) -> bytes:
    if not isinstance(data, bytes):
        raise ValueError(
            f"{where}: expected an image's encoded bytes, got {type(data).__name__}; write it to a file and give its path"
        )
    return data


def _image_bytes(image: Any, where: str, folder: Path | None) -> bytes:
    """Encoded bytes of an image in any of the forms above."""
    if isinstance(image, bytes):
        return image
    if isinstance(image, Mapping):
        if image.get("bytes") is not None:
            return _require_bytes(image["bytes"], where)
        image = image.get("path")
    if hasattr(image, "save"):  # a PIL image; PNG loses nothing
        out = io.BytesIO()
        image.save(out, "PNG")
        return out.getvalue()
    if not isinstance(image, str):
        raise ValueError(f"{where}: expected an image as path, bytes or PIL image, got {type(image).__name__}")
    if folder is None:
        raise ValueError(f"{where}: expected image bytes, got the path {image!r}, which this source cannot resolve")
    path = (folder / image).resolve()
    if not image:
        raise ValueError(f"{where}: expected the path of an image, got an empty one; leave `image` out where there is none")
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"{where}: image {image!r} lies outside {folder.resolve()}; keep images beside the file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{where}: expected an image at {path}, got {error.strerror or error}") from None
