"""The front door of every generator: settings over a preset, the command that makes the records again, look or write.

A generator's settings are a frozen dataclass with `preset`, `show`, `workers`, `plan()` and `maker()`; made with a preset
alone, its sections are the preset's.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from synth.settings import guarded, parse
from synth.writer import write_dataset

Config = TypeVar("Config")
_OF_THE_CALL = ("out", "workers", "show")  # no record depends on them


def read_settings(kind: type[Config], argv: list[str] | None, *, prog: str, description: str) -> Config:
    """argv and YAML over the preset they name."""
    config = parse(kind(), argv, prog=prog, description=description)
    if config.preset == kind().preset:
        return config
    # Once more, now over the sections of the preset that was asked for.
    return parse(kind(preset=config.preset), argv, prog=prog, description=description)


def command_line(generator: str, config: Any) -> str:
    """The command that makes these records again: every setting that is not its preset's."""
    flags = {"n": config.n, "seed": config.seed, "preset": config.preset}
    flags |= _changes(config, type(config)(preset=config.preset))
    written = {name: value if isinstance(value, str) else json.dumps(value) for name, value in flags.items()}
    return " ".join(
        [f"python -m {generator}", *(f"--{name.replace('_', '-')} {shlex.quote(text)}" for name, text in written.items())]
    )


def enter(prog: str, read: Callable[[], Config], show: Callable[[Config], str]) -> int:
    """Write the dataset, or only show a few records: `show` gives the sentence that is printed. Returns the exit code."""

    def command() -> int:
        config = read()
        print(show(config) if config.show else write_dataset(config.plan(), config.maker(), workers=config.workers))
        return 0

    return guarded(prog, command)


def _changes(config: Any, default: Any, prefix: str = "") -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name in (each.name for each in fields(config) if each.name not in _OF_THE_CALL):
        value, usual = getattr(config, name), getattr(default, name)
        if is_dataclass(value):
            changed |= _changes(value, usual, f"{prefix}{name}.")
        elif value != usual:
            changed[prefix + name] = value
    return changed
