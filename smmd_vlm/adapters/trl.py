"""NumericSFTTrainer: TRL's SFTTrainer (1.16) plus the numeric term, beside its fused head.

TRL builds no logits: its head returns log-probabilities only. The numeric term is taken from the backbone's last hidden
state, which a hook keeps for the length of one call, times the head's rows of the number tokens (adapters.hidden).
Cross-entropy stays TRL's own, with one difference: it is the mean over the tokens of the accumulation window for every
model; for Qwen-VL, which does not take the Trainer's count, TRL alone would average the means of micro-batches.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from trl import SFTTrainer

from smmd_vlm.adapters.hidden import Head, numeric_term
from smmd_vlm.objective import NumericObjective


class NumericSFTTrainer(SFTTrainer):
    """SFTTrainer(..., objective=NumericObjective(vocab)); everything else is SFTTrainer's.

    Logs numeric_loss (mean over the numbers of each micro-batch) and numeric_targets beside TRL's metrics.
    """

    loss_is_scaled_for_ga = True  # divided by the counts of the whole accumulation window

    def __init__(self, *args: Any, objective: NumericObjective, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.compute_loss_func is not None or self.args.label_smoothing_factor > 0:
            raise ValueError(
                "expected SFTTrainer's own loss, got compute_loss_func or label_smoothing_factor; the objective is added to it, remove the other"
            )
        if self.args.world_size > 1 and not self.args.average_tokens_across_devices:
            raise ValueError(
                "expected average_tokens_across_devices=True, got False; ranks with few numbers would weigh as much as others"
            )
        self.model_accepts_loss_kwargs = True  # count the window; the counts go to compute_loss, never to the model
        self.objective = objective.to(self.args.device)
        self.head = Head.of(self.model)

    def _get_num_items_in_batch(self, batch_samples: list[dict[str, Tensor]], device: torch.device) -> Tensor | None:
        """(2,) float32 [tokens, numbers] over the micro-batches of one optimizer step and all ranks."""
        return self.objective.count_window(batch_samples, device, self.accelerator)

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | None = None,
    ) -> Any:
        if "shift_labels" in inputs:
            raise ValueError(
                "expected whole sequences, got shift_labels of context or sequence parallelism; numbers would be cut"
            )
        tokens, numbers = (None, None) if num_items_in_batch is None else num_items_in_batch.unbind()
        labels, kept = inputs["labels"], {}
        base = self.accelerator.unwrap_model(model)
        base = base.get_base_model() if hasattr(base, "get_base_model") else base

        def keep_hidden(module, args, output):
            kept.setdefault("hidden", output.last_hidden_state)  # of the first forward, the one with a gradient

        def keep_log_probs(module, args, output):
            kept.setdefault("log_probs", getattr(output, "log_probs", None))

        hooks = [base.base_model.register_forward_hook(keep_hidden), base.register_forward_hook(keep_log_probs)]
        try:
            result = super().compute_loss(model, inputs, return_outputs, tokens)
        finally:
            for hook in hooks:
                hook.remove()
        loss, outputs = result if return_outputs else (result, None)

        term = numeric_term(self.objective, self.head, kept["hidden"], labels, num_numbers=numbers, log_probs=kept["log_probs"])
        mode = "train" if self.model.training else "eval"
        self._metrics[mode]["numeric_targets"].append(float(term.num_numbers))
        if term.num_numbers:
            self._metrics[mode]["numeric_loss"].append((term.sum / term.num_numbers).item())
        if self.objective.loss is not None and self.objective.weight > 0:
            # TRL has done the same for its own part: DDP averages over ranks, the counts are those of all ranks
            ranks = self.accelerator.num_processes // self.get_tp_size() if numbers is not None else 1
            loss = loss + self.objective.weight * ranks * term.loss
        return (loss, outputs) if return_outputs else loss
