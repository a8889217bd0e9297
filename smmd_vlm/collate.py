"""Processor-aware samples and batches: chat template, image tokens, answer-only labels, padding.

    Encoder(processor)(record)         -> one sample: input_ids, labels, mm_token_type_ids, pixel_values, image_grid_thw
    Collator(processor, side)(samples) -> tensors; right padding for training, left for generation

Labels are the answer's tokens and the end-of-turn token that the chat template writes after it; the prompt, with every
image and control token, is -100. The prompt is exactly what `generate` is given, so training and prediction agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torch.utils.data import Dataset

from smmd_vlm.dataset import open_image
from smmd_vlm.objective import IGNORE_INDEX
from smmd_vlm.records import Record
from smmd_vlm.rows import IMAGE_MARK

if TYPE_CHECKING:
    from transformers import ProcessorMixin

    from smmd_vlm.textprocessor import TextProcessor

Sample = dict[str, Any]
_IMAGE_INPUTS = ("pixel_values", "image_features", "image_grid_thw")
_SENTINEL = "\u2603answer\u2603"  # rendered in place of an answer to see what the template writes after one


def reads_images(processor: ProcessorMixin | TextProcessor) -> bool:
    """False for the tokenizer of a text-only model."""
    return processor.image_processor is not None


def tokens_to_pixels(processor: ProcessorMixin) -> int:
    """Pixels of one image token: (patch size x merge size) squared; 28x28 for Qwen2.5-VL, 32x32 for Qwen3-VL."""
    image_processor = processor.image_processor
    return (image_processor.patch_size * image_processor.merge_size) ** 2


def set_image_budget(processor: ProcessorMixin | TextProcessor, min_tokens: int, max_tokens: int) -> None:
    """Scale images into [min_tokens, max_tokens] image tokens from now on; saved with the processor.

    `size` is set after loading: from_pretrained(size=...) is ignored while an older config still holds min/max_pixels.
    """
    if not reads_images(processor):
        raise ValueError(
            f"expected a model that reads images for {max_tokens} image tokens, got a text-only one; leave them out"
        )
    pixels = tokens_to_pixels(processor)
    processor.image_processor.size = {"shortest_edge": min_tokens * pixels, "longest_edge": max_tokens * pixels}
    for name in ("min_pixels", "max_pixels"):
        if hasattr(processor.image_processor, name):
            setattr(processor.image_processor, name, None)


def image_budget(processor: ProcessorMixin | TextProcessor) -> tuple[int, int]:
    """(least, most) image tokens that the processor makes of an image; (0, 0) for a text-only model."""
    if not reads_images(processor):
        return 0, 0
    size, pixels = processor.image_processor.size, tokens_to_pixels(processor)
    return size["shortest_edge"] // pixels, size["longest_edge"] // pixels


class Encoder:
    """A record -> one sample of the model's own inputs, unpadded.

    with_answer: append the answer and its end token, with labels; otherwise the prompt alone, for generation.
    features: image bytes -> ((n, 1 + L, hidden) features, (1, 3) grid), see visioncache; the sample then has
        `image_features` instead of `pixel_values`, and no pixel is read.
    """

    def __init__(
        self,
        processor: ProcessorMixin | TextProcessor,
        *,
        with_answer: bool = True,
        system_prompt: str | None = None,
        max_length: int | None = None,
        features: Callable[[bytes], tuple[Tensor, Tensor]] | None = None,
    ) -> None:
        self.processor, self.tokenizer, self.features = processor, processor.tokenizer, features
        self.with_answer, self.system_prompt, self.max_length = with_answer, system_prompt, max_length
        self.control_tokens = sorted(set(self.tokenizer.all_special_tokens) | set(self.tokenizer.added_tokens_encoder))
        self.end_id = self._end_of_turn()

    def messages(self, record: Record, answer: str | None = None) -> list[dict[str, Any]]:
        """The conversation in the chat template's form."""
        texts = record.question.split(IMAGE_MARK) if record.images and IMAGE_MARK in record.question else [record.question]
        content: list[dict[str, str]] = []
        if len(texts) == 1:  # no marks: images first
            content = [{"type": "image"}] * len(record.images)
        for index, text in enumerate(texts):
            content += [{"type": "image"}] if index else []
            content += [{"type": "text", "text": text}] if text else []
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if self.system_prompt is not None:
            messages.insert(0, {"role": "system", "content": [{"type": "text", "text": self.system_prompt}]})
        if answer is not None:
            messages.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
        return messages

    def render(self, messages: list[dict[str, Any]], *, generation_prompt: bool) -> str:
        """The template's text, thinking off where the template knows it (Qwen3.5 then writes an empty think block)."""
        options = {"enable_thinking": False} if "enable_thinking" in str(self.processor.chat_template) else {}
        return self.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=generation_prompt, **options)

    def __call__(self, record: Record) -> Sample:
        """Errors name the record: an unreadable image, a control token in the text, a sample longer than max_length."""
        return self.batch([record])[0]

    def batch(self, records: Sequence[Record]) -> list[Sample]:
        """The samples one by one, bit for bit; their images go through the processor together, which is cheaper."""
        for record in records:
            self.check_text(record)
        return [self._sample(*each) for each in zip(records, *self._encode_images(records), strict=True)]

    def _sample(self, record: Record, images: dict[str, Tensor], counts: list[int]) -> Sample:
        """`counts`: tokens of each image. What the processor's own call gives, without its checks of every argument."""
        prompt = self.render(self.messages(record), generation_prompt=True)
        if counts:
            mark = self.processor.image_token
            before, *after = prompt.split(mark)
            prompt = before + "".join(mark * count + rest for count, rest in zip(counts, after, strict=True))
        ids = torch.tensor(self.tokenizer(prompt, add_special_tokens=False)["input_ids"])
        types = (ids == self.processor.image_token_id).to(ids.dtype) if counts else torch.zeros_like(ids)
        sample: Sample = {"id": record.id}
        if self.with_answer:
            answer = self.tokenizer(record.answer, add_special_tokens=False)["input_ids"]
            if not answer:
                raise ValueError(f"record {record.id!r}: the tokenizer makes no token of the answer {record.answer!r}")
            answer = torch.tensor([*answer, self.end_id], dtype=ids.dtype)
            sample["labels"] = torch.cat([torch.full_like(ids, IGNORE_INDEX), answer])
            types = torch.cat([types, torch.zeros_like(answer, dtype=types.dtype)])
            ids = torch.cat([ids, answer])
        if self.max_length is not None and len(ids) > self.max_length:
            raise ValueError(
                f"record {record.id!r}: {len(ids)} tokens, {sum(counts)} of them image tokens, exceed data.max_length={self.max_length}; "
                "raise it or lower data.image_max_tokens (samples are never cut)"
            )
        return sample | {"input_ids": ids, "mm_token_type_ids": types} | images

    def _encode_images(self, records: Sequence[Record]) -> tuple[list[dict[str, Tensor]], list[list[int]]]:
        """For each record the model's image inputs, and how many tokens each of its images has."""
        if self.features is not None:
            found = [[self.features(image) for image in record.images] for record in records]
            return [_joined(each) for each in found], [[len(features) for features, _ in each] for each in found]
        images = [open_image(image, record.id) for record in records for image in record.images]
        if not images:
            return [{} for _ in records], [[] for _ in records]
        processor = self.processor.image_processor
        try:
            inputs = processor(images, return_tensors="pt")
        except ValueError as error:  # for example an aspect ratio over 200
            if len(records) > 1:  # which one?
                for record in records:
                    self._encode_images([record])
            raise ValueError(f"record {records[0].id!r}: the processor refuses its image ({error})") from None
        sizes = [len(record.images) for record in records]
        grids = inputs["image_grid_thw"].split(sizes)
        patches = [int(grid.prod(1).sum()) for grid in grids]
        made = [
            {"pixel_values": pixels, "image_grid_thw": grid} if len(grid) else {}
            for pixels, grid in zip(inputs["pixel_values"].split(patches), grids, strict=True)
        ]
        return made, [(grid.prod(1) // processor.merge_size**2).tolist() for grid in grids]

    def check_text(self, record: Record) -> None:
        """A ValueError for an image that the model cannot read, a control token, or marks for other images than there are."""
        if record.images and not reads_images(self.processor):
            raise ValueError(
                f"record {record.id!r} has an image, but the model reads text only; take a vision-language model, or data without images"
            )
        marks = record.question.count(IMAGE_MARK) if record.images else 0
        if marks not in (0, len(record.images)):
            raise ValueError(
                f"record {record.id!r}: expected as many {IMAGE_MARK} marks as images, got {marks} and {len(record.images)}"
            )
        for name, text in (("question", record.question), ("answer", record.answer)):
            for token in self.control_tokens:
                if token in text and not token.isdigit():
                    raise ValueError(
                        f"record {record.id!r}: the {name} holds the control token {token!r}; remove it from the text"
                    )

    def _end_of_turn(self) -> int:
        """The first token that the template writes after an assistant's answer, for example <|im_end|>."""
        blank = Record(id="template", question="?", answer=_SENTINEL)
        text = self.render(self.messages(blank, answer=_SENTINEL), generation_prompt=False)
        after = text.rpartition(_SENTINEL)[2]
        ids = self.tokenizer(after, add_special_tokens=False)["input_ids"]
        end = ids[0] if ids else self.tokenizer.eos_token_id
        if end is None:
            raise ValueError(
                "expected a chat template that ends an answer with a token, or a tokenizer with an eos_token; got neither"
            )
        return int(end)


def _joined(found: Sequence[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    """(features, grid) of a record's images as the model's input; nothing for none."""
    if not found:
        return {}
    features, grids = zip(*found, strict=True)
    return {"image_features": torch.cat(features), "image_grid_thw": torch.cat(grids)}


class Collator:
    """Samples -> one batch: tokens, mask and token types padded on `side`, pixels and grids concatenated.

    `ids` are the records' own, for messages; they are no input of the model. Text-only models take no token types.
    """

    def __init__(self, processor: ProcessorMixin | TextProcessor, side: Literal["left", "right"] = "right") -> None:
        if side not in ("left", "right"):
            raise ValueError(f"side must be left or right, got {side!r}")
        tokenizer = processor.tokenizer
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        if pad is None:
            raise ValueError("expected a tokenizer with a pad_token or an eos_token, got neither; set tokenizer.pad_token")
        self.pad_id, self.side, self.with_types = pad, side, reads_images(processor)

    def __call__(self, samples: Sequence[Sample]) -> dict[str, Any]:
        tokens = [sample["input_ids"] for sample in samples]
        batch = {
            "ids": [sample["id"] for sample in samples],
            "input_ids": self._pad(tokens, self.pad_id),
            "attention_mask": self._pad([torch.ones_like(row) for row in tokens], 0),
        }
        if self.with_types:
            batch["mm_token_type_ids"] = self._pad([sample["mm_token_type_ids"] for sample in samples], 0)
        if "labels" in samples[0]:
            batch["labels"] = self._pad([sample["labels"] for sample in samples], IGNORE_INDEX)
        for name in _IMAGE_INPUTS:
            rows = [sample[name] for sample in samples if name in sample]
            if rows:
                batch[name] = torch.cat(rows)
        return batch

    def _pad(self, rows: list[Tensor], value: int) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value, padding_side=self.side)


class EncodedRecords(Dataset):
    """Records encoded when taken; with `keep`, kept in memory after their first use."""

    def __init__(self, records: Sequence[Record], encoder: Encoder, *, limit: int | None = None, keep: bool = False) -> None:
        self.records, self.encoder = records, encoder
        self.length = len(records) if limit is None else min(limit, len(records))
        self.kept: dict[int, Sample] | None = {} if keep else None

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Sample:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[Sample]:
        """A batch at once, which is how a DataLoader asks."""
        if self.kept is None:
            return self.encoder.batch([self.records[index] for index in indices])
        new = [index for index in dict.fromkeys(indices) if index not in self.kept]
        self.kept |= zip(new, self.encoder.batch([self.records[index] for index in new]), strict=True)
        return [self.kept[index] for index in indices]
