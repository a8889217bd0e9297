"""The numeric term from hidden states x the head's rows of the number tokens, without logits.

Fused cross-entropy (TRL, Liger, Unsloth) never builds (R, V) logits. A numeric loss looks at N columns of them; here those
are the last hidden state times N rows of the head, in float32: the same values, at the price of N rows of V.
The head is read as the model's own forward reads it: bias, multiplier before the softcap, softcap. What cannot be read
that way is refused: an adapter on the head, a quantised or a sharded head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from smmd_vlm.losses import LOG_Z
from smmd_vlm.objective import NumericObjective


@dataclass(frozen=True)
class Head:
    """logits = softcap * tanh(scale * (hidden @ weight.T + bias) / softcap)."""

    module: nn.Module
    scale: float = 1.0
    softcap: float | None = None

    @classmethod
    def of(cls, model: nn.Module) -> Head:
        """The head of a transformers model, PEFT or not; a ValueError says why one cannot be used."""
        model = model.get_base_model() if hasattr(model, "get_base_model") else model
        module = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
        if module is None:
            raise ValueError(
                f"expected a model with get_output_embeddings(), got {type(model).__name__}; build Head(module) from its head"
            )
        config = model.config.get_text_config()
        head = cls(module, _scale(config), getattr(config, "final_logit_softcapping", None))
        head.check()
        return head

    def check(self) -> None:
        """Raise one sentence unless logits are what this class says they are."""
        if hasattr(self.module, "base_layer"):
            raise ValueError(
                "expected a head without an adapter, got LoRA on it; remove the head from target_modules or use the logits path"
            )
        weight = getattr(self.module, "weight", None)
        if weight is None or not weight.is_floating_point() or hasattr(weight, "quant_state"):
            raise ValueError(
                f"expected a head with a floating-point weight, got {type(self.module).__name__}; keep the head out of quantisation "
                '(llm_int8_skip_modules=["lm_head"]) or use the logits path'
            )
        if weight.ndim != 2 or hasattr(weight, "ds_id"):
            raise ValueError(
                f"expected the whole (V, d) weight of the head, got shape {tuple(weight.shape)} of a sharded one; "
                "use the logits path under ZeRO-3 and FSDP1"
            )

    def logits(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """(P, d) hidden states, (N,) token ids -> (P, N) float32 logits of those tokens."""
        weight, bias = self.module.weight, getattr(self.module, "bias", None)
        if hasattr(weight, "full_tensor"):  # FSDP2 and tensor-parallel shards
            if weight.requires_grad:
                raise ValueError(
                    "expected a frozen head under FSDP2, got a trainable one; its gradient would miss the other ranks: use the logits path"
                )
            weight, bias = weight.full_tensor(), bias if bias is None else bias.full_tensor()
        # a sparse gradient: a dense one would be V x d zeros for N rows; it is added to cross-entropy's dense one
        rows = F.embedding(ids, weight, sparse=weight.requires_grad)
        with torch.autocast(hidden.device.type, enabled=False):
            logits = F.linear(hidden.float(), rows.float(), None if bias is None else bias[ids].float())
            if self.scale != 1.0:
                logits = logits * self.scale
            return logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)


@dataclass(frozen=True)
class NumericTerm:
    """`loss` = sum over numeric targets / num_numbers, without the weight; the rest for logs."""

    loss: Tensor
    sum: Tensor  # detached
    num_numbers: int  # numeric targets of these labels


def numeric_term(
    objective: NumericObjective,
    head: Head,
    hidden: Tensor,
    labels: Tensor,
    *,
    num_numbers: Tensor | None = None,
    log_probs: Tensor | None = None,
) -> NumericTerm:
    """The numeric term of (B, T, d) last hidden states, as the head receives them, and (B, T) unshifted labels.

    num_numbers: numeric targets of the whole window and all ranks, objective.count(...)[1]; default: of these labels.
    log_probs: (B, T - 1) log-probability of each next token, which losses with the full normaliser need.
    Add `objective.weight * term.loss` to cross-entropy.
    """
    if hidden.ndim != 3 or hidden.shape[:2] != labels.shape:
        raise ValueError(
            f"expected hidden states (B, T, d) with labels (B, T), got {tuple(hidden.shape)} and {tuple(labels.shape)}; "
            "pass unshifted labels and the last hidden state of every position"
        )
    column = objective.column(labels[:, 1:])
    here = column >= 0
    # rows of a mask first: nothing of size (B, T, V) is ever made
    rows, target = hidden[:, :-1][here], column[here]
    count = torch.as_tensor(len(target) if num_numbers is None else num_numbers, device=hidden.device).clamp(min=1)
    if objective.loss is None or len(target) == 0:
        # a zero that keeps the graph: every rank's backward reaches the same parameters
        return NumericTerm(rows[:0].float().sum(), torch.zeros((), device=hidden.device), len(target))
    restricted, log_z = head.logits(rows, objective.ids), None
    if LOG_Z in objective.needs:
        if log_probs is None:
            raise ValueError(
                "this loss needs the full normaliser, got no log_probs; pass the log-probability of every next token"
            )
        log_z = restricted.gather(-1, target[:, None]).squeeze(1) - log_probs[here].float()
    values = objective.terms_of(restricted, target, log_z=log_z, runs=objective.runs(labels)).sum()
    return NumericTerm(values / count, values.detach(), len(target))


def _scale(config: Any) -> float:
    """What a text model multiplies its logits by, before the softcap."""
    for name in ("logit_scale", "output_multiplier", "lm_head_multiplier"):  # Cohere; Muse; Falcon-H1
        if getattr(config, name, None) is not None:
            return float(getattr(config, name))
    divisor = getattr(config, "logits_scaling", None)  # Granite, MiniCPM divide by it, HyperCLOVA X multiplies
    if divisor is None:
        return 1.0
    return float(divisor) if config.model_type == "hyperclovax" else 1.0 / float(divisor)
