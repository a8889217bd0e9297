"""Settings of a generator: declared once in a frozen dataclass, read from flags and YAML, refused in one sentence.

In:  a dataclass whose fields are made with `setting`, and argv.   Out: an instance of it.
`guarded` turns what users can get wrong into exit code 2, what the machine can refuse into 1.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentError
from collections.abc import Callable
from dataclasses import field, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

from jsonargparse import ArgumentParser

Config = TypeVar("Config")


def setting(default: Any, help: str, **checks: Any) -> Any:
    """A dataclass field with its default, its help text and, in `checks`, whatever the class looks at itself."""
    metadata = {"help": help, **checks}
    if isinstance(default, (dict, list)):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def parse(defaults: Config, argv: list[str] | None, *, prog: str, description: str) -> Config:
    """argv (and `--config FILE.yaml`) over the settings of `defaults`; anything unknown or ill-typed is a ValueError."""
    usage = "%(prog)s [--config FILE.yaml] [--setting value ...]"
    parser = ArgumentParser(prog=prog, usage=usage, description=description, exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--config", action="config", help="YAML file with any of the settings below; flags after it win")
    _add_flags(parser, defaults)
    try:
        values = parser.parse_args(argv).as_dict()
    except ArgumentError as error:
        sentence = re.sub(r"<class '(\w+)'>|typing\.(\w+)", r"\1\2", _one_line(error)).replace("Parser key", "setting")
        raise ValueError(f"{sentence}; `{prog} --help` lists the settings") from None
    return _rebuild(defaults, values)


def guarded(prog: str, command: Callable[[], int]) -> int:
    """Run a command: its exit code, or 2 for a user's mistake and 1 for a failure, each with one sentence on stderr."""
    try:
        return command()
    except ValueError as error:
        print(f"{prog}: {_one_line(error)}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{prog}: {_one_line(error)}; the same command goes on from here once that is mended", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{prog}: stopped; the same command goes on from here", file=sys.stderr)
        return 1


def _add_flags(parser: ArgumentParser, defaults: Any, prefix: str = "") -> None:
    hints = get_type_hints(type(defaults))
    for each in fields(defaults):
        value = getattr(defaults, each.name)
        if is_dataclass(value):
            _add_flags(parser, value, prefix=f"{prefix}{each.name}.")
        else:
            flag = f"--{prefix}{each.name}".replace("_", "-")
            parser.add_argument(flag, type=hints[each.name], default=value, help=each.metadata["help"])


def _rebuild(defaults: Config, values: dict[str, Any]) -> Config:
    """The dataclass again from the parser's nested dict, so that every `__post_init__` has its say."""
    arguments = {}
    for each in fields(defaults):  # type: ignore[arg-type]
        current = getattr(defaults, each.name)
        arguments[each.name] = _rebuild(current, values[each.name]) if is_dataclass(current) else values[each.name]
    return type(defaults)(**arguments)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
