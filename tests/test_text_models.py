"""Text-only language models on the same path: samples, loss, 4 bit, a whole run with its export, and what they cannot take."""

import json
import math

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_vlm import preflight
from smmd_vlm.cli import main
from smmd_vlm.collate import Collator, Encoder, image_budget, set_image_budget
from smmd_vlm.config import LoraConfig, ModelConfig
from smmd_vlm.dataset import load_records
from smmd_vlm.model import add_lora, load_base, load_for_prediction, load_processor, quantised_modules
from smmd_vlm.objective import IGNORE_INDEX, NumericObjective
from smmd_vlm.records import Record, read_predictions
from smmd_vlm.tiny import SPECIAL_TOKENS, TEXT_CHAT_TEMPLATE, TEXT_FAMILIES, build_processor, compact_tokenizer
from smmd_vlm.trainer import terms_of
from smmd_vlm.vocab import NumericVocab
from tests.support import png

ENCODER = Encoder(build_processor(compact_tokenizer(), "llama"))
SUMS = [Record(id=str(n), question=f"What is {n} + {n * n}?", answer=str(n + n * n)) for n in (2, 7, 13, 400)]


def load(tiny, family, **options):
    config = ModelConfig(model_name_or_path=str(tiny(family)), dtype="float32", **options)
    return load_base(config), load_processor(config)


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    """A file of additions, 32 to learn and 8 to be tested on."""
    path = tmp_path_factory.mktemp("sums") / "sums.jsonl"
    rows = (
        {"question": f"{n} + {m}?", "answer": str(n + m), "split": "test" if (n + m) % 5 == 0 else "train"}
        for n in range(5)
        for m in range(10, 18)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def train(tiny, data, out, *flags, family="llama"):
    options = {
        "model.model_name_or_path": tiny(family), "lora.r": 8, "data.dataset": data, "data.eval_split": "test", "train.output_dir": out,
        "train.max_steps": 8, "train.per_device_train_batch_size": 8, "train.learning_rate": 1e-2, "train.save_steps": 4,
        "train.eval_strategy": "steps", "train.eval_steps": 8, "train.use_cpu": "true", "train.disable_tqdm": "true",
    }  # fmt: skip
    return main(["train", *(part for name, value in options.items() for part in (f"--{name}", str(value))), *flags])


def test_contents_are_strings_for_the_template_and_the_labels_are_the_answer():
    assert "part" not in TEXT_CHAT_TEMPLATE  # it would fail on a list of parts
    sample = Encoder(ENCODER.processor, system_prompt="Be brief.")(SUMS[0])
    assert ENCODER.tokenizer.decode(sample["input_ids"]) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is 2 + 4?<|im_end|>\n<|im_start|>assistant\n6<|im_end|>"
    )
    kept = sample["labels"][sample["labels"] != IGNORE_INDEX]
    assert ENCODER.tokenizer.decode(kept) == "6<|im_end|>"


def plain(text: str) -> bool:
    return bool(text.strip()) and not any(token in text for token in SPECIAL_TOKENS)


@settings(deadline=None)
@given(question=st.text(min_size=1).filter(plain), number=st.integers(), digits=st.integers(0, 3))
def test_any_question_and_number_come_back(question, number, digits):
    record = Record(id="a", question=question, answer=f"{number}.{'0' * digits}" if digits else str(number))
    sample = ENCODER(record)
    text = ENCODER.tokenizer.decode(sample["input_ids"], clean_up_tokenization_spaces=False)
    assert text == ENCODER.render(ENCODER.messages(record), generation_prompt=True) + record.answer + "<|im_end|>"
    assert (sample["labels"] != IGNORE_INDEX).sum() == len(record.answer) + 1  # one token a character


def test_a_tokenizer_that_adds_tokens_of_its_own_adds_none_to_the_template():
    from tokenizers.processors import TemplateProcessing

    tokenizer = compact_tokenizer()
    start = tokenizer.convert_tokens_to_ids("<|im_start|>")
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", start)]
    )
    assert tokenizer("7")["input_ids"][0] == start  # as Llama's do
    encoder = Encoder(build_processor(tokenizer, "llama"))
    assert torch.equal(encoder(SUMS[0])["input_ids"], ENCODER(SUMS[0])["input_ids"])
    stats = preflight.scan(SUMS, encoder, NumericVocab.from_tokenizer(tokenizer))
    assert stats.longest == max(len(encoder(record)["input_ids"]) for record in SUMS)


def test_a_batch_holds_what_a_text_model_takes():
    batch = Collator(ENCODER.processor, "left")([ENCODER(record) for record in SUMS])
    assert batch.keys() == {"ids", "input_ids", "attention_mask", "labels"}
    assert image_budget(ENCODER.processor) == (0, 0)
    with pytest.raises(ValueError, match="expected a model that reads images for 16 image tokens"):
        set_image_budget(ENCODER.processor, 4, 16)


