"""`smmd-vlm export`: dequantise, merge, and a folder that gives the adapter's answers by itself."""

import json

import pytest
import torch

from smmd_vlm.cli import main
from smmd_vlm.model import load_for_prediction, load_merged
from smmd_vlm.records import read_predictions


@pytest.fixture(scope="module", params=["true", "false"], ids=["4-bit", "16-bit"])
def run(request, tiny, clocks, tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "run"
    settings = {
        "model.model_name_or_path": tiny(), "model.load_in_4bit": request.param, "lora.r": 8, "lora.lora_alpha": 32, "data.dataset": clocks,
        "data.image_max_tokens": 4, "train.output_dir": out, "train.max_steps": 8, "train.per_device_train_batch_size": 8,
        "train.learning_rate": 1e-2, "train.save_strategy": "no", "train.use_cpu": "true", "train.disable_tqdm": "true",
    }  # fmt: skip
    assert main(["train", *(part for name, value in settings.items() for part in (f"--{name}", str(value)))]) == 0
    return out


def answers(model, clocks, out):
    argv = [
        "predict",
        "--model",
        str(model),
        "--data",
        str(clocks),
        "--out",
        str(out),
        "--max_new_tokens",
        "8",
        "--dtype",
        "float32",
    ]
    assert main(argv) == 0
    return [(p.id, p.prediction) for p in read_predictions(out)]


def test_the_merged_folder_answers_as_the_adapter_does(run, clocks, tmp_path, capsys):
    out = tmp_path / "merged"
    assert main(["export", "--model", str(run), "--data", str(clocks), "--out", str(out), "--dtype", "float32"]) == 0
    assert "the adapter moves them by" in capsys.readouterr().out
    origin = json.loads((out / "export.json").read_text())
    assert origin["logit_rms_merge"] < 0.02 * origin["logit_rms_adapter"]
    names = {path.name for path in out.iterdir()}
    assert {"config.json", "generation_config.json", "tokenizer.json", "chat_template.jinja", "processor_config.json"} <= names
    card = (out / "README.md").read_text()
    assert "library_name: transformers" in card and f"--model {out} " in card and "passport.json" in names
    assert any(name.endswith(".safetensors") for name in names) and not any("adapter" in name for name in names)
    assert "quantization_config" not in json.loads((out / "config.json").read_text())
    assert answers(out, clocks, tmp_path / "a.jsonl") == answers(run, clocks, tmp_path / "b.jsonl")


def test_merging_moves_every_adapted_weight(run):
    adapted, _ = load_for_prediction(str(run))
    merged = load_merged(str(run), torch.float32)
    layers = dict(merged.named_modules())
    moved = 0
    for name, module in adapted.get_base_model().named_modules():
        if hasattr(module, "lora_A"):
            delta = module.get_delta_weight("default")
            assert delta.abs().max() > 0
            assert layers[name].weight.shape == delta.shape
            moved += 1
    assert moved == 14  # two layers x seven projections


def test_an_adapter_that_does_nothing_is_refused(run, clocks, tmp_path, capsys):
    import shutil

    from safetensors.torch import load_file, save_file

    idle = tmp_path / "idle"
    shutil.copytree(run, idle)
    weights = load_file(idle / "adapter_model.safetensors")
    save_file({n: w * ("lora_A" in n) for n, w in weights.items()}, idle / "adapter_model.safetensors")
    assert main(["export", "--model", str(idle), "--data", str(clocks), "--out", str(tmp_path / "x")]) == 2
    assert "changes no logit" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_folder_beside_the_target_is_left_alone(run, clocks, tmp_path):
    (tmp_path / "merged.partial").mkdir()
    (tmp_path / "merged.partial" / "notes.txt").write_text("mine")
    assert (
        main(["export", "--model", str(run), "--data", str(clocks), "--out", str(tmp_path / "merged"), "--dtype", "float32"])
        == 0
    )
    assert (tmp_path / "merged.partial" / "notes.txt").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"merged", "merged.partial"}


def test_what_needs_no_export_or_has_no_room_is_refused(run, tiny, clocks, tmp_path, capsys):
    assert main(["export", "--model", str(tiny()), "--data", str(clocks), "--out", str(tmp_path / "x")]) == 2
    assert "a whole model needs no export" in capsys.readouterr().err
    assert main(["export", "--model", str(run), "--data", str(clocks), "--out", str(run)]) == 2
    assert "is not empty" in capsys.readouterr().err
