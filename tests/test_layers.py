"""The architecture as one table: which room may import which of ours, and which heavy packages.

A module that is not in the table, or an import that the table does not allow, fails. Imports inside functions count too;
imports under TYPE_CHECKING do not.
"""

import ast
import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "transformers", "peft", "bitsandbytes", "datasets", "matplotlib", "numpy", "pyarrow", "PIL", "trl", "swift"}

# module (glob) -> (modules of ours it may import (globs), heavy packages)
ALLOWED: dict[str, tuple[set[str], set[str]]] = {
    "smmd_vlm": ({"smmd_vlm.objective", "smmd_vlm.vocab"}, set()),
    "smmd_vlm.__main__": ({"smmd_vlm.cli"}, set()),
    "smmd_vlm.numerals": (set(), set()),
    "smmd_vlm.distribution": (set(), set()),
    "smmd_vlm.records": ({"smmd_vlm.distribution"}, set()),
    "smmd_vlm.config": (set(), set()),
    "smmd_vlm.runconfig": ({"smmd_vlm.config"}, {"transformers", "torch"}),
    "smmd_vlm.cli": (
        {"smmd_vlm", "smmd_vlm.config", "smmd_vlm.dryrun", "smmd_vlm.processes", "smmd_vlm.runconfig", "smmd_vlm.train"}, set()),
    "smmd_vlm.kernels": (set(), {"torch"}),
    "smmd_vlm.vocab": ({"smmd_vlm.numerals"}, {"torch"}),
    "smmd_vlm.vocabreport": ({"smmd_vlm.config", "smmd_vlm.numerals", "smmd_vlm.vocab"}, {"transformers"}),
    "smmd_vlm.runs": (set(), {"torch"}),
    "smmd_vlm.losses": ({"smmd_vlm.losses.*"}, {"torch"}),
    "smmd_vlm.losses.*": ({"smmd_vlm.kernels", "smmd_vlm.losses.*", "smmd_vlm.runs"}, {"torch"}),
    "smmd_vlm.objective": ({"smmd_vlm.losses", "smmd_vlm.losses.*", "smmd_vlm.runs", "smmd_vlm.vocab"}, {"torch"}),
    "smmd_vlm.adapters": (set(), set()),
    "smmd_vlm.adapters.hidden": ({"smmd_vlm.losses", "smmd_vlm.objective"}, {"torch"}),
    "smmd_vlm.adapters.trainer": ({"smmd_vlm.objective"}, {"torch"}),
    "smmd_vlm.adapters.trl": ({"smmd_vlm.adapters.hidden", "smmd_vlm.objective"}, {"torch", "trl"}),
    "smmd_vlm.adapters.ms_swift": ({"smmd_vlm.adapters.trainer", "smmd_vlm.losses", "smmd_vlm.objective", "smmd_vlm.vocab"}, {"torch", "swift"}),
    "smmd_vlm.rows": ({"smmd_vlm.numerals", "smmd_vlm.records"}, set()),
    "smmd_vlm.dataset": ({"smmd_vlm.records", "smmd_vlm.rows"}, {"datasets", "numpy", "PIL"}),
    "smmd_vlm.textprocessor": (set(), set()),
    "smmd_vlm.collate": ({"smmd_vlm.dataset", "smmd_vlm.objective", "smmd_vlm.records", "smmd_vlm.rows"}, {"torch"}),
    "smmd_vlm.folder": ({"smmd_vlm.records"}, {"pyarrow"}),
    "smmd_vlm.lint": (
        {"smmd_vlm.dataset", "smmd_vlm.folder", "smmd_vlm.numerals", "smmd_vlm.records", "smmd_vlm.rows"}, {"PIL"},
    ),
    "smmd_vlm.model": ({"smmd_vlm.config", "smmd_vlm.resume", "smmd_vlm.textprocessor"}, {"torch", "transformers", "peft", "bitsandbytes"}),
    "smmd_vlm.tiny": ({"smmd_vlm.config", "smmd_vlm.collate", "smmd_vlm.textprocessor"}, {"torch", "transformers"}),
    "smmd_vlm.preflight": (
        {"smmd_vlm.collate", "smmd_vlm.dataset", "smmd_vlm.lint", "smmd_vlm.objective", "smmd_vlm.records", "smmd_vlm.vocab"},
        {"torch"},
    ),
    "smmd_vlm.resume": ({"smmd_vlm.records"}, {"transformers"}),
    "smmd_vlm.tokenkinds": ({"smmd_vlm.objective", "smmd_vlm.runs", "smmd_vlm.vocab"}, {"torch"}),
    "smmd_vlm.visioncache": ({"smmd_vlm.dataset"}, {"torch", "transformers"}),
    "smmd_vlm.sampling": (set(), {"torch", "transformers"}),
    "smmd_vlm.mishaps": ({"smmd_vlm.resume"}, {"torch"}),
    "smmd_vlm.trainer": (
        {"smmd_vlm.objective", "smmd_vlm.preflight", "smmd_vlm.sampling", "smmd_vlm.tokenkinds", "smmd_vlm.visioncache"},
        {"torch", "transformers"},
    ),
    "smmd_vlm.runfolder": ({"smmd_vlm.collate", "smmd_vlm.dataset", "smmd_vlm.records"}, {"transformers", "matplotlib"}),
    "smmd_vlm.predict": (
        {
            "smmd_vlm", "smmd_vlm.collate", "smmd_vlm.config", "smmd_vlm.dataset", "smmd_vlm.model", "smmd_vlm.preflight",
            "smmd_vlm.readout", "smmd_vlm.records",
        },
        {"torch", "transformers"},
    ),
    "smmd_vlm.readout": ({"smmd_vlm.distribution", "smmd_vlm.numerals", "smmd_vlm.records", "smmd_vlm.vocab"}, {"torch"}),
    "smmd_vlm.memory": (set(), set()),
    "smmd_vlm.prepare": (
        {"smmd_vlm", "smmd_vlm.collate", "smmd_vlm.dataset", "smmd_vlm.objective", "smmd_vlm.preflight", "smmd_vlm.records", "smmd_vlm.vocab"},
        set(),
    ),
    "smmd_vlm.train": (
        {
            "smmd_vlm", "smmd_vlm.collate", "smmd_vlm.mishaps", "smmd_vlm.model", "smmd_vlm.predict", "smmd_vlm.preflight",
            "smmd_vlm.prepare", "smmd_vlm.records", "smmd_vlm.resume", "smmd_vlm.runconfig", "smmd_vlm.runfolder", "smmd_vlm.trainer",
            "smmd_vlm.tokenkinds", "smmd_vlm.visioncache", "eval.scorers",
        },
        {"torch", "transformers"},
    ),
    "smmd_vlm.dryrun": (
        {
            "smmd_vlm", "smmd_vlm.collate", "smmd_vlm.config", "smmd_vlm.memory", "smmd_vlm.model", "smmd_vlm.preflight",
            "smmd_vlm.prepare", "smmd_vlm.runconfig", "smmd_vlm.runfolder", "smmd_vlm.textprocessor", "smmd_vlm.tiny",
            "smmd_vlm.trainer", "smmd_vlm.visioncache",
        },
        {"torch", "transformers"},
    ),
    "smmd_vlm.export": ({"smmd_vlm.collate", "smmd_vlm.config", "smmd_vlm.dataset", "smmd_vlm.model"}, {"torch"}),
    "smmd_vlm.figures": ({"smmd_vlm.records"}, {"matplotlib"}),
    "smmd_vlm.processes": (set(), {"torch"}),
    "smmd_vlm.study": (
        {
            "smmd_vlm.config", "smmd_vlm.dataset", "smmd_vlm.model", "smmd_vlm.prepare", "smmd_vlm.processes", "smmd_vlm.runconfig",
            "smmd_vlm.study_plan", "smmd_vlm.study_report",
        },
        set(),
    ),
    "smmd_vlm.study_plan": (set(), set()),
    "smmd_vlm.study_figure": ({"smmd_vlm.records"}, {"matplotlib"}),
    "smmd_vlm.study_report": ({"smmd_vlm.processes", "smmd_vlm.records", "smmd_vlm.study_figure", "eval.page", "eval.reporttext"}, set()),
    "smmd_vlm.quickstart": ({"smmd_vlm.config", "smmd_vlm.figures", "smmd_vlm.processes"}, set()),
    "synth": (set(), set()),
    "synth.*": ({"synth.*", "smmd_vlm.records", "smmd_vlm.numerals"}, {"PIL", "numpy", "pyarrow", "matplotlib"}),
    "eval": (set(), set()),
    "eval.plots": ({"eval.*", "smmd_vlm.records"}, {"matplotlib", "numpy"}),
    "eval.chartqa": ({"eval.*"}, {"pyarrow"}),
    "eval.convert": ({"eval.*", "smmd_vlm.folder"}, set()),
    "eval.pictures": ({"smmd_vlm.dataset", "smmd_vlm.records"}, {"pyarrow"}),
    "eval.run": ({"eval.*", "smmd_vlm.config", "smmd_vlm.predict", "smmd_vlm.records"}, set()),
    "eval.*": ({"eval.*", "smmd_vlm.records", "smmd_vlm.numerals"}, {"numpy"}),
}  # fmt: skip

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("smmd_vlm", "synth", "eval")
    for path in (ROOT / package).rglob("*.py")
)


