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

import json
import shutil
from argparse import ArgumentError
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from smmd_vlm.config import PredictConfig, StudyConfig, TinyConfig
from smmd_vlm.processes import Job, alone_in, run, run_jobs, visible_gpus
from smmd_vlm.study_plan import Cell, Plan, read_plan, slug


def study(config: StudyConfig) -> int:
    """Run what is missing of the study in config.file, then write its pages."""
    from smmd_vlm.study_report import write_study

    plan = read_plan(Path(config.file))
    _claim(plan, Path(config.file))
    with alone_in(plan.out) as lock:
        missing = [(cell, seed) for cell, seed in plan.jobs() if not plan.is_whole(cell, seed)]
        print(f"{len(plan.cells)} cells x {len(plan.seeds)} seeds, {len(missing)} runs to make in {plan.out}")
        asked = _check_options(plan)
        _make_models(plan, missing)
        trained_on = _check_cells(plan, missing, asked)
        jobs = {}
        for cell, seed in missing:
            folder = plan.folder(cell, seed)
            shutil.rmtree(folder, ignore_errors=True)  # half a run of our own, left by a kill
            folder.mkdir(parents=True)
            jobs[f"{cell.name}-seed{seed}"] = _job(plan, cell, seed, trained_on[cell.name])
        run_jobs(jobs, plan.out / "logs", steps=_steps(plan), parallel=plan.parallel, gpus=_gpus(plan), lock=lock)
        for line in write_study(plan):
            print(line)
    return 0


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
    shape = "-".join(f"{key}{slug(value)}" for key, value in sorted(cell.tiny.items())) or "default"
    return plan.out / "models" / shape / f"seed-{seed}"


def _make_models(plan: Plan, missing: list[tuple[Cell, int]]) -> None:
    """One small model for each shape and seed, shared by the cells that differ in their loss alone."""
    for cell, seed in missing:
        if cell.tiny is None or _model(plan, cell, seed).is_dir():
            continue
        run("smmd_vlm", "tiny", "--out", _model(plan, cell, seed), "--seed", seed, *_flags(cell.tiny))


def _check_options(plan: Plan) -> dict[str, list[bytes]]:
    """The options of tiny and predict, and the questions of every test: what would end the study after an hour ends it now.

    Returns what each test asks, by its suffix.
    """
    from smmd_vlm.dataset import content_of, load_records
    from smmd_vlm.runconfig import parse_options

    for cell in plan.cells:
        if cell.tiny is not None:
            _named(f"cell {cell.name!r}", parse_options, TinyConfig, ["--out", "OUT", *_flags(cell.tiny)], prog="tiny")
    asked = {}
    for suffix, test in plan.tests().items():
        name = f"also.{suffix[1:]}" if suffix else "test"
        _named(name, parse_options, PredictConfig, ["--model", "MODEL", *_flags(test)], prog="predict")
        records = load_records(test["data"], test["split"])
        count = min(len(records), test.get("limit") or len(records))
        if 0 < sum(records[index].answer_type == "time" for index in range(count)) < count:
            raise ValueError(
                f"{test['data']} asks for clock times and for other answers, and a table shows one of them; make two datasets"
            )
        asked[suffix] = [content_of(records[index]) for index in range(count)]
    return asked


def _named(name: str, check: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """check(...), its error with the name of what was checked."""
    try:
        return check(*given, **more)
    except (ValueError, ArgumentError) as error:
        raise ValueError(f"{name}: {error}") from None


def _check_cells(plan: Plan, missing: list[tuple[Cell, int]], asked: Mapping[str, list[bytes]]) -> dict[str, dict[str, int]]:
    """Every cell's settings and a little of its data; returns for each cell how much of every test it trains on."""
    if not missing:
        return {}
    from smmd_vlm.dataset import content_of
    from smmd_vlm.model import load_processor
    from smmd_vlm.prepare import prepare, training_records
    from smmd_vlm.runconfig import parse

    few = ["--data.max_train_samples", "200", "--data.max_eval_samples", "200"]
    counts: dict[str, dict[str, int]] = {}  # by what is trained on
    found = {}
    for cell, seed in {cell.name: (cell, seed) for cell, seed in missing}.values():
        name, flags = f"cell {cell.name!r}", ["--config", str(plan.base), *cell_flags(plan, cell, seed)]
        config, _ = _named(name, parse, [*flags, *few])
        _named(name, prepare, config, _named(name, load_processor, config.model))
        data = parse(flags)[0].data
        if (trained := str(data)) not in counts:
            records, _ = training_records(data)
            contents = {
                content_of(records[index]) for index in range(min(len(records), data.max_train_samples or len(records)))
            }
            counts[trained] = {suffix: sum(content in contents for content in each) for suffix, each in asked.items()}
            for suffix, count in counts[trained].items():
                if count:
                    test = plan.tests()[suffix]
                    print(
                        f"caution   {count} of {len(asked[suffix])} questions of {test['data']} are trained on too, with the same images if any; "
                        f"data.decontaminate: [{test['data']}] and data.decontaminate_split: {test['split']} leave them out of training"
                    )
        found[cell.name] = counts[trained]
    return found


def _job(plan: Plan, cell: Cell, seed: int, trained_on: Mapping[str, int]) -> Job:
    """Train, answer the questions of every test, score them; cell.json says that all is done."""
    folder = plan.folder(cell, seed)
    commands = [("smmd_vlm", ["train", "--config", str(plan.base), *cell_flags(plan, cell, seed)])]
    for suffix, test in plan.tests().items():
        answers = str(folder / f"predictions{suffix}.jsonl")
        commands += [
            ("smmd_vlm", ["predict", "--model", str(folder / "run"), "--out", answers, *_flags(test)]),
            ("eval", ["score", answers, "--out", str(folder / f"report{suffix}")]),
        ]
    note = {
        "cell": cell.name,
        "seed": seed,
        "changes": cell.changes,
        "trained_on": {f"report{suffix}": count for suffix, count in trained_on.items()},
    }
    return Job(
        commands=commands,
        run=folder / "run",
        done=partial((folder / "cell.json").write_text, json.dumps(note) + "\n"),
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
