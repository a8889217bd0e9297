"""The numeric objective as an ms-swift plugin (written for 4.6).

    swift sft ... --external_plugins $(python -c "import smmd_vlm.adapters as a; print(a.__path__[0])")/ms_swift.py \\
        --loss_type numeric

Settings come from the environment, for ms-swift has no place for them: SMMD_VLM_LOSS (smmd), SMMD_VLM_WEIGHT (0.3),
SMMD_VLM_VOCAB (digits) and SMMD_VLM_OPTIONS (JSON, {"sigmas": [2.0]}).
The loss replaces ms-swift's own: cross-entropy over the tokens of the accumulation window + weight x the numeric term over
its numbers. Losses over whole numbers need --use_logits_to_keep false: cut labels no longer tell where a number ends.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch
from swift.loss import BaseLoss, loss_map
from torch import Tensor

from smmd_vlm.adapters.trainer import logits_of
from smmd_vlm.losses import RUNS
from smmd_vlm.objective import NumericObjective
from smmd_vlm.vocab import NumericVocab


def objective_from_environment(tokenizer: Any) -> NumericObjective:
    """SMMD_VLM_LOSS, _WEIGHT, _VOCAB and _OPTIONS -> the objective; prints what it found, so that a run's log shows it."""
    get = os.environ.get
    vocab = NumericVocab.from_tokenizer(tokenizer, get("SMMD_VLM_VOCAB", "digits"))
    name, weight = get("SMMD_VLM_LOSS", "smmd"), float(get("SMMD_VLM_WEIGHT", "0.3"))
    objective = NumericObjective(vocab, name, weight, **json.loads(get("SMMD_VLM_OPTIONS", "{}")))
    print(f"smmd-vlm: cross-entropy + {weight:g} x {name} over {vocab.describe()}")
    return objective


class NumericLoss(BaseLoss):
    """ms-swift calls it with unshifted labels, possibly cut to the supervised rows together with the logits."""

    def __init__(self, args: Any, trainer: Any) -> None:
        super().__init__(args, trainer)
        if getattr(self, "is_megatron", False):
            raise ValueError(
                "expected ms-swift's transformers trainer, got its Megatron one; the counts of a window are not to be had there"
            )
        self.objective: NumericObjective | None = None  # the trainer has no template yet
        self.numbers: Tensor | None = None
        self._count_numbers_too(trainer)

    def _count_numbers_too(self, trainer: Any) -> None:
        """Count the numbers of a window whenever the Trainer counts its tokens: just before it trains or evaluates on it."""
        count_tokens = trainer._get_num_items_in_batch

        def count(batch_samples: list[dict[str, Tensor]], device: torch.device) -> Any:
            tokens = count_tokens(batch_samples, device)
            self.numbers = None
            if tokens is not None:
                numbers = sum(self._objective(device).count(batch["labels"].to(device))[1] for batch in batch_samples)
                if trainer.args.average_tokens_across_devices and trainer.args.world_size > 1:
                    numbers = trainer.accelerator.reduce(numbers, "sum")
                self.numbers = numbers
            return tokens

        trainer._get_num_items_in_batch = count

    def _objective(self, device: torch.device) -> NumericObjective:
        if self.objective is None:
            self.objective = objective_from_environment(self.trainer.template.tokenizer).to(device)
            if RUNS in self.objective.needs and getattr(self.args, "use_logits_to_keep", None) is not False:
                raise ValueError(
                    "this loss looks at whole numbers, got labels that ms-swift may cut to supervised rows; pass --use_logits_to_keep false"
                )
            template = self.trainer.template
            if getattr(template, "sequence_parallel_size", 1) > 1:
                raise ValueError("expected whole sequences, got sequence parallelism; set --sequence_parallel_size 1")
        return self.objective

    def __call__(
        self, outputs: Any, labels: Tensor, *, num_items_in_batch: Any = None, loss_scale: Tensor | None = None, **_: Any
    ) -> Tensor:
        if loss_scale is not None:
            raise ValueError("expected no token weights, got loss_scale; use --loss_scale default with this loss")
        logits = logits_of(outputs, labels)
        counts, ranks = None, 1
        if num_items_in_batch is not None:
            tokens = torch.as_tensor(num_items_in_batch, device=logits.device).float()
            counts = torch.stack([tokens, self.numbers.to(tokens)])
            if self.trainer.args.average_tokens_across_devices and not self.trainer.model_accepts_loss_kwargs:
                ranks = self.trainer.accelerator.num_processes  # counted over all ranks, but not undone by the trainer
        return self._objective(logits.device)(logits, labels, counts=counts).loss * ranks


loss_map["numeric"] = NumericLoss
