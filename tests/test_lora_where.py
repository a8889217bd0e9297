"""Adapters on the vision tower and the projector: exactly where they were asked for, trained, merged, and never cached away."""

import json

import pytest
import torch

from smmd_vlm.cli import main
from smmd_vlm.collate import Collator, Encoder
from smmd_vlm.config import LoraConfig, ModelConfig
from smmd_vlm.model import add_lora, load_base, load_for_prediction, load_processor
from smmd_vlm.objective import NumericObjective
from smmd_vlm.preflight import check_gradients
from smmd_vlm.records import Record, read_predictions
from smmd_vlm.trainer import terms_of
from smmd_vlm.visioncache import check_tower_is_frozen
from smmd_vlm.vocab import NumericVocab
from tests.support import png
from tests.test_dryrun import QLORA

FAMILIES = ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5"]
PLACES = [(False, False), (True, False), (False, True), (True, True)]
TOWER, PROJECTOR = {"vision_tower": True}, {"multi_modal_projector": True}


def place_of(name: str) -> str:
    """Which part of a model a linear layer belongs to, from how the families name their parts."""
    if ".visual." in name:
        return "projector" if "merger" in name else "tower"
    return "language" if ".language_model.layers." in name else "other"


def load(tiny, family, *, four_bit=False, **where):
    config = ModelConfig(model_name_or_path=str(tiny(family)), load_in_4bit=four_bit, dtype="float32")
    model = add_lora(load_base(config), LoraConfig(r=4, **where), load_in_4bit=four_bit)
    return model, load_processor(config)


def batch_of(processor):
    encoder = Encoder(processor)
    records = [
        Record(id=str(n), image=png(color=(60 * n, 9, 90)), question="How many?", answer=str(137 * n)) for n in (1, 2, 3)
    ]
    return Collator(processor)([encoder(record) for record in records])


def backward(model, processor):
    objective = NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer))
    terms_of(model.train(), objective, batch_of(processor)).loss.backward()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("vision", "projector"), PLACES)
def test_adapters_sit_on_every_linear_layer_of_what_was_asked_for(tiny, family, vision, projector):
    model, _ = load(tiny, family, vision_tower=vision, multi_modal_projector=projector)
    base = model.get_base_model()
    adapted = {name for name, module in base.named_modules() if hasattr(module, "lora_A")}
    plain = {name for name, _ in load_base(ModelConfig(model_name_or_path=str(tiny(family)))).named_modules()}
    linear = {
        name
        for name in plain
        if isinstance(base.get_submodule(name), torch.nn.Linear) or hasattr(base.get_submodule(name), "lora_A")
    }
    asked = {"language"} | ({"tower"} if vision else set()) | ({"projector"} if projector else set())
    gates = {name for name in linear if name.endswith(("in_proj_a", "in_proj_b"))}  # one number a head: too small for a rank
    assert adapted == {name for name in linear if place_of(name) in asked} - gates
    assert {place_of(name) for name in adapted} == asked


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("four_bit", [False, True], ids=["fp32", "4-bit"])
def test_every_adapter_gets_a_gradient_and_nothing_else_does(tiny, family, four_bit):
    model, processor = load(tiny, family, four_bit=four_bit, **TOWER, **PROJECTOR)
    if four_bit:  # as QLoRA is run
        model.gradient_checkpointing_enable({"use_reentrant": False})
    backward(model, processor)
    check_gradients(model)
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == ("lora_" in name), name
        if "lora_B" in name:  # lora_A's is zero while B is
            assert parameter.grad.abs().max() > 0, name
    seen = {place_of(name) for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert seen == {"language", "tower", "projector"}


def test_the_tower_under_its_adapters_stays_unquantised(tiny):
    import bitsandbytes as bnb

    model, _ = load(tiny, "qwen3_vl", four_bit=True, **TOWER, **PROJECTOR)
    kinds = {name: type(m.base_layer) for name, m in model.named_modules() if hasattr(m, "lora_A")}
    assert {kind for name, kind in kinds.items() if place_of(name) != "language"} == {torch.nn.Linear}
    assert {kind for name, kind in kinds.items() if place_of(name) == "language"} == {bnb.nn.Linear4bit}


@pytest.mark.parametrize(("where", "moves"), [({}, (False, False)), (TOWER, (True, True)), (PROJECTOR, (False, True))])
def test_a_step_moves_the_features_that_were_asked_to_move(tiny, where, moves):
    """(the tower's output, the projector's): a projector behind a frozen tower changes its own output alone."""
    model, processor = load(tiny, "qwen3_vl", **where)
    batch = batch_of(processor)

    def features():
        with torch.no_grad():
            out = model.eval().get_base_model().model.visual(batch["pixel_values"], grid_thw=batch["image_grid_thw"])
        return out.last_hidden_state, out.pooler_output

    before = features()
    backward(model, processor)
    torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1.0).step()
    assert tuple(not torch.equal(a, b) for a, b in zip(before, features(), strict=True)) == moves


@pytest.mark.parametrize("where", [TOWER, PROJECTOR])
def test_features_of_a_tower_that_learns_are_not_cached(tiny, where):
    model, _ = load(tiny, "qwen3_vl", **where)
    with pytest.raises(ValueError, match="data.vision_cache needs a frozen vision tower"):
        check_tower_is_frozen(model)
    check_tower_is_frozen(load(tiny, "qwen3_vl")[0])


