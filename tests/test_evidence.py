"""docs/evidence.md says what the studies' own files say."""

import json
from pathlib import Path

import pytest

from smmd_vlm.study_report import markdown

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks" / "results").glob("study_*.json")), ids=lambda path: path.stem)
def test_the_tables_are_the_studies_own(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert markdown(content) in (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
