"""What every report shares: aligned and escaped text, files that are replaced whole, the run's facts as lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

BESIDE = ".tmp"  # what a file is called while it is written
GROUP_TITLES = {"time": "Clock times", "other": "Answers"}


def flat_facts(meta: dict[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    """What identifies the run as lines: nested objects by dotted names, lists and nulls left out."""
    for key, value in meta.items():
        if isinstance(value, dict):
            yield from flat_facts(value, f"{above}{key}.")
        elif value is not None and not isinstance(value, list):
            yield f"{above}{key}", value


def aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"} | {sign: f"\\{sign}" for sign in "\\*~|[]"})


def md_text(value: object) -> str:
    """Text that cannot leave its table cell or become markup."""
    clean = "".join(c if c.isprintable() else " " for c in str(value))
    return clean.translate(_MARKUP)


@contextmanager
def open_beside(path: Path) -> Iterator[TextIO]:
    """Write beside and rename, so that nobody reads half a report."""
    beside = path.with_name(path.name + BESIDE)
    with open(beside, "w", encoding="utf-8", errors="replace") as out:
        yield out
    os.replace(beside, path)
