"""`smmd-vlm quickstart`: clocks -> a tiny Qwen3-VL -> CE and CE + SMMD -> what the loss changed, on two CPU cores.

Calls only what a user would call (the verbs of synth, smmd_vlm and eval) and pins its own data and budget:
plain 64-pixel clocks, four image tokens, 20,000 for training with 72 of the 720 times held out, 1,000 fresh ones over all
720 times for the test. Runs of one seed share weights, data order and steps. SMMD's weight is the best of 0.1, 0.3 and 1 on
two seeds and on clocks that the tour never shows (configs/study_quickstart_weight.yaml).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

from smmd_vlm.config import QuickstartConfig
from smmd_vlm.processes import Job, run, run_jobs

HELD_OUT_TIMES = 72
WEIGHT = 0.3
CHOSEN_ON = (100, 101)  # the seeds of configs/study_quickstart_weight.yaml
# name -> loss section; the controls have SMMD's strength without its distances
RUNS = {"ce": {"name": "none"}, "smmd": {"name": "smmd", "weight": WEIGHT}}
CONTROLS = {
    "brier": {"name": "brier", "weight": WEIGHT},
    "shuffled": {"name": "smmd", "weight": WEIGHT, "options": {"kernel": "shuffled"}},
}
LABELS = {"ce": "CE", "smmd": "CE + SMMD", "brier": "CE + Brier (no distance)", "shuffled": "CE + SMMD, values shuffled"}


def quickstart(config: QuickstartConfig) -> int:
    """Run the tour into config.out; ends by printing where everything lies and how to go on."""
    from smmd_vlm.figures import draw_quickstart

    out = Path(config.out)
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise ValueError(f"{out} is not empty; name a new --out, or remove the folder")
    out.mkdir(parents=True, exist_ok=True)
    seeds = list(range(config.seeds))
    losses = RUNS | (CONTROLS if config.with_controls else {})
    seconds: dict[str, float] = {}

    with _stage("clocks", "drawing the clocks", seconds):
        _clocks(out / "data" / "train", config.train_clocks, "train", seed=0)
        _clocks(out / "data" / "validation", 200, "validation", seed=1)
        _clocks(out / "data" / "test", config.test_clocks, "test", seed=2)
    with _stage("model", "making the model", seconds):
        for seed in seeds:
            run("smmd_vlm", "tiny", "--out", out / "models" / f"seed-{seed}", "--seed", seed)
    names = [f"{loss}-seed{seed}" for seed in seeds for loss in losses]
    with _stage("train", f"training {' and '.join(names)}, {config.steps} steps each", seconds):
        jobs = {
            name: Job([("smmd_vlm", _train_command(out, name, losses, config.steps))], out / "runs" / name) for name in names
        }
        run_jobs(jobs, out / "logs", steps=config.steps)
    with _stage("evaluate", "reading the test clocks", seconds):
        for name in names:
            answers = out / "answers" / f"{name}.jsonl"
            run("smmd_vlm", "predict", "--model", out / "runs" / name, "--data", out / "data" / "test", "--out", answers,
                  "--batch_size", 100, "--max_new_tokens", 8)  # fmt: skip
            run("eval", "score", answers, "--out", out / "reports" / name)

    summary: dict[str, Any] = {
        "runs": {name: _result(out, name) for name in names},
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "settings": {"steps": config.steps, "train_clocks": config.train_clocks, "test_clocks": config.test_clocks,
                     "held_out_times": HELD_OUT_TIMES, "smmd_weight": WEIGHT, "weight_chosen_on_seeds": CHOSEN_ON, "seeds": seeds},
    }  # fmt: skip
    summary["settings"]["total_seconds"] = round(sum(seconds.values()), 1)
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    figure = draw_quickstart(out, {name: LABELS[name.partition("-")[0]] for name in names})
    print(_closing_words(out, summary, figure))
    return 0


def _clocks(folder: Path, n: int, split: str, seed: int) -> None:
    run("synth.clocks", "--n", n, "--preset", "plain", "--size", 64, "--splits", json.dumps({split: 1}), "--seed", seed,
          "--held-out-times", HELD_OUT_TIMES, "--out", folder)  # fmt: skip


def _train_command(out: Path, name: str, losses: dict[str, dict[str, Any]], steps: int) -> list[str]:
    """The `smmd-vlm train` of one run; everything but the loss and the seed is the same for all."""
    loss, _, seed = name.partition("-seed")
    settings = {
        "model.model_name_or_path": out / "models" / f"seed-{seed}", "lora.enabled": "false",
        "data.dataset": out / "data" / "train", "data.eval_dataset": out / "data" / "validation",
        "data.image_min_tokens": 4, "data.image_max_tokens": 4, "data.keep_processed": "true",
        "loss.name": losses[loss]["name"], "loss.weight": losses[loss].get("weight", WEIGHT), "loss.options": json.dumps(losses[loss].get("options", {})),
        "eval.generate_samples": 200, "eval.batch_size": 100, "eval.max_new_tokens": 8,
        "train.output_dir": out / "runs" / name, "train.seed": seed, "train.max_steps": steps, "train.per_device_train_batch_size": 32,
        "train.per_device_eval_batch_size": 100, "train.learning_rate": 1e-3, "train.lr_scheduler_type": "cosine", "train.warmup_steps": 0.05,
        "train.adam_beta2": 0.98, "train.weight_decay": 0.02, "train.logging_steps": max(1, steps // 100), "train.eval_strategy": "steps",
        "train.eval_steps": max(1, steps // 20), "train.save_strategy": "no", "train.use_cpu": "true", "train.disable_tqdm": "true",
    }  # fmt: skip
    return ["train", *(part for key, value in settings.items() for part in (f"--{key}", str(value)))]


@contextmanager
def _stage(name: str, title: str, seconds: dict[str, float]) -> Iterator[None]:
    print(f"\n== {title}", flush=True)
    start = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - start
    print(f"   {seconds[name]:.0f} s", flush=True)


def _result(out: Path, name: str) -> dict[str, float]:
    """One run's scores on all test clocks, and exactness on seen and on held-out times apart."""
    time_scores = json.loads((out / "reports" / name / "report.json").read_text(encoding="utf-8"))["time"]
    overall, kinds = time_scores["overall"], time_scores["by_kind"]
    held_out = {kind: part for kind, part in kinds.items() if kind.endswith("/ held-out time")}
    seen = {kind: part for kind, part in kinds.items() if kind not in held_out}

    def exact(parts: dict[str, dict[str, Any]]) -> float:
        return sum(part["right"] for part in parts.values()) / sum(part["n"] for part in parts.values())

    fields = ("exact", "within_1_min", "within_5_min", "mean_error_min", "unparsed_rate")
    return {field: overall[field] for field in fields} | {"exact_seen": exact(seen), "exact_held_out": exact(held_out)}


