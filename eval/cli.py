"""The `smmd-eval` command, `python -m eval`.

    python -m eval score predictions.jsonl --out report

Exit 0 done, 1 failed, 2 misuse; a user's error is one sentence on stderr. Nothing heavy is loaded before parsing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser


def score(predictions: str, out: str = "report") -> int:
    """Score a predictions file and write a report: table, report.json, report.md, scores.jsonl and pictures.

    Args:
        predictions: predictions.jsonl, one JSON object a line with id, question, answer and prediction (docs/formats.md).
        out: folder for the report; new, empty, or an earlier report, which is replaced.
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
    try:
        summary = evaluate(read_predictions(source))
    except UnicodeDecodeError:
        raise ValueError(f"{source} is not UTF-8 text; expected predictions.jsonl, one JSON object a line") from None
    except RecursionError:
        raise ValueError(f"{source} holds JSON nested too deeply to read; expected one flat object a line") from None
    files = write_report(summary, folder, source=source.name, meta=_run_meta(source))
    print(screen_table(summary))
    print(f"wrote {len(summary.scores)} scores and the report to {folder}: {', '.join(files)}")
    return 0


VERBS = {"score": score}


def main(argv: list[str] | None = None) -> int:
    """Parse and run one verb; the exit code."""
    parser = ArgumentParser(prog="smmd-eval", description="Read model answers, score them, report.", exit_on_error=False)
    commands = parser.add_subcommands(dest="verb", metavar="VERB")
    for name, function in VERBS.items():
        verb = ArgumentParser(description=(function.__doc__ or "").split("\n", 1)[0], exit_on_error=False)
        verb.add_function_arguments(function, as_positional=True)
        commands.add_subcommand(name, verb, help=(function.__doc__ or "").split("\n", 1)[0])
    try:
        options = parser.parse_args(sys.argv[1:] if argv is None else argv)
        return VERBS[options.verb](**vars(options[options.verb]))
    except (ArgumentError, ValueError) as error:
        print(f"smmd-eval: {_one_sentence(error)}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"smmd-eval: {_one_sentence(error)}", file=sys.stderr)
        return 1


def run() -> None:
    """The console command."""
    sys.exit(main())


def _run_meta(source: Path) -> dict[str, Any] | None:
    """What identifies the run, written once beside the predictions; absent for files made by hand."""
    path = source.with_name("predictions.meta.json")
    if not path.is_file():
        return None
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(f"{path} is not JSON; remove it or write the run's facts as one object") from None
    return meta if isinstance(meta, dict) else None


def _one_sentence(error: Exception) -> str:
    return " ".join(str(error).split())
