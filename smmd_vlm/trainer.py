"""NumericTrainer: the Hugging Face Trainer with the numeric objective, honest denominators and evaluation in numbers.

Differs from the stock Trainer in four places only:
- the model is called without labels and with a boolean logits_to_keep, so the head runs on supervised rows alone;
- `num_items_in_batch` is a 2-vector [tokens, numbers] over the whole accumulation window and all ranks, so neither loss
  depends on how a batch is cut (Qwen-VL models do not take the Trainer's own count);
- evaluation sums losses over tokens instead of averaging batch means, keeps no logits, and can write answers and score them;
- samples are grouped by the lengths it is given, and evaluation is never reordered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler, SequentialSampler
from transformers import Trainer, TrainerCallback
from transformers.trainer_utils import EvalLoopOutput

from smmd_vlm.objective import IGNORE_INDEX, NumericObjective, Terms, supervised, targets
from smmd_vlm.preflight import check_gradients
from smmd_vlm.sampling import LengthGrouped
from smmd_vlm.tokenkinds import TokenKinds
from smmd_vlm.visioncache import encoder_outputs

_SUMS = ("tokens", "numbers", "cross_entropy", "numeric", "correct", "error")


def kept_logits(model: torch.nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """Batch with (B, T) labels -> (R, V) logits of the rows whose next token is supervised."""
    features = {name: value for name, value in inputs.items() if name not in ("labels", "ids", "image_features")}
    if "image_features" in inputs:
        features["mm_encoder_outputs"] = encoder_outputs(inputs["image_features"])
    return model(**features, logits_to_keep=supervised(inputs["labels"]), use_cache=False).logits


def terms_of(
    model: torch.nn.Module, objective: NumericObjective, inputs: dict[str, Any], counts: Tensor | None = None
) -> Terms:
    """The objective of one batch with labels, by one forward."""
    labels = inputs["labels"]
    return objective.rows(kept_logits(model, inputs), targets(labels), counts=counts, runs=objective.runs(labels))


def sums_of(terms: Terms) -> Tensor:
    """(6,) float64 in the order of _SUMS: what adds up over batches and ranks."""
    parts = (
        terms.num_tokens,
        terms.num_numbers,
        terms.cross_entropy_sum,
        terms.numeric_sum,
        terms.numeric_correct,
        terms.numeric_error_sum,
    )
    return torch.stack([torch.as_tensor(part, device=terms.loss.device).double() for part in parts])


def metrics_of(sums: Tensor, weight: float, prefix: str = "") -> dict[str, float]:
    """Summed terms -> means under the names that logs and metrics.jsonl use."""
    total = dict(zip(_SUMS, sums.tolist(), strict=True))
    tokens, numbers = max(total["tokens"], 1), max(total["numbers"], 1)
    metrics = {
        "cross_entropy": total["cross_entropy"] / tokens,
        "numeric_loss": total["numeric"] / numbers,
        "numeric_targets": total["numbers"],
        "numeric_share": total["numbers"] / tokens,
    }
    if total["numbers"]:  # without one, an accuracy of 0 would be a lie
        metrics["numeric_token_accuracy"] = total["correct"] / numbers
        metrics["numeric_token_abs_error"] = total["error"] / numbers
    metrics["loss"] = metrics["cross_entropy"] + weight * metrics["numeric_loss"]
    return {prefix + name: value for name, value in metrics.items()}


class NumericTrainer(Trainer):
    """Trainer over `objective`; `score` optionally turns (model, device) into generation-based evaluation metrics.

    score: called by evaluate() on every rank; returns {name: value} without prefix.
    kinds: adds the evaluation's cross-entropy by kind of token and by place of the digit.
    lengths: tokens of every training sample; train_sampling_strategy group_by_length needs them.
    `batch` is what it works on, for messages; None while answers are written. Gradients are checked in the first step.
    """

    loss_is_scaled_for_ga = True  # compute_loss divides by the counts of the whole accumulation window

    def __init__(
        self,
        *args: Any,
        objective: NumericObjective,
        score: Callable[[torch.nn.Module], dict[str, float]] | None = None,
        kinds: TokenKinds | None = None,
        lengths: Sequence[int] | None = None,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self.model_accepts_loss_kwargs = True  # count the window; the counts go to compute_loss, never to the model
        self.objective = objective.to(self.args.device)
        self.score, self.kinds, self.lengths = score, kinds, lengths
        self.batch: dict[str, Any] | None = None
        self.saw_images = False  # in any micro-batch so far
        self.add_callback(CheckGradients(self))
        self._train_sums = torch.zeros(len(_SUMS), dtype=torch.float64, device=self.args.device)
        self._numbers: list[Tensor] = []  # numeric targets of every step since the last log
        self._clock = _Clock()

    def _get_train_sampler(self, train_dataset: Dataset | None = None) -> Sampler | None:
        if self.args.train_sampling_strategy != "group_by_length":
            return super()._get_train_sampler(train_dataset)
        if self.lengths is None:
            raise ValueError("train_sampling_strategy group_by_length needs the samples' lengths, got none; pass lengths=")
        args = self.args
        return LengthGrouped(
            self.lengths,
            args.train_batch_size * args.gradient_accumulation_steps * args.world_size,
            seed=args.seed if args.data_seed is None else args.data_seed,
            epoch=lambda: int(self.state.epoch or 0),
        )

    def _get_eval_sampler(self, eval_dataset: Dataset) -> Sampler | None:
        return SequentialSampler(eval_dataset) if self.args.world_size == 1 else None

    def get_batch_samples(self, epoch_iterator: Iterator, num_batches: int, device: torch.device) -> tuple[list, Tensor | None]:
        with self._clock.waiting():
            batches, counts = super().get_batch_samples(epoch_iterator, num_batches, device)
        if counts is not None:
            self._numbers.append(counts[1])
        return batches, counts

    def _get_num_items_in_batch(self, batch_samples: list[dict[str, Tensor]], device: torch.device) -> Tensor | None:
        """(2,) float32 [tokens, numbers] over the micro-batches of one optimizer step and all ranks."""
        return self.objective.count_window(batch_samples, device, self.accelerator)

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | None = None,
    ) -> Tensor:
        self.batch = inputs
        self.saw_images |= "image_grid_thw" in inputs
        terms = terms_of(model, self.objective, inputs, counts=num_items_in_batch)
        if not torch.isfinite(terms.loss.detach()):  # before the step, so the weights stay whole
            raise FloatingPointError(
                f"expected a finite loss, got {terms.loss.item()} in the step after {self.state.global_step} (cross-entropy "
                f"{terms.cross_entropy.item():.4g}, numeric {terms.numeric.item():.4g}) for the records {', '.join(inputs['ids'])}; "
                "look at them, or lower train.learning_rate; the last checkpoint is whole"
            )
        self._train_sums += sums_of(terms)
        return terms.loss * self.accelerator.num_processes  # undoes DDP's mean over ranks

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:
            logs |= self._clock.lap(self.state.global_step)
            sums = self._train_sums
            if self.args.world_size > 1:
                sums = self.accelerator.reduce(sums, "sum")
            parts = metrics_of(sums, self.objective.weight)
            logs |= {name: value for name, value in parts.items() if name != "loss"}
            self._train_sums = torch.zeros_like(self._train_sums)
            if self._numbers:  # the same on every rank
                numbers = torch.stack(self._numbers)
                logs["numeric_targets_per_step"] = numbers.mean().item()
                logs["numeric_fire_rate"] = (numbers > 0).float().mean().item()  # share of steps with a numeric target
                self._numbers.clear()
        super().log(logs, start_time)

    def evaluation_loop(
        self,
        dataloader: DataLoader,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Sums over tokens and numbers of the whole set, whatever the batch size and the number of ranks."""
        model = self._wrap_model(self.model, training=False)
        if len(self.accelerator._models) == 0 and model is self.model:
            model = self.accelerator.prepare_model(model, evaluation_mode=True)
        model.eval()
        dataset = dataloader.dataset
        sums = torch.zeros(len(_SUMS), dtype=torch.float64, device=self.args.device)
        by_kind = torch.zeros(2, len(TokenKinds.names), dtype=torch.float64, device=self.args.device)
        for batch in self._own_batches(dataset, dataloader):
            batch = self._prepare_inputs(batch)
            self.batch = batch
            with torch.no_grad(), self.compute_loss_context_manager():
                terms = terms_of(model, self.objective, batch)
            sums += sums_of(terms)
            if self.kinds is not None:
                by_kind += self.kinds.sums(batch["labels"], terms.token_losses).to(by_kind.device)
            self.control = self.callback_handler.on_prediction_step(self.args, self.state, self.control)
        if self.args.world_size > 1:
            sums, by_kind = self.accelerator.reduce(sums, "sum"), self.accelerator.reduce(by_kind, "sum")
        metrics = metrics_of(sums, self.objective.weight, f"{metric_key_prefix}_")
        if self.kinds is not None:
            metrics |= {f"{metric_key_prefix}_{name}": value for name, value in self.kinds.metrics(by_kind.cpu()).items()}
        self.batch = None
        if self.score is not None:
            scored = self.score(self.accelerator.unwrap_model(model))
            metrics |= {f"{metric_key_prefix}_{name}": value for name, value in scored.items()}
        return EvalLoopOutput(predictions=None, label_ids=None, metrics=metrics, num_samples=len(dataset))

    def _own_batches(self, dataset: Any, dataloader: DataLoader) -> DataLoader:
        """This rank's share; ranks take equally many samples, the surplus ones with every label ignored."""
        world, rank = self.args.world_size, self.args.process_index
        if world == 1:
            return dataloader
        share = -(-len(dataset) // world)
        own = [index for index in range(rank, share * world, world)]
        return DataLoader(
            _Padded(dataset, own),
            batch_size=self.args.per_device_eval_batch_size,
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
        )


class CheckGradients(TrainerCallback):
    """preflight.check_gradients before the first optimizer step, and before the first one that saw an image.

    Sharded parameters are left to their framework.
    """

    def __init__(self, trainer: NumericTrainer) -> None:
        self.trainer, self.checked = trainer, set()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        images = self.trainer.saw_images
        if not args.fsdp and not args.deepspeed and images not in self.checked:
            check_gradients(model, images=images)
            self.checked |= {images, False}


class _Clock:
    """Seconds a step, how many of them were spent waiting for data, and the memory taken, between two logs."""

    def __init__(self) -> None:
        self._start, self._step, self._waited = time.perf_counter(), 0, 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._waited += time.perf_counter() - start

    def lap(self, step: int) -> dict[str, float]:
        steps, now = max(1, step - self._step), time.perf_counter()
        logs = {
            "step_seconds": (now - self._start) / steps,
            "data_seconds": self._waited / steps,
            "memory_gib": _memory() / 2**30,
        }
        self._start, self._step, self._waited = now, step, 0.0
        return logs


def _memory() -> int:
    """Bytes: the most the GPU has held, or without one what this process holds now."""
    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else psutil.Process().memory_info().rss


class _Padded(Dataset):
    """Samples by index; an index past the end is the last sample with nothing supervised."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, position: int) -> dict[str, Any]:
        index = self.indices[position]
        if index < len(self.dataset):
            return self.dataset[index]
        sample = dict(self.dataset[len(self.dataset) - 1])
        sample["labels"] = torch.full_like(sample["labels"], IGNORE_INDEX)
        return sample
