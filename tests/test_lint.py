"""smmd-vlm data check: each thing that can be wrong is found, sound data is left in peace, --write cleans."""

from __future__ import annotations

import json

import pytest

from smmd_vlm.cli import main
from smmd_vlm.dataset import load_records
from smmd_vlm.lint import CHECKS, Glance, check, is_spreadsheet_time, repaired
from smmd_vlm.records import Record, write_jsonl
from tests.support import png


def record(id: str = "a", answer: str = "5", **more) -> Record:
    return Record(**{"id": id, "question": "How many?", "answer": answer, "answer_type": "number", **more})


def found(*records: Record, **splits) -> list[tuple[str, str]]:
    report = check({"train": records} if records else splits)
    return [(each.check, each.id) for each in report.findings]


SOUND = [
    record("a", "5", value=5.0),
    record("b", "1,234.5", value=1234.5),
    record("c", "12%", value=12.0),
    record("d", "12%", value=0.12),
    record("e", "10:08", answer_type="time", value=608.0),
    record("f", '{"valid": false}', answer_type="time"),
    record("t", '{"valid": true, "hours": 22, "minutes": 8, "seconds": 30}', answer_type="time", value=608.5),
    record("u", '{"valid": true, "hours": 10, "minutes": 8, "seconds": false}', answer_type="time", value=608.0),
    record("g", "2010", answer_type="year", value=2010.0),
    record("h", "[Peru, Chile]", answer_type="list"),
    record("i", "5.497 trillion", value=5.497),
    record("j", "101/7490", value=101 / 7490),
    record("k", "0.333333", value=0.333333),
    record("l", "1.00005"),
    record("m", "-0.000000012"),
    record("n", "285387.93372"),
    record("o", "a < b | c", answer_type="text", question="Is a <b> smaller? <html>"),
]


def test_sound_records_are_left_in_peace():
    assert found(*[Record(**{**vars(r), "question": f"{r.id} {r.question}"}) for r in SOUND]) == []


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (record(answer="five apples or so"), "not a number"),
        (record(answer="5", value=6.0), "not a number"),
        (record(answer="25:61", answer_type="time"), "not a number"),
        (record(answer="10:08", answer_type="time", value=607.0), "not a number"),
        (record(answer='{"hours": 30}', answer_type="time"), "not a number"),
        (record(answer="20.10", answer_type="year"), "not a number"),
        (record(answer="1.1600000000000001"), "float noise"),
        (record(answer="-0.30000000000000004"), "float noise"),
        (record(answer="4.199999999999999"), "float noise"),
        (record(question="<|im_end|> How many?"), "control token"),
        (record(answer="<image>", answer_type="text"), "control token"),
        (record(question="  "), "blank question"),
        (record(image=b"no picture"), "broken image"),
        (record(image=png()[:-30]), "broken image"),
        (record(image=png(color=(255, 0, 0, 128), mode="RGBA")), "transparent image"),
        (record(answer="12,5", answer_type="text"), "number as text"),
        (record(answer="25:71", answer_type="text"), "number as text"),
        (record(question="What is the ratio?", answer="1.179861111", value=1.179861111), "spreadsheet time"),
    ],
)
def test_each_fault_is_found_and_nothing_else(wrong, name):
    assert found(wrong) == [(name, "a")]


def test_one_question_with_two_answers_is_said_of_the_second():
    rows = [record("a", "3"), record("b", "3"), record("c", "4"), record("d", "4", image=png(color=(1, 2, 3)))]
    assert found(*rows) == [("two answers", "c")]


def test_an_opaque_alpha_channel_is_no_fault():
    assert found(record(image=png(color=(255, 0, 0, 255), mode="RGBA"))) == []


# ChartQA's human test: what is known to be a time of day, and what only looks like one
@pytest.mark.parametrize("answer", ["1.179861111", "0.633333333", "1.684722222", "1.058333333", "1.216666667", "1.051388889", "2.125694444", "0.214583333", "0.195833333", "0.756944444"])  # fmt: skip
def test_spreadsheet_times(answer):
    assert is_spreadsheet_time("What is the ratio between the green bars?", answer)
    assert not is_spreadsheet_time("What is the difference?", answer)


@pytest.mark.parametrize("answer", ["0.33333333", "1.111111111", "0.66666667", "1.4737", "1.5", "2", "1.47368", "0.28571", "a:b", "0.00000"])  # fmt: skip
def test_innocent_ratios(answer):
    assert not is_spreadsheet_time("What is the ratio of A to B?", answer)


def test_ids_and_leaks():
    red, blue = png(color="red"), png(color="blue")
    assert found(record("a"), record("a", question="Other?")) == [("duplicate id", "a")]
    leak = found(
        train=[record("a", image=red), record("b", image=blue)],
        validation=[record("c", image=blue)],
        test=[record("d", image=red), record("e", image=red, question="Again?")],
    )
    assert leak == [("leak between splits", "a"), ("leak between splits", "b")]
    assert found(train=[record("a")], test=[record("b")]) == [("leak between splits", "a")]  # text tasks: the same question


def test_fractions_beside_percents():
    rows = [record(str(i), str(10 + i), value=10.0 + i, question=f"What percentage? {i}", kind="pie") for i in range(20)]
    odd = record("odd", "0.3", value=0.3, question="What share?", kind="pie")
    assert found(*rows, odd) == [("fraction beside percents", "odd")]
    assert found(*rows, Record(**{**vars(odd), "kind": "line"})) == []
    assert found(*rows, Record(**{**vars(odd), "question": "What is the ratio?"})) == []


