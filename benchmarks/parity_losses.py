"""Our losses beside their authors' code: the largest difference in value and in gradient, in float32.

    python benchmarks/parity_losses.py --smmd DIR --ntloss DIR --ntil DIR

Each DIR is a checkout or an unpacked wheel of the peer, which is imported from there and never copied: smmd-loss (Zuo et
al., package `smmd`), ntloss (needs loguru) and NTIL (xfey/NTIL, `ntil.py`). A peer without a DIR is left out.
Same logits and targets on both sides; where the peer takes a mean over positions, so do we. Exit code 1 when a
difference exceeds 1e-6 (relative to the largest entry), or nothing was compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace

import torch
from torch import Tensor

from smmd_vlm import NumericVocab
from smmd_vlm.objective import NumericObjective

WANTED = 1e-6
WIDTH, POINT = 40, 10
VOCAB = NumericVocab.from_mapping({**{str(d): d for d in range(10)}, ".": POINT})


class DigitTokenizer:
    """Ten digits, a point, and words; only what the peers ask of a tokenizer."""

    vocab_size = WIDTH
    unk_token_id = None

    def __len__(self) -> int:
        return WIDTH

    def get_vocab(self) -> dict[str, int]:
        return {**{str(d): d for d in range(10)}, ".": POINT, **{f"word{i}": i for i in range(11, WIDTH)}}

    def add_tokens(self, tokens: list[str]) -> int:
        return 0

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [self.get_vocab()[character] for character in text]

    def __call__(self, text: str, add_special_tokens: bool = False, **_) -> SimpleNamespace:
        return SimpleNamespace(input_ids=self.encode(text))

    def convert_tokens_to_ids(self, tokens):
        vocab = self.get_vocab()
        return [vocab[token] for token in tokens] if isinstance(tokens, list) else vocab[tokens]


def batch(seed: int, numbers: list[str], scale: float = 2.0) -> tuple[Tensor, Tensor]:
    """(B, T, V) logits and the (B, T) targets they predict (already shifted), a word before and after each number."""
    rows = [[15, *(POINT if c == "." else int(c) for c in number), 16] for number in numbers]
    width = max(map(len, rows))
    targets = torch.tensor([row + [16] * (width - len(row)) for row in rows])
    logits = scale * torch.randn(*targets.shape, WIDTH, generator=torch.Generator().manual_seed(seed))
    return logits, targets


def ours(name: str, targets: Tensor, **options) -> Callable[[Tensor], Tensor]:
    """Mean over numeric positions of our loss, as a function of the (B, T, V) logits."""
    objective = NumericObjective(VOCAB, name, **options)
    labels = torch.nn.functional.pad(targets, (1, 0), value=-100)  # our labels are unshifted

    def call(logits: Tensor) -> Tensor:
        return objective(torch.nn.functional.pad(logits, (0, 0, 0, 1)), labels).numeric

    return call


def compare(title: str, peer: Callable[[Tensor], Tensor], own: Callable[[Tensor], Tensor], logits: Tensor) -> bool:
    values, gradients = [], []
    for loss in (peer, own):
        z = logits.clone().requires_grad_()
        value = loss(z)
        value.backward()
        values.append(value.detach())
        gradients.append(z.grad)
    value = ((values[0] - values[1]).abs() / values[0].abs()).item()
    gradient = ((gradients[0] - gradients[1]).abs().max() / gradients[0].abs().max()).item()
    fine = value <= WANTED and gradient <= WANTED
    print(
        f"{title:58}{values[0].item():10.6f}{values[1].item():10.6f}{value:11.1e}{gradient:11.1e}{'' if fine else '  MISSED'}"
    )
    return fine


def against_smmd() -> list[bool]:
    peer = import_module("smmd").SMMDLoss
    logits, targets = batch(0, ["42", "3.015", "199", "7"])
    found = []
    for theirs, mine in (
        ({}, {}),
        ({"loss_mode": "mmd"}, {"term": "mmd"}),
        ({"loss_mode": "smooth"}, {"term": "smooth"}),
        ({"sigmas": (1.0, 4.0)}, {"sigmas": (1.0, 4.0)}),
        ({"kernel_type": "laplace"}, {"kernel": "laplace"}),
        ({"tau_mode": "fixed", "tau_fixed": 0.3}, {"alpha": 0.3}),
        ({"squash_factor": 4.0}, {"squash": 4.0}),
    ):
        module = peer(DigitTokenizer(), **theirs)
        title = f"smmd-loss {theirs or 'defaults'}"
        found.append(compare(title, lambda z, module=module: module(z, targets), ours("smmd", targets, **mine), logits))
    return found


def against_ntloss() -> list[bool]:
    peers = import_module("ntloss")
    functional = torch.nn.functional
    logits, targets = batch(1, ["42", "3.015", "199", "7"])
    found = []
    for name, options, module in (
        ("ntl_was", {}, peers.NTLoss(DigitTokenizer(), reweigh=False)),
        ("ntl_was", {"reweigh": True}, peers.NTLoss(DigitTokenizer())),
        ("ntl_was", {"squash": 4.0}, peers.NTLoss(DigitTokenizer(), reweigh=False, squash_factor=4.0)),
        ("ntl_mse", {}, peers.NTLossDotProduct(DigitTokenizer(), reweigh=False)),
        ("ntl_mse", {"reweigh": True}, peers.NTLossDotProduct(DigitTokenizer())),
        ("ntl_mse", {"function": "mae"}, peers.NTLossDotProduct(DigitTokenizer(), reweigh=False, loss_function=functional.l1_loss)),
        ("ntl_mse", {"function": "huber"}, peers.NTLossDotProduct(DigitTokenizer(), reweigh=False, loss_function=functional.huber_loss)),
    ):  # fmt: skip
        found.append(
            compare(
                f"ntloss {name} {options or ''}",
                lambda z, module=module: module(z, targets),
                ours(name, targets, **options),
                logits,
            )
        )
    return found


def against_ntil() -> list[bool]:
    """Numbers without a point, one a sample and equally long: where the released code reads a number rightly."""
    peer = import_module("ntil").NTIL
    found = []
    for title, numbers, terms, options in (
        ("digit term", ["421", "305", "199", "720"], (1.0, 0.0, 0.0), {"relative": 0.0, "magnitude": 0.0}),
        ("relative term", ["421", "305", "199", "720"], (0.0, 1.0, 0.0), {"digit": 0.0, "relative": 1.0, "magnitude": 0.0}),
        ("magnitude term", ["421", "305", "199", "720"], (0.0, 0.0, 1.0), {"digit": 0.0, "relative": 0.0, "magnitude": 1.0}),
        ("all, its weights", ["421", "305", "199", "720"], (1.0, 0.2, 0.2), {}),
    ):
        logits, targets = batch(2, numbers)
        module = peer(DigitTokenizer(), batch_size=len(numbers), digit_alpha=terms[0], abs_alpha=terms[1], mag_alpha=terms[2])
        # the released loss draws noise of scale 0.01 before its arg max; both sides here do without
        module.gumbel_softmax = lambda z, module=module: straight_through(z)

        def call(z: Tensor, module=module, targets=targets) -> Tensor:
            return module(z.reshape(-1, WIDTH), targets.reshape(-1))

        found.append(compare(f"NTIL {title}", call, ours("ntil", targets, number_terms="repeated", **options), logits))
    return found


def straight_through(logits: Tensor) -> Tensor:
    soft = (logits / 0.1).softmax(-1)
    hard = torch.nn.functional.one_hot(soft.argmax(-1), logits.shape[-1]).to(soft)
    return hard - soft.detach() + soft


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    peers = {"smmd": against_smmd, "ntloss": against_ntloss, "ntil": against_ntil}
    for name in peers:
        parser.add_argument(f"--{name}", metavar="DIR", help=f"folder to import {name} from")
    given = vars(parser.parse_args(argv))
    print(f"{'peer':58}{'theirs':>10}{'ours':>10}{'value':>11}{'gradient':>11}")
    found: list[bool] = []
    for name, against in peers.items():
        if given[name]:
            sys.path.insert(0, given[name])
            found += against()
    print(f"{sum(found)} of {len(found)} comparisons within {WANTED:g}")
    return 0 if found and all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
