"""`smmd-vlm vocab`: what a tokenizer makes of numbers, before anything is trained.

    smmd-vlm vocab --model NAME_OR_PATH [--mode digits]

Which tokens are numbers in each mode, how a few numbers split, and where a token's value is not its part of the number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smmd_vlm.config import VocabConfig
from smmd_vlm.numerals import INTEGER
from smmd_vlm.vocab import NumericVocab, token_text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SAMPLES = ("12:05", "123", " 123", "3.14", "-7", "1,024", "1234567")
_MODES = ("digits", "integers", "floats")


def pieces(tokenizer: PreTrainedTokenizerBase, text: str) -> list[str]:
    """The tokens that `text` becomes inside an answer, as text."""
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return [token_text(token) for token in tokenizer.convert_ids_to_tokens(ids)]


def warnings_of(vocabs: dict[str, NumericVocab], splits: dict[str, list[str]], mode: str) -> list[str]:
    """Sentences on where token value and place value part, and on digits that no numeric loss reaches in `mode`."""
    found = []
    numbers = set(vocabs[mode].tokens)
    missed = {text: [piece for piece in split if any(c in "0123456789" for c in piece) and piece not in numbers] for text, split in splits.items()}  # fmt: skip
    missed = {text: parts for text, parts in missed.items() if parts}
    if missed:
        text, parts = next(iter(missed.items()))
        wider = next((m for m in _MODES if all(set(p) <= set(vocabs[m].tokens) for p in missed.values())), None)
        cure = f"use loss.vocab: {wider}" if wider else "no mode takes them all in"
        found.append(
            f"{', '.join(map(repr, parts))} of {text!r} {'is' if len(parts) == 1 else 'are'} no number token in mode {mode}, "
            f"so no numeric loss reaches {'it' if len(parts) == 1 else 'them'}; {cure}"
        )
    several = [token for token in vocabs["integers"].tokens if len(token) > 1]
    if several:
        split = "|".join(splits["1234567"])
        found.append(
            f"{len(several)} tokens hold several digits (1234567 is {split}): the value of a token is not its part of the number, "
            "and first tokens of numbers of different lengths cannot be compared; place weights (loss option place) or ntil help"
        )
        zeros = [token for token in several if token[0] == "0"]
        if zeros:
            found.append(
                f"{len(zeros)} of them begin with 0 (the minutes 00 to 09, fractions): '05' and '5' are worth the same in columns of their own"
            )
        reach = vocabs["integers"].values[-1].item()
        found.append(
            f"values reach {reach:g}: a bandwidth of 2 hardly ranks far errors; try loss.options: {{sigmas: span}} with mode integers"
        )
    else:
        found.append(
            "every digit is a token: 199 read as 200 is three digit errors of 1, 9 and 9; ntil also weighs the number as a whole"
        )
    return found


def report(tokenizer: PreTrainedTokenizerBase, mode: str = "digits") -> str:
    """What the verb prints."""
    vocabs = {name: NumericVocab.from_tokenizer(tokenizer, name) for name in _MODES}
    splits = {text: pieces(tokenizer, text) for text in SAMPLES}
    lines = [f"{'*' if name == mode else ' '} {name:9} {vocab.describe()}" for name, vocab in vocabs.items()]
    chosen = vocabs[mode]
    plain = sum(bool(INTEGER.fullmatch(token)) for token in chosen.tokens)
    lines += [
        "",
        f"  tokens    {len(tokenizer)} in the tokenizer; number tokens reach id {chosen.width - 1}",
        f"  point     {'token ' + str(chosen.point_id) if chosen.point_id is not None else 'no token of its own: fractions are numbers of their own'}",
    ]
    if plain < len(chosen):
        lines.append(f"  digits    {plain} of {len(chosen)} are digits alone; ntil, del and place weights need all")
    lines += ["", *(f"  {text!r:11} {' | '.join(split)}" for text, split in splits.items()), ""]
    lines += [f"! {sentence}" for sentence in warnings_of(vocabs, splits, mode)]
    return "\n".join(lines)


def show(config: VocabConfig) -> int:
    """Load the tokenizer of a model folder or hub name and print its report."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(config.model, revision=config.revision)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"expected a model folder or hub name with a tokenizer, got {config.model!r} ({str(error).splitlines()[0]})"
        ) from None
    print(report(tokenizer, config.mode))
    return 0
