"""Everything about a run that needs no weights: processor, numeric vocabulary, objective, records, and their checks.

`smmd-vlm train` and its --dry-run both start here, so that a dry run checks what a run would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smmd_vlm import preflight
from smmd_vlm.collate import Encoder, reads_images, set_image_budget
from smmd_vlm.dataset import decontaminated, load_records
from smmd_vlm.objective import NumericObjective
from smmd_vlm.records import Record
from smmd_vlm.vocab import NumericVocab

if TYPE_CHECKING:
    from transformers import ProcessorMixin

    from smmd_vlm.config import DataConfig
    from smmd_vlm.runconfig import Config
    from smmd_vlm.textprocessor import TextProcessor


@dataclass(frozen=True)
class Prepared:
    processor: ProcessorMixin | TextProcessor
    vocab: NumericVocab
    objective: NumericObjective
    encoder: Encoder
    records: Sequence[Record]
    stats: preflight.DataStats
    eval_records: Sequence[Record] | None  # None when the run does not evaluate
    cautions: tuple[str, ...]  # what a person should know of the data before it is learned


def prepare(config: Config, processor: ProcessorMixin | TextProcessor) -> Prepared:
    """Build and check; every mistake in data or settings is a ValueError of one sentence."""
    data = config.data
    preflight.check_sampling(config.train.train_sampling_strategy)
    preflight.check_best_metric(config.train.metric_for_best_model, generates=config.eval.generate_samples > 0)
    if reads_images(processor):
        set_image_budget(processor, data.image_min_tokens, data.image_max_tokens)
    else:
        preflight.check_no_image_settings(data)
    vocab = NumericVocab.from_tokenizer(processor.tokenizer, config.loss.vocab)
    try:
        objective = NumericObjective(vocab, config.loss.name, config.loss.weight, **config.loss.options)
    except (TypeError, RuntimeError) as error:
        raise ValueError(
            f"loss {config.loss.name!r} cannot take the options {config.loss.options} ({error}); docs/losses.md lists them"
        ) from None
    encoder = Encoder(processor, system_prompt=data.system_prompt, max_length=data.max_length)
    records, left_out = training_records(data)
    cautions = [left_out] if left_out else []
    stats = preflight.scan(records, encoder, vocab, data.max_train_samples, source=data.dataset, split=data.train_split)
    preflight.check_numbers_are_learned(stats, config.loss)
    preflight.check_images_are_there(stats, config.lora)
    preflight.check_sample(records[0], encoder)
    eval_records = None
    cautions += stats.odd
    if config.train.eval_strategy != "no":
        try:
            source = data.eval_dataset or data.dataset
            eval_records = load_records(source, data.eval_split)
        except ValueError as error:
            raise ValueError(f"{error}; name data.eval_dataset or data.eval_split, or set train.eval_strategy to no") from None
        evaluated = preflight.scan(eval_records, encoder, vocab, data.max_eval_samples, source=source, split=data.eval_split)
        leak = preflight.check_no_leak(stats, evaluated)
        cautions += [*evaluated.odd, *([leak] if leak else [])]
    return Prepared(processor, vocab, objective, encoder, records, stats, eval_records, tuple(cautions))


def training_records(data: DataConfig) -> tuple[Sequence[Record], str | None]:
    """What is trained on, before max_train_samples, and how many records data.decontaminate left out."""
    records = load_records(data.dataset, data.train_split)
    if not data.decontaminate:
        return records, None
    whole = len(records)
    try:
        tests = [load_records(test, data.decontaminate_split) for test in data.decontaminate]
    except ValueError as error:
        raise ValueError(f"data.decontaminate, split data.decontaminate_split={data.decontaminate_split}: {error}") from None
    records = decontaminated(records, tests)
    if not len(records):
        raise ValueError(
            f"all {whole} {data.train_split} records of {data.dataset} are in data.decontaminate too; name the test sets there"
        )
    return records, f"{whole - len(records)} of {whole} {data.train_split} records are left out (data.decontaminate)"
