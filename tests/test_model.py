"""4-bit on a CPU: what is quantised, that gradients survive evaluation, and that an adapter comes back the same."""

import pytest
import torch

from smmd_vlm.collate import Collator, Encoder
from smmd_vlm.config import LoraConfig, ModelConfig
from smmd_vlm.model import (
    FAMILIES,
    add_lora,
    check_quantised,
    family_of,
    load_base,
    load_for_prediction,
    load_processor,
    quantised_modules,
)
from smmd_vlm.objective import NumericObjective, targets
from smmd_vlm.preflight import check_gradients
from smmd_vlm.records import Record
from smmd_vlm.trainer import kept_logits
from smmd_vlm.vocab import NumericVocab
from tests.support import png


def load(tiny, family, **options):
    config = ModelConfig(model_name_or_path=str(tiny(family)), load_in_4bit=True, dtype="float32", **options)
    model = add_lora(load_base(config), LoraConfig(r=4, lora_alpha=8), load_in_4bit=True)
    processor = load_processor(config)
    encoder = Encoder(processor)
    samples = [
        encoder(Record(id=str(i), image=png(color=(40 * i, 0, 90)), question="How many?", answer=str(137 * i)))
        for i in range(1, 5)
    ]
    return model, Collator(processor)(samples), NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer))


def step(model, batch, objective, optimizer) -> float:
    model.train()
    terms = objective.rows(kept_logits(model, batch), targets(batch["labels"]))
    terms.loss.backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None and parameter.grad.isfinite().all(), name
    optimizer.step()
    optimizer.zero_grad()
    return terms.loss.item()


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl"])
def test_training_and_evaluation_alternate_in_4_bit(tiny, family, tmp_path):
    """An eval() forward repacks 4-bit weights on AVX512-BF16 CPUs; unguarded, training then loses gradients."""
    model, batch, objective = load(tiny, family)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)
    losses = [step(model, batch, objective, optimizer) for _ in range(20)]
    model.eval()
    with torch.no_grad():
        kept_logits(model, batch)
    losses += [step(model, batch, objective, optimizer) for _ in range(20)]
    assert losses[20] < losses[0] and losses[-1] < losses[20]

    model.eval()
    with torch.no_grad():
        before = kept_logits(model, batch)
    model.save_pretrained(tmp_path)
    load_processor(ModelConfig(model_name_or_path=str(tiny(family)))).save_pretrained(tmp_path)
    (tmp_path / "config.yaml").write_text(
        f"model: {{model_name_or_path: {tiny(family)}, load_in_4bit: true, dtype: float32}}\n"
    )
    again, _ = load_for_prediction(str(tmp_path))
    with torch.no_grad():
        after = kept_logits(again, batch)
        with again.disable_adapter():
            base = kept_logits(again, batch)
    assert torch.equal(before, after)
    assert not torch.allclose(after, base)  # the adapter does something


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl", "qwen3_5"])
def test_only_language_layers_are_quantised_and_adapted(tiny, family):
    model, _, _ = load(tiny, family)
    names = quantised_modules(model)
    assert names and all("model.language_model.layers." in name for name in names)
    adapted = {name for name, module in model.named_modules() if hasattr(module, "lora_A")}
    assert adapted and all("model.language_model.layers." in name for name in adapted)
    kinds = {name.rsplit(".", 1)[1] for name in adapted}
    assert {"gate_proj", "up_proj", "down_proj"} <= kinds
    assert ("in_proj_qkv" in kinds) == (family == "qwen3_5")


def test_checkpointing_keeps_every_gradient(tiny):
    model, batch, objective = load(tiny, "qwen3_vl")
    model.gradient_checkpointing_enable({"use_reentrant": False})
    step(model, batch, objective, torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1))


def test_nothing_is_upcast(tiny):
    config = ModelConfig(model_name_or_path=str(tiny("qwen3_vl")), load_in_4bit=True, dtype="bfloat16")
    base = load_base(config)
    assert base.model.visual.patch_embed.proj.weight.dtype == torch.bfloat16
    assert base.model.language_model.embed_tokens.weight.dtype == torch.bfloat16


def test_full_fine_tuning_of_4_bit_weights_is_refused(tiny):
    config = ModelConfig(model_name_or_path=str(tiny("qwen3_vl")), load_in_4bit=True)
    with pytest.raises(ValueError, match="4-bit weights cannot be trained"):
        add_lora(load_base(config), LoraConfig(enabled=False), load_in_4bit=True)


def test_a_pattern_that_matches_nothing_is_refused(tiny):
    with pytest.raises(ValueError, match="matches no module"):
        add_lora(
            load_base(ModelConfig(model_name_or_path=str(tiny()))), LoraConfig(target_modules="q_proj"), load_in_4bit=False
        )