def slow_loss(logits, labels, vocab, weight, sigma):
    """Token-mean cross-entropy + weight x SMMD over the numbers, from the logits of every position, one at a time."""
    ids, values = vocab.token_ids, vocab.token_values
    kernel = [[math.exp(-((a - b) ** 2) / (2 * sigma**2)) for b in values] for a in values]
    degree = [sum(row) for row in kernel]
    alpha = len(values) / (2 * sum(degree))
    entropies, numeric = [], []
    for row, targets in zip(logits.double(), labels.tolist(), strict=True):
        for place, target in enumerate(targets[1:]):
            if target == IGNORE_INDEX:
                continue
            entropies.append(-row[place].log_softmax(-1)[target].item())
            if target in ids:
                p = row[place][list(ids)].softmax(-1).tolist()
                r = [share - (token == target) for share, token in zip(p, ids, strict=True)]
                quadratic = sum(r[i] * kernel[i][j] * r[j] for i in range(len(r)) for j in range(len(r)))
                numeric.append((1 - alpha) * quadratic + alpha * sum(d * x * x for d, x in zip(degree, r, strict=True)))
    return sum(entropies) / len(entropies) + weight * sum(numeric) / len(numeric)


@pytest.mark.parametrize("family", TEXT_FAMILIES)
@pytest.mark.parametrize("four_bit", [False, True], ids=["fp32", "4-bit"])
def test_the_loss_of_kept_rows_is_that_of_all_logits(tiny, family, four_bit):
    model, processor = load(tiny, family, load_in_4bit=four_bit)
    vocab = NumericVocab.from_tokenizer(processor.tokenizer)
    objective = NumericObjective(vocab, loss="smmd", weight=0.7, sigmas=(2.0,))
    encoder = Encoder(processor)
    batch = Collator(processor)([encoder(record) for record in SUMS])
    with torch.no_grad():
        loss = terms_of(model.eval(), objective, batch).loss.item()
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    assert loss == pytest.approx(slow_loss(logits, batch["labels"], vocab, 0.7, 2.0), rel=1e-5)


@pytest.mark.parametrize("family", TEXT_FAMILIES)
def test_in_4_bit_every_language_layer_and_nothing_else_is_quantised_and_adapted(tiny, family):
    model, processor = load(tiny, family, load_in_4bit=True)
    assert type(model).__name__.endswith("ForCausalLM")
    projections = {
        f"model.layers.{layer}.{name}"
        for layer in range(2)
        for name in (*(f"self_attn.{x}_proj" for x in "qkvo"), *(f"mlp.{x}_proj" for x in ("gate", "up", "down")))
    }
    assert set(quantised_modules(model)) == projections
    adapted = add_lora(model, LoraConfig(r=4), load_in_4bit=True)
    base = adapted.get_base_model()
    assert {name for name, module in base.named_modules() if hasattr(module, "lora_A")} == projections
    encoder = Encoder(processor)
    batch = Collator(processor)([encoder(record) for record in SUMS])
    objective = NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer))
    terms_of(adapted.train(), objective, batch).loss.backward()
    preflight.check_gradients(adapted)


@pytest.mark.parametrize("family", TEXT_FAMILIES)
def test_a_prompt_means_the_same_alone_and_padded(tiny, family):
    model, processor = load(tiny, family)
    samples = [Encoder(processor, with_answer=False)(record) for record in SUMS]
    collate = Collator(processor, "left")

    def next_token(*picked):
        batch = collate(picked)
        return model.eval()(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, -1]

    with torch.no_grad():
        torch.testing.assert_close(next_token(*samples), torch.cat([next_token(sample) for sample in samples]))


@pytest.fixture(scope="module", params=["true", "false"], ids=["4-bit", "fp32"])
def run(request, tiny, sums, tmp_path_factory):
    out = tmp_path_factory.mktemp("text") / "run"
    assert train(tiny, sums, out, "--model.load_in_4bit", request.param) == 0
    return out


def test_run_checkpoint_and_export_give_the_same_answers(run, sums, tmp_path, capsys):
    passport = json.loads((run / "passport.json").read_text())
    assert passport["model"]["type"] == "llama" and passport["image_tokens"] == {"min": 0, "max": 0}
    merged = tmp_path / "merged"
    assert main(["export", "--model", str(run), "--data", str(sums), "--out", str(merged), "--dtype", "float32"]) == 0
    said = []
    for place in (run, run / "checkpoint-8", merged):
        out = tmp_path / f"{place.name}.jsonl"
        argv = ["predict", "--model", str(place), "--data", str(sums), "--out", str(out), "--max_new_tokens", "6"]
        assert main([*argv, "--dtype", "float32"]) == 0
        said.append([(p.id, p.prediction) for p in read_predictions(out)])
        assert json.loads(out.with_suffix(".meta.json").read_text())["image_tokens"] == {"min": 0, "max": 0}
    assert said[0] == said[1] == said[2] and len(said[0]) == 8 and any(text.isdigit() for _, text in said[0])
    capsys.readouterr()
    assert main([*argv, "--out", str(tmp_path / "other.jsonl"), "--image_max_tokens", "64"]) == 2
    assert "expected a model that reads images for 64 image tokens" in capsys.readouterr().err


