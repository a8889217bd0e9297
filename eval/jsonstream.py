"""The objects of a huge JSON array, one at a time: memory stays at one chunk, whatever the file's size.

    for row in stream_array(path, key="qa_pairs"): ...

Reads `[...]` at the top, or `{"...": ..., key: [...]}`. Values before the key are skipped, what follows the array is not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHUNK = 1 << 20  # characters
LONGEST_VALUE = 64 << 20  # a single value beyond this is no row: the file is broken
_GOES_ON = ("", *"0123456789.eE+-")
_SPACE = re.compile(r"[ \t\n\r]*")


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


class _Reader:
    """A window on the text that grows at its end and is cut at its start."""

    def __init__(self, path: Path) -> None:
        self.path, self.text, self.at, self.passed = path, "", 0, 0
        self.file = open(path, encoding="utf-8-sig")

    def more(self) -> bool:
        chunk = self.file.read(CHUNK)
        self.passed += self.at
        self.text, self.at = self.text[self.at :] + chunk, 0
        return bool(chunk)

    def peek(self) -> str:
        """The next character that is no space; "" at the end of the file."""
        while True:
            self.at = _SPACE.match(self.text, self.at).end()
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def expect(self, signs: str) -> str:
        found = self.peek()
        if not found or found not in signs:
            raise self.broken(f"expected {' or '.join(signs)}, got {found or 'the end of the file'!r}")
        self.at += 1
        return found

    def value(self) -> Any:
        """The next whole value. `12` at the window's edge may go on (`12.5`, `123`), so what follows a value must end it."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
                length = end - self.at
                if self.text[end : end + 1] not in _GOES_ON or not self.more():
                    self.at += length
                    return value
            except json.JSONDecodeError as error:
                # broken, or cut by the window's edge: more text will tell
                if len(self.text) - self.at > LONGEST_VALUE or not self.more():
                    raise self.broken(error.msg) from None
            except (ValueError, RecursionError) as error:
                raise self.broken(str(error)) from None

    def broken(self, why: str) -> ValueError:
        near = self.text[max(0, self.at - 20) : self.at + 40]
        return ValueError(f"{self.path}: not the JSON expected near character {self.passed + self.at} ({near!r}): {why}")


def stream_array(path: Path, *, key: str) -> Iterator[dict[str, Any]]:
    """The objects of the array; a ValueError with the place where the file is not what was expected."""
    reader = _Reader(path)
    try:
        if reader.expect("[{") == "{":
            _seek(reader, key)
            reader.expect("[")
        if reader.peek() == "]":
            return
        while True:
            row = reader.value()
            if not isinstance(row, dict):
                raise reader.broken(f"expected an object, got {type(row).__name__}")
            yield row
            if reader.expect(",]") == "]":
                return
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    finally:
        reader.file.close()


def _seek(reader: _Reader, key: str) -> None:
    """Stop behind `"key":`; values of other keys are read and dropped."""
    seen = []
    while reader.peek() == '"':
        name = reader.value()
        reader.expect(":")
        if name == key:
            return
        seen.append(name)
        reader.value()
        if reader.expect(",}") == "}":
            break
    raise ValueError(f"{reader.path}: expected an array under {key!r}, got the keys {', '.join(map(str, seen)) or 'none'}")