def test_an_adapter_of_another_model_is_refused(tiny, tmp_path):
    model, _, _ = load(tiny, "qwen3_vl")
    model.save_pretrained(tmp_path)
    from safetensors.torch import load_file, save_file

    weights = load_file(tmp_path / "adapter_model.safetensors")
    save_file({name: w for name, w in weights.items() if "layers.1." not in name}, tmp_path / "adapter_model.safetensors")
    load_processor(ModelConfig(model_name_or_path=str(tiny()))).save_pretrained(tmp_path)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="adapter weights are missing"):
        load_for_prediction(str(tmp_path))


def test_kept_rows_equal_dense_rows(tiny):
    model = load_base(ModelConfig(model_name_or_path=str(tiny("qwen3_vl")))).eval()
    _, batch, _ = load(tiny, "qwen3_vl")
    features = {name: value for name, value in batch.items() if name not in ("labels", "ids")}
    with torch.no_grad():
        kept, dense = kept_logits(model, batch), model(**features).logits
    from smmd_vlm.objective import supervised

    expected = dense[supervised(batch["labels"])]
    assert ((kept - expected).norm() / expected.norm()).item() < 2e-6


def test_unknown_families_and_missing_models_are_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="expected a model of type qwen2_vl, .*, got 'bert'"):
        family_of("bert")
    assert family_of("qwen3_vl") is FAMILIES["qwen3_vl"]
    with pytest.raises(ValueError, match="expected a model folder or hub name"):
        load_base(ModelConfig(model_name_or_path=str(tmp_path / "nothing")))


def test_a_16_bit_weight_in_a_4_bit_layer_is_found(tiny):
    model, _, _ = load(tiny, "qwen3_vl")
    name = quantised_modules(model.get_base_model())[0]
    layer = model.get_base_model().get_submodule(name)
    layer.weight = torch.nn.Parameter(torch.zeros(layer.out_features, layer.in_features), requires_grad=False)
    with pytest.raises(ValueError, match="got 1 with 16-bit weights"):
        check_quantised(model.get_base_model(), family_of("qwen3_vl"))


def test_a_quantised_tower_is_found(tiny):
    from transformers import BitsAndBytesConfig, Qwen3VLForConditionalGeneration

    # the list that 4.x recipes use skips nothing in transformers 5
    wrong = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", llm_int8_skip_modules=["visual", "lm_head"])
    model = Qwen3VLForConditionalGeneration.from_pretrained(tiny(), quantization_config=wrong)
    with pytest.raises(ValueError, match="expected the vision tower and the head to stay unquantised"):
        check_quantised(model, family_of("qwen3_vl"))


def test_a_prequantised_checkpoint_is_refused(tiny, tmp_path):
    import json
    import shutil

    shutil.copytree(tiny(), tmp_path / "gptq")
    config = json.loads((tmp_path / "gptq" / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (tmp_path / "gptq" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="quantised with gptq; name its 16-bit base"):
        load_base(ModelConfig(model_name_or_path=str(tmp_path / "gptq")))


def test_a_frozen_tower_keeps_no_graph(tiny):
    model, batch, _ = load(tiny, "qwen3_vl")
    base = model.train().get_base_model()
    features = base.get_image_features(batch["pixel_values"], batch["image_grid_thw"], return_dict=True)
    assert not any(part.requires_grad for part in features.pooler_output)


def test_parameters_without_a_gradient_are_found(tiny):
    model, batch, objective = load(tiny, "qwen3_vl")
    objective.rows(kept_logits(model, batch), targets(batch["labels"])).loss.backward()
    check_gradients(model)
    lost = next(p for n, p in model.named_parameters() if "lora_B" in n)
    lost.grad = None
    with pytest.raises(ValueError, match="1 trainable parameters got no gradient"):
        check_gradients(model)
    lost.grad = torch.full_like(lost, torch.nan)
    with pytest.raises(FloatingPointError, match="not finite"):
        check_gradients(model)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl", "qwen3_5"])
def test_the_class_is_the_conditional_generation_one(tiny, family):
    """An adapter of the language model's own class would load beside vLLM's without effect."""
    assert type(load_base(ModelConfig(model_name_or_path=str(tiny(family))))).__name__.endswith("ForConditionalGeneration")


def test_4_bit_weights_can_be_stored_for_fsdp(tiny):
    config = ModelConfig(model_name_or_path=str(tiny()), load_in_4bit=True, bnb_4bit_quant_storage="bfloat16", dtype="bfloat16")
    base = load_base(config)
    assert base.get_submodule(quantised_modules(base)[0]).weight.dtype == torch.bfloat16
    assert {parameter.dtype for parameter in base.parameters()} == {torch.bfloat16}  # FSDP shards one dtype
