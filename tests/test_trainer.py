"""NumericTrainer: the same gradients however a batch is cut, the same evaluation whatever the batch size."""

import pytest
import torch
from transformers import TrainerCallback, TrainingArguments

from smmd_vlm.collate import Collator, Encoder
from smmd_vlm.config import ModelConfig
from smmd_vlm.model import load_base, load_processor
from smmd_vlm.objective import NumericObjective, supervised, targets
from smmd_vlm.records import Record
from smmd_vlm.trainer import NumericTrainer, kept_logits
from smmd_vlm.vocab import NumericVocab
from tests.support import png

# uneven numeric counts: none, few, many
ANSWERS = ["yes", "7", "12:05", "no idea", "3.14159", "1,024", "red", "2000 or 2001"]


@pytest.fixture(scope="module")
def processor(tiny):
    return load_processor(ModelConfig(model_name_or_path=str(tiny())))


@pytest.fixture(scope="module")
def samples(processor):
    encoder = Encoder(processor)
    return [
        encoder(Record(id=str(i), image=png(color=(30 * i, 9, 200)), question="What is the value?", answer=a))
        for i, a in enumerate(ANSWERS)
    ]


class KeepGradients(TrainerCallback):
    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        self.gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


class Unshuffled(NumericTrainer):
    def _get_train_sampler(self, dataset=None):
        return torch.utils.data.SequentialSampler(dataset)


def one_step(tiny, processor, samples, out, *, batch: int, accumulation: int, loss="smmd", weight=0.5, side="right"):
    """Gradients and the logged loss of one optimizer step over all eight samples."""
    keep = KeepGradients()
    trainer = Unshuffled(
        model=load_base(ModelConfig(model_name_or_path=str(tiny()))),
        args=TrainingArguments(
            output_dir=str(out),
            max_steps=1,
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=accumulation,
            max_grad_norm=0.0,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            remove_unused_columns=False,
            label_names=["labels"],
            logging_nan_inf_filter=False,
            disable_tqdm=True,
        ),  # fmt: skip
        objective=NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer), loss, weight),
        data_collator=Collator(processor, side),
        train_dataset=samples,
        callbacks=[keep],
    )
    trainer.train()
    return keep.gradients, trainer.state.log_history[0]


@pytest.fixture(scope="module")
def whole(tiny, processor, samples, tmp_path_factory):
    return one_step(tiny, processor, samples, tmp_path_factory.mktemp("whole"), batch=8, accumulation=1)


@pytest.mark.parametrize(
    ("batch", "accumulation", "side"), [(4, 2, "right"), (2, 4, "right"), (1, 8, "right"), (8, 1, "left"), (2, 4, "left")]
)
def test_gradients_do_not_depend_on_the_cut_or_the_padding(
    tiny, processor, samples, whole, tmp_path, batch, accumulation, side
):
    gradients, log = one_step(tiny, processor, samples, tmp_path, batch=batch, accumulation=accumulation, side=side)
    assert gradients.keys() == whole[0].keys()
    scale = max(gradient.abs().max().item() for gradient in whole[0].values())
    for name, gradient in gradients.items():
        torch.testing.assert_close(
            gradient, whole[0][name], rtol=1e-4, atol=2e-6 * scale, msg=lambda text, name=name: f"{name}: {text}"
        )
    for name in ("loss", "cross_entropy", "numeric_loss", "numeric_targets", "numeric_share", "numeric_token_accuracy"):
        assert log[name] == pytest.approx(whole[1][name], rel=1e-5), name


def test_the_logged_loss_is_the_objective_over_all_samples(tiny, processor, samples, whole):
    model, batch = load_base(ModelConfig(model_name_or_path=str(tiny()))), Collator(processor)(samples)
    objective = NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer), "smmd", 0.5)
    with torch.no_grad():
        terms = objective.rows(kept_logits(model.train(), batch), targets(batch["labels"]))
    assert whole[1]["loss"] == pytest.approx(terms.loss.item(), rel=1e-5)
    assert whole[1]["numeric_targets"] == terms.num_numbers == sum(c.isdigit() for a in ANSWERS for c in a)


def test_the_fire_rate_counts_steps_with_a_number(tiny, processor, samples, tmp_path):
    # ANSWERS in pairs: (yes, 7), (12:05, no idea), (3.14159, 1,024) and (red, 2000 or 2001) all hold digits; singly, five of eight
    for batch, steps in ((2, 4), (1, 8)):
        trainer = Unshuffled(
            model=load_base(ModelConfig(model_name_or_path=str(tiny()))),
            args=TrainingArguments(
                output_dir=str(tmp_path), max_steps=steps, per_device_train_batch_size=batch, logging_steps=steps, save_strategy="no",
                report_to="none", use_cpu=True, remove_unused_columns=False, label_names=["labels"], disable_tqdm=True,
            ),
            objective=NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer)),
            data_collator=Collator(processor),
            train_dataset=samples,
        )  # fmt: skip
        trainer.train()
        log = trainer.state.log_history[0]
        firing = 4 if batch == 2 else sum(any(c.isdigit() for c in answer) for answer in ANSWERS)
        assert log["numeric_fire_rate"] == firing / steps
        assert log["numeric_targets_per_step"] == sum(c.isdigit() for a in ANSWERS for c in a) / steps


def test_weight_zero_equals_no_loss_to_the_bit(tiny, processor, samples, tmp_path):
    zero = one_step(tiny, processor, samples, tmp_path / "0", batch=4, accumulation=2, weight=0.0)[0]
    none = one_step(tiny, processor, samples, tmp_path / "n", batch=4, accumulation=2, loss="none")[0]
    assert all(torch.equal(zero[name], none[name]) for name in none)


def test_evaluation_does_not_depend_on_the_batch_size(tiny, processor, samples, tmp_path):
    metrics = []
    for batch in (1, 3, 8):
        trainer = NumericTrainer(
            model=load_base(ModelConfig(model_name_or_path=str(tiny()))),
            args=TrainingArguments(
                output_dir=str(tmp_path),
                per_device_eval_batch_size=batch,
                report_to="none",
                use_cpu=True,
                remove_unused_columns=False,
                label_names=["labels"],
                disable_tqdm=True,
            ),  # fmt: skip
            objective=NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer)),
            data_collator=Collator(processor),
            eval_dataset=samples,
        )
        metrics.append(trainer.evaluate())
    for name in ("eval_loss", "eval_cross_entropy", "eval_numeric_loss", "eval_numeric_token_abs_error"):
        assert metrics[0][name] == pytest.approx(metrics[1][name], rel=1e-5) == pytest.approx(metrics[2][name], rel=1e-5), name


def test_labels_that_are_all_ignored_train_nothing_and_break_nothing(processor, samples, tiny):
    batch = Collator(processor)(samples[:2])
    batch["labels"] = torch.full_like(batch["labels"], -100)
    model = load_base(ModelConfig(model_name_or_path=str(tiny())))
    objective = NumericObjective(NumericVocab.from_tokenizer(processor.tokenizer))
    assert not supervised(batch["labels"]).any()
    terms = objective.rows(kept_logits(model, batch), targets(batch["labels"]))
    terms.loss.backward()
    assert terms.loss.item() == 0
