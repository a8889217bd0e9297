"""Real charts, dials and photographs go through the real Qwen3 tokenizer, collator, predict and score without a special case."""

import csv
import json

import pytest
import torch

from smmd_vlm.cli import main
from smmd_vlm.collate import Encoder
from smmd_vlm.dataset import load_records
from smmd_vlm.objective import IGNORE_INDEX
from smmd_vlm.records import read_predictions, write_jsonl
from smmd_vlm.tiny import CHAT_TEMPLATE, build_model, build_processor


@pytest.fixture(scope="module")
def model(tmp_path_factory, qwen_tokenizer_folder):
    """A tiny random Qwen3-VL behind the real tokenizer of 151,669 tokens."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("qwen3")
    tokenizer = AutoTokenizer.from_pretrained(qwen_tokenizer_folder)
    tokenizer.chat_template = CHAT_TEMPLATE
    build_model(tokenizer, hidden=32, layers=1).save_pretrained(folder)
    build_processor(tokenizer, tokens=(16, 64)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def samples(shared, tmp_path_factory):
    """One .jsonl beside links to all real images of the reference data."""
    folder = tmp_path_factory.mktemp("real")
    rows = []
    (folder / "chartqa").mkdir()
    for kind in ("human", "augmented"):
        questions = json.loads((shared / "data/chartqa_sample/test" / f"test_{kind}.json").read_text(encoding="utf-8"))
        for number, row in enumerate(questions):
            image = folder / "chartqa" / row["imgname"]
            image.write_bytes((shared / "data/chartqa_sample/test/png" / row["imgname"]).read_bytes())
            rows.append(
                {
                    "id": f"{kind}-{number}",
                    "image": f"chartqa/{image.name}",
                    "question": row["query"],
                    "answer": row["label"],
                    "kind": kind,
                }
            )
    clocks = shared / "data/clocks_sample"
    with open(clocks / "labels.csv", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            image = folder / row["file"]
            image.parent.mkdir(exist_ok=True)
            image.write_bytes((clocks / row["file"]).read_bytes())
            minute = row["minute"].partition("-")[0]
            answer = f"{int(row['hour']):02d}:{int(minute):02d}" if row["valid"] == "1" and minute else "invalid"
            rows.append(
                {
                    "id": row["file"],
                    "image": row["file"],
                    "question": "What time?",
                    "answer": answer,
                    "answer_type": "time",
                    "kind": row["kind"],
                }
            )
    for image in sorted((shared / "data/plotqa_sample").rglob("*.png")):
        (folder / image.name).write_bytes(image.read_bytes())
        rows.append(
            {"id": image.name, "image": image.name, "question": "What is the highest value?", "answer": "1.5", "kind": "plotqa"}
        )
    write_jsonl(folder / "real.jsonl", rows)
    return folder / "real.jsonl"


def test_every_sample_encodes_with_its_answer_as_labels(model, samples):
    from transformers import AutoProcessor

    encoder, records = Encoder(AutoProcessor.from_pretrained(model)), load_records(samples, "test")
    assert len(records) > 180
    for record in records:
        sample = encoder(record)
        kept = sample["labels"][sample["labels"] != IGNORE_INDEX]
        assert encoder.tokenizer.decode(kept) == record.answer + "<|im_end|>"
        tokens = int((sample["mm_token_type_ids"] > 0).sum())
        assert 16 <= tokens <= 64
        assert torch.isfinite(sample["pixel_values"]).all()


def test_predict_and_score(model, samples, tmp_path):
    out = tmp_path / "predictions.jsonl"
    assert main(["predict", "--model", str(model), "--data", str(samples), "--out", str(out), "--max_new_tokens", "4"]) == 0
    assert len(list(read_predictions(out))) == len(load_records(samples, "test"))
    from eval.cli import main as evaluate

    assert evaluate(["score", str(out), "--out", str(tmp_path / "report")]) == 0
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["n"] == len(load_records(samples, "test"))
