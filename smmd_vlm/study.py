"""`smmd-vlm study STUDY.yaml`: losses x settings x seeds on one task, each cell an ordinary run, one table for all.

    out: runs/study-clocks
    base: configs/clocks_tiny.yaml          # what every run shares,
    settings: {train.max_steps: 800}        # but for this; the cells change more of it
    test: {data: data/clocks64-test, split: test}
    also: {words: {data: data/words}}       # optional: further datasets, of which the table has the exact answers
    seeds: [0, 1, 2]
    against: [ce, brier]                    # the cells that every other one is compared with
    tiny: {digits_per_token: 1}             # optional: random small models, one a seed, instead of the base's model
    cells:
      ce:    {loss.name: none}
      brier: {loss.name: brier, loss.weight: 1.0}
      smmd:  {loss.name: smmd, grid: {loss.weight: [0.3, 1.0]}}      # becomes two cells

Killed and called again it goes on with the cells that are missing; a finished cell is never touched. A changed study is
refused in the old folder. Ends with study.json, study.md, study.html and study.png; whoever wins.
"""

from __future__ import annotations

import itertools
import json
import shutil
from argparse import ArgumentError
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from smmd_vlm.config import PredictConfig, StudyConfig, TinyConfig
from smmd_vlm.processes import Job, alone_in, run, run_jobs, visible_gpus

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

    def jobs(self) -> Iterator[tuple[Cell, int]]:
        """Seed by seed, so that a study stopped early has whole seeds."""
        return ((cell, seed) for seed in self.seeds for cell in self.cells)


def study(config: StudyConfig) -> int:
    """Run what is missing of the study in config.file, then write its pages."""
    from smmd_vlm.study_report import write_study

    plan = read_plan(Path(config.file))
    _claim(plan, Path(config.file))
    with alone_in(plan.out) as lock:
        missing = [(cell, seed) for cell, seed in plan.jobs() if not plan.is_whole(cell, seed)]
        print(f"{len(plan.cells)} cells x {len(plan.seeds)} seeds, {len(missing)} runs to make in {plan.out}")
        _check_options(plan)
        _make_models(plan, missing)
        _check_cells(plan, missing)
        jobs = {}
        for cell, seed in missing:
            folder = plan.folder(cell, seed)
            shutil.rmtree(folder, ignore_errors=True)  # half a run of our own, left by a kill
            folder.mkdir(parents=True)
            jobs[f"{cell.name}-seed{seed}"] = _job(plan, cell, seed)
        run_jobs(jobs, plan.out / "logs", steps=_steps(plan), parallel=plan.parallel, gpus=_gpus(plan), lock=lock)
        for line in write_study(plan):
            print(line)
    return 0


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
            suffix = "".join(f"-{key.rpartition('.')[2]}{_slug(value)}" for key, value in varied.items())
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


def _slug(value: Any) -> str:
    return "".join(char if char.isalnum() or char in ".-" else "_" for char in json.dumps(value)).strip("_")


def _claim(plan: Plan, file: Path) -> None:
    """The folder belongs to this study: its plan stands in plan.json, and another plan is refused."""
    content = json.loads(
        json.dumps(asdict(plan) | {"base_content": yaml.safe_load(plan.base.read_text(encoding="utf-8"))}, default=str)
    )
    note = plan.out / "plan.json"
    if note.is_file() and (plan.out / "cells").is_dir():  # before its first run a study may still change
        before = json.loads(note.read_text(encoding="utf-8"))
        changed = sorted(key for key in content if content[key] != before.get(key) and key != "parallel")
        if changed:
            raise ValueError(f"{plan.out} holds another study ({', '.join(changed)} differ from {file}); name a new out")
    elif not note.is_file() and plan.out.is_dir() and any(plan.out.iterdir()):
        raise ValueError(f"{plan.out} is not empty and holds no study; name a new out")
    plan.out.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _model(plan: Plan, cell: Cell, seed: int) -> Path:
    shape = "-".join(f"{key}{_slug(value)}" for key, value in sorted(cell.tiny.items())) or "default"
    return plan.out / "models" / shape / f"seed-{seed}"


