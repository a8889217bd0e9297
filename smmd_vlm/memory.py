"""How much memory a run will take, from shapes alone: an estimate to choose a batch size by, not a promise.

Counted: weights (4-bit NF4 with double quantisation: 4.127 bits a parameter), adapters with gradients and Adam moments
in float32, activations kept for the backward, the kept logits. Not counted: the allocator's slack, kernels' workspaces.
"""

from __future__ import annotations

from dataclasses import dataclass

NF4_BYTES = 4.127 / 8
ADAM_BYTES = 4 + 4 + 4 + 4  # float32 weight, gradient and two moments of a trained parameter
LOGIT_BYTES = 18  # bf16 logit, float32 copy, log-softmax, float32 and bf16 gradients


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Bytes by what they are for."""

    weights: float
    trained: float
    activations: float
    logits: float

    @property
    def total(self) -> float:
        return self.weights + self.trained + self.activations + self.logits

    def __str__(self) -> str:
        parts = {"weights": self.weights, "trained": self.trained, "activations": self.activations, "logits": self.logits}
        return f"{self.total / 2**30:.1f} GiB = " + " + ".join(f"{name} {value / 2**30:.2f}" for name, value in parts.items())


def activations(*, hidden: int, intermediate: int, layers: int, tokens: int, checkpointing: bool) -> float:
    """Bytes that `layers` transformer layers keep of one micro-batch for the backward."""
    # what one layer keeps of a token: norms, q, k, v, attention output, the gated MLP's three, residuals
    one_layer = 2 * (10 * hidden + 4 * intermediate)
    return tokens * (layers * 2 * hidden + one_layer if checkpointing else layers * one_layer)


def estimate(
    *,
    frozen: int,
    quantised: int,
    trained: int,
    weight_bytes: int,
    hidden: int,
    intermediate: int,
    layers: int,
    tokens: int,
    checkpointing: bool,
    kept_rows: int,
    vocabulary: int,
    tower: float = 0.0,
) -> Footprint:
    """Parameters by kind, the language model's shape, and one micro-batch: `tokens` in all, `kept_rows` supervised.

    tower: activations of a vision tower that is trained; a frozen one keeps none.
    """
    text = activations(hidden=hidden, intermediate=intermediate, layers=layers, tokens=tokens, checkpointing=checkpointing)
    return Footprint(
        weights=quantised * NF4_BYTES + frozen * weight_bytes,
        trained=trained * ADAM_BYTES,
        activations=text + tower,
        logits=kept_rows * vocabulary * LOGIT_BYTES,
    )
