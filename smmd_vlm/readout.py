"""The read-out: a model's distribution over the numbers or times that its answer can spell, by a trie of token prefixes.

    read = ReadOut(model, tokenizer, stop, spellings=[clock_spellings(), number_spellings(0, 999)], prune=1e-4, rows=32)
    read(inputs, records)  -> one Distribution a record, None where the right answer is none of the spellings

The probability of a text is the sum over every sequence of tokens that makes it and an end token after it, so it does not
depend on how a tokenizer would cut the text; that of a value is the sum over its texts ("7" and "07", "9:05" and "09:05").
One forward reads the prompts into a cache; then each depth of the trie is one batch of prefixes over that cache (several
where they are more than `rows`). Exact but for branches less likely than `prune`, whose mass is kept as `pruned`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from smmd_vlm.distribution import Distribution
from smmd_vlm.numerals import DIAL_MINUTES, read_time
from smmd_vlm.records import Record
from smmd_vlm.vocab import token_text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_DIGITS = 6  # significant digits of a probability that is kept


@dataclass(frozen=True)
class Spellings:
    """Which texts count as which value; every other text is `other`."""

    worth: Mapping[str, float]
    answer_types: frozenset[str]
    decimals: int = 0
    period: int | None = None
    prefixes: frozenset[str] = field(init=False)  # of every text, itself included

    def __post_init__(self) -> None:
        prefixes = frozenset(text[:end] for text in self.worth for end in range(1, len(text) + 1))
        object.__setattr__(self, "prefixes", prefixes)


def clock_spellings() -> Spellings:
    """`H:MM` and `HH:MM` -> minutes after 12:00 on a 12-hour dial; hours 0 to 24, so 15:30 is 03:30. No seconds."""
    hours = [*map(str, range(25)), *(f"0{hour}" for hour in range(10))]
    texts = [f"{hour}:{minute:02d}" for hour in hours for minute in range(60)]
    return Spellings({text: int(read_time(text)) for text in texts}, frozenset({"time"}), period=DIAL_MINUTES)


def number_spellings(low: int, high: int, decimals: int = 0) -> Spellings:
    """Every multiple of 10 ** -decimals from `low` to `high`, in ASCII.

    A whole part counts with leading zeros (up to the widest whole part of the range) and with commas between thousands; a
    fraction with as few digits as it needs up to `decimals`: 7.5 and 7.50 are one value, and so are 7 and 7.0 with decimals >= 1.
    """
    if not low <= high or decimals < 0:
        raise ValueError(f"expected low <= high and decimals >= 0, got {low}, {high} and {decimals}")
    one, width = 10**decimals, len(str(max(abs(low), abs(high))))
    worth: dict[str, float] = {}
    for scaled in range(low * one, high * one + 1):
        whole, rest = divmod(abs(scaled), one)
        digits = f"{rest:0{decimals}d}" if decimals else ""
        needed = len(digits.rstrip("0"))
        fractions = [f".{digits[:count]}" for count in range(max(1, needed), decimals + 1)] + ([] if needed else [""])
        wholes = {str(whole).zfill(wide) for wide in range(width + 1)} | {f"{whole:,}"}
        for written in wholes:
            for fraction in fractions:
                worth[f"{'-' if scaled < 0 else ''}{written}{fraction}"] = scaled / one if decimals else scaled
    return Spellings(worth, frozenset({"number", "year"}), decimals)


class _Node(NamedTuple):
    """A prefix that is likely enough to go on from."""

    prompt: int  # row of the batch
    ids: tuple[int, ...]
    text: str
    probability: float


class ReadOut:
    """Reads distributions off a causal language model of transformers, text or image-text, left where it is.

    stop: token ids that end an answer. prune: branches below this probability are not followed. rows: prefixes a forward.
    `forwards` counts the model's calls.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        stop: Sequence[int],
        *,
        spellings: Sequence[Spellings],
        prune: float = 1e-4,
        rows: int = 32,
    ) -> None:
        if not 0 <= prune < 1 or rows < 1:
            raise ValueError(f"expected 0 <= prune < 1 and rows >= 1, got {prune} and {rows}")
        self.model, self.stop, self.spellings = model, list(stop), tuple(spellings)
        self.prune, self.rows, self.forwards = prune, rows, 0
        letters = {letter for each in spellings for text in each.worth for letter in text}
        unusable = {*tokenizer.all_special_ids, *stop}
        self.tokens = {  # id -> text of every token that a spelling can be made of
            i: text
            for key, i in tokenizer.get_vocab().items()
            if i not in unusable and (text := token_text(key)) and letters.issuperset(text)
        }
        self._steps: dict[tuple[int, str], list[tuple[int, str]]] = {}

    def spelled(self, record: Record) -> Spellings | None:
        """The spellings of the record's kind, when its answer is one of them."""
        found = (each for each in self.spellings if record.answer_type in each.answer_types and record.answer in each.worth)
        return next(found, None)

    @torch.no_grad()
    def __call__(self, inputs: Mapping[str, Tensor], records: Sequence[Record]) -> list[Distribution | None]:
        """`inputs`: the batch of the records' prompts, padded on the left, as `Collator` makes it, without `ids`.

        Logits that are no numbers (a float16 overflow) are a ValueError.
        """
        spelled = [self.spelled(record) for record in records]
        if not any(spelled):
            return [None] * len(records)
        found: list[dict[float, float]] = [{} for _ in records]
        pruned = [0.0] * len(records)
        nodes = [_Node(prompt, (), "", 1.0) for prompt, spellings in enumerate(spelled) if spellings]
        prompts = _Prompts(self.model, inputs)
        self.forwards += 1
        while nodes:
            deeper: list[_Node] = []
            for node, (end, follow) in zip(nodes, self._next(prompts, nodes), strict=True):
                spellings = spelled[node.prompt]
                branches = [
                    _Node(node.prompt, (*node.ids, token), text, node.probability * follow[token])
                    for token, text in self._children(spellings, node.text)
                ]
                deeper += [branch for branch in branches if branch.probability >= self.prune]
                pruned[node.prompt] += sum(branch.probability for branch in branches if branch.probability < self.prune)
                if node.text in spellings.worth:
                    value, here = spellings.worth[node.text], node.probability * end
                    found[node.prompt][value] = found[node.prompt].get(value, 0.0) + here
            nodes = deeper
        return [
            None if spellings is None else _distribution(values, left_out, spellings)
            for values, left_out, spellings in zip(found, pruned, spelled, strict=True)
        ]

    def _next(self, prompts: _Prompts, nodes: Sequence[_Node]) -> Iterator[tuple[float, dict[int, float]]]:
        """For each node of one depth: the probability that the answer ends here, and of each token that may follow."""
        every = [*self.stop, *self.tokens]
        for start in range(0, len(nodes), self.rows):
            some = nodes[start : start + self.rows]
            rows = torch.tensor([node.prompt for node in some])
            if some[0].ids:
                logits = prompts.after(rows, torch.tensor([node.ids for node in some]))
                self.forwards += 1
            else:
                logits = prompts.logits[rows.to(prompts.logits.device)]
            probabilities = logits.double().softmax(-1)[:, every]
            if not probabilities.isfinite().all():
                raise ValueError("expected finite logits to read a distribution from, got NaN; try another --dtype")
            for row in probabilities.tolist():
                yield sum(row[: len(self.stop)]), dict(zip(self.tokens, row[len(self.stop) :], strict=True))

    def _children(self, spellings: Spellings, text: str) -> list[tuple[int, str]]:
        """(token, longer text) for every token after which the text is still the start of a spelling."""
        key = (id(spellings), text)
        if key not in self._steps:
            longer = ((token, text + more) for token, more in self.tokens.items())
            self._steps[key] = [(token, written) for token, written in longer if written in spellings.prefixes]
        return self._steps[key]


