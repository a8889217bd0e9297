"""How fast the evaluator is and how much memory it needs.

    python benchmarks/bench_eval.py score [--n 50000]        seconds to score and report, wanted: below 30 for 50,000 on one core
    python benchmarks/bench_eval.py plotqa [--gb 5]          memory while a PlotQA-shaped file of that size is sampled
    python benchmarks/bench_eval.py kills --data FOLDER      `eval run` killed at ten random moments: is every sample there, once?

`plotqa` samples a file of a tenth of the size in a process of its own, then the whole, and compares their peaks: wanted is at
most 1.15 times, whatever the size. Exit code 1 when a wanted bound is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_SECONDS_PER_50000 = 30.0
MOST_GROWTH = 1.15
SAMPLE = 200
KINDS = ("vbar_categorical", "hbar_categorical", "dot_line", "line")
TEMPLATES = ("structural", "data_retrieval", "reasoning")


def make_predictions(path: Path, n: int) -> None:
    draw = random.Random(0)
    with open(path, "w", encoding="utf-8") as out:
        for i in range(n):
            row = {"id": f"r{i}", "question": "?", "group": f"g{i // 2}", "kind": f"k{i % 9}"}
            if i % 2:
                gold, said = draw.randrange(720), draw.randrange(720)
                row |= {
                    "answer": f"{gold // 60 or 12:02d}:{gold % 60:02d}",
                    "prediction": f"It is {said // 60 or 12}:{said % 60:02d}.",
                }
                row["answer_type"] = "time"
            else:
                value = round(draw.lognormvariate(3, 2), 2)
                row |= {"answer": str(value), "prediction": f"The value is {value * draw.gauss(1, 0.05):,.2f}."}
            out.write(json.dumps(row) + "\n")


def bench_score(n: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        make_predictions(Path(folder) / "p.jsonl", n)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "eval", "score", f"{folder}/p.jsonl", "--out", f"{folder}/report"],
            capture_output=True,
            text=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        raise RuntimeError(done.stderr)
    bound = MOST_SECONDS_PER_50000 * max(1.0, n / 50000)
    print(f"{n} predictions scored and reported in {seconds:.1f} s of CPU time (wanted: below {bound:.0f} s)")
    return seconds < bound


def make_plotqa(folder: Path, size: int) -> None:
    """A question file of `size` bytes in PlotQA's shape, its pictures one pixel each."""
    split = folder / "test"
    (split / "png").mkdir(parents=True)
    draw, question = random.Random(0), 0
    with open(split / "qa_pairs_v2.json", "w", encoding="utf-8") as out:
        out.write('{"qa_pairs": [\n')
        while out.tell() < size:
            rows = []
            for _ in range(2000):
                row = {
                    "image_index": question // 130, "qid": f"{question // 130}_{question}", "question_id": question,
                    "question_string": f"What is the ratio of the population of region {draw.randrange(999)} in 2008 to that in 2009?",
                    "answer": draw.random() * 10 ** draw.randrange(7), "answer_bbox": {"x": 1, "y": 2, "w": 3, "h": 4},
                    "type": draw.choice(KINDS), "template": draw.choice(TEMPLATES),
                }  # fmt: skip
                rows.append(json.dumps(row))
                question += 1
            out.write(("" if question == 2000 else ",\n") + ",\n".join(rows))
        out.write("\n]}\n")
    from PIL import Image

    Image.new("RGB", (1, 1)).save(split / "png" / "0.png")
    for index in range(1, question // 130 + 1):
        (split / "png" / f"{index}.png").symlink_to("0.png")


def convert_peak_mib(data: Path, out: Path) -> tuple[float, float]:
    """(peak memory in MiB, seconds) of one conversion in a process of its own."""
    code = (
        "import resource, sys\nfrom eval.cli import main\n"
        f"assert main(['convert', 'plotqa_v2', '--data', {str(data)!r}, '--out', {str(out)!r}, '--sample', '{SAMPLE}']) == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise RuntimeError(done.stderr)
    return int(done.stdout.split()[-1]) / 1024, time.perf_counter() - start


def bench_plotqa(gigabytes: float) -> bool:
    peaks = []
    for size in (gigabytes / 10, gigabytes):
        with tempfile.TemporaryDirectory() as folder:
            make_plotqa(Path(folder) / "plotqa", int(size * 1e9))
            peak, seconds = convert_peak_mib(Path(folder) / "plotqa", Path(folder) / "out")
        peaks.append(peak)
        print(f"{size:5.2f} GB: peak {peak:.0f} MiB, {seconds:.0f} s ({size * 1000 / seconds:.0f} MB/s)", flush=True)
    print(f"growth {peaks[1] / peaks[0]:.2f} (wanted: at most {MOST_GROWTH})")
    return peaks[1] / peaks[0] <= MOST_GROWTH


def bench_kills(data: Path, kills: int) -> bool:
    """SIGKILL at random moments, then to the end; the predictions must be those of a run that nobody touched."""
    from smmd_vlm.records import read_predictions

    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        words = [
            sys.executable,
            "-m",
            "smmd_vlm",
            "tiny",
            "--out",
            str(model),
            "--hidden",
            "64",
            "--layers",
            "2",
            "--seed",
            "1",
        ]
        subprocess.run(words, check=True, capture_output=True)

        def command(out: str) -> list[str]:
            words = ["--model", str(model), "--benchmark", "folder", "--data", str(data), "--out", f"{folder}/{out}"]
            return [
                sys.executable,
                "-m",
                "eval",
                "run",
                *words,
                "--batch_size",
                "1",
                "--max_new_tokens",
                "8",
                "--dtype",
                "float32",
            ]

        subprocess.run(command("whole"), check=True, capture_output=True)
        whole = list(read_predictions(Path(folder) / "whole" / "predictions.jsonl"))
        lines = Path(folder) / "killed" / "predictions.jsonl"
        answered = [0]
        for _ in range(kills):
            process = subprocess.Popen(command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if draw.random() < 0.2:  # while it starts: folder, libraries, model
                time.sleep(draw.uniform(0.1, 5.0))
            else:  # while it answers, some lines further on
                wanted = answered[-1] + draw.randrange(1, 2 * len(whole) // (kills + 2))
                while process.poll() is None and _lines(lines) < wanted:
                    time.sleep(0.002)
            process.kill()
            process.wait()
            answered.append(_lines(lines))
        subprocess.run(command("killed"), check=True, capture_output=True)
        killed = list(read_predictions(lines))  # an id that occurs twice is an error
    print(
        f"{kills} kills, whole lines after each: {answered[1:]}; then {len(killed)} of {len(whole)} answers, equal: {whole == killed}"
    )
    return whole == killed


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("score", "plotqa", "kills"))
    parser.add_argument("--n", type=int, default=50000, help="predictions to score (default: 50000)")
    parser.add_argument("--gb", type=float, default=5.0, help="size of the PlotQA-shaped file in gigabytes (default: 5)")
    parser.add_argument("--data", type=Path, help="dataset folder for kills, a few hundred records")
    parser.add_argument("--kills", type=int, default=10, help="how often to kill (default: 10)")
    options = parser.parse_args(argv)
    if options.what == "kills":
        return 0 if bench_kills(options.data, options.kills) else 1
    return 0 if (bench_score(options.n) if options.what == "score" else bench_plotqa(options.gb)) else 1


if __name__ == "__main__":
    sys.exit(main())
