"""`Trainer(compute_loss_func=...)`: the numeric objective in a stock transformers Trainer.

    compute_loss = ComputeLoss(objective)
    trainer = Trainer(..., compute_loss_func=compute_loss)
    compute_loss.attach(trainer)

The Trainer counts tokens, not numbers, and a mean over a micro-batch's numbers would be weighted by accumulation steps x
ranks. `attach` makes it count both, over the whole accumulation window and all ranks; without it a call is refused.
The Trainer takes the labels away from the model, so logits are built even where a fused loss is switched on, for every
position: NumericTrainer, which keeps supervised rows only, is the cheaper way. Imports no transformers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smmd_vlm.objective import NumericObjective, Terms


def logits_of(outputs: Any, labels: Tensor | None) -> Tensor:
    """(B, T, V) logits of a model's outputs, or one sentence on why there are none."""
    if labels is None:
        raise ValueError(
            "expected labels in the batch, got none; the collator must give (B, T) labels, -100 where nothing is learned"
        )
    logits = outputs.get("logits") if isinstance(outputs, dict) else getattr(outputs, "logits", None)
    if not isinstance(logits, Tensor) or logits.numel() == 0:
        raise ValueError(
            f"expected logits (B, T, V), got {'none' if logits is None else type(logits).__name__}; a fused cross-entropy returns none: "
            "switch it off (use_liger_kernel=False, UNSLOTH_RETURN_LOGITS=1) or take the numeric term from hidden states (adapters.hidden)"
        )
    return logits


class ComputeLoss:
    """(outputs, unshifted labels, counts) -> cross-entropy + weight x numeric term, normalised over the window."""

    def __init__(self, objective: NumericObjective) -> None:
        self.objective = objective
        self.last: Terms | None = None  # of the last micro-batch, for logs and tests

    def attach(self, trainer: Any) -> ComputeLoss:
        """Let `trainer` count [tokens, numbers] instead of tokens."""
        if trainer.compute_loss_func is not self:
            raise ValueError("expected the trainer made with compute_loss_func=this, got another function there")
        args = trainer.args
        if args.world_size > 1 and not args.average_tokens_across_devices:
            raise ValueError(
                "expected average_tokens_across_devices=True, got False; ranks with few numbers would weigh as much as others"
            )
        self.objective.to(args.device)

        def counts_of(batch_samples: list[dict[str, Tensor]], device: torch.device) -> Tensor | None:
            return self.objective.count_window(batch_samples, device, trainer.accelerator)

        trainer._get_num_items_in_batch = counts_of
        return self

    def __call__(self, outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        logits = logits_of(outputs, labels)
        if num_items_in_batch is not None and torch.as_tensor(num_items_in_batch).numel() != 2:
            raise ValueError(
                f"expected [tokens, numbers] of the accumulation window, got a count of {num_items_in_batch}; "
                "call compute_loss.attach(trainer) before trainer.train()"
            )
        self.last = self.objective(logits, labels, counts=num_items_in_batch)
        return self.last.loss
