"""Anybody's rows: the shapes people have, what is refused, and several images in one question."""

import csv
import io
import json

import pytest
from PIL import Image

from smmd_vlm.collate import Encoder
from smmd_vlm.dataset import load_records
from smmd_vlm.objective import IGNORE_INDEX
from smmd_vlm.rows import to_record
from tests.support import png

TURNS = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": "3"}]
LLAVA = [{"from": "human", "value": "<image>\nHow many?"}, {"from": "gpt", "value": "3"}]
PARTS = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "How many?"}]}, TURNS[1]]


def record(row, folder=None):
    return to_record(row, where="here", default_id="own-1", folder=folder)


@pytest.mark.parametrize(
    "row",
    [
        {"image": png(), "question": "How many?", "answer": "3"},
        {"image": {"bytes": png(), "path": None}, "query": "How many?", "label": ["3"]},
        {"images": [png()], "messages": TURNS},
        {"image": png(), "conversations": LLAVA},
        {"images": [png()], "messages": PARTS},
    ],
    ids=["flat", "chartqa mirror", "messages", "llava", "content parts"],
)
def test_the_shapes_people_have(row):
    got = record(row)
    assert got.answer == "3" and got.question.endswith("How many?") and got.images == (png(),)


def test_pil_images_lose_nothing():
    image = Image.effect_noise((20, 10), 80).convert("RGB")
    got = record({"image": image, "question": "q", "answer": "1"})
    with Image.open(io.BytesIO(got.image)) as again:
        assert again.tobytes() == image.tobytes()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"messages": [*TURNS, *TURNS]}, "got user, assistant, user, assistant; make one row of every question"),
        ({"messages": [{"role": "system", "content": "s"}, *TURNS]}, "put a system message into data.system_prompt"),
        ({"question": "q", "answer": ["1", "2"]}, "answer must be text, got list"),
        ({"question": "q", "answer": 3}, "answer must be text, got int; write numbers as the text to be learned"),
        ({"answer": "3"}, "question missing"),
        ({"image": 7, "question": "q", "answer": "1"}, "expected an image as path, bytes or PIL image, got int"),
        ({"image": "a.png", "question": "q", "answer": "1"}, "which this source cannot resolve"),
        ({"image": png(), "question": "<image> and <image>", "answer": "1"}, "2 marks and 1 images"),
        ({"conversations": LLAVA}, "1 marks and 0 images"),
        ({"image_path": "a.png", "question": "q", "answer": "1"}, "got the key 'image_path'; rename it"),
        ({"messages": "hello"}, "expected a list of turns"),
        (
            {"messages": [{"role": "user", "content": 3}, TURNS[1]]},
            "expected a turn's content to be text or a list of parts, got int",
        ),
        ({"question": "q", "answer": "1", "value": "high"}, "value must be a number, got 'high'"),
        ({"question": "\ud800", "answer": "1"}, "not valid Unicode"),
        ({"question": "q", "answer": "1", "answer_type": "digit"}, "answer_type must be one of"),
    ],
)
def test_what_does_not_fit_is_said(row, message):
    with pytest.raises(ValueError, match=message) as error:
        record(row)
    assert str(error.value).startswith("here: ")


