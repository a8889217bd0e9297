"""A study as its file says it: what all runs share, the cells, the seeds. Every mistake is one sentence."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_KINDS = {str: "text", list: "list", dict: "mapping"}
_KEYS = {"out", "base", "settings", "test", "also", "seeds", "against", "tiny", "cells", "parallel"}
# what a study sets itself, of train, tiny and predict
_OWN_TRAIN = {"train.seed", "train.output_dir", "train.disable_tqdm"}
_OWN_TINY = {"out", "seed"}
_OWN_PREDICT = {"model", "out"}
_PREDICT = {"split": "test", "max_new_tokens": 16, "batch_size": 100}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One setting: its name, what it changes of the base, and the small model it starts from (None: the base's model)."""

    name: str
    changes: dict[str, Any]
    tiny: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study as read from its file."""

    out: Path
    base: Path
    settings: dict[str, Any]
    test: dict[str, Any]
    also: dict[str, dict[str, Any]]
    seeds: tuple[int, ...]
    against: tuple[str, ...]
    cells: tuple[Cell, ...]
    parallel: int | None

    def folder(self, cell: Cell, seed: int) -> Path:
        return self.out / "cells" / cell.name / f"seed-{seed}"

    def is_whole(self, cell: Cell, seed: int) -> bool:
        return (self.folder(cell, seed) / "cell.json").is_file()

    def tests(self) -> dict[str, dict[str, Any]]:
        """What its files are named after -> the options of predict: the study's test, then the others."""
        return {"": self.test, **{f"-{name}": test for name, test in self.also.items()}}

    def jobs(self) -> Iterator[tuple[Cell, int]]:
        """Seed by seed, so that a study stopped early has whole seeds."""
        return ((cell, seed) for seed in self.seeds for cell in self.cells)


def read_plan(path: Path) -> Plan:
    """The study file; every mistake is a ValueError of one sentence."""
    if not path.is_file():
        raise ValueError(f"expected a study file, {path} does not exist; configs/study_clocks.yaml shows what one looks like")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected YAML, got an error ({' '.join(str(error).split())})") from None
    if (
        not isinstance(content, dict)
        or not {"out", "base", "test", "seeds", "cells"} <= content.keys()
        or content.keys() - _KEYS
    ):
        found = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise ValueError(
            f"{path}: expected the keys out, base, test, seeds and cells (and settings, also, against, tiny, parallel), got {found}"
        )
    kinds = {"out": str, "base": str, "cells": dict, "settings": dict, "test": dict, "also": dict, "seeds": list, "against": list, "tiny": dict}  # fmt: skip
    for key, kind in kinds.items():
        if key in content and not isinstance(content[key], kind):
            raise ValueError(f"{path}: {key} must be a {_KINDS[kind]}, got {content[key]!r}")
    if not content["cells"]:
        raise ValueError(f"{path}: expected at least one cell, got none")
    cells = tuple(_cells(content["cells"], content.get("tiny"), path))
    names = [cell.name for cell in cells]
    against = tuple(content.get("against", ()))
    for name in against:
        if name not in names:
            raise ValueError(f"{path}: against names {name!r}, but the cells are {', '.join(names)}")
    if len(set(names)) != len(names):
        raise ValueError(f"{path}: two cells have the name {max(names, key=names.count)!r}")
    if not Path(content["base"]).is_file():
        raise ValueError(f"{path}: base {content['base']} does not exist")
    also = {str(name): options for name, options in content.get("also", {}).items()}
    for name, options in also.items():
        _require_folder_name(name, path)
        if not isinstance(options, dict):
            raise ValueError(f"{path}: also.{name} must be a mapping with the options of predict, got {options!r}")
    for options in (content["test"], *also.values()):
        if not isinstance(options.get("data"), str):
            raise ValueError(f"{path}: test, and each of also, must name its `data`, got {options}")
        _require_free(options, _OWN_PREDICT, path)
    for cell in cells:
        _require_free(content.get("settings", {}) | cell.changes, _OWN_TRAIN, path)
        if cell.tiny is not None:
            _require_free(cell.tiny, _OWN_TINY, path)
            _require_free(content.get("settings", {}) | cell.changes, {"model.model_name_or_path"}, path)
    seeds, parallel = tuple(content["seeds"]), content.get("parallel")
    if not seeds or len(set(seeds)) != len(seeds) or not all(_is_count(seed, 0) for seed in seeds):
        raise ValueError(f"{path}: seeds must be different whole numbers from 0 on, got {content['seeds']}")
    if parallel is not None and not _is_count(parallel, 1):
        raise ValueError(f"{path}: parallel must be a whole number from 1 on, got {parallel!r}")
    return Plan(
        out=Path(content["out"]),
        base=Path(content["base"]),
        settings=content.get("settings", {}),
        test=_PREDICT | content["test"],
        also={name: _PREDICT | options for name, options in also.items()},
        seeds=seeds,
        against=against,
        cells=cells,
        parallel=parallel,
    )


def _cells(cells: Mapping[str, Any], tiny: dict[str, Any] | None, path: Path) -> Iterator[Cell]:
    """Cells with a `grid` become one cell for each combination, named after what varies."""
    for name, settings in cells.items():
        name = str(name)
        if settings is not None and not isinstance(settings, dict):
            raise ValueError(f"{path}: cell {name!r} must be a mapping of settings, got {settings!r}")
        settings = dict(settings or {})
        grid, own = settings.pop("grid", {}), settings.pop("tiny", None)
        if not isinstance(grid, dict) or not all(isinstance(values, list) and values for values in grid.values()):
            raise ValueError(f"{path}: grid of cell {name!r} must map settings to lists of values, got {grid!r}")
        if own is not None and not isinstance(own, dict):
            raise ValueError(f"{path}: cells.{name}.tiny must be a mapping, got {own!r}")
        _require_folder_name(name, path)
        for values in itertools.product(*grid.values()):
            varied = dict(zip(grid, values, strict=True))
            suffix = "".join(f"-{key.rpartition('.')[2]}{slug(value)}" for key, value in varied.items())
            yield Cell(
                name=name + suffix,
                changes=settings | varied,
                tiny=None if tiny is None and own is None else {**(tiny or {}), **(own or {})},
            )


def _require_folder_name(name: str, path: Path) -> None:
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise ValueError(f"{path}: a name is that of a folder, so letters, digits, '-', '_' and '.'; got {name!r}")


def _require_free(settings: Mapping[str, Any], own: set[str], path: Path) -> None:
    taken = sorted(own & settings.keys())
    if taken:
        raise ValueError(f"{path}: {taken[0]} is what the study sets itself; remove it")


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def slug(value: Any) -> str:
    """A value as part of a name: {"sigmas": [2, 6]} is sigmas2_6."""
    if isinstance(value, dict):
        return "_".join(f"{key}{slug(each)}" for key, each in value.items())
    if isinstance(value, list):
        return "_".join(map(slug, value))
    return "".join(char if char.isalnum() or char in ".-" else "_" for char in json.dumps(value)).strip("_")
