"""docs/evidence.md says what the studies' own files say."""

import runpy
from pathlib import Path

import pytest

FILL = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "fill_evidence.py"))


def test_the_tables_are_the_studies_own():
    page = FILL["PAGE"].read_text(encoding="utf-8")
    assert FILL["fill"](page) == page and "±" in page
    assert FILL["fill"](page.replace("inside the noise.", "certain.")) != page.replace("inside the noise.", "certain.")


def test_a_study_without_a_place_is_named():
    with pytest.raises(SystemExit, match=r"expected <!-- study_\w+ -->"):
        FILL["fill"]("")
