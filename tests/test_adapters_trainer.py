"""Other people's trainers on one machine: a plain loop, transformers' Trainer and TRL give the objective's own gradients.

A tiny text model; the eight samples hold none to many numbers, so a mean of means would show.
"""

import warnings

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from smmd_vlm import NumericObjective, NumericVocab
from smmd_vlm.adapters.trainer import ComputeLoss
from smmd_vlm.objective import supervised, targets

VOCAB = NumericVocab.from_mapping({**{str(d): d for d in range(10)}, ".": 10})
T, V = 10, 32
LOSSES = ["smmd", "ntil", "dist2"]  # one that needs nothing, one that needs runs, one that needs the full normaliser


def sample(index: int) -> dict[str, list[int]]:
    generator = torch.Generator().manual_seed(index)
    ids = torch.randint(11, V, (T,), generator=generator)
    ids[T - index : T] = torch.randint(0, 10, (index,), generator=generator)  # `index` digits at the end
    labels = ids.clone()
    labels[: T // 2 - index // 2] = -100
    return {"input_ids": ids.tolist(), "labels": labels.tolist(), "attention_mask": [1] * T}


SAMPLES = [sample(index) for index in range(8)]


def collate(samples):
    return {name: torch.tensor([sample[name] for sample in samples]) for name in samples[0]}


def model_of() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=V, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=False)  # fmt: skip
    return LlamaForCausalLM(config)


def gradients(model) -> dict[str, torch.Tensor]:
    return {name.removeprefix("module."): p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def whole(name: str) -> dict[str, torch.Tensor]:
    """The objective over all eight samples at once."""
    model, batch = model_of(), collate(SAMPLES)
    NumericObjective(VOCAB, name, 0.5)(model(input_ids=batch["input_ids"]).logits, batch["labels"]).loss.backward()
    return gradients(model)


def equal(got, wanted) -> None:
    assert got.keys() == wanted.keys()
    scale = max(gradient.abs().max().item() for gradient in wanted.values())
    for name, gradient in wanted.items():
        torch.testing.assert_close(
            got[name], gradient, rtol=1e-4, atol=2e-6 * scale, msg=lambda text, name=name: f"{name}: {text}"
        )


class KeepGradients(TrainerCallback):
    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        self.found = gradients(model)


def arguments(out, batch: int, kind=TrainingArguments, **more):
    return kind(
        output_dir=str(out),
        max_steps=1,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=8 // batch,
        max_grad_norm=0.0,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        remove_unused_columns=False,
        disable_tqdm=True,
        **more,
    )


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [1, 4])
def test_a_plain_loop_with_accumulation(name, size):
    model, objective = model_of(), NumericObjective(VOCAB, name, 0.5)
    window = [collate(SAMPLES[at : at + size]) for at in range(0, 8, size)]
    counts = sum(objective.count(batch["labels"]) for batch in window)
    for batch in window:
        labels = batch["labels"]
        logits = model(input_ids=batch["input_ids"], logits_to_keep=supervised(labels)).logits.reshape(-1, V)
        objective.rows(logits, targets(labels), counts=counts, runs=objective.runs(labels)).loss.backward()
    equal(gradients(model), whole(name))


def hf_step(name: str, batch: int, out, attach: bool = True):
    keep, compute_loss = KeepGradients(), ComputeLoss(NumericObjective(VOCAB, name, 0.5))
    trainer = Trainer(
        model=model_of(), args=arguments(out, batch, seed=1), train_dataset=SAMPLES, data_collator=collate,
        compute_loss_func=compute_loss, callbacks=[keep], eval_dataset=SAMPLES,
    )  # fmt: skip
    if attach:
        compute_loss.attach(trainer)
    trainer.train()
    return keep.found, trainer


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("batch", [1, 8])
def test_compute_loss_func_counts_the_window(name, batch, tmp_path):
    found, _ = hf_step(name, batch, tmp_path)
    equal(found, whole(name))


def test_compute_loss_func_evaluates(tmp_path):
    _, trainer = hf_step("smmd", 8, tmp_path)
    assert trainer.evaluate()["eval_loss"] > 0


def test_compute_loss_func_alone_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"call compute_loss.attach\(trainer\)"):
        hf_step("smmd", 4, tmp_path, attach=False)


def test_attach_wants_its_own_trainer(tmp_path):
    trainer = Trainer(model=model_of(), args=arguments(tmp_path, 8), train_dataset=SAMPLES, data_collator=collate)
    with pytest.raises(ValueError, match="compute_loss_func=this"):
        ComputeLoss(NumericObjective(VOCAB)).attach(trainer)


