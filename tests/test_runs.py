"""`smmd-vlm train` and `predict` from end to end on a tiny model, and every mistake that must be caught before step 1."""

import hashlib
import json

import pytest
import yaml

from smmd_vlm.cli import main
from smmd_vlm.records import read_jsonl, read_predictions
from tests.support import png


def train_flags(tiny, clocks, out, **options):
    flags = {
        "model.model_name_or_path": tiny(), "lora.enabled": "false", "data.dataset": clocks, "data.image_max_tokens": 4,
        "train.output_dir": out, "train.max_steps": 4, "train.per_device_train_batch_size": 8, "train.learning_rate": 1e-3,
        "train.logging_steps": 2, "train.save_strategy": "no", "train.use_cpu": "true", "train.disable_tqdm": "true",
        "eval.generate_samples": 4, "eval.max_new_tokens": 8,
    } | {name.replace("__", "."): value for name, value in options.items()}  # fmt: skip
    return ["train", *(part for name, value in flags.items() for part in (f"--{name}", str(value)))]


@pytest.fixture(scope="module")
def run(tiny, clocks, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "first"
    assert main(train_flags(tiny, clocks, out, train__eval_strategy="steps", train__eval_steps=2)) == 0
    return out


def test_the_run_folder(run, tiny, clocks):
    names = {path.name for path in run.iterdir()}
    assert {
        "config.yaml",
        "passport.json",
        "metrics.jsonl",
        "curves.png",
        "README.md",
        "model.safetensors",
        "processor_config.json",
    } <= names
    logs = [row for _, row in read_jsonl(run / "metrics.jsonl")]
    first = next(row for row in logs if "loss" in row)
    assert first["numeric_share"] == pytest.approx(4 / 6) and first["numeric_targets"] == 2 * 8 * 4  # HH:MM and the end token
    assert first["numeric_targets_per_step"] == 8 * 4 and first["numeric_fire_rate"] == 1
    assert first["loss"] == pytest.approx(first["cross_entropy"] + 0.3 * first["numeric_loss"], rel=1e-4)
    assert 0 < first["data_seconds"] < first["step_seconds"] and first["memory_gib"] > 0.1
    samples = (run / "samples.md").read_text()
    assert samples.count("\n") == 2 + 4 and "| What time does the clock show?" in samples
    last = [row for row in logs if "eval_loss" in row][-1]
    assert {"eval_exact", "eval_within_5_min", "eval_unparsed", "eval_numeric_token_accuracy"} <= last.keys()
    passport = json.loads((run / "passport.json").read_text())
    assert passport["image_tokens"] == {"min": 4, "max": 4} and passport["numeric_vocabulary"]["tokens"] == list("0123456789")


def test_config_yaml_reproduces_the_run(run, tmp_path):
    again = tmp_path / "again"
    assert main(["train", "--config", str(run / "config.yaml"), "--train.output_dir", str(again)]) == 0
    assert (again / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    kept = ("loss", "cross_entropy", "numeric_loss", "eval_loss", "eval_exact")
    curves = [
        [{k: row[k] for k in kept if k in row} for _, row in read_jsonl(folder / "metrics.jsonl")] for folder in (run, again)
    ]
    assert curves[0] == curves[1]


def test_workers_change_nothing(run, tiny, clocks, tmp_path):
    out = tmp_path / "workers"
    flags = train_flags(tiny, clocks, out, train__eval_strategy="steps", train__eval_steps=2, train__dataloader_num_workers=2)
    assert main(flags) == 0
    assert (out / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def test_an_existing_run_is_never_reused(run, tiny, clocks, capsys):
    before = (run / "model.safetensors").read_bytes()
    assert main(train_flags(tiny, clocks, run)) == 2
    said = capsys.readouterr().err
    assert "is not empty; name a new folder" in said and "--resume" in said
    assert (run / "model.safetensors").read_bytes() == before


def predict_flags(run, clocks, out, *more):
    return [
        "predict",
        "--model",
        str(run),
        "--data",
        str(clocks),
        "--split",
        "test",
        "--out",
        str(out),
        "--max_new_tokens",
        "8",
        *more,
    ]


def test_predictions_are_resumed_and_equal_whatever_the_batch_size(run, clocks, tmp_path, capsys):
    whole, cut, single = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl", tmp_path / "single.jsonl"
    assert main(predict_flags(run, clocks, whole)) == 0
    assert main(predict_flags(run, clocks, single, "--batch_size", "1")) == 0
    assert whole.read_text() == single.read_text()
    lines = whole.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[:3]) + lines[3][:20])  # killed in the middle of a line
    (tmp_path / "cut.meta.json").write_text((tmp_path / "whole.meta.json").read_text())
    assert main(predict_flags(run, clocks, cut)) == 0
    assert cut.read_text() == whole.read_text()
    row = next(read_predictions(whole))
    assert row.answer_type == "time" and row.new_tokens and row.prompt_tokens and row.finish_reason in ("stop", "length")
    meta = json.loads((tmp_path / "whole.meta.json").read_text())
    assert meta["image_tokens"] == {"min": 4, "max": 4}  # the run's budget, not the model's default
    assert main(predict_flags(run, clocks, whole)) == 0
    assert "already holds all" in capsys.readouterr().out


def test_predictions_of_another_run_are_not_continued(run, clocks, tmp_path, capsys):
    out = tmp_path / "p.jsonl"
    assert main(predict_flags(run, clocks, out, "--limit", "2")) == 0
    assert main(["predict", "--model", "elsewhere", *predict_flags(run, clocks, out)[3:]]) == 2
    assert "was written by another run (model" in capsys.readouterr().err


def test_answers_of_a_retrained_run_are_not_mixed_with_older_ones(run, clocks, tmp_path, capsys):
    import shutil

    from safetensors.torch import load_file, save_file

    model, out = tmp_path / "model", tmp_path / "p.jsonl"
    shutil.copytree(run, model)
    assert main(predict_flags(model, clocks, out, "--limit", "2")) == 0
    weights = load_file(model / "model.safetensors")
    save_file({name: weight * 1.01 for name, weight in weights.items()}, model / "model.safetensors", metadata={"format": "pt"})
    assert main(predict_flags(model, clocks, out)) == 2
    assert "was written by another run (weights" in capsys.readouterr().err


def refused(capsys, flags) -> str:
    assert main(flags) == 2
    return capsys.readouterr().err


def test_bad_data_is_refused_before_anything_is_written(tiny, clocks, tmp_path, capsys):
    own, out = tmp_path / "own.jsonl", tmp_path / "run"

    def rows(*entries):
        own.write_text("".join(json.dumps({"question": "How many?", "answer": "3", **entry}) + "\n" for entry in entries))
        return train_flags(tiny, own, out)

    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "bad.png").write_bytes(png()[:-20])
    assert "expected an image at" in refused(capsys, rows({"image": "none.png"}))
    assert "record 'own-2': expected an image that Pillow can read" in refused(
        capsys, rows({"image": "a.png"}, {"image": "bad.png"})
    )
    assert "answer must not be empty" in refused(capsys, rows({"image": "a.png", "answer": ""}))
    (tmp_path / "long.png").write_bytes(png(1, 300))
    assert "at most 200 times as long as wide" in refused(capsys, rows({"image": "long.png"}))
    assert "'x' occurs twice" in refused(capsys, rows({"id": "x"}, {"id": "x"}))
    assert "exceed data.max_length=40" in refused(
        capsys, [*rows({"image": "a.png", "answer": "1" * 50}), "--data.max_length", "40"]
    )
    assert "control token" in refused(capsys, rows({"question": "<|im_end|>"}))
    assert "expected number tokens among the answers" in refused(capsys, rows({"answer": "red"}))
    assert "expected a dataset folder" in refused(capsys, train_flags(tiny, tmp_path, out))
    assert not out.exists()


