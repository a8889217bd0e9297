"""`smmd-vlm train`: a configuration -> a run folder.

    smmd-vlm train --config configs/clocks_tiny.yaml [--section.key value ...]

Checks first (preflight), then the Trainer, then the run folder: checkpoint-N/, final weights and processor, config.yaml,
passport.json, metrics.jsonl, curves.png, README.md. An error before step 1 leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean

import torch
from tqdm import tqdm
from transformers import set_seed

from eval.scorers import score_answer, score_time
from smmd_vlm import mishaps, preflight, runfolder
from smmd_vlm.collate import Collator, EncodedRecords, Encoder
from smmd_vlm.model import add_lora, describe, freeze_vision, load_base, load_processor
from smmd_vlm.predict import answers
from smmd_vlm.prepare import Prepared, prepare
from smmd_vlm.records import Prediction
from smmd_vlm.resume import StopOnSignal, check_goes_on, check_not_ended, check_same_run, cut_metrics, newest_checkpoint
from smmd_vlm.runconfig import Config, multiple_gpus_without_launcher
from smmd_vlm.tokenkinds import TokenKinds
from smmd_vlm.trainer import NumericTrainer
from smmd_vlm.visioncache import VisionCache, check_tower_is_frozen


def train(config: Config, *, resume: bool = False) -> dict[str, float] | None:
    """Run `config`, or go on with the run in its output_dir.

    Returns the last evaluation's metrics, empty without one; None when SIGTERM stopped the run, which then is not whole.
    """
    args = config.train
    folder, first = Path(args.output_dir), args.process_index == 0
    say = print if first else (lambda *_: None)
    if multiple_gpus_without_launcher():
        preflight.check_one_device(torch.cuda.device_count())
    if first:
        runfolder.check_free(folder, resuming=resume)

    ready = prepare(config, load_processor(config.model))  # everything about the data, before any weights are loaded
    say(f"numbers   {ready.vocab.describe()}\ntraining  {ready.stats}")
    say(f"plan      {preflight.show_plan(args, ready.stats.records)}")
    for caution in ready.cautions:
        say(f"caution   {caution}")
    say(f"sample    {preflight.show_sample(ready.records[0], ready.encoder, ready.vocab)}")
    set_seed(args.seed)  # adapters are drawn before the Trainer sets it
    model = load_base(config.model)
    preflight.check_head(model, ready.vocab)
    model = add_lora(model, config.lora, load_in_4bit=config.model.load_in_4bit)
    if config.data.vision_cache is not None:
        check_tower_is_frozen(model)
    if set(ready.stats.image_token_counts) == {0}:  # no sample has an image, so the tower would get no gradient
        freeze_vision(model)
    say(f"model     {model.config.model_type}: {describe(model)}")

    passport = runfolder.passport(config, ready.processor, ready.vocab, model)
    checkpoint = None
    if resume:
        check_same_run(runfolder.read_passport(folder), passport)
        checkpoint, skipped = newest_checkpoint(folder)
        for reason in skipped:
            say(f"resume    skipped {reason}")
        if checkpoint is None:
            check_not_ended(folder)
        else:
            check_goes_on(checkpoint, args.max_steps)
        for change in runfolder.changed_ends(folder, config):
            say(f"caution   {change}; the learning rate follows the new schedule from here on")
        say(f"resume    {'from ' + checkpoint.name if checkpoint else 'no checkpoint counts, so from the start'}")

    def begin() -> None:
        runfolder.write_config(folder, config)
        runfolder.write_passport(folder, passport)
        cut_metrics(folder, int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0)

    stop = StopOnSignal()
    data = config.data
    encoder = ready.encoder if data.vision_cache is None else _cached_encoder(config, ready, model, say)
    encode = partial(EncodedRecords, encoder=encoder, keep=data.keep_processed)
    trainer = NumericTrainer(
        model=model,
        args=args,
        objective=ready.objective,
        score=_scorer(config, ready) if ready.eval_records is not None and config.eval.generate_samples else None,
        kinds=TokenKinds(ready.processor.tokenizer, ready.vocab, ready.encoder.end_id),
        data_collator=Collator(ready.processor, "right"),
        train_dataset=encode(ready.records, limit=data.max_train_samples),
        eval_dataset=None if ready.eval_records is None else encode(ready.eval_records, limit=data.max_eval_samples),
        lengths=ready.stats.lengths,
        processing_class=ready.processor,
        callbacks=[runfolder.MetricsFile(folder, begin), stop],
    )
    with mishaps.explained(trainer):
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        if stop.asked:
            say(
                f"stopped   by SIGTERM after step {trainer.state.global_step}, saved; the run is not whole, go on with --resume"
            )
            return None
        metrics = _last_evaluation(trainer) if ready.eval_records is not None else {}
        trainer.save_model()
    if first:
        runfolder.plot_curves(folder)
        runfolder.write_card(folder, config, metrics)
    return metrics


def _cached_encoder(config: Config, ready: Prepared, model: torch.nn.Module, say: Callable[[str], None]) -> Encoder:
    """An encoder that reads the tower's features of every image from data.vision_cache, computing the missing ones first."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    base = base.to(config.train.device) if not getattr(base, "is_quantized", False) else base
    cache = VisionCache(config.data.vision_cache, base, ready.processor)
    limits = ((ready.records, config.data.max_train_samples), (ready.eval_records or (), config.data.max_eval_samples))
    images = (
        image
        for records, limit in limits
        for index in range(min(len(records), limit or len(records)))
        for image in records[index].images
    )
    made = cache.fill(
        base.eval(),
        tqdm(images, desc="vision features", unit="image", delay=2),
        batch_size=config.train.per_device_eval_batch_size,
    )
    say(f"vision    features of {made} images computed, the rest found in {cache.folder}")
    old = ready.encoder
    return Encoder(ready.processor, system_prompt=old.system_prompt, max_length=old.max_length, features=cache.load)


