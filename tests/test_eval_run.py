"""python -m eval run: one command from a benchmark to a report, resumed at sample level; and the sanity floor."""

from __future__ import annotations

import json
import random

import pytest

from eval.cli import main
from eval.evaluate import evaluate
from smmd_vlm.records import Prediction, read_predictions
from tests.support import png

QUESTIONS = 24


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Random weights whose answers differ from picture to picture."""
    from smmd_vlm.config import TinyConfig
    from smmd_vlm.tiny import save_tiny

    folder = tmp_path_factory.mktemp("model") / "tiny"
    save_tiny(TinyConfig(out=str(folder), hidden=64, layers=2, seed=1))
    return folder


@pytest.fixture(scope="module")
def chartqa(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chartqa")
    draw = random.Random(0)
    (folder / "test" / "png").mkdir(parents=True)
    rows = []
    for i in range(QUESTIONS):
        size, color = (draw.randrange(40, 160), draw.randrange(40, 160)), tuple(draw.randrange(256) for _ in range(3))
        (folder / "test" / "png" / f"{i}.png").write_bytes(png(*size, color=color))
        rows.append({"imgname": f"{i}.png", "query": "How many " + "very " * (i % 7) + "tall bars?", "label": str(i % 3)})
    (folder / "test" / "test_human.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


def argv(model, chartqa, out, *more: object) -> list[str]:
    base = ["run", "--model", model, "--benchmark", "chartqa", "--data", chartqa, "--out", out, "--max_new_tokens", 6]
    return [str(word) for word in (*base, "--dtype", "float32", *more)]


@pytest.fixture(scope="module")
def whole(model, chartqa, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "whole"
    assert main(argv(model, chartqa, out, "--batch_size", 8)) == 0
    return out


def said(out) -> dict[str, str]:
    return {each.id: each.prediction for each in read_predictions(out / "predictions.jsonl")}


def test_one_command_leaves_data_answers_report_and_facts(whole, model):
    assert {path.name for path in whole.iterdir()} == {
        "run.json",
        "data",
        "predictions.jsonl",
        "predictions.meta.json",
        "report",
    }
    facts = json.loads((whole / "run.json").read_text(encoding="utf-8"))
    assert facts["settings"]["model"] == str(model) and len(facts["model"]["weights_sha256"]) == 64
    assert facts["prompt"]["name"] == "short" and facts["model"]["dtype"] == "float32"
    assert facts["dataset"]["content_hash"].startswith("sha256-sum:") and facts["dataset"]["counts"] == {"test": QUESTIONS}
    assert facts["image_tokens"]["max"] >= 1 and facts["versions"]["transformers"] and "greedy" in facts["decoding"]
    report = json.loads((whole / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["meta"] == facts and report["n"] == QUESTIONS and report["concerns"]
    assert "model.weights_sha256" in (whole / "report" / "report.md").read_text(encoding="utf-8")
    assert (
        len(said(whole)) == QUESTIONS and len(set(said(whole).values())) > 1
    )  # answers differ, so their equality says something


def test_batch_8_gives_batch_1s_answers(whole, model, chartqa, tmp_path):
    assert main(argv(model, chartqa, tmp_path / "one", "--batch_size", 1)) == 0
    assert said(tmp_path / "one") == said(whole)


def test_interrupted_at_random_moments_no_sample_is_lost_or_answered_twice(whole, model, chartqa, tmp_path, monkeypatch):
    """The script of benchmarks/bench_eval.py kills real processes; here the loop is stopped and half a line left behind."""
    import smmd_vlm.predict as predict

    answers, draw, out = predict.answers, random.Random(1), tmp_path / "out"
    for _ in range(5):
        left = draw.randrange(6)

        def stopped(*args, left=left, **options):
            for place, prediction in enumerate(answers(*args, **options)):
                if place == left:
                    raise KeyboardInterrupt
                yield prediction

        monkeypatch.setattr(predict, "answers", stopped)
        with pytest.raises(KeyboardInterrupt):
            main(argv(model, chartqa, out, "--batch_size", 4))
        with open(out / "predictions.jsonl", "a", encoding="utf-8") as lines:
            lines.write('{"id": "chartqa-test-hum')
    monkeypatch.setattr(predict, "answers", answers)
    assert main(argv(model, chartqa, out, "--batch_size", 4)) == 0
    ids = [each.id for each in read_predictions(out / "predictions.jsonl")]  # refuses an id that occurs twice
    assert ids == [f"chartqa-test-human-{i}" for i in range(QUESTIONS)] and said(out) == said(whole)


def test_limit_takes_the_first_and_grows(model, chartqa, tmp_path, capsys):
    assert main(argv(model, chartqa, tmp_path / "out", "--limit", 3)) == 0
    assert list(said(tmp_path / "out")) == [f"chartqa-test-human-{i}" for i in range(3)]
    assert main(argv(model, chartqa, tmp_path / "out", "--limit", 5)) == 0
    assert len(said(tmp_path / "out")) == 5 and "wrote 5 answers and their report" in capsys.readouterr().out
    assert main(argv(model, chartqa, tmp_path / "out", "--limit", 2)) == 0
    assert json.loads((tmp_path / "out" / "report" / "report.json").read_text(encoding="utf-8"))["n"] == 2


def test_a_folder_of_ours_is_a_benchmark(model, clocks, tmp_path):
    words = ["run", "--model", model, "--benchmark", "folder", "--data", clocks, "--out", tmp_path / "out", "--limit", 4]
    assert main([str(word) for word in words]) == 0
    assert len(said(tmp_path / "out")) == 4 and not (tmp_path / "out" / "data").exists()


def test_what_is_refused(whole, model, chartqa, tmp_path, capsys):
    def refused(*words: object) -> str:
        assert main([str(word) for word in words]) == 2
        return capsys.readouterr().err.splitlines()[-1]

    assert "was run with prompt None, this call has 'qwen'" in refused(*argv(model, chartqa, whole, "--prompt", "qwen"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("precious", encoding="utf-8")
    assert "holds other files" in refused(*argv(model, chartqa, tmp_path / "mine"))
    assert "is a file" in refused(*argv(model, chartqa, tmp_path / "mine" / "a.txt"))
    assert "expected a benchmark" in refused(*argv(model, chartqa, tmp_path / "no", "--benchmark", "charts"))
    assert "one split" in refused(*argv(model, chartqa, tmp_path / "no", "--split", "all"))
    assert "belong to `convert`" in refused(*argv(model, chartqa, tmp_path / "no", "--benchmark", "folder", "--sample", 2))
    assert "does not exist" in refused(*argv(model, tmp_path / "nowhere", tmp_path / "no"))
    assert not (tmp_path / "no").exists()


def test_the_running_accuracy_reads_whole_lines_only(tmp_path, capsys):
    import time

    from eval.run import running_accuracy

    path = tmp_path / "p.jsonl"
    lines = [json.dumps({"id": str(i), "question": "?", "answer": "5", "prediction": str(5 + i % 2)}) + "\n" for i in range(4)]
    with running_accuracy(path, every_s=0.02):
        path.write_text("".join(lines[:2]) + lines[2][:20], encoding="utf-8")
        said = ""
        while "2 answers, 50.0% right so far" not in said:
            time.sleep(0.02)
            said += capsys.readouterr().out
        path.write_text("".join(lines), encoding="utf-8")
        while "4 answers, 50.0% right so far" not in said:
            time.sleep(0.02)
            said += capsys.readouterr().out
    assert "3 answers" not in said


# ---- the sanity floor ------------------------------------------------------------------------------------------------


def rows(golds: list[str], said: list[str], **more) -> list[Prediction]:
    return [
        Prediction(id=str(i), question="?", answer=gold, prediction=text, **more)
        for i, (gold, text) in enumerate(zip(golds, said, strict=True))
    ]


GOLDS = [str(i) for i in range(11, 31)] + ["Yes"] * 10


def test_a_sound_model_raises_no_concern():
    assert evaluate(rows(GOLDS, GOLDS)).concerns == ()
    assert evaluate(rows(GOLDS[:5], ["x"] * 5)).concerns == ()  # too few to say anything


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([str(900 + i) for i in range(30)], "always answering 'Yes' would reach 33.3%"),
        (["7"] * 30, "100% of the predictions are '7'"),
        (["I cannot tell."] * 20 + ["Yes"] * 10, "could not be read"),
        ([f"The answer is {gold}." for gold in GOLDS], "relaxed_strict 100.0%"),
        ([f"{gold} " + "because it is so " * 10 for gold in GOLDS], "longer than"),
    ],
)
def test_accidents_are_called_out(said, words):
    assert any(words in concern for concern in evaluate(rows(GOLDS, said)).concerns)


def test_the_token_limit_is_called_out():
    assert any("hit the token limit" in each for each in evaluate(rows(GOLDS, GOLDS, finish_reason="length")).concerns)


def test_another_headline_is_named_and_judges():
    near = rows(["100", "100", "True"], ["100", "104", "True."])
    assert [score.outcome for score in evaluate(near).scores] == ["right", "right", "wrong"]
    strict = evaluate(near, headline="numeric_equal")
    assert [score.outcome for score in strict.scores] == ["right", "wrong", "right"]  # True. by relaxed_strict
    assert strict.groups["other"]["headline"] == "numeric_equal v1"
    with pytest.raises(ValueError, match="expected a headline"):
        evaluate(near, headline="accuracy")