@pytest.mark.parametrize("logits", [None, torch.zeros(0), object()], ids=["none", "empty", "sentinel"])
def test_missing_logits_are_refused_in_one_sentence(logits):
    outputs = type("Outputs", (), {"logits": logits})()
    with pytest.raises(ValueError, match="a fused cross-entropy returns none: switch it off"):
        ComputeLoss(NumericObjective(VOCAB))(outputs, torch.zeros(1, 2, dtype=torch.long))


def test_missing_labels_are_refused():
    with pytest.raises(ValueError, match="expected labels in the batch, got none"):
        ComputeLoss(NumericObjective(VOCAB))({"logits": torch.zeros(1, 2, 3)}, None)


# ---------------------------------------------------------------- TRL


@pytest.fixture(scope="module")
def trl():
    pytest.importorskip("trl", reason="trl is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on import; none of it ours
        from smmd_vlm.adapters import trl as adapter
    return adapter


def trl_trainer(trl, name: str, batch: int, out, weight: float = 0.5, **more):
    from trl import SFTConfig

    keep = KeepGradients()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = trl.NumericSFTTrainer(
            model=model_of(),
            args=arguments(out, batch, SFTConfig, dataset_kwargs={"skip_prepare_dataset": True}, max_length=None, gradient_checkpointing=False, bf16=False, **more),
            train_dataset=_dataset(), eval_dataset=_dataset(), data_collator=collate, processing_class=_tokenizer(), callbacks=[keep],
            objective=NumericObjective(VOCAB, name, weight),
        )  # fmt: skip
    return trainer, keep


def _dataset():
    from datasets import Dataset

    return Dataset.from_list(SAMPLES)


def _tokenizer():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {**{str(d): d for d in range(10)}, ".": 10, **{f"w{i}": i for i in range(11, V)}}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w11")), pad_token="w12", eos_token="w13", unk_token="w11")  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("batch", [1, 8])
def test_trl_adds_the_term_beside_its_fused_head(trl, name, batch, tmp_path):
    trainer, keep = trl_trainer(trl, name, batch, tmp_path)
    trainer.train()
    equal(keep.found, whole(name))
    log = trainer.state.log_history[0]
    assert log["numeric_loss"] > 0 and log["entropy"] > 0


def test_trl_on_a_vlm_takes_the_loss_of_our_own_trainer(trl, tiny, tmp_path):
    """Qwen-VL takes no count from the Trainer, and its backbone is a vision-language model: the same value and gradients."""
    from trl import SFTConfig

    from smmd_vlm.collate import Collator, Encoder
    from smmd_vlm.config import ModelConfig
    from smmd_vlm.model import load_base, load_processor
    from smmd_vlm.records import Record
    from smmd_vlm.trainer import NumericTrainer
    from tests.support import png

    processor = load_processor(ModelConfig(model_name_or_path=str(tiny())))
    encoder = Encoder(processor)
    batch = Collator(processor)(
        [encoder(Record(id=a, image=png(), question="What is it?", answer=a)) for a in ("12:05", "3.14", "red")]
    )
    found = []
    for kind, config, more in (
        (NumericTrainer, TrainingArguments, {"label_names": ["labels"]}),
        (trl.NumericSFTTrainer, SFTConfig, {"dataset_kwargs": {"skip_prepare_dataset": True}, "max_length": None, "gradient_checkpointing": False, "bf16": False}),
    ):  # fmt: skip
        model = load_base(ModelConfig(model_name_or_path=str(tiny())))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer = kind(
                model=model, args=arguments(tmp_path, 1, config, **more), train_dataset=_dataset(), processing_class=processor,
                data_collator=lambda _: batch, objective=NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer), "dist2", 0.5),
            )  # fmt: skip
        trainer.current_gradient_accumulation_steps = 1
        count = trainer._get_num_items_in_batch([batch], torch.device("cpu"))
        loss = trainer.training_step(model, dict(batch), count)
        found.append((loss, gradients(model)))
    torch.testing.assert_close(found[1][0], found[0][0], rtol=1e-5, atol=1e-6)
    equal(found[1][1], found[0][1])


def test_trl_evaluates(trl, tmp_path):
    trainer, _ = trl_trainer(trl, "smmd", 8, tmp_path)
    metrics = trainer.evaluate()
    assert metrics["eval_loss"] > 0 and metrics["eval_numeric_loss"] > 0


def test_trl_refuses_what_would_bypass_the_objective(trl, tmp_path):
    with pytest.raises(ValueError, match="compute_loss_func or label_smoothing_factor"):
        trl_trainer(trl, "smmd", 8, tmp_path, label_smoothing_factor=0.1)