@pytest.mark.parametrize("suffix", [".json", ".csv", ".jsonl"])
def test_files_of_rows(tmp_path, suffix):
    (tmp_path / "a.png").write_bytes(png())
    rows = [
        {"image": "a.png", "question": "How many, all in all?", "answer": str(i), "split": s}
        for i, s in enumerate(["train", "test", "train"])
    ]
    path = tmp_path / f"own{suffix}"
    with open(path, "w", newline="") as out:
        if suffix == ".csv":
            writer = csv.DictWriter(out, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        else:
            out.write(json.dumps(rows) if suffix == ".json" else "\n".join(map(json.dumps, rows)))
    records = load_records(path, "train")
    assert [r.answer for r in records] == ["0", "2"] and records[0].image == png()
    assert len({r.id for r in records}) == 2


def test_a_byte_order_mark_hides_no_column(tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "bom.csv").write_text("image,question,answer\na.png,How many?,3\n", encoding="utf-8-sig")
    (tmp_path / "bom.jsonl").write_text('{"image": "a.png", "question": "How many?", "answer": "3"}\n', encoding="utf-8-sig")
    for name in ("bom.csv", "bom.jsonl"):
        assert load_records(tmp_path / name, "train")[0].images == (png(),)


def test_an_unquoted_comma_does_not_cut_an_answer(tmp_path):
    (tmp_path / "own.csv").write_text("question,answer\nHow much?,1,234\n")
    with pytest.raises(ValueError, match="line 2: more cells than the header has; put quotes"):
        load_records(tmp_path / "own.csv", "train")


@pytest.mark.parametrize(
    ("answer", "kind", "value"),
    [
        ("12:05", "time", 5), ("03:30", "time", 210), ("2010", "year", 2010), ("1,234.5", "number", 1234.5), ("-3", "number", -3),
        ("0.07", "number", 0.07), ("1e999", "text", None), ("12,34", "text", None), ("three", "text", None), ("43%", "text", None),
    ],
)  # fmt: skip
def test_an_untyped_answer_says_what_it_is(answer, kind, value):
    got = record({"question": "q", "answer": answer})
    assert (got.answer_type, got.value) == (kind, value)
    assert record({"question": "q", "answer": answer, "answer_type": "text"}).answer_type == "text"
    assert record({"question": "q", "answer": answer, "answer_type": None, "id": None}).answer_type == kind


def test_a_hub_name_is_asked_for_and_its_absence_said():
    with pytest.raises(ValueError, match="expected a dataset folder, a data file or a hub dataset, got 'nobody/nothing'"):
        load_records("nobody/nothing", "train")


def test_several_images_stand_where_their_marks_are(tiny):
    from transformers import AutoProcessor

    encoder = Encoder(AutoProcessor.from_pretrained(tiny()))
    marked = record({"images": [png(), png(color="red")], "question": "Left <image> or right <image>?", "answer": "2"})
    sample = encoder(marked)
    text = encoder.tokenizer.decode(sample["input_ids"])
    pad = "<|image_pad|>" * 4
    assert f"Left <|vision_start|>{pad}<|vision_end|> or right <|vision_start|>{pad}<|vision_end|>?" in text
    assert len(sample["image_grid_thw"]) == 2 and int(sample["mm_token_type_ids"].sum()) == 8
    assert encoder.tokenizer.decode(sample["labels"][sample["labels"] != IGNORE_INDEX]) == "2<|im_end|>"
    plain = encoder(record({"images": [png(), png()], "question": "Which?", "answer": "2"}))
    assert f"user\n<|vision_start|>{pad}<|vision_end|><|vision_start|>{pad}<|vision_end|>Which?" in encoder.tokenizer.decode(
        plain["input_ids"]
    )


def test_lengths_are_counted_as_they_are_encoded(tiny):
    from transformers import AutoProcessor

    from smmd_vlm.collate import set_image_budget
    from smmd_vlm.preflight import scan
    from smmd_vlm.vocab import NumericVocab

    processor = AutoProcessor.from_pretrained(tiny())
    set_image_budget(processor, 4, 40)
    encoder = Encoder(processor)
    records = [
        record({"images": [png(200, 90), png(64, 300)], "question": "Left <image> or right <image>?", "answer": "2"}),
        to_record(
            {"image": png(500, 410), "question": "How many?", "answer": "1,234.5"}, where="here", default_id="b", folder=None
        ),
        to_record({"question": "2 + 2?", "answer": "4"}, where="here", default_id="c", folder=None),
    ]
    stats = scan(records, encoder, NumericVocab.from_tokenizer(processor.tokenizer))
    samples = [encoder(r) for r in records]
    assert stats.longest == max(len(s["input_ids"]) for s in samples)
    assert sorted(stats.image_token_counts) == sorted(int((s["mm_token_type_ids"] > 0).sum()) for s in samples)
    assert stats.answer_tokens == sum(int((s["labels"] != IGNORE_INDEX).sum()) for s in samples)
    assert stats.numeric_tokens == 1 + 5 + 1
