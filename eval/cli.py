"""The `smmd-eval` command, `python -m eval`.

    python -m eval score predictions.jsonl --out report
    python -m eval convert chartqa --data "ChartQA Dataset" --out data/chartqa --split all
    python -m eval run --model RUN --benchmark chartqa --data "ChartQA Dataset" --out evals/run

Exit 0 done, 1 failed, 2 misuse; a user's error is one sentence on stderr. Nothing heavy is loaded before parsing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser


def score(predictions: str, out: str = "report", headline: str | None = None, data: str | None = None) -> int:
    """Score a predictions file and write a report: table, report.json, report.md, scores.jsonl and pictures.

    Args:
        out: folder for the report; new, empty, or an earlier report, which is replaced.
        headline: count right and wrong by this scorer instead of relaxed, for example numeric_equal for text maths.
        data: dataset folder or .jsonl file that was predicted on; its pictures are shown in report.html.
    """
    from eval.evaluate import evaluate
    from eval.report import check_folder, screen_table, write_report
    from smmd_vlm.records import read_predictions

    source, folder = Path(predictions), Path(out)
    if not source.is_file():
        what = "is a folder" if source.is_dir() else "does not exist"
        raise ValueError(
            f"expected a predictions file, {source} {what}; pass the predictions.jsonl that `smmd-vlm predict` wrote"
        )
    check_folder(folder)
    pictures = _dataset(data)
    try:
        summary = evaluate(read_predictions(source), headline=headline)
    except UnicodeDecodeError:
        raise ValueError(f"{source} is not UTF-8 text; expected predictions.jsonl, one JSON object a line") from None
    except RecursionError:
        raise ValueError(f"{source} holds JSON nested too deeply to read; expected one flat object a line") from None
    files = write_report(summary, folder, source=source.name, meta=_run_meta(source), data=pictures)
    print(screen_table(summary))
    print(f"wrote {len(summary.scores)} scores and the report to {folder}: {', '.join(files)}")
    return 0


def convert(
    name: str,
    data: str,
    out: str,
    split: str = "test",
    sample: int | None = None,
    seed: int = 0,
    prompt: str | None = None,
    ids: str | None = None,
    solutions: bool = False,
) -> int:
    """Turn a public benchmark into a dataset folder that trains, predicts and scores like any of ours.

    Args:
        data: folder with the benchmark's files as its authors (or a Hugging Face mirror) ship them.
        out: dataset folder to make; a new or empty one.
        split: train, validation or test, several with commas, or all.
        sample: only so many rows of each split, chosen by seed; their ids go to sample_ids.txt.
        seed: seed of the sample.
        prompt: wording of the question, a name of eval.items.PROMPTS; each benchmark has its usual one.
        ids: file of record ids, one a line: take exactly these (a published sample_ids.txt).
        solutions: the answers of train are the worked solution, then #### and the number (gsm8k, svamp).
    """
    from eval.convert import Choice, parse_splits
    from eval.convert import convert as make

    wanted = frozenset(Path(ids).read_text(encoding="utf-8").split()) if ids else None
    choice = Choice(
        benchmark=name, data=Path(data), splits=parse_splits(split), sample=sample, seed=seed, prompt=prompt, ids=wanted,
        solutions=solutions,
    )  # fmt: skip
    manifest, made = make(choice, Path(out))
    counts = ", ".join(f"{count:,} {part}" for part, count in manifest["counts"].items())
    print(f"{'wrote' if made else 'already complete:'} {counts} records to {out} (prompt {choice.prompt_name})")
    return 0


def run_benchmark(
    model: str,
    benchmark: str,
    data: str,
    out: str,
    split: str = "test",
    sample: int | None = None,
    seed: int = 0,
    prompt: str | None = None,
    system_prompt: str | None = None,
    limit: int | None = None,
    batch_size: int = 32,
    max_new_tokens: int | None = None,
    image_max_tokens: int | None = None,
    device: str | None = None,
    dtype: str | None = None,
) -> int:
    """Convert a benchmark, answer it with a model, score the answers; called again it goes on where it stopped.

    Args:
        model: run folder of smmd-vlm train, model folder or hub name.
        benchmark: a name that `convert` takes, or folder when --data is a dataset folder already.
        data: folder with the benchmark's files.
        out: folder to make: run.json, data, predictions.jsonl, report.
        split: which split to answer.
        sample: only so many questions, chosen by seed.
        seed: seed of the sample.
        prompt: wording of the question, a name of eval.items.PROMPTS; each benchmark has its usual one.
        system_prompt: system message; default the one the run was trained with.
        limit: only the first so many questions.
        batch_size: questions a batch.
        max_new_tokens: longest answer; each benchmark has its usual one, answers that reach it are counted as truncated.
        image_max_tokens: most image tokens per picture; default the budget kept with the model.
        device: cpu, cuda, ...; default a GPU where there is one.
        dtype: auto, float32, bfloat16 or float16; default as trained.
    """
    from eval.convert import BENCHMARKS
    from eval.report import screen_table, write_report
    from eval.run import Settings
    from eval.run import run as go

    usual = BENCHMARKS[benchmark].max_new_tokens if benchmark in BENCHMARKS else 32
    settings = Settings(
        model=model, benchmark=benchmark, data=data, split=split, sample=sample, seed=seed, prompt=prompt, dtype=dtype,
        system_prompt=system_prompt, max_new_tokens=max_new_tokens or usual, image_max_tokens=image_max_tokens,
    )  # fmt: skip
    folder = Path(out)
    summary, facts = go(settings, folder, limit=limit, batch_size=batch_size, device=device)
    pictures = Path(data) if benchmark == "folder" else folder / "data"
    write_report(summary, folder / "report", source="predictions.jsonl", meta=facts, data=pictures)
    print(screen_table(summary))
    print(f"wrote {len(summary.scores)} answers and their report to {folder}")
    return 0


def compare(
    a: list[str], against: list[str], out: str = "comparison", headline: str | None = None, data: str | None = None
) -> int:
    """Compare two sides of runs on one test set, paired by seed and sample: is the difference more than noise?

    Args:
        out: folder for compare.json, compare.md and compare.html; new, empty, or an earlier comparison.
        headline: count right and wrong by this scorer instead of relaxed.
        data: dataset folder or .jsonl file of the test set; its pictures are shown in the page.
    """
    from eval.compare import compare as make
    from eval.compare_page import compare_page
    from eval.compare_report import check_compare_folder, screen, write_comparison

    check_compare_folder(Path(out))
    pictures = _dataset(data)
    comparison = make(a, against, headline=headline)
    files = write_comparison(comparison, Path(out), compare_page(comparison, data=pictures))
    print(screen(comparison))
    print(f"wrote the comparison to {out}: {', '.join(files)}")
    return 0


@dataclass(frozen=True, kw_only=True)
class Verb:
    """The function, and which of its parameters stand without a flag: name -> (nargs, help)."""

    call: Callable[..., int]
    positional: Mapping[str, tuple[str | None, str]]
    lists: Mapping[str, str] = field(default_factory=dict)  # flags that take several words: name -> help


VERBS: dict[str, Verb] = {
    "score": Verb(
        call=score, positional={"predictions": (None, "predictions.jsonl, one JSON object a line (docs/formats.md)")}
    ),
    "convert": Verb(
        call=convert,
        positional={"name": (None, "chartqa, plotqa (_v1, _v2), clocks, time, clockbench, gsm8k, svamp or mathematics")},
    ),
    "compare": Verb(
        call=compare,
        positional={"a": ("+", "runs of side A: predictions.jsonl files or folders that hold one, one a seed")},
        lists={"against": "runs of side B, in the same order of seeds"},
    ),
    "run": Verb(call=run_benchmark, positional={}),
}


def main(argv: list[str] | None = None) -> int:
    """Parse and run one verb; the exit code."""
    parser = ArgumentParser(prog="smmd-eval", description="Read model answers, score them, report.", exit_on_error=False)
    commands = parser.add_subcommands(dest="verb", metavar="VERB")
    for name, verb in VERBS.items():
        about = (verb.call.__doc__ or "").split("\n", 1)[0]
        options = ArgumentParser(description=about, exit_on_error=False)
        for argument, (count, help_text) in verb.positional.items():
            options.add_argument(argument, nargs=count, help=help_text)
        for argument, help_text in verb.lists.items():
            options.add_argument(f"--{argument}", nargs="+", required=True, help=help_text)
        options.add_function_arguments(verb.call, skip={*verb.positional, *verb.lists})
        commands.add_subcommand(name, options, help=about)
    try:
        parsed = parser.parse_args(sys.argv[1:] if argv is None else argv)
        return VERBS[parsed.verb].call(**vars(parsed[parsed.verb]))
    except (ArgumentError, ValueError) as error:
        print(f"smmd-eval: {_one_sentence(error)}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"smmd-eval: {_one_sentence(error)}", file=sys.stderr)
        return 1


def run() -> None:
    """The console command."""
    sys.exit(main())


def _dataset(data: str | None) -> Path | None:
    """--data of a page, there before the scoring starts."""
    if data is not None and not Path(data).exists():
        raise ValueError(f"--data {data} does not exist; name the dataset folder or .jsonl file that was predicted on")
    return None if data is None else Path(data)


def _run_meta(source: Path) -> dict[str, Any] | None:
    """What identifies the run, written once beside the predictions; absent for files made by hand."""
    path = source.with_suffix(".meta.json")
    if not path.is_file():
        return None
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(f"{path} is not JSON; remove it or write the run's facts as one object") from None
    return meta if isinstance(meta, dict) else None


def _one_sentence(error: Exception) -> str:
    return " ".join(str(error).split())
