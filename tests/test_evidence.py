"""docs/evidence.md says what the studies' own files say."""

import json
import runpy
from pathlib import Path

import pytest

FILL = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "fill_evidence.py"))
POOLED = FILL["ROOT"] / "benchmarks" / "results" / "clocks_pooled.json"


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


def test_the_pooled_clocks_are_their_files():
    page, rows = FILL["PAGE"].read_text(encoding="utf-8"), json.loads(POOLED.read_text(encoding="utf-8"))["rows"]
    for row in rows:
        shown = [
            f"{each['difference'] * factor:+.1f} ({each['interval'][0] * factor:+.1f} to {each['interval'][1] * factor:+.1f})"
            for each, factor in ((row["exact"], 100), (row["mean_error_min"], 1))
        ]
        assert f"| {row['seeds']} | {shown[0]} | {shown[1]} |" in page
