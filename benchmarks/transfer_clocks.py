"""What a small model reads of real clocks after drawn ones: each preset trained alike, tested on photographs of dials.

    python benchmarks/transfer_clocks.py REAL_FOLDER --out runs/transfer [--clocks 20000] [--steps 5000] [--presets plain varied photo]

REAL_FOLDER holds labels.csv (file,hour,minute[,valid][,kind]; paths beside it). A clock with `valid` 0 is left out, a minute
such as 4-5 counts as its lower end. Pictures are cropped to squares about their middle, so that every model sees what it was
trained on. Per preset and seed: the tiny model with 9 image tokens of 96 px pictures, cross-entropy alone, then exact, within
five minutes and circular error on the real dials and on 500 fresh drawn ones of its own kind, each with a 95 % interval.
Writes OUT/transfer.json. No bar and no claim: it reports what comes out.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from smmd_vlm.processes import Job, run, run_jobs
from smmd_vlm.records import write_jsonl

SIZE_PX, IMAGE_TOKENS = 96, 9
DRAWN_TEST = 500
QUESTION = "What time does the clock show? Answer HH:MM."
METRICS = ("exact", "within_1_min", "within_5_min", "mean_error_min", "median_error_min", "unparsed_rate")


def square_test_set(real: Path, out: Path) -> Path:
    """OUT/real.jsonl and square pictures beside it; returns the file."""
    pictures = out / "real"
    pictures.mkdir(parents=True, exist_ok=True)
    rows = []
    with open(real / "labels.csv", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            if row.get("valid", "1") == "0":
                continue
            hour, minute = int(row["hour"]) % 12 or 12, int(row["minute"].split("-")[0])
            name = row["file"].replace("/", "-").rsplit(".", 1)[0] + ".png"
            with Image.open(real / row["file"]) as picture:
                side = min(picture.size)
                ImageOps.fit(picture.convert("RGB"), (side, side)).save(pictures / name)
            kind = row["file"].split("/")[0]
            rows.append(
                {"id": name, "image": f"real/{name}", "question": QUESTION, "answer": f"{hour:02d}:{minute:02d}",
                 "answer_type": "time", "kind": kind, "split": "test"}
            )  # fmt: skip
    write_jsonl(out / "real.jsonl", rows)
    return out / "real.jsonl"


def draw(preset: str, n: int, split: str, seed: int, folder: Path) -> None:
    # One clock a picture and HH:MM dials of 12 hours: what the real ones are.
    one_clock = json.dumps({"none": 1})
    run("synth.clocks", "--n", n, "--preset", preset, "--size", SIZE_PX, "--splits", json.dumps({split: 1}), "--seed", seed,
        "--scene.clocks", one_clock, "--out", folder)  # fmt: skip


def training(out: Path, preset: str, seed: int, steps: int) -> list[str]:
    settings = {
        "model.model_name_or_path": out / "models" / f"seed-{seed}", "lora.enabled": "false",
        "data.dataset": out / "data" / f"{preset}-train", "data.eval_dataset": out / "data" / f"{preset}-test",
        "data.eval_split": "test", "data.max_eval_samples": 200,
        "data.image_min_tokens": IMAGE_TOKENS, "data.image_max_tokens": IMAGE_TOKENS, "data.keep_processed": "true",
        "loss.name": "none", "eval.generate_samples": 200, "eval.batch_size": 100, "eval.max_new_tokens": 8,
        "train.output_dir": out / "runs" / f"{preset}-seed{seed}", "train.seed": seed, "train.max_steps": steps,
        "train.per_device_train_batch_size": 32, "train.per_device_eval_batch_size": 100, "train.learning_rate": 1e-3,
        "train.lr_scheduler_type": "cosine", "train.warmup_steps": 0.05, "train.adam_beta2": 0.98, "train.weight_decay": 0.02,
        "train.logging_steps": max(1, steps // 50), "train.eval_strategy": "steps", "train.eval_steps": max(1, steps // 5),
        "train.save_strategy": "no", "train.use_cpu": "true", "train.disable_tqdm": "true",
    }  # fmt: skip
    return ["train", *(part for key, value in settings.items() for part in (f"--{key}", str(value)))]


def score(out: Path, name: str, data: Path, label: str) -> dict[str, Any]:
    """One model's answers on one test set: value and 95 % interval of every metric, over all and for each kind."""
    answers, report = out / "answers" / f"{name}-{label}.jsonl", out / "reports" / f"{name}-{label}"
    answers.parent.mkdir(parents=True, exist_ok=True)
    run("smmd_vlm", "predict", "--model", out / "runs" / name, "--data", data, "--out", answers, "--batch_size", 100,
        "--max_new_tokens", 8)  # fmt: skip
    run("eval", "score", answers, "--out", report)
    told = json.loads((report / "report.json").read_text(encoding="utf-8"))["time"]

    def part(of: dict[str, Any]) -> dict[str, Any]:
        return {"n": of["n"], **{metric: {"value": of[metric], "interval": of["intervals"].get(metric)} for metric in METRICS}}

    return {**part(told["overall"]), "by_kind": {kind: part(of) for kind, of in told["by_kind"].items()}}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("real", type=Path, help="folder with labels.csv and the pictures of real dials")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/transfer"), help="folder for everything (default: runs/transfer)"
    )
    parser.add_argument("--clocks", type=int, default=20_000, help="drawn clocks to train on, per preset (default: 20000)")
    parser.add_argument("--steps", type=int, default=5_000, help="steps of 32 clocks (default: 5000)")
    parser.add_argument(
        "--presets", nargs="+", default=["plain", "varied", "photo"], help="what to train on, one after another"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of weights and order (default: 0)")
    options = parser.parse_args(argv)
    if not (options.real / "labels.csv").is_file():
        print(f"transfer_clocks: expected labels.csv in {options.real}; name the folder of real dials", file=sys.stderr)
        return 2
    if options.out.exists() and any(options.out.iterdir()):
        print(f"transfer_clocks: {options.out} is not empty; name a new --out, or remove the folder", file=sys.stderr)
        return 2
    out = options.out
    real = square_test_set(options.real, out)
    for preset in options.presets:
        draw(preset, options.clocks, "train", 0, out / "data" / f"{preset}-train")
        draw(preset, DRAWN_TEST, "test", 1, out / "data" / f"{preset}-test")
    for seed in options.seeds:
        run("smmd_vlm", "tiny", "--out", out / "models" / f"seed-{seed}", "--seed", seed, "--image_tokens", IMAGE_TOKENS)
    names = {f"{preset}-seed{seed}": (preset, seed) for seed in options.seeds for preset in options.presets}
    jobs = {
        name: Job([("smmd_vlm", training(out, preset, seed, options.steps))], out / "runs" / name)
        for name, (preset, seed) in names.items()
    }
    run_jobs(jobs, out / "logs", steps=options.steps)
    results: dict[str, Any] = {}
    print(f"{'trained on':16}{'tested on':10}{'n':>5}{'exact':>26}{'±5 min':>26}{'mean error, min':>24}")
    for name, (preset, _) in names.items():
        results[name] = {
            "real": score(out, name, real, "real"),
            "drawn": score(out, name, out / "data" / f"{preset}-test", "drawn"),
        }
        for label, told in results[name].items():
            print(
                f"{name:16}{label:10}{told['n']:5d}{_rate(told['exact']):>26}{_rate(told['within_5_min']):>26}{_minutes(told['mean_error_min']):>24}"
            )
    settings = {"clocks": options.clocks, "steps": options.steps, "size_px": SIZE_PX, "image_tokens": IMAGE_TOKENS}
    (out / "transfer.json").write_text(
        json.dumps({"settings": settings, "results": results}, indent=1) + "\n", encoding="utf-8"
    )
    print(f"wrote {out / 'transfer.json'}")
    return 0


def _rate(told: dict[str, Any]) -> str:
    return _between(told, lambda value: f"{100 * value:.1f} %")


def _minutes(told: dict[str, Any]) -> str:
    return _between(told, lambda value: f"{value:.0f}")


def _between(told: dict[str, Any], write: Any) -> str:
    if told["value"] is None:
        return "none read"
    low, high = told["interval"] or (told["value"], told["value"])
    return f"{write(told['value'])} ({write(low)} to {write(high)})"


if __name__ == "__main__":
    sys.exit(main())
