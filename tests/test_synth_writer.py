"""Dataset folders: what lies in them, that they are reproducible, resumable, and never half there."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from smmd_vlm.records import Record
from synth import writer
from synth.card import CardText, contact_sheet
from synth.charts import ChartConfig
from synth.clocks import ClockConfig
from synth.png import encode_png
from synth.shards import COLUMNS, add_digests, digest, read_shard, write_shard
from synth.workers import run_jobs
from synth.writer import DEFAULT_SHARES, Plan, shards, split_of, write_dataset

CARD = CardText(title="Numbers", summary="Counting.", command="python -m nothing")


def plan(out, n=40, **changes):
    options = {"config": {"colour": {"ink": "black"}}, "seed": 0, "n": n, "shard_size": 10, "card": CARD, **changes}
    return Plan(out=Path(out), generator="tests", generator_version=1, **options)


def count_up(shares=DEFAULT_SHARES, fail_at=None, drawn=None):
    """index -> Record of a plan with seed 0; optionally fails at one index, or keeps a list of what was asked for."""

    def make(index):
        if index == fail_at:
            raise RuntimeError("power cut")
        if drawn is not None:
            drawn.append(index)
        image = encode_png(Image.new("RGB", (4, 4), (index % 256, 0, 0)))
        split = split_of(0, index, shares)
        return Record(
            id=f"r{index}",
            image=image,
            question="Which?",
            answer=str(index),
            value=float(index),
            split=split,
            group=f"r{index}",
        )

    return make


def clock_config(out, n=60, **changes):
    return ClockConfig(**{"n": n, "out": str(out), "preset": "plain", "size": 32, "shard_size": 15, **changes})


def write_clocks(out, workers=1, **changes):
    config = clock_config(out, **changes)
    return write_dataset(config.plan(), config.maker(), workers=workers)


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def rows(folder):
    found = [row for path in sorted((folder / "data").iterdir()) for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: row["id"])


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def test_the_folder_holds_what_the_format_says(tmp_path):
    write_dataset(plan(tmp_path / "d", n=200), count_up())
    names = {path.name for path in (tmp_path / "d").iterdir()}
    assert names == {"data", "manifest.json", "README.md", "preview.png"}
    schema = pq.read_schema(tmp_path / "d" / "data" / "train-00000.parquet")
    assert schema.names == [each.name for each in fields(Record)] == list(COLUMNS)
    assert schema.field("image").type == pa.struct({"bytes": pa.binary(), "path": pa.string()})
    features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert features["image"] == {"_type": "Image"} and features["value"] == {"dtype": "float64", "_type": "Value"}
    told = manifest(tmp_path / "d")
    assert (told["schema_version"], told["generator"], told["seed"], told["start"], told["n"]) == (1, "tests", 0, 0, 200)
    assert told["config"] == {"colour": {"ink": "black"}} and "pillow" in told["libraries"]
    assert told["counts"] == Counter(row["split"] for row in rows(tmp_path / "d")) and sum(told["counts"].values()) == 200
    card = (tmp_path / "d" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\n") and "path: data/train-*.parquet" in card and "![" in card and "(preview.png)" in card
    # 24 tiles in rows of six, 160 px and a gap of 10 each: 6 * 170 + 10 by 4 * (160 + 22 + 10) + 10.
    assert Image.open(io.BytesIO((tmp_path / "d" / "preview.png").read_bytes())).size == (1030, 778)


def test_load_dataset_gives_pictures_and_splits(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    write_clocks(tmp_path / "d", n=90, splits={"train": 0.6, "validation": 0.2, "test": 0.2})
    data = load_dataset(str(tmp_path / "d"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(part) for split, part in data.items()} == manifest(tmp_path / "d")["counts"]
    assert data["train"].column_names == list(COLUMNS)
    row = data["test"][0]
    assert isinstance(row["image"], Image.Image) and row["image"].size == (32, 32)
    assert row == {**row, "answer_type": "time", "unit": "min", "tolerance": 1.0, "split": "test"}


def test_load_dataset_of_one_split_only(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    write_clocks(tmp_path / "d", n=20, splits={"test": 1.0})
    data = load_dataset(str(tmp_path / "d"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(part) for split, part in data.items()} == {"test": 20}


def test_split_shares_of_the_first_ten_thousand():
    counts = Counter(split_of(0, index, DEFAULT_SHARES) for index in range(10_000))
    # 2 % of 10,000 is 200, with a standard deviation of 14.
    assert abs(counts["validation"] - 200) < 60 and abs(counts["test"] - 200) < 60
    assert [split_of(0, index, DEFAULT_SHARES) for index in range(6)] == ["train"] * 6
    assert split_of(0, 7, {"test": 1.0}) == "test"


@given(st.integers(0, 200), st.integers(1, 120), st.integers(1, 50))
def test_every_index_lies_in_one_shard_of_its_split(start, n, shard_size):
    found = []
    for shard in shards(
        plan("d", n=n, start=start, shard_size=shard_size, shares={"train": 0.5, "validation": 0.25, "test": 0.25})
    ):
        assert 1 <= len(shard.indices) <= shard_size and list(shard.indices) == sorted(shard.indices)
        assert {split_of(0, i, {"train": 0.5, "validation": 0.25, "test": 0.25}) for i in shard.indices} == {
            shard.name.split("-")[0]
        }
        found += shard.indices
    assert sorted(found) == list(range(start, start + n))


def test_same_bytes_for_one_and_two_workers(tmp_path):
    write_clocks(tmp_path / "one", workers=1)
    write_clocks(tmp_path / "two", workers=2)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_another_shard_size_holds_the_same_records_and_hash(tmp_path):
    write_clocks(tmp_path / "small", shard_size=7)
    write_clocks(tmp_path / "large", shard_size=1000)
    assert rows(tmp_path / "small") == rows(tmp_path / "large")
    assert manifest(tmp_path / "small")["content_hash"] == manifest(tmp_path / "large")["content_hash"]


@pytest.mark.parametrize("preset", ["varied", "photo"])
def test_same_bytes_for_every_preset_and_number_of_workers(tmp_path, preset):
    for workers in (1, 2):
        write_clocks(tmp_path / str(workers), workers=workers, preset=preset, n=40)
    assert content(tmp_path / "1") == content(tmp_path / "2")


def test_imagefolder_holds_the_same_records(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    options = {"n": 40, "preset": "varied", "splits": {"train": 0.7, "test": 0.3}}
    write_clocks(tmp_path / "parquet", **options)
    write_clocks(tmp_path / "pictures", format="imagefolder", **options)
    assert manifest(tmp_path / "parquet")["content_hash"] == manifest(tmp_path / "pictures")["content_hash"]
    assert manifest(tmp_path / "parquet")["counts"] == manifest(tmp_path / "pictures")["counts"]
    by_id = {row["id"]: row for row in rows(tmp_path / "parquet")}
    found = 0
    for lines in (tmp_path / "pictures" / "data").glob("*/metadata.jsonl"):
        for line in lines.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            picture = (lines.parent / row.pop("file_name")).read_bytes()
            assert {**row, "image": {"bytes": picture, "path": None}} == by_id[row["id"]]
            found += 1
    assert found == 40
    data = load_dataset(str(tmp_path / "pictures"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(part) for split, part in data.items()} == manifest(tmp_path / "pictures")["counts"]
    assert isinstance(data["train"][0]["image"], Image.Image) and set(data["train"].column_names) == set(COLUMNS)


def test_a_cut_imagefolder_run_is_completed(tmp_path, monkeypatch):
    write_dataset(plan(tmp_path / "straight", format="imagefolder"), count_up())
    with pytest.raises(RuntimeError, match="power cut"):
        write_dataset(plan(tmp_path / "cut", format="imagefolder"), count_up(fail_at=25))
    assert [path.name for path in (tmp_path / "cut").iterdir()] == [".partial"]
    write_dataset(plan(tmp_path / "cut", format="imagefolder"), count_up())
    assert content(tmp_path / "cut") == content(tmp_path / "straight")
    with pytest.raises(ValueError, match="was made with format 'imagefolder', this run has 'parquet'"):
        write_dataset(plan(tmp_path / "cut"), count_up())


def test_pieces_agree_with_the_whole_and_their_hashes_add_up(tmp_path):
    write_clocks(tmp_path / "whole", n=50)
    write_clocks(tmp_path / "a", n=20)
    write_clocks(tmp_path / "b", n=30, start=20)
    assert rows(tmp_path / "a") + rows(tmp_path / "b") == rows(tmp_path / "whole")
    total = {name: int(manifest(tmp_path / name)["content_hash"].split(":")[1], 16) for name in ("whole", "a", "b")}
    assert add_digests(total["a"], total["b"]) == total["whole"]


def test_a_digest_sees_every_field():
    record = Record(id="a", image=b"x", question="q", answer="1", value=1.0, tolerance=0.5, unit="m", meta="{}")
    other = {
        "id": "b",
        "image": None,
        "question": "p",
        "answer": "2",
        "answer_type": "number",
        "value": 2.0,
        "unit": None,
        "tolerance": 1.0,
    }
    other |= {"task": "t", "kind": "k", "group": "g", "split": "test", "meta": "[]"}
    assert set(other) == set(COLUMNS)
    assert (
        len({digest(record), *(digest(replace(record, **{name: value})) for name, value in other.items())}) == len(COLUMNS) + 1
    )


@pytest.mark.parametrize("mode", ["L", "RGB", "P", "RGBA"])
@pytest.mark.parametrize("size", [(1, 1), (7, 3), (64, 64)])
def test_png_keeps_every_pixel(mode, size):
    noise = Image.effect_noise(size, 80).convert("RGB").convert(mode)
    back = Image.open(io.BytesIO(encode_png(noise)))
    back.load()
    assert back.format == "PNG" and back.tobytes() == (noise if mode == "L" else noise.convert("RGB")).tobytes()


def test_text_records_have_no_picture(tmp_path):
    record = Record(id="a", question="1+1?", answer="2", answer_type="number", value=2.0)
    assert write_shard(tmp_path / "train-00000.parquet", [record], tmp_path) == 1
    assert pq.read_table(tmp_path / "train-00000.parquet").to_pylist()[0]["image"] is None
    assert read_shard(tmp_path / "train-00000.parquet") == (1, digest(record))
    assert contact_sheet([record]).size[0] > 0


def test_a_failed_run_loads_as_nothing_and_the_next_one_completes_it(tmp_path):
    write_dataset(plan(tmp_path / "straight"), count_up())
    with pytest.raises(RuntimeError, match="power cut"):
        write_dataset(plan(tmp_path / "cut"), count_up(fail_at=25))
    assert [path.name for path in (tmp_path / "cut").iterdir()] == [".partial"]
    drawn = []
    write_dataset(plan(tmp_path / "cut"), count_up(drawn=drawn))
    preview = list(range(writer.PREVIEW))
    assert 0 not in drawn[: -len(preview)] and 25 in drawn  # what was there is not drawn again, but for the preview
    assert content(tmp_path / "cut") == content(tmp_path / "straight")


@pytest.mark.parametrize("moves", range(5))
def test_a_run_cut_between_the_last_renames_is_completed(tmp_path, monkeypatch, moves):
    write_dataset(plan(tmp_path / "straight"), count_up())
    done, really = [], os.replace

    def replace_until_cut(source, target):
        if Path(target).parent == tmp_path / "cut":
            if len(done) == moves:
                raise RuntimeError("power cut")
            done.append(target)
        really(source, target)

    def no_cleaning(folder, **_):
        raise RuntimeError("power cut")

    monkeypatch.setattr(writer.os, "replace", replace_until_cut)
    monkeypatch.setattr(writer.shutil, "rmtree", no_cleaning)
    with pytest.raises(RuntimeError, match="power cut"):
        write_dataset(plan(tmp_path / "cut"), count_up())
    assert len(done) == moves and (tmp_path / "cut" / "data").exists() == (moves == 4)
    monkeypatch.undo()
    write_dataset(plan(tmp_path / "cut"), count_up())
    assert content(tmp_path / "cut") == content(tmp_path / "straight")


@pytest.mark.parametrize(
    ("generator", "config"),
    [
        ("synth.clocks", ClockConfig(n=4000, preset="plain", size=64, shard_size=50)),
        ("synth.charts", ChartConfig(n=4000, preset="embedded", shard_size=50)),
    ],
)
def test_ten_kills_at_random_moments_and_the_same_command_again(tmp_path, generator, config):
    out, straight = tmp_path / "killed", replace(config, out=str(tmp_path / "straight"))
    command = [
        sys.executable,
        "-m",
        generator,
        "--out",
        str(out),
        "--n",
        "4000",
        "--preset",
        config.preset,
        "--shard-size",
        "50",
    ]
    command += ["--size", "64"] if generator == "synth.clocks" else []
    moments, kept = Random(3), set()
    data = out / ".partial" / "data"

    def finished():
        return {(path.name, path.stat().st_mtime_ns) for path in data.iterdir()} if data.exists() else set()

    for kill in range(10):
        running = subprocess.Popen(
            [*command, "--workers", str(1 + kill % 2)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        while kill % 3 and finished() == kept and time.monotonic() < deadline:  # every third one before anything is there
            time.sleep(0.005)
        time.sleep(0.05 * moments.random())  # short: ten of them must not be enough to finish
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        assert not (out / "data").exists()  # nothing that loads as a whole
        assert kept <= finished()  # what was finished is never drawn again
        kept = finished()
    again = subprocess.run([*command, "--workers", "2"], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert kept and all((out / "data" / name).stat().st_mtime_ns == stamp for name, stamp in kept)
    write_dataset(straight.plan(), straight.maker(), workers=2)
    assert content(out) == content(tmp_path / "straight")


def test_other_plans_and_foreign_folders_are_refused_untouched(tmp_path):
    write_dataset(plan(tmp_path / "d"), count_up())
    before = content(tmp_path / "d")
    for other, sentence in [
        (plan(tmp_path / "d", n=41), "was made with n 40, this run has 41"),
        (plan(tmp_path / "d", seed=1), "was made with seed 0, this run has 1"),
        (plan(tmp_path / "d", config={"colour": {"ink": "red"}}), "was made with ink 'black', this run has 'red'"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            write_dataset(other, count_up())
    with pytest.raises(RuntimeError):
        write_dataset(plan(tmp_path / "half"), count_up(fail_at=25))
    with pytest.raises(ValueError, match="was made with n 40, this run has 39"):
        write_dataset(plan(tmp_path / "half", n=39), count_up())
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match=r"holds other files \(thesis.tex"):
        write_dataset(plan(tmp_path / "foreign"), count_up())
    assert content(tmp_path / "foreign") == {"thesis.tex": b"x"} and content(tmp_path / "d") == before
    (tmp_path / "d" / "data" / "train-00000.parquet").unlink()
    with pytest.raises(ValueError, match="data/train-00000.parquet is missing now"):
        write_dataset(plan(tmp_path / "d"), count_up())


def test_other_library_versions_do_not_mix_in_one_folder(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError):
        write_dataset(plan(tmp_path / "d"), count_up(fail_at=25))
    monkeypatch.setattr(writer, "libraries", lambda: {"pillow": "1.0"})
    with pytest.raises(ValueError, match="was made with pillow .* this run has '1.0'"):
        write_dataset(plan(tmp_path / "d"), count_up())


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match="must be a folder that can be"):
            write_dataset(plan(out), count_up())


def test_a_full_disk_is_a_failure_that_leaves_nothing_whole(tmp_path, monkeypatch, capsys):
    from synth import shards as shards_module
    from synth.clocks import main

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shards_module.pq, "write_table", full)
    assert main(["--n", "5", "--out", str(tmp_path / "d"), "--size", "32", "--workers", "1"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "d").iterdir()] == [".partial"]
    assert list((tmp_path / "d" / ".partial" / "data").iterdir()) == []


def test_jobs_are_taken_only_as_fast_as_they_are_done():
    taken = []
    results = run_jobs(abs, (taken.append(k) or -k for k in range(40)), workers=2)
    first = next(results)
    assert len(taken) <= 6 and first in range(6)  # two in hand, two waiting, one more that found them full
    assert sorted([first, *results]) == list(range(40))
