"""Folders and .jsonl files become records; what is broken is named, never replaced."""

import io
import json
import shutil

import numpy as np
import pytest
from PIL import Image

from smmd_vlm.dataset import check_image, image_size, load_records, open_image
from tests.support import png


def jsonl(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_folder_gives_its_records(clocks):
    records = load_records(clocks, "test")
    first = records[0]
    assert first.answer_type == "time" and len(first.answer) == 5 and first.split == "test"
    assert open_image(first.image).size == (64, 64)
    assert len({records[i].id for i in range(len(records))}) == len(records)


def test_a_jsonl_file_of_image_question_answer(tmp_path):
    (tmp_path / "img").mkdir()
    (tmp_path / "img" / "a.png").write_bytes(png())
    records = load_records(
        jsonl(tmp_path / "own.jsonl", {"image": "img/a.png", "question": "How many?", "answer": "3"}), "train"
    )
    assert (records[0].question, records[0].answer, records[0].id) == ("How many?", "3", "own-1")
    assert records[0].image == png() and records[0].group == "img/a.png"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"image": "none.png", "question": "q", "answer": "1"}, r"own.jsonl, line 1: expected an image at .*none.png"),
        ({"image": "../outside.png", "question": "q", "answer": "1"}, "lies outside"),
        ({"question": "q", "answer": " "}, "line 1: record 'own-1': answer must not be empty"),
        ({"question": "q"}, "answer missing"),
        ({"question": "q", "answer": 3}, "answer must be text, got int"),
        ({"question": "q", "answer": "3", "group": 7}, "line 1: record 'own-1': group must be text, got int"),
        ({"image": "", "question": "q", "answer": "1"}, "line 1: expected the path of an image, got an empty one"),
        ({"image": {"bytes": "iVBO"}, "question": "q", "answer": "1"}, "line 1: expected an image's encoded bytes, got str"),
    ],
)
def test_bad_rows_are_named(tmp_path, row, message):
    with pytest.raises(ValueError, match=message):
        load_records(jsonl(tmp_path / "own.jsonl", row), "train")[0]


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv"])
def test_another_encoding_is_named_with_its_file(tmp_path, suffix):
    path = tmp_path / f"own.{suffix}"
    path.write_bytes(b"question,answer\nq,\xff\n")
    with pytest.raises(ValueError, match=rf"own.{suffix}: expected UTF-8 text, got the byte 0xff"):
        load_records(path, "train")


def test_not_a_dataset(tmp_path):
    with pytest.raises(ValueError, match="expected a dataset folder with manifest.json"):
        load_records(tmp_path, "train")
    with pytest.raises(ValueError, match="which does not exist"):
        load_records(tmp_path / "nowhere", "train")


def test_a_missing_split_is_answered_with_those_there_are(clocks):
    with pytest.raises(ValueError, match="has no split 'dev'; it has train, validation, test"):
        load_records(clocks, "dev")


def test_a_folder_with_a_spoilt_file_is_refused(clocks, tmp_path):
    folder = tmp_path / "spoilt"
    shutil.copytree(clocks, folder)
    for path in (folder / "data").glob("train-*.parquet"):
        path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="expected readable Parquet files"):
        load_records(folder, "train")
    (folder / "manifest.json").write_text("[1]")
    with pytest.raises(ValueError, match="expected an object with counts"):
        load_records(folder, "test")


def test_a_folder_that_lost_a_file_is_refused(clocks, tmp_path):
    folder = tmp_path / "cut"
    shutil.copytree(clocks, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["counts"]["train"] += 1
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="promises .* train records"):
        load_records(folder, "train")


def test_transparent_pixels_are_white_paper_not_the_colour_under_them():
    assert open_image(png(color=(255, 0, 0, 0), mode="RGBA")).getpixel((3, 3)) == (255, 255, 255)
    half = open_image(png(color=(0, 0, 0, 128), mode="RGBA")).getpixel((3, 3))
    assert all(abs(channel - 127) <= 1 for channel in half)


def test_16_bits_are_scaled_not_clipped():
    gradient = Image.fromarray(np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16))
    out = io.BytesIO()
    gradient.save(out, "PNG")
    levels = np.asarray(open_image(out.getvalue()))[..., 0]
    assert levels.min() == 0 and levels.max() == 255 and 120 < levels.mean() < 135
    check_image(out.getvalue())


def test_floating_point_pixels_are_refused_by_both_readers():
    out = io.BytesIO()
    Image.new("F", (8, 8), 0.5).save(out, "TIFF")
    for reader in (open_image, check_image):
        with pytest.raises(ValueError, match="record 'x': expected 8 or 16 bits a channel"):
            reader(out.getvalue(), "x")


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "I;16", "CMYK"])
def test_every_mode_becomes_rgb(mode):
    out = io.BytesIO()
    Image.new(mode, (8, 8)).save(out, "TIFF" if mode in ("CMYK", "I;16") else "PNG")
    assert open_image(out.getvalue()).mode == "RGB"


def jpeg(size=(40, 20), orientation=None) -> bytes:
    out, exif = io.BytesIO(), Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    Image.effect_noise(size, 60).convert("RGB").save(out, "JPEG", exif=exif)
    return out.getvalue()


@pytest.mark.parametrize("orientation", [None, 1, 3, 6, 8])
def test_sizes_are_those_of_the_upright_image(orientation):
    data = jpeg(orientation=orientation)
    assert image_size(data) == open_image(data).size


@pytest.mark.parametrize(
    "data",
    [b"", b"no image", png()[:-30], png()[:40] + b"\x00" * 10 + png()[50:], jpeg()[: len(jpeg()) // 2]],
    ids=["empty", "text", "cut png", "spoilt png", "cut jpeg"],
)
def test_broken_images_are_found_by_both_readers(data):
    for reader in (open_image, check_image):
        with pytest.raises(ValueError, match="record 'x': expected an image that Pillow can read"):
            reader(data, "x")


def test_good_images_pass_the_quick_check():
    for data in (png(), jpeg()):
        check_image(data)


def test_another_folder_of_the_same_name_is_never_loaded_in_its_place(tmp_path):
    """`datasets` keys its cache by a folder's last name, so the card names its configuration after the content."""
    from datasets import load_dataset

    from synth.clocks import main

    for seed in ("0", "1"):
        out = tmp_path / seed / "clocks"
        argv = ["--n", "4", "--preset", "plain", "--size", "64", "--workers", "1", "--splits", '{"test": 1}']
        assert main([*argv, "--seed", seed, "--out", str(out)]) == 0
        assert load_dataset(str(out), split="test")[0]["id"].startswith(f"clock-{seed}-")
        assert load_records(out, "test")[0].id.startswith(f"clock-{seed}-")
