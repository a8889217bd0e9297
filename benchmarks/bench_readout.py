"""What a distribution costs beside the greedy answer, and beside scoring every time of the dial by itself.

    python benchmarks/bench_readout.py --model RUN --data FOLDER [--n 200] [--batch 32] [--prune 1e-4]

RUN and FOLDER: a model that answers clocks with HH:MM and a folder of clocks, for example those that `smmd-vlm quickstart` leaves.
Wanted: greedy answer and distribution in at most 5 times the greedy answer's time, the trie at least 50 times as fast as
720 whole forwards a record, and both equal to 1e-5 where the trie, too, has one text a minute and prunes nothing. Exit code 1
when one is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from smmd_vlm.collate import Collator, Encoder
from smmd_vlm.dataset import load_records
from smmd_vlm.model import load_for_prediction, trained_system_prompt
from smmd_vlm.numerals import DIAL_MINUTES, write_time
from smmd_vlm.predict import answers, end_ids
from smmd_vlm.readout import ReadOut, Spellings, clock_spellings
from smmd_vlm.records import Record

MOST_OF_GREEDY, LEAST_OF_BRUTE, CLOSE = 5.0, 50.0, 1e-5
ROUNDS, BRUTE_RECORDS = 3, 2


def answered(model, encoder: Encoder, records: Sequence[Record], batch: int, read: ReadOut | None) -> tuple[float, list]:
    """(seconds, predictions), the better of some rounds."""
    best, found = float("inf"), []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = list(answers(model, encoder, records, batch_size=batch, max_new_tokens=8, read=read))
        best = min(best, time.perf_counter() - start)
    return best, found


@torch.no_grad()
def brute_force(model, encoder: Encoder, record: Record, batch: int) -> dict[int, float]:
    """HH:MM of every minute -> the probability that the model writes it, each by a whole forward of prompt and answer."""
    found, prompt, stop = {}, encoder(record), end_ids(model, encoder)
    collate, length = Collator(encoder.processor, "left"), len(prompt["input_ids"])
    for start in range(0, DIAL_MINUTES, batch):
        minutes = range(start, min(start + batch, DIAL_MINUTES))
        written = torch.tensor([encoder.tokenizer(write_time(m), add_special_tokens=False)["input_ids"] for m in minutes])
        samples = [
            prompt
            | {
                "input_ids": torch.cat([prompt["input_ids"], ids]),
                "mm_token_type_ids": torch.cat([prompt["mm_token_type_ids"], 0 * ids]),
            }
            for ids in written
        ]
        inputs = {name: value.to(model.device) for name, value in collate(samples).items() if name != "ids"}
        logs = model(**inputs).logits[:, length - 1 :].double().log_softmax(-1).cpu()
        steps = logs[:, :-1].gather(-1, written[..., None])[..., 0].sum(-1)
        found |= dict(zip(minutes, (steps[:, None] + logs[:, -1, stop]).exp().sum(-1).tolist(), strict=True))
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--prune", type=float, default=1e-4)
    options = parser.parse_args(argv)
    model, processor = load_for_prediction(options.model)
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    encoder = Encoder(processor, with_answer=False, system_prompt=trained_system_prompt(options.model))
    every = load_records(options.data, "test")
    records = [every[index] for index in range(min(options.n, len(every)))]

    def reader(spellings: Spellings, prune: float) -> ReadOut:
        stop = end_ids(model, encoder)
        return ReadOut(model, encoder.tokenizer, stop, spellings=[spellings], prune=prune, rows=options.batch)

    answered(model, encoder, records[: options.batch], options.batch, None)  # warm up
    greedy, _ = answered(model, encoder, records, options.batch, None)
    read = reader(clock_spellings(), options.prune)
    both, predictions = answered(model, encoder, records, options.batch, read)
    distributions = [prediction.distribution for prediction in predictions]

    dial = Spellings({write_time(m): m for m in range(DIAL_MINUTES)}, frozenset({"time"}), period=DIAL_MINUTES)
    _, exact = answered(model, encoder, records[:BRUTE_RECORDS], BRUTE_RECORDS, reader(dial, 0))
    start = time.perf_counter()
    wanted = [brute_force(model, encoder, record, 90) for record in records[:BRUTE_RECORDS]]
    brute = (time.perf_counter() - start) / BRUTE_RECORDS
    gap = max(
        abs(row.distribution.probability(minute) - probability)
        for row, want in zip(exact, wanted, strict=True)
        for minute, probability in want.items()
    )

    trie, n = max(both - greedy, 1e-9), len(records)
    print(f"{Path(options.model).name}: {n} clocks, batches of {options.batch}, prune {options.prune:g}, "
          f"{sum(p.numel() for p in model.parameters()):,} parameters, {model.device}, {torch.get_num_threads()} threads, torch {torch.__version__}")  # fmt: skip
    print(f"greedy answers          {1000 * greedy / n:8.1f} ms each")
    print(
        f"with distributions      {1000 * both / n:8.1f} ms each, {read.forwards / ROUNDS / (n / options.batch):.1f} forwards a batch"
    )
    print(f"720 whole forwards      {1000 * brute:8.1f} ms each")
    print(f"values kept             {sum(len(d.values) for d in distributions) / n:8.1f} each, mass {sum(d.mass for d in distributions) / n:.4f}, "
          f"pruned {sum(d.pruned for d in distributions) / n:.5f}, other {sum(d.other for d in distributions) / n:.5f}")  # fmt: skip
    checks = [
        (f"with distributions takes {both / greedy:.2f} of greedy alone", f"<= {MOST_OF_GREEDY:g}", both <= MOST_OF_GREEDY * greedy),
        (f"the trie is {brute * n / trie:.0f} x faster than whole forwards", f">= {LEAST_OF_BRUTE:g}", brute * n >= LEAST_OF_BRUTE * trie),
        (f"unpruned they differ by at most {gap:.1e}", f"<= {CLOSE:g}", gap <= CLOSE),
    ]  # fmt: skip
    for sentence, bound, fine in checks:
        print(f"{sentence:60} wanted {bound:8}{'' if fine else '  MISSED'}")
    return 0 if all(fine for *_, fine in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
