"""A tokenizer with a chat template, in the place where a vision-language model has its processor.

Text-only models come without a processor. This stand-in answers what the rest of the code asks of one, so that records
become samples, runs and predictions on one path. What it saves is the tokenizer alone: the folder stays an ordinary one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase


class TextProcessor:
    """`tokenizer`, with a processor's face; `image_processor` is None, which is how a text-only model is told from others."""

    image_processor = None

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer

    @property
    def chat_template(self) -> str | dict[str, str] | None:
        return self.tokenizer.chat_template

    def apply_chat_template(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """The rendered conversation; contents become plain text first, since templates of text models take no list of parts."""
        plain = [{**message, "content": "".join(part["text"] for part in message["content"])} for message in messages]
        return self.tokenizer.apply_chat_template(plain, **options)

    def save_pretrained(self, folder: str | Path) -> None:
        self.tokenizer.save_pretrained(folder)
