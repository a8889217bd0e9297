"""The command table of `smmd-vlm`; each verb is imported when it is called, so --help stays quick.

    smmd-vlm VERB [options]      (= python -m smmd_vlm VERB ...)

Exit codes: 0 done, 1 failed, 2 the call cannot work as given (one sentence on standard error), 143 stopped by SIGTERM.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module

from smmd_vlm.config import ExportConfig, PredictConfig, QuickstartConfig, StudyConfig, TinyConfig, VocabConfig
from smmd_vlm.processes import JobFailed


@dataclass(frozen=True)
class Verb:
    """`call` is "module:function"; with `config` it takes that dataclass, without it the arguments themselves.

    positional: the option that may also be given first, without its name.
    """

    help: str
    call: str
    config: type | None = None
    positional: str | None = None

    def load(self) -> Callable[..., int]:
        module, _, name = self.call.partition(":")
        return getattr(import_module(module), name)


VERBS: dict[str, Verb] = {
    "quickstart": Verb(
        "clocks, a tiny model, CE and CE + SMMD, what the loss changed", "smmd_vlm.quickstart:quickstart", QuickstartConfig
    ),
    "train": Verb("fine-tune a model from a YAML configuration", "smmd_vlm.cli:train"),
    "predict": Verb("write a model's answers for a dataset to predictions.jsonl", "smmd_vlm.predict:predict", PredictConfig),
    "data": Verb("data check: what is wrong with a dataset before a model learns it", "smmd_vlm.lint:main"),
    "vocab": Verb("show which tokens of a model are numbers and how numbers split", "smmd_vlm.vocabreport:show", VocabConfig),
    "export": Verb("merge a run's adapter into one ordinary model folder", "smmd_vlm.export:export", ExportConfig),
    "study": Verb("compare losses on one task: cells x seeds, one table", "smmd_vlm.study:study", StudyConfig, "file"),
    "tiny": Verb("make a small Qwen-VL or text model from a config, for CPUs", "smmd_vlm.tiny:save_tiny", TinyConfig),
}


def usage() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:{width}}  {verb.help}" for name, verb in VERBS.items())
    return (
        "usage: smmd-vlm VERB [options]\n\nTeach vision-language models to read numbers off images.\n\n"
        f"{verbs}\n\nsmmd-vlm VERB --help shows a verb's options. Data: python -m synth.clocks. Scores: python -m eval score.\n"
    )


def main(argv: list[str] | None = None) -> int:
    """Run one verb; a call that cannot work is one sentence and exit code 2, without a traceback."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help"):
        print(usage(), end="")
        return 0 if argv else 2
    if argv[0] == "--version":
        from smmd_vlm import __version__

        print(f"smmd-vlm {__version__}")
        return 0
    if argv[0] not in VERBS:
        print(f"smmd-vlm: expected a verb ({', '.join(VERBS)}), got {argv[0]!r}; see smmd-vlm --help", file=sys.stderr)
        return 2
    name, rest = argv[0], argv[1:]
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # Rust threads do not survive a fork into data workers
    _hush()
    try:
        return call(name, rest)
    except (
        ValueError,
        argparse.ArgumentError,
        FloatingPointError,
        MemoryError,
        OSError,
        ImportError,
        KeyboardInterrupt,
    ) as error:
        if os.environ.get("SMMD_VLM_TRACEBACK"):
            traceback.print_exc()
        print(f"smmd-vlm {name}: {_sentence(error)}", file=sys.stderr)
        return 2 if isinstance(error, (ValueError, argparse.ArgumentError)) else 1
    except JobFailed as error:  # a command of ours said more than a sentence
        print(f"smmd-vlm {name}: {error}", file=sys.stderr)
        return 1


def _sentence(error: BaseException) -> str:
    """An error as one line; a library's word for a full disk names neither cause nor way out."""
    text = " ".join(str(error).split()) or "stopped"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({text}); make room and call this again"
    return text


def _hush() -> None:
    """Keep off the screen what libraries say of things that we do not use: a 4-bit CPU kernel, peft's name for checkpointing."""
    logging.getLogger("bitsandbytes.backends.cpu.ops").addFilter(lambda record: "gemm_4bit_forward" not in str(record.msg))
    warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)


def call(name: str, argv: list[str]) -> int:
    """Parse a verb's options, then import and run it."""
    verb = VERBS[name]
    if verb.config is None:
        return verb.load()(argv)
    from smmd_vlm.runconfig import parse_options

    if verb.positional and argv and not argv[0].startswith("-"):
        argv = [f"--{verb.positional}", *argv]
    options = parse_options(verb.config, _plain_flags(argv, verb.config), prog=f"smmd-vlm {name}", description=verb.help)
    return verb.load()(options)


def _plain_flags(argv: list[str], config: type) -> list[str]:
    """`--with-controls` is `--with_controls true`: dashes for underscores, and a switch without its value is on."""
    kinds = {item.name: item.type for item in fields(config)}
    plain: list[str] = []
    for place, word in enumerate(argv):
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in kinds:
            plain.append(word)
            continue
        plain.append(f"--{name}{equals}{value}")
        following = argv[place + 1] if place + 1 < len(argv) else "--"
        if kinds[name] == "bool" and not equals and following.startswith("--"):
            plain.append("true")
    return plain


def train(argv: list[str]) -> int:
    """`smmd-vlm train`: parse, train, say what came out. --help loads no torch."""
    from smmd_vlm.runconfig import parse, train_parser

    if "-h" in argv or "--help" in argv:
        train_parser(with_training_arguments=False).print_help()
        return 0
    if "--help-train" in argv:
        train_parser().print_help()
        return 0
    config, options = parse(argv)
    if options.dry_run:
        from smmd_vlm.dryrun import dry_run

        dry_run(config)
        return 0
    from smmd_vlm import train as verb

    metrics = verb.train(config, resume=options.resume)
    if metrics is None:
        return 128 + signal.SIGTERM
    for name in ("eval_loss", "eval_exact", "eval_mean_error_min", "eval_mean_absolute_error"):
        if name in metrics:
            print(f"{name.removeprefix('eval_'):20} {metrics[name]:.4g}")
    print(f"wrote the run to {config.train.output_dir}")
    return 0


def run() -> None:
    """Console entry point."""
    sys.exit(main())