def _make_models(plan: Plan, missing: list[tuple[Cell, int]]) -> None:
    """One small model for each shape and seed, shared by the cells that differ in their loss alone."""
    for cell, seed in missing:
        if cell.tiny is None or _model(plan, cell, seed).is_dir():
            continue
        run("smmd_vlm", "tiny", "--out", _model(plan, cell, seed), "--seed", seed, *_flags(cell.tiny))


def _check_options(plan: Plan) -> None:
    """The options of tiny and predict, and the questions of every test: what would end the study after an hour ends it now."""
    from smmd_vlm.dataset import load_records
    from smmd_vlm.runconfig import parse_options

    for cell in plan.cells:
        if cell.tiny is not None:
            _named(cell, parse_options, TinyConfig, ["--out", "OUT", *_flags(cell.tiny)], prog="tiny")
    for test in (plan.test, *plan.also.values()):
        parse_options(PredictConfig, ["--model", "MODEL", *_flags(test)], prog="predict")
        records = load_records(test["data"], test["split"])
        count = min(len(records), test.get("limit") or len(records))
        if 0 < sum(records[index].answer_type == "time" for index in range(count)) < count:
            raise ValueError(
                f"{test['data']} asks for clock times and for other answers, and a table shows one of them; make two datasets"
            )


def _named(cell: Cell, check: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """check(...), its error with the cell's name."""
    try:
        return check(*given, **more)
    except (ValueError, ArgumentError) as error:
        raise ValueError(f"cell {cell.name!r}: {error}") from None


def _check_cells(plan: Plan, missing: list[tuple[Cell, int]]) -> None:
    """Every cell's settings and a little of its data."""
    if not missing:
        return
    from smmd_vlm.model import load_processor
    from smmd_vlm.prepare import prepare
    from smmd_vlm.runconfig import parse

    few = ["--data.max_train_samples", "200", "--data.max_eval_samples", "200"]
    for cell, seed in {cell.name: (cell, seed) for cell, seed in missing}.values():
        config, _ = _named(cell, parse, ["--config", str(plan.base), *cell_flags(plan, cell, seed), *few])
        _named(cell, prepare, config, _named(cell, load_processor, config.model))


def _job(plan: Plan, cell: Cell, seed: int) -> Job:
    """Train, answer the questions of every test, score them; cell.json says that all is done."""
    folder = plan.folder(cell, seed)
    commands = [("smmd_vlm", ["train", "--config", str(plan.base), *cell_flags(plan, cell, seed)])]
    for suffix, test in {"": plan.test, **{f"-{name}": test for name, test in plan.also.items()}}.items():
        answers = str(folder / f"predictions{suffix}.jsonl")
        commands += [
            ("smmd_vlm", ["predict", "--model", str(folder / "run"), "--out", answers, *_flags(test)]),
            ("eval", ["score", answers, "--out", str(folder / f"report{suffix}")]),
        ]
    return Job(
        commands=commands,
        run=folder / "run",
        done=partial(
            (folder / "cell.json").write_text, json.dumps({"cell": cell.name, "seed": seed, "changes": cell.changes}) + "\n"
        ),
    )


def cell_flags(plan: Plan, cell: Cell, seed: int) -> list[str]:
    """What the run of a cell adds to `smmd-vlm train --config BASE`."""
    settings = {"train.output_dir": plan.folder(cell, seed) / "run", "train.seed": seed, "train.disable_tqdm": "true"}
    if cell.tiny is not None:
        settings["model.model_name_or_path"] = _model(plan, cell, seed)
    changes = plan.settings | cell.changes
    return _flags(settings | {key: value if isinstance(value, str) else json.dumps(value) for key, value in changes.items()})


def _flags(settings: Mapping[str, Any]) -> list[str]:
    return [part for key, value in settings.items() for part in (f"--{key}", str(value))]


def _steps(plan: Plan) -> int:
    return int(_shared(plan, "max_steps") or 1)  # only moves the progress bar


def _gpus(plan: Plan) -> list[str]:
    """One run on each GPU; none where all runs train on the CPU."""
    return [] if _shared(plan, "use_cpu") else visible_gpus()


def _shared(plan: Plan, option: str) -> Any:
    """What settings, else the base, say of an option of `train`."""
    train = (yaml.safe_load(plan.base.read_text(encoding="utf-8")) or {}).get("train") or {}
    return plan.settings.get(f"train.{option}", train.get(option))
