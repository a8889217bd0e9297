"""index -> Record: a problem of one module, on its side of the line between the splits, in one wording, with its exact answer.

Record i depends on (generator version, settings, seed, i) alone. Which problems may be in `train` and which in `interpolation` is
a hash of the problem itself, whatever its wording, the seed and the settings; those of `extrapolation` are longer than any other.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass

from smmd_vlm.records import Record
from synth.arithmetic_numbers import Number, digit_count, write
from synth.arithmetic_presets import MODULES, Problems
from synth.arithmetic_problem import Draw, Problem, Reach
from synth.writer import split_of

GENERATOR = "synth.arithmetic"
GENERATOR_VERSION = 1  # raise it with every change that alters a record
SPLITS = ("train", "interpolation", "extrapolation")
RESERVED = 8  # one problem in so many is never in train
_ATTEMPTS = 20_000
_TRIALS, _TRIAL_ATTEMPTS = 5, 1000


@dataclass(frozen=True, kw_only=True)
class ArithmeticMaker:
    """Picklable, the same everywhere."""

    seed: int
    problems: Problems
    shares: Mapping[str, float]

    def __call__(self, index: int) -> Record:
        split = split_of(self.seed, index, self.shares, SPLITS)
        rng = random.Random(f"{GENERATOR}/{GENERATOR_VERSION}/{self.seed}/{index}")
        name = rng.choices(list(self.problems.modules), list(self.problems.modules.values()))[0]
        problem = self.problem(name, split, rng)
        wording = rng.randrange(len(problem.wordings)) if self.problems.phrasing == "varied" else 0
        meta = {
            "seed": self.seed,
            "index": index,
            "split": split,
            "module": name,
            "operands": list(map(_text, problem.operands)),
            "digits": problem.digits,
            MODULES[name].grows: problem.size,
            "wording": wording,
        }
        numeric = not isinstance(problem.answer, str)
        return Record(
            id=f"arithmetic-{self.seed}-{index:08d}",
            question=problem.wordings[wording],
            answer=_text(problem.answer),
            answer_type="number" if numeric else "text",
            value=float(problem.answer) if numeric else None,
            unit=problem.unit,
            task="arithmetic",
            kind=name,
            group=problem_key(name, problem),
            split=split,
            meta=json.dumps(meta, separators=(",", ":"), ensure_ascii=False),
        )

    def check(self) -> None:
        """Refuse settings that leave a module too few questions for a split, so that no run meets them half-way."""
        for name, weight in self.problems.modules.items():
            for split, share in self.shares.items():
                for trial in range(_TRIALS if weight and share else 0):
                    self.problem(name, split, random.Random(f"{name}/{split}/{trial}"), _TRIAL_ATTEMPTS)

    def problem(self, name: str, split: str, rng: random.Random, attempts: int = _ATTEMPTS) -> Problem:
        """The first problem drawn that belongs into the split; a ValueError where the settings leave it none."""
        module = MODULES[name]
        inside = self.problems.reach()
        reach = self.problems.reach(module.grows) if split == "extrapolation" else inside
        for _ in range(attempts):
            problem = module.ask(Draw(rng, reach))
            if problem is None or not self._fits(problem, reach):
                continue
            longer = problem.size > getattr(inside, module.grows)
            if longer if split == "extrapolation" else side_of(problem_key(name, problem)) == split:
                return problem
        raise ValueError(
            f"problems.modules: {name!r} finds no question for split {split} within these settings; "
            "allow more digits, terms or answer_digits, or give it no weight"
        )

    def _fits(self, problem: Problem, reach: Reach) -> bool:
        """No number too long, none negative where none may be."""
        answer = problem.answer
        signed = problem.numbers if isinstance(answer, str) else [*problem.numbers, answer]
        return (
            problem.digits <= reach.digits
            and (isinstance(answer, str) or digit_count(write(answer)) <= self.problems.answer_digits)
            and (reach.negative > 0 or all(number >= 0 for number in signed))
        )


def problem_key(name: str, problem: Problem) -> str:
    """The same for all wordings of a problem, and for all orders of operands where theirs does not matter."""
    return f"{name}: {'; '.join(map(_text, problem.same or problem.operands))}"


def side_of(key: str) -> str:
    """The split, `train` or `interpolation`, that a problem within the ranges may be in."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return "train" if int.from_bytes(digest, "big") % RESERVED else "interpolation"


def _text(operand: Number | str) -> str:
    return operand if isinstance(operand, str) else write(operand)