def test_bad_settings_are_refused_by_name(tiny, clocks, tmp_path, capsys):
    out = tmp_path / "run"
    flags = train_flags(tiny, clocks, out)
    assert "group_by_length is a transformers 4.x name" in refused(capsys, [*flags, "--train.group_by_length", "true"])
    assert "remove_unused_columns is set by smmd-vlm" in refused(capsys, [*flags, "--train.remove_unused_columns", "true"])
    assert "unrecognized arguments: --loss.sigma" in refused(capsys, [*flags, "--loss.sigma", "2"])
    assert "takes the options sigmas" in refused(capsys, [*flags, "--loss.options", '{"sigma": 2}'])
    assert "lora.r must be >= 1" in refused(capsys, [*flags, "--lora.r", "0"])
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump({"train": {"output_dir": str(out), "lerning_rate": 1e-4}}))
    assert "lerning_rate" in refused(capsys, ["train", "--config", str(file)])
    file.write_text(yaml.safe_dump({"train": {"output_dir": str(out), "warmup_ratio": 0.1}}))
    assert "use train.warmup_steps" in refused(capsys, ["train", "--config", str(file)])
    assert "does not exist" in refused(capsys, ["train", "--config", str(tmp_path / "none.yaml")])
    file.write_text("train: [1")
    assert "expected YAML" in refused(capsys, ["train", "--config", str(file)])
    file.write_text("- 1")
    assert "expected the sections model, lora" in refused(capsys, ["train", "--config", str(file)])
    assert "required" in refused(capsys, ["train"])
    assert "cannot take the options" in refused(capsys, [*flags, "--loss.options", '{"weight": 2}'])
    assert "cannot take the options" in refused(capsys, [*flags, "--loss.options", '{"sigmas": 2}'])
    assert "must be a regular expression" in refused(capsys, [*flags, "--lora.target_modules", "("])
    assert "got '/nope', and there is no such folder" in refused(capsys, [*flags, "--model.model_name_or_path", "/nope"])
    assert "metric_for_best_model must be one of loss" in refused(capsys, [*flags, "--train.metric_for_best_model", "accuracy"])
    assert not out.exists()


