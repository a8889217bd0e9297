"""One picture of the family: what a wrong digit costs, and how strongly each loss pulls, against distance.

    python benchmarks/figure_losses.py [--out assets/losses.png]

Left: the cost of a model that is sure of a digit `distance` away from the true 0, over its largest cost. Middle: the same
for the true 5, over the distances to both sides. Right: the pull of a model that gives the wrong digit probability 0.9 and the
true one 0.1: how fast the cost falls when the true digit's logit rises and the wrong one's falls.
Losses over whole numbers see a number of one digit.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch import Tensor

from smmd_vlm import NumericObjective, NumericVocab, losses

VALUES = torch.arange(10.0)
# label: (loss, options, colour, line, width); brier, restricted_ce and del lie on one line, so they are drawn as bands
SHOWN: dict[str, tuple[str, dict, str, str, float]] = {
    "brier": ("brier", {}, "#d9d9d9", "-", 8.0),
    "restricted_ce": ("restricted_ce", {}, "#969696", "-", 4.5),
    "del": ("del", {}, "#c62828", "-", 1.6),
    "smmd": ("smmd", {}, "#0b6e99", "-", 2.0),
    "smmd, constant degree": ("smmd", {"degree": "constant"}, "#0b6e99", "--", 1.6),
    "smmd, mmd term only": ("smmd", {"term": "mmd"}, "#0b6e99", ":", 1.6),
    "smmd, shuffled": ("smmd", {"kernel": "shuffled"}, "#9e9e9e", "-.", 1.4),
    "gaussian_ce": ("gaussian_ce", {}, "#b5651d", "-", 1.6),
    "dist2": ("dist2", {}, "#b5651d", "--", 1.6),
    "ntl_was": ("ntl_was", {}, "#2e7d32", "-", 1.6),
    "ntl_mse": ("ntl_mse", {}, "#2e7d32", "--", 1.6),
    "ntil": ("ntil", {}, "#8e24aa", "-", 1.6),
}
NEVER = 1e-6


def logits_for(target: int, predicted: Tensor, probability: float) -> Tensor:
    """(P,) predicted digits -> (P, 10) logits: `probability` on each, what is left on the true digit."""
    probs = torch.full((len(predicted), 10), NEVER, dtype=torch.float64)
    probs[:, target] = max(1 - probability, NEVER)
    probs[range(len(predicted)), predicted] = probability
    return probs.log()


def cost(name: str, options: dict, target: int, logits: Tensor) -> Tensor:
    """(P, 10) logits -> (P,) the loss of each, a number of one digit, no probability outside the digits."""
    vocab = NumericVocab.from_mapping({str(d): d for d in range(10)})
    labels = torch.tensor([[-100, target]]).repeat(len(logits), 1)
    runs = NumericObjective(vocab, "ntil").runs(labels)
    loss = losses.build(name, VALUES, **options)
    return loss(logits, torch.full((len(logits),), target), log_z=logits.logsumexp(-1), runs=runs)


def pull(name: str, options: dict, target: int, predicted: Tensor) -> Tensor:
    """(P,) how fast the cost falls when the true digit's logit rises and the wrong one's falls."""
    logits = logits_for(target, predicted, 0.9).requires_grad_()
    (gradient,) = torch.autograd.grad(cost(name, options, target, logits).sum(), logits)
    return gradient[range(len(predicted)), predicted] - gradient[:, target]


def draw(out: Path) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    far = torch.arange(1, 10)
    both = torch.tensor([0, 1, 2, 3, 4, 6, 7, 8, 9])
    for label, (name, options, colour, line, width) in SHOWN.items():
        style = dict(color=colour, linestyle=line, linewidth=width, label=label)
        ends = cost(name, options, 0, logits_for(0, far, 1.0))
        axes[0].plot(far, ends / ends.max(), **style)
        middle = cost(name, options, 5, logits_for(5, both, 1.0))
        middle = middle / middle.max()
        axes[1].plot(both[:5], middle[:5], **style)
        axes[1].plot(both[5:], middle[5:], **style)
        force = pull(name, options, 0, far)
        axes[2].plot(far, force / force.abs().max(), **style)
    axes[0].set(title="Sure of the wrong digit, truth 0", xlabel="predicted digit", ylabel="cost, over its largest")
    axes[1].set(title="Sure of the wrong digit, truth 5", xlabel="predicted digit", xticks=range(10))
    axes[2].set(title="Pull from 90 % wrong, 10 % right, truth 0", xlabel="predicted digit", ylabel="pull, over its largest")
    for panel in axes:
        panel.set_ylim(0, 1.06)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_xticks(range(1, 10))
    axes[2].set_xticks(range(1, 10))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "assets" / "losses.png")
    out = parser.parse_args(argv).out
    draw(out)
    print(f"wrote {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
