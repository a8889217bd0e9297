"""Rows that cross between the packages: what a prediction may hold, and that a bad one is named with its line."""

import json

import pytest

from smmd_vlm.records import Prediction, Record, read_predictions

GOOD = {"id": "a", "question": "q", "answer": "1", "prediction": "2"}


def test_a_prediction_comes_back_as_it_was(tmp_path):
    row = Prediction(**GOOD, kind="bars", tolerance=0.5, new_tokens=3, finish_reason="stop")
    (tmp_path / "p.jsonl").write_text(row.to_json() + "\n")
    assert list(read_predictions(tmp_path / "p.jsonl")) == [row]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": 3}, "kind must be str or absent, got int"),
        ({"group": ["a"]}, "group must be str or absent, got list"),
        ({"tolerance": "wide"}, "tolerance must be float or absent, got str"),
        ({"tolerance": float("nan")}, "tolerance must be a finite number >= 0"),
        ({"tolerance": -1}, "tolerance must be a finite number >= 0"),
        ({"tolerance": True}, "tolerance must be float or absent, got bool"),
        ({"finish_reason": 5}, "finish_reason must be str or absent, got int"),
        ({"prediction": None}, "prediction must be text, got NoneType"),
        ({"answer_type": "digit"}, "answer_type must be one of"),
    ],
)
def test_bad_predictions_are_named_with_their_line(tmp_path, change, message):
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD | {"id": "b"} | change) + "\n")
    with pytest.raises(ValueError, match=message) as error:
        list(read_predictions(path))
    assert "p.jsonl, line 2" in str(error.value)


def test_an_id_may_occur_once(tmp_path):
    (tmp_path / "p.jsonl").write_text(2 * (json.dumps(GOOD) + "\n"))
    with pytest.raises(ValueError, match="id 'a' occurs twice"):
        list(read_predictions(tmp_path / "p.jsonl"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, [1]])
def test_a_record_has_no_value_that_is_no_finite_number(value):
    with pytest.raises(ValueError, match="value must be a finite number or null"):
        Record(id="a", question="q", answer="1", value=value)


@pytest.mark.parametrize("field", ["group", "kind", "unit", "task"])
def test_what_predictions_carry_on_is_text_from_the_start(field):
    with pytest.raises(ValueError, match=f"{field} must be text, got int"):
        Record(id="a", question="q", answer="1", **{field: 7})
