"""The tables of docs/evidence.md, written anew from the studies' own files.

    python benchmarks/fill_evidence.py [runs/study-charts ...]

A named study's json is copied to benchmarks/results/study_charts.json and its figure to assets/study_charts.png; the page has its
table between <!-- study_charts --> and <!-- /study_charts -->. The words around the tables are written by hand.
"""

import json
import re
import shutil
import sys
from pathlib import Path

from smmd_vlm.study_report import markdown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evidence.md"


def fill(page: str) -> str:
    """The page with the table of every study between its marks."""
    for path in sorted((ROOT / "benchmarks" / "results").glob("study_*.json")):
        first, last = f"<!-- {path.stem} -->", f"<!-- /{path.stem} -->"
        if page.count(first) != 1 or page.count(last) != 1:
            raise SystemExit(f"expected {first} and {last} once each in {PAGE.name}, where the study's table goes")
        table = f"{first}\n\n{markdown(json.loads(path.read_text(encoding='utf-8')))}\n\n{last}"
        page = re.sub(f"{first}.*{last}", lambda _, table=table: table, page, flags=re.DOTALL)
    return page


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        name = folder.resolve().name.replace("-", "_")
        shutil.copyfile(folder / "study.json", ROOT / "benchmarks" / "results" / f"{name}.json")
        shutil.copyfile(folder / "study.png", ROOT / "assets" / f"{name}.png")
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