def settings(tiny, data, out):
    options = {
        "model.model_name_or_path": tiny(), "model.load_in_4bit": "true", "lora.r": 4, "lora.vision_tower": "true",
        "lora.multi_modal_projector": "true", "data.dataset": data, "data.image_max_tokens": 4, "train.output_dir": out, "train.max_steps": 6,
        "train.per_device_train_batch_size": 8, "train.learning_rate": 1e-2, "train.save_strategy": "no", "train.use_cpu": "true",
        "train.disable_tqdm": "true",
    }  # fmt: skip
    return ["train", *(part for name, value in options.items() for part in (f"--{name}", str(value)))]


def test_a_run_with_all_three_is_predicted_from_and_merged(tiny, clocks, tmp_path):
    run, merged = tmp_path / "run", tmp_path / "merged"
    assert main(settings(tiny, clocks, run)) == 0
    model, _ = load_for_prediction(str(run))
    learned = {place_of(name) for name, p in model.named_parameters() if "lora_B" in name and p.abs().max() > 0}
    assert learned == {"language", "tower", "projector"}
    assert main(["export", "--model", str(run), "--data", str(clocks), "--out", str(merged), "--dtype", "float32"]) == 0
    said = []
    for place in (run, merged):
        out = tmp_path / f"{place.name}.jsonl"
        argv = ["predict", "--model", str(place), "--data", str(clocks), "--out", str(out), "--max_new_tokens", "6"]
        assert main([*argv, "--dtype", "float32"]) == 0
        said.append([(p.id, p.prediction) for p in read_predictions(out)])
    assert said[0] == said[1]


@pytest.mark.parametrize("dry", [False, True])
def test_what_cannot_work_is_refused_before_or_in_the_plan(tiny, clocks, tmp_path, capsys, dry):
    flags = ["--dry-run"] if dry else []
    assert main([*settings(tiny, clocks, tmp_path / "run"), "--data.vision_cache", str(tmp_path / "features"), *flags]) == 2
    assert "needs a frozen vision tower" in capsys.readouterr().err
    data = tmp_path / "sums.jsonl"
    data.write_text(json.dumps({"question": "2 + 2?", "answer": "4"}) + "\n")
    assert main([*settings(tiny, data, tmp_path / "run"), *flags]) == 2
    assert (
        "expected images for lora.vision_tower and lora.multi_modal_projector, got none in 1 records" in capsys.readouterr().err
    )
    assert {path.name for path in tmp_path.iterdir()} == {"sums.jsonl"}


@pytest.mark.parametrize("name", ["vision_tower", "multi_modal_projector"])
def test_settings_that_contradict_each_other(name):
    with pytest.raises(ValueError, match="got lora.enabled=false, which trains every parameter"):
        LoraConfig(enabled=False, **{name: True})
    with pytest.raises(ValueError, match="got both; name the layers"):
        LoraConfig(target_modules=".*q_proj", **{name: True})


def test_the_plan_names_and_counts_every_place(clocks, capsys):
    plan = [*QLORA, "--data.dataset", str(clocks)]
    assert main(plan) == 0
    frozen = capsys.readouterr().out
    assert main([*plan, "--lora.vision_tower", "true", "--lora.multi_modal_projector", "true"]) == 0
    said = capsys.readouterr().out
    # rank 16 x (in + out): qkv, proj, fc1, fc2 of 24 blocks of width 1024 and 4096; one merger and three deepstack ones
    tower = 16 * 24 * (1024 + 3072 + 1024 + 1024 + 2 * (1024 + 4096))
    projector = 16 * 4 * (4096 + 4096 + 4096 + 2560)
    lines = {" ".join(line.split()) for line in said.splitlines()}
    assert f"LoRA, vision tower {tower:,} parameters in 96 modules" in lines
    assert f"LoRA, projector {projector:,} parameters in 8 modules" in lines
    assert "LoRA, language layers" in said and "LoRA, vision tower" not in frozen

    def activations(text):
        return float(text.partition("activations ")[2].split()[0])

    assert activations(said) > activations(frozen)  # a tower that learns keeps its activations


def test_a_first_step_without_an_image_is_no_reason_to_stop(tiny, tmp_path, capsys):
    """Three steps of one record each: text alone, then two pictures."""
    (tmp_path / "a.png").write_bytes(png(color=(9, 90, 9)))
    rows = [
        {"question": "7 + 8?", "answer": "15"},
        *({"image": "a.png", "question": "How many?", "answer": str(n)} for n in (3, 4)),
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"id": f"r{n}", **row}) + "\n" for n, row in enumerate(rows)))
    argv = [
        "train", "--model.model_name_or_path", str(tiny()), "--lora.vision_tower", "true", "--lora.multi_modal_projector", "true",
        "--data.dataset", str(tmp_path / "rows.jsonl"), "--data.image_max_tokens", "16", "--train.output_dir", str(tmp_path / "run"),
        "--train.max_steps", "3", "--train.per_device_train_batch_size", "1", "--train.train_sampling_strategy", "sequential",
        "--train.use_cpu", "true", "--train.save_strategy", "no", "--train.logging_steps", "1", "--train.learning_rate", "1e-3",
    ]  # fmt: skip
    assert main(argv) == 0, capsys.readouterr().err
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) >= 3


@pytest.mark.parametrize("images", [False, True])
def test_without_an_image_only_the_towers_gradients_may_be_missing(tiny, images):
    model, processor = load(tiny, "qwen3_vl", **TOWER)
    backward(model, processor)
    in_tower = next(p for name, p in model.named_parameters() if "lora_B" in name and ".visual." in name)
    in_tower.grad = None
    if images:
        with pytest.raises(ValueError, match="1 trainable parameters got no gradient"):
            check_gradients(model)
    else:
        check_gradients(model, images=False)
    next(p for name, p in model.named_parameters() if "lora_B" in name and ".visual." not in name).grad = None
    with pytest.raises(ValueError, match="got no gradient"):
        check_gradients(model, images=images)
