"""Named checks before step 1: what would otherwise fail, or silently teach the wrong thing, after an hour.

Each check raises one sentence (ValueError); none trains or changes anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from math import ceil, prod
from typing import TYPE_CHECKING

import torch

from smmd_vlm.collate import Encoder
from smmd_vlm.dataset import check_image, content_of, image_size
from smmd_vlm.lint import Glance
from smmd_vlm.objective import IGNORE_INDEX
from smmd_vlm.records import Record
from smmd_vlm.vocab import NumericVocab

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from smmd_vlm.config import DataConfig, LoraConfig, LossConfig


@dataclass(frozen=True)
class DataStats:
    """What a scan of the records found."""

    records: int
    contents: frozenset[bytes]  # a hash of question and images for every record
    longest: int  # tokens of the longest sample, image and answer included
    image_token_counts: dict[int, int]  # image tokens of a sample -> how many samples
    answer_tokens: int  # supervised tokens, end tokens included
    numeric_tokens: int  # those of them that are numbers
    lengths: tuple[int, ...]  # tokens of every sample, in order
    odd: tuple[str, ...]  # what lint's cheap checks say of the records

    def __str__(self) -> str:
        low, high = min(self.image_token_counts), max(self.image_token_counts)
        share = self.numeric_tokens / self.answer_tokens
        return (
            f"{self.records} samples, longest {self.longest} tokens, {low} to {high} image tokens each, "
            f"{self.numeric_tokens} of {self.answer_tokens} supervised tokens are numbers ({share:.1%})"
        )


def check_records(records: Sequence[Record], count: int | None = None) -> Iterator[Record]:
    """The records in order, each id unique and each image readable; a broken one is named, never replaced by its neighbour."""
    from tqdm import tqdm

    seen: set[str] = set()
    count = len(records) if count is None else min(count, len(records))
    for index in tqdm(range(count), desc="check records", unit="record", leave=False, delay=2):
        record = records[index]
        if record.id in seen:
            raise ValueError(f"record id {record.id!r} occurs twice; every record needs its own id")
        seen.add(record.id)
        for image in record.images:
            check_image(image, record.id)
            width, height = image_size(image)
            if max(width, height) > 200 * min(width, height):  # the rule of Qwen's image processors
                raise ValueError(
                    f"record {record.id!r}: expected an image at most 200 times as long as wide, got {width} x {height} pixels"
                )
        yield record


def scan(
    records: Sequence[Record],
    encoder: Encoder,
    vocab: NumericVocab,
    count: int | None = None,
    *,
    source: str = "FOLDER",
    split: str = "train",
) -> DataStats:
    """check_records and lint's cheap checks and, without decoding pixels, every sample's exact length against max_length.

    source, split: where the records are from, for messages.
    """
    numbers, tokenizer = set(vocab.token_ids), encoder.tokenizer
    images = encoder.processor.image_processor
    prompts: dict[tuple[str, int], int] = {}  # tokens of a prompt whose images are one token each
    contents: list[bytes] = []
    lengths: list[int] = []
    answer_tokens = numeric_tokens = 0
    image_token_counts: Counter[int] = Counter()
    glance = Glance(split)
    for record in check_records(records, count):
        glance.look(record)
        contents.append(content_of(record))
        encoder.check_text(record)
        key = (record.question, len(record.images))
        if key not in prompts:
            prompt = encoder.render(encoder.messages(record), generation_prompt=True)
            prompts[key] = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
        answer = tokenizer(record.answer, add_special_tokens=False)["input_ids"]
        if not answer:
            raise ValueError(f"record {record.id!r}: the tokenizer makes no token of the answer {record.answer!r}")
        sizes = [image_size(image) for image in record.images]
        tokens = sum(images.get_number_of_image_patches(height, width, {}) // images.merge_size**2 for width, height in sizes)
        length = prompts[key] - len(sizes) + tokens + len(answer) + 1
        if encoder.max_length is not None and length > encoder.max_length:
            raise ValueError(
                f"record {record.id!r}: {length} tokens, {tokens} of them image tokens and {len(answer)} answer tokens, "
                f"exceed data.max_length={encoder.max_length}; raise it or lower data.image_max_tokens (samples are never cut)"
            )
        lengths.append(length)
        image_token_counts[tokens] += 1
        answer_tokens += len(answer) + 1
        numeric_tokens += sum(token in numbers for token in answer)
    return DataStats(
        records=len(contents),
        contents=frozenset(contents),
        longest=max(lengths, default=0),
        image_token_counts=dict(image_token_counts),
        answer_tokens=answer_tokens,
        numeric_tokens=numeric_tokens,
        lengths=tuple(lengths),
        odd=tuple(glance.sentences(source)),
    )


def show_plan(args: TrainingArguments, samples: int) -> str:
    """How long the run is: steps, samples a step, epochs."""
    parts = {
        "a device": args.per_device_train_batch_size,
        "accumulated": args.gradient_accumulation_steps,
        "processes": args.world_size,
    }
    size = prod(parts.values())
    steps = args.max_steps if args.max_steps > 0 else ceil(args.num_train_epochs * ceil(samples / size))
    how = " x ".join(f"{number} {word}" for word, number in parts.items())
    return f"{steps:,} steps of {size} samples ({how}), {steps * size / samples:.3g} epochs of {samples:,}"


def check_no_leak(train: DataStats, evaluation: DataStats) -> str | None:
    """Evaluation questions that are training questions about the same images; returns a sentence when there are some.

    More than half is a mistake (one file for both, rows without a split) and refused; fewer may lie in the nature of a small
    world, such as charts of one bar.
    """
    shared = len(train.contents & evaluation.contents)
    said = f"{shared} of {evaluation.records} evaluation questions are training questions about the same images"
    if 2 * shared > evaluation.records:
        raise ValueError(f"{said}; give the rows a split, name another data.eval_dataset, or set train.eval_strategy to no")
    return said if shared else None


def check_numbers_are_learned(stats: DataStats, loss: LossConfig) -> None:
    """A numeric loss that never fires looks like a healthy run; refuse it."""
    if loss.name != "none" and loss.weight > 0 and stats.numeric_tokens == 0:
        raise ValueError(
            f"expected number tokens among the answers for loss {loss.name!r}, got none in {stats.records} records; "
            'check the answers, or set loss.name: "none"'
        )


def check_no_image_settings(data: DataConfig) -> None:
    """A setting about images, changed from its default, has no meaning for a text-only model."""
    defaults = {field.name: field.default for field in fields(data)}
    for name in ("image_min_tokens", "image_max_tokens", "vision_cache"):
        if getattr(data, name) != defaults[name]:
            raise ValueError(
                f"data.{name} is about images, got {getattr(data, name)!r} for a model that reads text only; remove it"
            )


def check_images_are_there(stats: DataStats, lora: LoraConfig) -> None:
    """Adapters on the vision tower or the projector learn from images alone."""
    if (lora.vision_tower or lora.multi_modal_projector) and set(stats.image_token_counts) == {0}:
        raise ValueError(
            f"expected images for lora.vision_tower and lora.multi_modal_projector, got none in {stats.records} records; remove them"
        )


def check_sample(record: Record, encoder: Encoder) -> None:
    """The labels of an encoded sample decode to its answer and the end token; no image or control token is among them."""
    sample = encoder(record)
    labels = sample["labels"]
    kept = labels[labels != IGNORE_INDEX]
    text = encoder.tokenizer.decode(kept[:-1], clean_up_tokenization_spaces=False)
    if text != record.answer or int(kept[-1]) != encoder.end_id:
        raise ValueError(
            f"record {record.id!r}: expected the labels to be the answer {record.answer!r} and the end token, got {encoder.tokenizer.decode(kept)!r}"
        )
    control = set(encoder.tokenizer.all_special_ids) & set(kept[:-1].tolist())
    if control or bool((sample["mm_token_type_ids"][labels != IGNORE_INDEX] > 0).any()):
        raise ValueError(f"record {record.id!r}: image or control tokens among the labels; adapters then learn to write them")


def show_sample(record: Record, encoder: Encoder, vocab: NumericVocab) -> str:
    """A sample as the model gets it, image tokens as one; [supervised] tokens in brackets, {number} tokens in braces."""
    sample = encoder(record)
    numbers, shown, image = set(vocab.token_ids), [], 0
    for token, label, kind in zip(
        *(sample[name].tolist() for name in ("input_ids", "labels", "mm_token_type_ids")), strict=True
    ):
        image = image + 1 if kind else 0
        if image > 1:
            continue
        text = encoder.tokenizer.decode([token])
        shown.append(text if label == IGNORE_INDEX else f"{{{text}}}" if token in numbers else f"[{text}]")
    return repr("".join(shown))


TEACHER_FORCED = ("loss", "cross_entropy", "numeric_loss", "numeric_token_accuracy", "numeric_token_abs_error")
WRITTEN = (
    "exact", "unparsed", "within_1_min", "within_5_min", "mean_error_min", "numeric_equal", "relaxed", "within_5_percent",
    "within_tolerance", "mean_absolute_error",
)  # fmt: skip


def check_best_metric(name: str | None, *, generates: bool) -> None:
    """metric_for_best_model is one that evaluate() returns; the Trainer would find out at the first evaluation."""
    known = (*TEACHER_FORCED, *(WRITTEN if generates else ()))
    if name is not None and name.removeprefix("eval_") not in known:
        hint = "" if generates or name.removeprefix("eval_") not in WRITTEN else "; set eval.generate_samples > 0 for it"
        raise ValueError(f"train.metric_for_best_model must be one of {', '.join(known)}, got {name!r}{hint}")


def check_sampling(strategy: str) -> None:
    """How samples are drawn can be repeated after a resume."""
    if strategy == "batch_rebalance":
        raise ValueError(
            "train.train_sampling_strategy must be random, sequential or group_by_length, got 'batch_rebalance', which would encode "
            "every sample before step 1; take group_by_length"
        )


def check_head(model: torch.nn.Module, vocab: NumericVocab) -> None:
    """The head has a column for every number token; its width is the model's, not the tokenizer's."""
    width = model.get_output_embeddings().weight.shape[0] if hasattr(model, "get_output_embeddings") else vocab.width
    if width < vocab.width:
        raise ValueError(
            f"number tokens reach id {vocab.width - 1}, but the model's head has {width} columns; tokenizer and model do not belong together"
        )


def check_one_device(gpus: int) -> None:
    """Several visible GPUs without a launcher would silently be wrapped in nn.DataParallel."""
    if gpus > 1:
        raise ValueError(
            f"expected one GPU or a launcher, got {gpus} visible GPUs and plain python; "
            "use `accelerate launch -m smmd_vlm train ...`, or set CUDA_VISIBLE_DEVICES=0"
        )


def check_gradients(model: torch.nn.Module, *, images: bool = True) -> None:
    """After a backward every trainable parameter has a finite gradient; otherwise part of it silently never learns.

    images: False after a step without any image, which leaves the vision tower alone.
    """
    reached = {
        name: parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and (images or ".visual." not in name)
    }
    lost = [name for name, gradient in reached.items() if gradient is None]
    if lost:
        raise ValueError(
            f"{len(lost)} trainable parameters got no gradient in the first step, for example {lost[0]}; "
            "they would never learn (does lora.target_modules reach layers that this data does not use?)"
        )
    broken = [name for name, gradient in reached.items() if not gradient.isfinite().all()]
    if broken:
        raise FloatingPointError(
            f"{len(broken)} parameters got a gradient that is not finite in the first step, for example {broken[0]}"
        )