def test_what_is_exported_needs_nothing_of_ours(run, sums, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    merged = tmp_path / "merged"
    assert main(["export", "--model", str(run), "--data", str(sums), "--out", str(merged), "--dtype", "float32"]) == 0
    assert not (merged / "processor_config.json").exists()
    tokenizer, model = AutoTokenizer.from_pretrained(merged), AutoModelForCausalLM.from_pretrained(merged).eval()
    ours, processor = load_for_prediction(str(run))
    record = load_records(str(sums), "test")[0]
    prompt = Encoder(processor, with_answer=False)(record)["input_ids"]
    theirs = tokenizer.apply_chat_template(
        [{"role": "user", "content": record.question}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )["input_ids"]
    assert torch.equal(theirs[0], prompt)
    with torch.no_grad():
        logits, adapted = model(theirs).logits, ours(theirs).logits
    assert ((logits - adapted).norm() / adapted.norm()).item() < 0.01  # 4-bit layers compute in bfloat16


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
def test_the_other_families_train_every_parameter(tiny, sums, tmp_path, family):
    assert train(tiny, sums, tmp_path / "run", "--lora.enabled", "false", "--lora.r", "1", family=family) == 0
    model, _ = load_for_prediction(str(tmp_path / "run"))
    start, _ = load(tiny, family)
    before = dict(start.named_parameters())
    assert all(not torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--data.image_max_tokens", "64"], "data.image_max_tokens is about images, got 64 for a model that reads text only"),
        (["--data.vision_cache", "features"], "data.vision_cache is about images"),
        (["--lora.vision_tower", "true"], "expected images for lora.vision_tower"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_settings_about_images_are_refused(tiny, sums, tmp_path, capsys, flags, message, dry):
    assert train(tiny, sums, tmp_path / "run", *flags, *(["--dry-run"] if dry else [])) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_adapters_on_a_tower_that_is_not_there_are_refused(tiny):
    model, _ = load(tiny, "llama")
    with pytest.raises(ValueError, match="expected a model with a vision tower .*, got a text-only one"):
        add_lora(model, LoraConfig(multi_modal_projector=True), load_in_4bit=False)


def test_a_record_with_an_image_is_refused(tiny, tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(png())
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps({"image": "a.png", "question": "How many?", "answer": "4"}) + "\n")
    for argv in (
        ["train", "--model.model_name_or_path", str(tiny("llama")), "--data.dataset", str(data), "--train.output_dir", "never"],
        ["predict", "--model", str(tiny("llama")), "--data", str(data), "--out", str(tmp_path / "p.jsonl")],
    ):
        assert main(argv) == 2
        assert "record 'data-1' has an image, but the model reads text only" in capsys.readouterr().err
    assert not (tmp_path / "p.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "parameters", "rank_sum"),
    [  # (in + out) of q, k, v, o, gate, up, down
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "134,515,008", 30 * (2 * 1152 + 2 * 768 + 3 * 2112)),
        ("Qwen/Qwen3-0.6B", "596,049,920", 28 * (2 * 3072 + 2 * 2048 + 3 * 4096)),
    ],
)
def test_a_dry_run_needs_no_weights(sums, capsys, name, parameters, rank_sum):
    argv = ["train", "--model.model_name_or_path", name, "--data.dataset", str(sums), "--train.output_dir", "never"]
    assert main([*argv, "--lora.r", "8", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"{parameters} parameters" in said and f"{8 * rank_sum:,} parameters in" in said
    assert "text is counted, and number tokens are named, by a stand-in\n" in said and "rehearsal two steps" in said
    assert "vision tower" not in said and "images    " not in said


def test_the_vocabulary_of_a_text_model_is_shown(tiny, capsys):
    assert main(["vocab", "--model", str(tiny("qwen3"))]) == 0
    assert "every digit is a token" in capsys.readouterr().out


def test_a_study_finds_its_small_text_models_again(sums, tmp_path, monkeypatch):
    from smmd_vlm import study as verb

    monkeypatch.setattr(verb, "run", lambda _, *words: main([str(word) for word in words]))  # here, not in a process of its own
    base = {"data": {"dataset": str(sums)}, "train": {"output_dir": "set by the study"}}
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    study = {
        "out": str(tmp_path / "study"), "base": str(tmp_path / "base.yaml"), "test": {"data": str(sums)}, "seeds": [0],
        "tiny": {"family": "llama", "hidden": 32, "layers": 1}, "cells": {"ce": {"loss.name": "none"}},
    }  # fmt: skip
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    plan = verb.read_plan(tmp_path / "study.yaml")
    verb._make_models(plan, list(plan.jobs()))
    (weights,) = (tmp_path / "study" / "models").rglob("model.safetensors")
    made = weights.stat().st_mtime_ns
    verb._make_models(plan, list(plan.jobs()))
    assert weights.stat().st_mtime_ns == made
