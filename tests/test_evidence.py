"""docs/evidence.md says what the studies' own files say."""

import json
import re
import runpy
from pathlib import Path

import pytest

FILL = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "fill_evidence.py"))
RESULTS = FILL["ROOT"] / "benchmarks" / "results"


def test_the_tables_are_the_studies_own():
    page = FILL["PAGE"].read_text(encoding="utf-8")
    assert FILL["fill"](page) == page and "±" in page
    assert FILL["fill"](page.replace("inside the noise.", "certain.")) != page.replace("inside the noise.", "certain.")


def test_a_study_without_a_place_is_named():
    with pytest.raises(SystemExit, match=r"expected <!-- study_\w+ -->"):
        FILL["fill"]("")


def test_the_readme_claims_what_the_page_says():
    readme = (FILL["ROOT"] / "README.md").read_text(encoding="utf-8")
    claim = readme.partition("## What the evidence shows, and what it does not\n\n")[2].partition("\n\n")[0]
    assert len(claim) > 400 and claim in FILL["PAGE"].read_text(encoding="utf-8")


def test_every_interval_in_the_text_is_a_studys_own():
    found = set()
    for path in RESULTS.glob("*_*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        for cells in content["against"].values() if content.get("format") == "smmd-vlm study" else ():
            for metrics in cells.values():
                for metric, row in metrics.items():
                    factor = 1 if "error" in metric or metric == "crps" else 100
                    found.add(tuple(round(factor * value, 1) + 0.0 for value in (row["difference"], *row["interval"])))
    text = re.sub(r"<!-- (study_\w+) -->.*?<!-- /\1 -->", "", FILL["PAGE"].read_text(encoding="utf-8"), flags=re.DOTALL)
    shown = re.findall(
        r"([+-]\d+\.\d)(?:(?![+-]\d+\.\d)[^()]){0,60}?\((?:95 % interval )?([+-]?\d+\.\d)\sto\s([+-]?\d+\.\d)\)", text
    )
    assert len(shown) > 40 and len(shown) == len(re.findall(r"\d\sto\s[+-]?\d+\.\d\)", text))
    assert {tuple(map(float, each)) for each in shown} <= found