class _Prompts:
    """Prompts read once into a cache. logits (B, V): what follows each of them."""

    def __init__(self, model: torch.nn.Module, inputs: Mapping[str, Tensor]) -> None:
        self.model, self.mask = model, inputs["attention_mask"]
        positions = _positions(model, inputs)
        self.next_position = positions.reshape(-1, *positions.shape[-2:]).amax((0, 2)) + 1
        output = model(**inputs, position_ids=positions, use_cache=True, logits_to_keep=1)
        self.cache, self.logits = output.cache, output.logits[:, -1]

    def after(self, rows: Tensor, ids: Tensor) -> Tensor:
        """(R,) prompts and (R, T) tokens written after each -> (R, V) logits of what follows; the cache stays as it is."""
        rows, ids = rows.to(self.mask.device), ids.to(self.mask.device)
        cache = copy.deepcopy(self.cache)  # layers differ in what they keep and in what they change in place
        cache.reorder_cache(rows)
        output = self.model(
            input_ids=ids,
            attention_mask=torch.cat([self.mask[rows], torch.ones_like(ids)], dim=1),
            position_ids=self.next_position[rows, None] + torch.arange(ids.shape[1], device=ids.device),
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1]


def _positions(model: torch.nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    """Positions of the prompts' tokens, as `generate` has them: (3, B, T) where images take part, else (B, T)."""
    index = next((module.get_rope_index for module in model.modules() if hasattr(module, "get_rope_index")), None)
    if index is None:
        return (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    names = ("input_ids", "attention_mask", "mm_token_type_ids", "image_grid_thw")
    return index(**{name: inputs[name] for name in names if name in inputs})[0]


def _distribution(values: Mapping[float, float], pruned: float, spellings: Spellings) -> Distribution:
    """Rounded to significant digits; what the values and the pruned branches leave of 1 is `other`."""
    kept = {value: rounded for value in sorted(values) if (rounded := _round(values[value])) > 0}
    other = max(0.0, 1 - sum(values.values()) - pruned)
    return Distribution(
        values=tuple(kept),
        probabilities=tuple(kept.values()),
        pruned=_round(pruned),
        other=_round(other),
        decimals=spellings.decimals,
        period=spellings.period,
    )


def _round(probability: float) -> float:
    return float(f"{probability:.{_DIGITS}g}")
