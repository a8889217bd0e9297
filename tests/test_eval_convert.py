"""python -m eval convert: every benchmark's shapes, samples, what is refused, and one format with synth's folders."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from eval import jsonstream
from eval.answers import read_answer
from eval.chartqa import from_rows
from eval.cli import main
from eval.items import PROMPTS, answer_text, to_record
from eval.jsonstream import stream_array
from smmd_vlm.dataset import load_records
from smmd_vlm.numerals import write_number
from tests.support import png


def convert(name: str, data: Path, out: Path, *more: str) -> list:
    assert main(["convert", name, "--data", str(data), "--out", str(out), *more]) == 0
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return [record for split in manifest["counts"] for record in load_records(out, split)]


def refused(capsys, *argv: object) -> str:
    assert main([str(each) for each in argv]) == 2
    said = capsys.readouterr().err
    assert said.endswith("\n") and "Traceback" not in said
    return said.splitlines()[-1]


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@pytest.fixture
def chartqa(tmp_path) -> Path:
    """The official layout, one file wrapped as {"data": [...]}; two questions about a.png, apart in their file."""
    root = tmp_path / "ChartQA Dataset"
    for split in ("train", "val", "test"):
        rows = [
            {"imgname": "a.png", "query": f"How many in {split}?", "label": "12"},
            {"imgname": "b.png", "query": "Which years?", "label": "[2013, 2016]"},
            {"imgname": "a.png", "query": "When??", "label": "2010"},
        ]
        write(root / split / f"{split}_human.json", rows)
        write(root / split / f"{split}_augmented.json", {"data": [{"imgname": "b.png", "query": "Who?", "label": "Peru"}]})
        write(root / split / "png" / "a.png", png(color="red"))
        write(root / split / "png" / "b.png", png(color="blue"))
    return root


def test_chartqa_from_the_official_folder_or_its_parent(chartqa, tmp_path):
    records = convert("chartqa", chartqa, tmp_path / "out")
    assert [record.id for record in records] == [
        "chartqa-test-human-0", "chartqa-test-human-2", "chartqa-test-human-1", "chartqa-test-augmented-0",
    ]  # fmt: skip
    first, year, years, who = records
    assert first.image == png(color="red") and first.group == "chartqa-a" and first.kind == "human" and first.task == "chart"
    assert first.question == "How many in test?\nAnswer the question using a single word or phrase."
    assert [(r.answer_type, r.value) for r in records] == [("number", 12.0), ("year", 2010.0), ("list", None), ("text", None)]
    assert json.loads(first.meta) == {"question": "How many in test?", "imgname": "a.png"} and who.kind == "augmented"
    assert convert("chartqa", chartqa.parent, tmp_path / "parent") == records
    whole = convert("chartqa", chartqa, tmp_path / "all", "--split", "all", "--prompt", "plain")
    assert [r.split for r in whole] == ["train"] * 4 + ["validation"] * 4 + ["test"] * 4 and whole[
        0
    ].question == "How many in train?"
    assert len(convert("chartqa", chartqa, tmp_path / "two", "--split", "train,val")) == 8


HF_ROWS = [
    {"query": "How many?", "label": ["12"], "human_or_machine": 0, "image": {"bytes": png(color="red"), "path": None}},
    {"question": "Who?", "answer": "Peru", "type": "augmented_test", "image": png(color="blue")},
    {"query": "Who?", "label": "Peru", "type": "human", "imgname": "x.png", "image": Image.new("RGB", (8, 8), "green")},
    {"question": "When?", "answer": "2010", "split": "test_human", "image": png()},
    {"query": "Both?", "label": ["a", "b"], "human_or_machine": "machine", "image": png()},
    {"question": "Not this split", "answer": "1", "split": "val_human", "image": png()},
]


def test_chartqa_from_the_mirrors_rows():
    items = list(from_rows(HF_ROWS, "test"))
    assert [item.kind for item in items] == ["human", "augmented", "human", "human", "augmented"]
    assert [item.answer for item in items] == ["12", "Peru", "Peru", "2010", "[a, b]"]
    assert [item.id for item in items][:3] == ["chartqa-test-human-0", "chartqa-test-augmented-0", "chartqa-test-human-1"]
    records = [to_record(item, prompt="plain") for item in items]
    assert records[1].image == png(color="blue") and records[2].group == "chartqa-x"
    assert Image.open(io.BytesIO(records[2].image)).size == (8, 8)
    with pytest.raises(ValueError, match="expected human or augmented"):
        list(from_rows([{"query": "?", "label": "1", "image": png()}], "test"))


def test_chartqa_from_parquet_files(tmp_path):
    rows = pa.Table.from_pylist(HF_ROWS[:1] * 3)
    (tmp_path / "hf" / "data").mkdir(parents=True)
    pq.write_table(rows, tmp_path / "hf" / "data" / "val-00000-of-00001.parquet")
    records = convert("chartqa", tmp_path / "hf", tmp_path / "out", "--split", "validation")
    assert len(records) == 3 and {r.split for r in records} == {"validation"} and len({r.group for r in records}) == 1


QA = [
    {"image_index": 3, "question_string": "Ratio?", "answer": 1.1600000000000001, "template": "reasoning", "type": "line", "question_id": 7},
    {"image_index": 3, "question_string": "Count?", "answer": 4, "template": "structural", "type": "line", "question_id": 8},
    {"image_index": 4, "question_string": "Label?", "answer": "Peru", "template": "data_retrieval", "type": "dot_line", "question_id": 9},
]  # fmt: skip


def test_plotqa_is_read_by_version(tmp_path, capsys):
    for name in ("qa_pairs_V1.json", "qa_pairs_V2.json"):
        write(tmp_path / "plotqa" / "test" / name, {"info": {"x": [1, "}"]}, "qa_pairs": QA})
    for index in (3, 4):
        write(tmp_path / "plotqa" / "test" / "png" / f"{index}.png", png())
    records = convert("plotqa_v2", tmp_path / "plotqa", tmp_path / "out")
    assert [r.answer for r in records] == ["1.16", "4", "Peru"] and records[0].value == 1.16
    assert [r.kind for r in records] == ["line / reasoning", "line / structural", "dot_line / data_retrieval"]
    assert records[0].id == "plotqa-v2-test-3-7" and records[0].group == records[1].group == "plotqa-test-3"
    assert json.loads(records[0].meta)["answer"] == 1.1600000000000001
    assert "plotqa_v1 or plotqa_v2" in refused(
        capsys, "convert", "plotqa", "--data", tmp_path / "plotqa", "--out", tmp_path / "no"
    )


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(rows=st.lists(st.dictionaries(st.text(), JSON_VALUES), max_size=6), chunk=st.integers(1, 40), indent=st.sampled_from([None, 1]), head=JSON_VALUES)  # fmt: skip
def test_streaming_equals_loading_whole(tmp_path_factory, rows, chunk, indent, head):
    path = tmp_path_factory.mktemp("stream") / "a.json"
    before = jsonstream.CHUNK
    jsonstream.CHUNK = chunk
    try:
        path.write_text(json.dumps({"head": head, "qa_pairs": rows, "tail": 1}, indent=indent), encoding="utf-8")
        assert list(stream_array(path, key="qa_pairs")) == rows
        path.write_text(json.dumps(rows, indent=indent), encoding="utf-8")
        assert list(stream_array(path, key="qa_pairs")) == rows
    finally:
        jsonstream.CHUNK = before


@pytest.mark.parametrize("text", ['{"qa": []}', '{"qa_pairs": [{"a": 1}', '{"qa_pairs": [{"a": }]}', "[1]", "", "5", '[{"a": NaN}]', '{"qa_pairs": 5}', '[{"a": 1} {"a": 2}]', "[" + '{"a":' * 5000])  # fmt: skip
def test_a_broken_stream_is_one_sentence(tmp_path, text):
    with pytest.raises(ValueError, match="a.json"):
        list(stream_array(write(tmp_path / "a.json", text), key="qa_pairs"))


def test_clock_csv(tmp_path, capsys):
    head = "file,hour,minute,second,valid,tol_min,kind\n"
    write(tmp_path / "c" / "labels.csv", head + "a.png,3,5,,1,,wall\nb.png,1,4-5,45,1,1,\nsub/c.png,,,,0,,\n")
    for name in ("a.png", "b.png", "sub/c.png"):
        write(tmp_path / "c" / name, png())
    plain, span, invalid = convert("clocks", tmp_path / "c", tmp_path / "out")
    assert (plain.answer, plain.value, plain.tolerance, plain.kind) == ("03:05", 185.0, None, "wall")
    assert (span.answer, span.value, span.tolerance) == ("01:04:45", 64.75, 1.0) and "HH:MM:SS" in span.question
    assert (invalid.answer, invalid.value, invalid.kind) == ('{"valid": false}', None, "sub")
    for row, said in [("../out.png,3,5", "outside"), ("a.png,3,x", "expected a number"), ("a.png,25,61", "no time of day"), ("a.png,,5", "an hour")]:  # fmt: skip
        write(tmp_path / "bad" / "labels.csv", "file,hour,minute\n" + row)
        assert said in refused(capsys, "convert", "clocks", "--data", tmp_path / "bad", "--out", tmp_path / "no")
    write(tmp_path / "bad" / "labels.csv", "name,hour,minute\na,1,2\n")
    assert "file missing" in refused(capsys, "convert", "clocks", "--data", tmp_path / "bad", "--out", tmp_path / "no")
    assert not (tmp_path / "no").exists() and not list(tmp_path.glob(".no*"))


def test_time_folders(tmp_path):
    write(tmp_path / "t" / "test" / "3-05" / "1.jpg", png())
    write(tmp_path / "t" / "valid" / "12-00" / "2.jpg", png())
    records = convert("time", tmp_path / "t", tmp_path / "out", "--split", "all")
    assert [(r.id, r.answer, r.value, r.split) for r in records] == [
        ("time-validation-12-00-2", "12:00", 0.0, "validation"),
        ("time-test-3-05-1", "03:05", 185.0, "test"),
    ]


def test_clockbench(tmp_path):
    ask = {"image_url": "images/a.png", "question_time": "What time? JSON.", "question_shift": "Plus 2 h?"}
    write(tmp_path / "cb" / "in.json", {"a": ask})
    answers = {
        "answer_time": '{"valid": true, "hours": 1, "minutes": [4, 5], "seconds": 45,}',
        "answer_shift": '{"valid": false}',
    }
    write(tmp_path / "cb" / "answers.json", {"a": answers})
    write(tmp_path / "cb" / "a.png", png())
    time, shift = convert("clockbench", tmp_path / "cb", tmp_path / "out")
    assert (time.question, time.answer, time.tolerance, time.kind) == ("What time? JSON.", "01:04:45", 1.0, "time")
    assert shift.answer == '{"valid": false}' and shift.kind == "shift" and time.group == shift.group


def test_text_maths(tmp_path):
    write(tmp_path / "g" / "test.jsonl", json.dumps({"question": "Sum?", "answer": "1 + 1\n#### 2,125"}))
    (gsm8k,) = convert("gsm8k", tmp_path / "g", tmp_path / "gsm8k")
    assert (gsm8k.answer, gsm8k.value, gsm8k.image, gsm8k.answer_type) == ("2125", 2125.0, None, "number")
    assert gsm8k.question.endswith("number alone.") and json.loads(gsm8k.meta)["solution"] == "1 + 1"
    row = {
        "ID": "chal-1",
        "Body": "He has 5.",
        "Question": "How many?",
        "Equation": "5",
        "Answer": 1875.0,
        "Type": "Common-Divison",
    }
    write(tmp_path / "s" / "SVAMP.json", [row])
    (svamp,) = convert("svamp", tmp_path / "s", tmp_path / "svamp")
    assert (svamp.answer, svamp.answer_type, svamp.kind) == ("1875", "number", "Common-Division")
    write(tmp_path / "m" / "interpolate" / "algebra.txt", "Solve x.\n-1/2\nIs 1 prime?\nFalse\n")
    half, prime = convert("mathematics", tmp_path / "m", tmp_path / "dm")
    assert (half.answer, half.value, half.kind) == ("-1/2", -0.5, "interpolate / algebra") and prime.answer_type == "text"


def test_a_sample_is_nested_published_and_can_be_asked_for(tmp_path, capsys):
    lines = [json.dumps({"question": f"{i}?", "answer": f"#### {i}"}) for i in range(200)]
    data = write(tmp_path / "test.jsonl", "\n".join(lines))
    small = convert("gsm8k", data, tmp_path / "small", "--sample", "10")
    large = convert("gsm8k", data, tmp_path / "large", "--sample", "50")
    other = convert("gsm8k", data, tmp_path / "other", "--sample", "10", "--seed", "1")
    assert {r.id for r in small} < {r.id for r in large} and {r.id for r in small} != {r.id for r in other}
    ids = tmp_path / "small" / "sample_ids.txt"
    assert ids.read_text(encoding="utf-8").split() == [r.id for r in small]
    assert convert("gsm8k", data, tmp_path / "again", "--ids", str(ids)) == small
    write(tmp_path / "ids.txt", "gsm8k-test-nope\n")
    assert "gsm8k-test-nope" in refused(
        capsys, "convert", "gsm8k", "--data", data, "--out", tmp_path / "x", "--ids", tmp_path / "ids.txt"
    )
    assert "more than the 200" in refused(
        capsys, "convert", "gsm8k", "--data", data, "--out", tmp_path / "x", "--sample", "201"
    )


def test_what_is_refused(chartqa, tmp_path, capsys):
    out = tmp_path / "out"
    convert("chartqa", chartqa, out)
    before = sorted(path.read_bytes() for path in out.rglob("*") if path.is_file())
    convert("chartqa", chartqa, out)  # complete: nothing is made again
    assert "already complete" in capsys.readouterr().out
    assert "prompt 'short', this run has 'plain'" in refused(
        capsys, "convert", "chartqa", "--data", chartqa, "--out", out, "--prompt", "plain"
    )
    assert sorted(path.read_bytes() for path in out.rglob("*") if path.is_file()) == before
    write(tmp_path / "mine" / "notes.txt", "precious")
    assert "holds other files (notes.txt" in refused(
        capsys, "convert", "chartqa", "--data", chartqa, "--out", tmp_path / "mine"
    )
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    new = tmp_path / "new"
    assert "a benchmark (chartqa" in refused(capsys, "convert", "charts", "--data", chartqa, "--out", new)
    assert "does not exist" in refused(capsys, "convert", "chartqa", "--data", tmp_path / "no", "--out", new)
    assert "found neither" in refused(capsys, "convert", "chartqa", "--data", tmp_path / "mine", "--out", new)
    assert "found no split" in refused(
        capsys, "convert", "chartqa", "--data", tmp_path / "mine", "--out", new, "--split", "all"
    )
    assert "--split takes" in refused(capsys, "convert", "chartqa", "--data", chartqa, "--out", new, "--split", "tset")
    assert "a prompt (plain" in refused(capsys, "convert", "chartqa", "--data", chartqa, "--out", new, "--prompt", "x")
    assert "at least 1" in refused(capsys, "convert", "chartqa", "--data", chartqa, "--out", new, "--sample", "0")
    rows = [{"imgname": "../../secret.png", "query": "?", "label": "1"}]
    write(chartqa / "test" / "test_human.json", rows)
    assert "lies outside" in refused(capsys, "convert", "chartqa", "--data", chartqa, "--out", new)
    write(chartqa / "test" / "test_human.json", [rows[0] | {"imgname": "none.png"}])
    assert "expected a picture" in refused(capsys, "convert", "chartqa", "--data", chartqa, "--out", new)
    assert not new.exists() and not list(tmp_path.glob(".new*"))


def test_what_a_killed_run_left_is_cleared_and_a_stranger_stays(chartqa, tmp_path, capsys):
    write(tmp_path / ".out.unfinished" / "unfinished", "")
    write(tmp_path / ".out.unfinished" / "data" / "test-00000.parquet", b"half")
    assert len(convert("chartqa", chartqa, tmp_path / "out")) == 4 and not (tmp_path / ".out.unfinished").exists()
    write(tmp_path / ".two.unfinished" / "notes.txt", "precious")
    assert "in the way" in refused(capsys, "convert", "chartqa", "--data", chartqa, "--out", tmp_path / "two")
    assert (tmp_path / ".two.unfinished" / "notes.txt").exists()


def test_one_format_with_the_generators(chartqa, tmp_path):
    """Schema, features and hash are those of synth's writer, so either side's tools read both."""
    import datasets

    from smmd_vlm import folder
    from synth import shards

    assert folder.SCHEMA.equals(shards.SCHEMA, check_metadata=True)
    records = convert("chartqa", chartqa, tmp_path / "out")
    assert [folder.digest(r) for r in records] == [shards.digest(r) for r in records]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["content_hash"] == shards.content_hash(shards.add_digests(*map(shards.digest, records)))
    assert shards.read_shard(tmp_path / "out" / "data" / "test-00000.parquet") == (
        4,
        shards.add_digests(*map(shards.digest, records)),
    )
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))["test"]
    assert loaded[0]["image"].size == (64, 64) and loaded[0]["answer"] == "12"


SVAMP_TRAIN = """Question,Numbers,Equation,Answer
"number1 of number0 , number10",7.0 2.5 0 0 0 0 0 0 0 0 9.0,/ number1 + number0 - number10 2.0,0.8333333333333334
"""


def test_svamp_trains_on_what_its_authors_train_on(tmp_path):
    write(tmp_path / "s" / "SVAMP.json", [{"Body": "He has 5", "Question": "how many?", "Answer": 5.0}])
    table = write(tmp_path / "s" / "data" / "mawps-asdiv-a_svamp" / "train.csv", SVAMP_TRAIN)
    train, test = convert("svamp", tmp_path / "s", tmp_path / "both", "--split", "all", "--prompt", "plain")
    assert (train.split, train.question, train.answer, train.value) == ("train", "2.5 of 7 , 9", "0.833333", 0.833333)
    assert json.loads(train.meta)["solution"] == "2.5 / (7 + (9 - 2))" and test.question == "He has 5, how many?"
    (alone,) = convert("svamp", table, tmp_path / "alone", "--split", "all", "--prompt", "plain")
    assert alone == train
    worked, same = convert(
        "svamp", tmp_path / "s", tmp_path / "worked", "--split", "all", "--prompt", "plain", "--solutions", "true"
    )
    assert worked.answer == "2.5 / (7 + (9 - 2))\n#### 0.833333" and worked.answer_type == "text" and same == test
    assert read_answer(worked.answer, answer_type="number").value == 0.833333


def test_gsm8k_solutions_come_without_their_calculator(tmp_path, capsys):
    row = {"question": "Sum?", "answer": "He has 48/2 = <<48/2=24>>24.\nSo 48+24 = <<48+24=72>>72.\n#### 72"}
    data = write(tmp_path / "train.jsonl", json.dumps(row))
    (record,) = convert("gsm8k", data, tmp_path / "out", "--split", "train", "--solutions", "true")
    assert record.answer == "He has 48/2 = 24.\nSo 48+24 = 72.\n#### 72"
    row = write(tmp_path / "m" / "train.jsonl", json.dumps({"module": "m", "question": "1 + 1?", "answer": "2"}))
    more = ("--out", tmp_path / "x", "--split", "train", "--solutions", "true")
    assert "--solutions is for gsm8k and svamp" in refused(capsys, "convert", "mathematics", "--data", row, *more)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [("number2 apples,1.0 2.0,3.0,3.0", "row 0: expected numbers for 'number2 apples'"), ("number0 apples,one,3.0,3.0", "got 'one'"), ("number0 apples,1.0,3.0,inf", "'inf'"), ("no answer,1.0,3.0", "expected one of Answer"), ("half a formula,1.0,+ number0,3.0", "'+ number0'"), ("no formula,1.0,x,3.0", "'x'"), ("two formulas,1.0,1.0 number0,3.0", "'1.0 number0'")],
)  # fmt: skip
def test_a_svamp_training_row_without_its_numbers_is_refused(tmp_path, capsys, row, complaint):
    table = write(tmp_path / "train.csv", f"Question,Numbers,Equation,Answer\n{row}\n")
    assert complaint in refused(capsys, "convert", "svamp", "--data", table, "--out", tmp_path / "x", "--split", "train")


def test_many_rows_make_several_files(tmp_path, monkeypatch):
    from smmd_vlm import folder

    monkeypatch.setattr(folder, "ROWS_PER_FILE", 30)
    monkeypatch.setattr(folder, "ROW_GROUP", 7)
    lines = [json.dumps({"question": f"{i}?", "answer": f"#### {i}"}) for i in range(100)]
    records = convert("gsm8k", write(tmp_path / "test.jsonl", "\n".join(lines)), tmp_path / "out")
    assert [r.answer for r in records] == [str(i) for i in range(100)]
    assert len(list((tmp_path / "out" / "data").iterdir())) == 4


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.1600000000000001, "1.16"), (25.083333333333332, "25.0833"), (90000.0, "90000"), (1842733.3333333333, "1842733"), (1e-7, "0.0000001"), (-0.0, "0"), (1234567.89, "1234567.89"), (87.4244, "87.4244"), (0.1 + 0.2, "0.3"), (220573907.9851, "220573907.9851"), (1e22, "1" + "0" * 22)],
)  # fmt: skip
def test_numbers_are_written_as_people_do(value, text):
    assert write_number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_number_reads_back(value):
    text = write_number(value)
    assert "e" not in text.lower() and not text.startswith("-0" if value == 0 else "x")
    assert float(text) == pytest.approx(value, rel=1e-5, abs=0)


def test_labels_become_text():
    assert [answer_text(each) for each in (["a"], ["a", 2.0], True, 3, " x ", 1.0)] == ["a", "[a, 2]", "Yes", "3", "x", "1"]
    assert all("{question}" in text or name == "clockqa" for name, text in PROMPTS.items())


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [("chartqa", "chartqa_sample", 120), ("plotqa", "plotqa_sample", 6), ("clocks", "clocks_sample", 60), ("clockbench", "clocks_sample/clockbench_mit", 40), ("gsm8k", "text_sample/gsm8k_test_200.jsonl", 200), ("svamp", "text_sample", 200), ("mathematics", "text_sample/dm_mathematics_200.jsonl", 200)],
)  # fmt: skip
def test_real_samples(shared, tmp_path, name, data, rows):
    records = convert(name, shared / "data" / data, tmp_path / "out")
    assert len(records) == rows == len({r.id for r in records})