def _last_evaluation(trainer: NumericTrainer) -> dict[str, float]:
    """The evaluation of the last step, made now unless the schedule already made it."""
    done = [row for row in trainer.state.log_history if "eval_loss" in row and row["step"] == trainer.state.global_step]
    return done[-1] if done else trainer.evaluate()


def _scorer(config: Config, ready: Prepared) -> Callable[[torch.nn.Module], dict[str, float]]:
    """Generation-based metrics on the first eval.generate_samples records: what the model writes, not what it is told."""
    records = ready.eval_records
    count = min(config.eval.generate_samples, len(records), config.data.max_eval_samples or len(records))
    prompts = Encoder(ready.processor, with_answer=False, system_prompt=ready.encoder.system_prompt)
    picked = [records[index] for index in range(count)]

    def score(model: torch.nn.Module) -> dict[str, float]:
        written = answers(model, prompts, picked, batch_size=config.eval.batch_size, max_new_tokens=config.eval.max_new_tokens)
        predictions = list(written)
        if config.train.process_index == 0:
            runfolder.write_samples(Path(config.train.output_dir), predictions)
        return summarise(predictions)

    return score


def summarise(predictions: list[Prediction]) -> dict[str, float]:
    """Means over written answers; times and other answers under their own names, each only where it occurs.

    Errors are over the answers that could be read; `unparsed` is the share that could not.
    """
    times = [score_time(gold=p.answer, prediction=p.prediction) for p in predictions if p.answer_type == "time"]
    others = [
        score_answer(gold=p.answer, prediction=p.prediction, answer_type=p.answer_type, tolerance=p.tolerance)
        for p in predictions
        if p.answer_type != "time"
    ]
    exact = [bool(v.exact_time) for v in times] + [v.exact for v in others]
    metrics = {"exact": mean(exact), "unparsed": mean(v.reason is not None for v in (*times, *others))}
    for verdicts, names in (
        (times, ("within_1_min", "within_5_min")),
        (others, ("numeric_equal", "relaxed", "within_5_percent", "within_tolerance")),
    ):
        for name in names:
            values = [getattr(v, name) for v in verdicts if getattr(v, name) is not None]
            if values:
                metrics[name] = mean(values)
    for verdicts, source, name in ((times, "error_min", "mean_error_min"), (others, "absolute_error", "mean_absolute_error")):
        errors = [getattr(v, source) for v in verdicts if getattr(v, source) is not None]
        if errors:
            metrics[name] = mean(errors)
    return {name: float(value) for name, value in metrics.items()}