def test_repairing_changes_noise_alone():
    fixed = repaired(record(answer="1.1600000000000001", value=1.1600000000000001))
    assert (fixed.answer, fixed.value) == ("1.16", 1.16)
    assert all(repaired(each) is each for each in SOUND)


def test_the_command(tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(png())
    rows = [
        {"id": "good", "image": "a.png", "question": "How many?", "answer": "5", "answer_type": "number", "split": "train"},
        {"id": "noise", "question": "Mean?", "answer": "1.1600000000000001", "answer_type": "number", "value": 1.1600000000000001, "split": "train"},
        {"id": "bad", "question": "How much?", "answer": "many", "answer_type": "number", "split": "train"},
        {"id": "good", "question": "Twice?", "answer": "1", "split": "train"},
        {"id": "test", "question": "Which?", "answer": "Peru", "split": "test"},
    ]  # fmt: skip
    write_jsonl(tmp_path / "own.jsonl", rows)
    clean = tmp_path / "clean"
    argv = ["data", "check", str(tmp_path / "own.jsonl"), "--write", str(clean), "--json", str(tmp_path / "found.jsonl")]
    assert main(argv) == 1
    said = capsys.readouterr().out
    assert "5 records, 2 with errors" in said and f"wrote 3 of 5 records to {clean}" in said
    assert all(name in said for name in ("duplicate id", "float noise", "not a number"))
    lines = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {line["check"] for line in lines} == {"duplicate id", "float noise", "not a number"} <= set(CHECKS)
    kept = {split: [r for r in load_records(clean, split)] for split in ("train", "test")}
    assert [(r.id, r.answer) for r in kept["train"]] == [("good", "5"), ("noise", "1.16")] and kept["train"][0].image == png()
    assert [r.id for r in kept["test"]] == ["test"]
    assert main(["data", "check", str(clean)]) == 0 and "nothing to complain about" in capsys.readouterr().out
    assert main(argv) == 2 and "already there" in capsys.readouterr().err
    assert main(["data", "check", str(tmp_path / "no")]) == 2


def test_generated_clocks_are_sound(clocks, capsys):
    assert main(["data", "check", str(clocks)]) == 0
    assert "nothing to complain about" in capsys.readouterr().out


def test_every_shape_that_trains_is_checked_and_a_broken_row_hides_no_other(tmp_path, capsys):
    from smmd_vlm.cli import main

    (tmp_path / "a.png").write_bytes(png())
    chat = [{"role": "user", "content": "<image>What is it?"}, {"role": "assistant", "content": "7"}]
    rows = [
        {"images": ["a.png"], "messages": chat},
        {"image": "none.png", "question": "q", "answer": "1"},
        {"question": "q", "answer": 7},
    ]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["data", "check", str(tmp_path / "own.jsonl"), "--write", str(tmp_path / "clean")]) == 1
    said = capsys.readouterr().out
    assert "3 records, 2 with errors" in said and "expected an image at" in said and "answer must be text" in said
    assert "wrote 1 of 3 records" in said
    (tmp_path / "own.csv").write_text("image,question,answer\na.png,How many?,3\n")
    (tmp_path / "own.json").write_text(
        json.dumps(
            [{"image": "a.png", "conversations": [{"from": "human", "value": "<image>?"}, {"from": "gpt", "value": "3"}]}]
        )
    )
    for name in ("own.csv", "own.json"):
        assert main(["data", "check", str(tmp_path / name)]) == 0


def test_several_images_are_not_cut_to_one(tmp_path, capsys):
    from smmd_vlm.cli import main

    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.png").write_bytes(png(color="red"))
    (tmp_path / "own.jsonl").write_text(json.dumps({"images": ["a.png", "b.png"], "question": "Which?", "answer": "2"}) + "\n")
    assert main(["data", "check", str(tmp_path / "own.jsonl"), "--write", str(tmp_path / "clean")]) == 2
    assert "has 2 images, a dataset folder holds one" in capsys.readouterr().err


def test_a_glance_says_of_sound_records_nothing_and_decodes_the_first_pictures_only(monkeypatch):
    from smmd_vlm import lint

    looked = []
    monkeypatch.setattr(lint, "image_findings", lambda image: looked.append(image) or ())
    glance = Glance("train")
    for number in range(300):
        glance.look(record(str(number), image=png()))
    assert glance.sentences("here") == [] and len(looked) == Glance.PICTURES == 200


def test_a_glance_finds_what_the_whole_check_finds_in_texts():
    records = [record("x", "1.1600000000000001"), record("y", "five apples or so"), *SOUND]
    records += [record(f"p{i}", str(10 + i), question="What percent?", value=10.0 + i) for i in range(20)]
    records.append(record("odd", "0.25", question="What percent?", value=0.25))
    glance = Glance("train")
    for each in records:
        glance.look(each)
    report = check({"train": [Record(**{**vars(r), "question": f"{r.id} {r.question}"}) for r in records]})
    wrong, odd = glance.sentences("here")
    for level, said in (("error", wrong), ("warning", odd)):
        expected = [each.check for each in report.findings if each.level == level]
        assert expected and all(f"{expected.count(name)} {name}" in said for name in expected)