def imports(module: str) -> set[str]:
    """Every module that `module` imports, also inside functions; `from a import b` counts as a.b where that is a module."""
    path = ROOT.joinpath(*module.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8"))
    found: set[str] = set()

    class Visitor(ast.NodeVisitor):
        def visit_If(self, node: ast.If) -> None:
            if ast.unparse(node.test) != "TYPE_CHECKING":
                self.generic_visit(node)

        def visit_Import(self, node: ast.Import) -> None:
            found.update(alias.name for alias in node.names)

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
            assert node.level == 0, f"{module}: relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)

    Visitor().visit(tree)
    return found


def rule(module: str) -> tuple[set[str], set[str]]:
    if module in ALLOWED:
        return ALLOWED[module]
    return next(allowed for pattern, allowed in ALLOWED.items() if fnmatch.fnmatchcase(module, pattern))


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module):
    ours, heavy = rule(module)
    for name in imports(module):
        package = name.split(".")[0]
        if package in ("smmd_vlm", "synth", "eval"):
            assert any(fnmatch.fnmatchcase(name, pattern) for pattern in ours), f"{module} imports {name}"
        elif package in HEAVY:
            assert package in heavy, f"{module} imports {name}"


def test_there_is_no_cycle():
    graph = {module: {name for name in imports(module) if name in MODULES} for module in MODULES}
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module not in done:
            for name in graph[module]:
                walk(name, (*path, module))
            done.add(module)

    for module in MODULES:
        walk(module, ())


def test_no_file_is_named_utils_or_past_400_lines():
    for module in MODULES:
        path = ROOT.joinpath(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        assert "utils" not in path.name
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