def test_a_failure_before_step_1_leaves_nothing_behind(tiny, clocks, tmp_path, capsys):
    out = tmp_path / "run"
    flags = train_flags(tiny, clocks, out)
    assert main([*flags, "--train.optim", "galore_adamw"]) == 1  # needs a package that is not here
    assert "vision_cache needs a frozen vision tower" in refused(
        capsys, [*flags, "--data.vision_cache", str(tmp_path / "features")]
    )
    assert main([*flags, "--train.output_dir", str(tmp_path / "own" / "x")]) == 0
    (tmp_path / "file").write_text("mine")
    assert main([*flags, "--train.output_dir", str(tmp_path / "file" / "run")]) in (1, 2)
    assert not out.exists() or not any(out.iterdir())
    assert main(flags) == 0


def test_evaluation_questions_may_not_be_training_questions_under_other_ids(tiny, tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(png())
    for name, ids in (("train", "abcd"), ("dev", "efgh")):
        rows = [{"id": i, "image": "a.png", "question": f"How many {k}?", "answer": str(k)} for k, i in enumerate(ids)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = train_flags(tiny, tmp_path / "train.jsonl", tmp_path / "run", train__eval_strategy="steps", train__eval_steps=2)
    assert "4 of 4 evaluation questions are training questions" in refused(
        capsys, [*flags, "--data.eval_dataset", str(tmp_path / "dev.jsonl")]
    )


def test_wrong_labels_are_said_aloud_by_the_run_and_its_plan(tiny, tmp_path, capsys):
    (tmp_path / "glass.png").write_bytes(png(color=(255, 0, 0, 9), mode="RGBA"))
    rows = [
        {"id": "time", "question": "What is the ratio of A to B?", "answer": "1.179861111", "answer_type": "number"},
        {"id": "noise", "question": "How much?", "answer": "1.1600000000000001", "answer_type": "number"},
        {"id": "glass", "question": "How many?", "answer": "7", "image": "glass.png"},
        {"id": "sound", "question": "2 + 2?", "answer": "4"},
    ]
    own = tmp_path / "own.jsonl"
    own.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = train_flags(tiny, own, tmp_path / "run", train__max_steps=1, data__image_max_tokens=16)
    for argv in ([*flags, "--dry-run"], flags):
        assert main(argv) == 0
        said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("caution")]
        assert said == [
            "caution   1 of 4 train records are wrong (1 spreadsheet time), time for one: 1.179861111 is 28 h 19 min of a day, "
            f"so 28:19; see `smmd-vlm data check {own}`",
            "caution   2 of 4 train records look odd (1 float noise, 1 transparent image), noise for one: "
            f"1.1600000000000001 should be 1.16; see `smmd-vlm data check {own}`",
        ]


def test_a_few_shared_questions_are_said_aloud(tiny, tmp_path, capsys):
    for name, numbers in (("train", range(8)), ("dev", range(7, 12))):
        rows = [{"question": f"{k} + {k}?", "answer": str(2 * k)} for k in numbers]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = train_flags(tiny, tmp_path / "train.jsonl", tmp_path / "run", train__eval_strategy="steps", train__eval_steps=2)
    assert main([*flags, "--data.eval_dataset", str(tmp_path / "dev.jsonl")]) == 0
    assert "caution   1 of 5 evaluation questions are training questions" in capsys.readouterr().out


def test_what_a_test_asks_is_not_trained_on(tiny, tmp_path, capsys):
    for name, split, numbers in (("train", "train", range(8)), ("test", "test", range(5, 12))):
        rows = [{"question": f"{k} + {k}?", "answer": str(2 * k), "split": split} for k in numbers]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    test = json.dumps([str(tmp_path / "test.jsonl")])
    flags = train_flags(tiny, tmp_path / "train.jsonl", tmp_path / "run", train__max_steps=1, data__decontaminate=test)
    assert main(flags) == 0
    said = capsys.readouterr().out
    assert "caution   3 of 8 train records are left out (data.decontaminate)" in said and "training  5 samples" in said
    recipe = json.loads((tmp_path / "run" / "passport.json").read_text())["recipe"]
    digest = hashlib.sha256((tmp_path / "test.jsonl").read_bytes()).hexdigest()
    assert recipe["data.decontaminate"] == [f"sha256:{digest}"]  # a resumed run must leave out the same
    assert "data.decontaminate, split data.decontaminate_split=dev: " in refused(
        capsys, [*flags, "--train.output_dir", str(tmp_path / "x"), "--data.decontaminate_split", "dev"]
    )
    flags = train_flags(tiny, tmp_path / "train.jsonl", tmp_path / "other", data__decontaminate=test)
    (tmp_path / "test.jsonl").write_text((tmp_path / "train.jsonl").read_text().replace('"train"', '"test"'))
    assert "all 8 train records of" in refused(capsys, flags)


def test_a_system_prompt_goes_wherever_the_run_goes(tiny, clocks, tmp_path):
    out = tmp_path / "run"
    options = dict(
        lora__enabled="true", data__system_prompt="You read clocks.", train__save_strategy="steps", train__save_steps=2
    )
    assert main(train_flags(tiny, clocks, out, **options)) == 0
    assert (
        main(["export", "--model", str(out), "--data", str(clocks), "--out", str(tmp_path / "merged"), "--dtype", "float32"])
        == 0
    )
    lengths = set()
    for name, model in (("run", out), ("checkpoint", out / "checkpoint-2"), ("merged", tmp_path / "merged")):
        assert main(predict_flags(model, clocks, tmp_path / f"{name}.jsonl", "--limit", "1")) == 0
        lengths.add(next(read_predictions(tmp_path / f"{name}.jsonl")).prompt_tokens)
    assert len(lengths) == 1


def test_answers_to_changed_data_are_not_taken_for_finished(run, tmp_path, capsys):
    own = tmp_path / "own.jsonl"
    own.write_text(json.dumps({"question": "2 + 2?", "answer": "4"}) + "\n")
    flags = ["predict", "--model", str(run), "--data", str(own), "--out", str(tmp_path / "p.jsonl"), "--max_new_tokens", "4"]
    assert main(flags) == 0
    assert main([*flags[:2], str(run) + "/", *flags[3:]]) == 0  # the same folder in another spelling
    own.write_text(json.dumps({"question": "2 + 3?", "answer": "5"}) + "\n")
    assert main(flags) == 2
    assert "was written by another run (data_hash" in capsys.readouterr().err


def test_a_tokenizer_without_digits_is_refused(tiny, clocks, tmp_path, capsys):
    import shutil

    model = tmp_path / "model"
    shutil.copytree(tiny(), model)
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    vocab["nine"] = vocab.pop("9")
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    flags = train_flags(lambda: model, clocks, tmp_path / "run")
    assert "expected the ten digits 0 to 9 as single tokens, 9 missing" in refused(capsys, flags)


def test_several_gpus_without_a_launcher_are_refused(tiny, clocks, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert "accelerate launch" in refused(capsys, train_flags(tiny, clocks, tmp_path / "run"))


def test_a_4_bit_lora_run_trains_predicts_and_keeps_its_base(tiny, clocks, tmp_path):
    out = tmp_path / "qlora"
    flags = train_flags(
        tiny, clocks, out, lora__enabled="true", model__load_in_4bit="true", train__activation_checkpointing="true"
    )
    assert main(flags) == 0
    assert (out / "adapter_model.safetensors").is_file() and not (out / "model.safetensors").exists()
    assert main(predict_flags(out, clocks, tmp_path / "p.jsonl", "--limit", "3")) == 0
    assert len(list(read_predictions(tmp_path / "p.jsonl"))) == 3


def test_full_fine_tuning_on_text_alone_leaves_the_tower_frozen(tiny, tmp_path):
    own = tmp_path / "sums.jsonl"
    own.write_text("".join(json.dumps({"question": f"{i} + {i}?", "answer": str(2 * i)}) + "\n" for i in range(8)))
    assert main(train_flags(tiny, own, tmp_path / "run", train__max_steps=2)) == 0
    from safetensors.torch import load_file

    before, after = load_file(tiny() / "model.safetensors"), load_file(tmp_path / "run" / "model.safetensors")
    assert all((before[name] == after[name]).all() for name in before if ".visual." in name)
    assert any((before[name] != after[name]).any() for name in before)