def _closing_words(out: Path, summary: dict[str, Any], figure: Path) -> str:
    width = max(len(LABELS[name.partition("-")[0]]) for name in summary["runs"]) + 9
    lines = ["", f"{'':{width}}  exact   seen  held-out  ±1 min  ±5 min  mean error (min)"]
    for name, result in summary["runs"].items():
        loss, _, seed = name.partition("-seed")
        lines.append(_row(f"{LABELS[loss]}, seed {seed}", width, [result]))
    if len(summary["settings"]["seeds"]) > 1:
        for loss in dict.fromkeys(name.partition("-")[0] for name in summary["runs"]):
            results = [result for name, result in summary["runs"].items() if name.startswith(f"{loss}-")]
            lines.append(_row(f"{LABELS[loss]}, mean", width, results))
    stages = ", ".join(f"{name} {value:.0f} s" for name, value in summary["seconds"].items())
    settings = summary["settings"]
    lines += [
        "",
        f"{settings['test_clocks']} test clocks; exact in percent, on times seen in training and on times held out apart.",
        f"SMMD's weight is {WEIGHT}, chosen on other seeds and other clocks. One seed is no evidence: --seeds 5 --with-controls.",
        f"time: {stages}; {settings['total_seconds']:.0f} s in all",
        "",
        f"  figure       {figure}",
        f"  numbers      {out / 'summary.json'}",
        f"  clocks       {out / 'data' / 'train' / 'preview.png'}",
        f"  runs         {out / 'runs'}",
        f"  reports      {out / 'reports'}",
        "",
        "go on with",
        "  your own data, .jsonl files of {image, question, answer} beside their images:",
        f"    smmd-vlm train --config configs/clocks_tiny.yaml --model.model_name_or_path {out / 'models' / 'seed-0'} \\",
        "      --data.dataset train.jsonl --data.eval_dataset dev.jsonl --data.image_max_tokens 64 --train.output_dir runs/own",
        "  Qwen3-VL-4B in 4 bit on a GPU:",
        "    python -m synth.clocks --n 50000 --size 448 --out data/clocks",
        "    smmd-vlm train --config configs/clocks_qwen3vl_4b_qlora.yaml",
    ]
    return "\n".join(lines)


def _row(label: str, width: int, results: list[dict[str, Any]]) -> str:
    """One line of the table: means over results; an error is missing where no answer could be read."""
    shares = ("exact", "exact_seen", "exact_held_out", "within_1_min", "within_5_min")
    exact, seen, held_out, near, close = (100 * mean(result[name] for result in results) for name in shares)
    errors = [result["mean_error_min"] for result in results if result["mean_error_min"] is not None]
    error = f"{mean(errors):.2f}" if errors else "none read"
    return f"{label:{width}}  {exact:5.1f}  {seen:5.1f}  {held_out:8.1f}  {near:6.1f}  {close:6.1f}  {error:>16}"
