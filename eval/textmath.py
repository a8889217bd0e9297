"""Text mathematics as items without pictures: GSM8K, SVAMP, DeepMind's mathematics dataset.

GSM8K (Cobbe et al. 2021): `{train,test}.jsonl`, the gold number behind `#### `; the worked solution stays in meta.
SVAMP (Patel et al. 2021): SVAMP.json, {ID, Body, Question, Equation, Answer, Type}, the test split; what its authors train on,
MAWPS and ASDiv-A, is data/mawps-asdiv-a_svamp/train.csv of their repository, {Question, Numbers, Equation, Answer}; the equation
is the solution.
mathematics (Saxton et al. 2019): .jsonl of {module, question, answer}, or the official text files, question and answer on
alternating lines, one file a module, in `train-*`, `interpolate` and `extrapolate`.
Scored by `numeric_equal`: a wrong sum is not right because it is near.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval.answers import read_gold
from eval.items import SPLIT_NAMES, Item, MissingSplit, answer_text, field_of, rows_of
from smmd_vlm.numerals import write_number
from smmd_vlm.records import read_jsonl


def read_gsm8k(data: Path, split: str) -> Iterator[Item]:
    path = _file(data, split, "jsonl")
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        solution = str(field_of(row, ("answer",), where))
        worked, mark, gold = solution.rpartition("####")
        if not mark:
            raise ValueError(f"{where}: expected the gold number behind '#### ', got {solution[-40:]!r}")
        place = row.get("idx", number - 1)
        yield _item(
            "gsm8k",
            f"gsm8k-{split}-{place}",
            row,
            gold.strip().replace(",", ""),
            "gsm8k",
            split,
            where,
            {"solution": re.sub(r"<<.*?>>", "", worked).strip()},  # <<48/2=24>>: its calculator's
        )


def read_svamp(data: Path, split: str) -> Iterator[Item]:
    if split == "train":
        yield from _mawps_asdiv(data)
        return
    if split != "test" or data.suffix == ".csv":
        raise MissingSplit(f"SVAMP has a test split and its authors' train.csv, not {split!r}")
    path = data if data.is_file() else next(iter(sorted(data.glob("*[sS][vV][aA][mM][pP]*.json"))), data / "SVAMP.json")
    for place, row in enumerate(rows_of(path)):
        where = f"{path}, row {place}"
        body, question = str(field_of(row, ("Body",), where)).strip(), str(field_of(row, ("Question",), where)).strip()
        svamp_id = row.get("ID", place)
        kind = str(row.get("Type") or "(none)").replace("Common-Divison", "Common-Division")
        row = {
            "question": f"{body.rstrip('.,')}{',' if question[:1].islower() else '.'} {question}",
            "answer": row.get("Answer"),
        }
        yield _item("svamp", f"svamp-{svamp_id}", row, answer_text(field_of(row, ("answer",), where)), kind, split, where, {})


def _mawps_asdiv(data: Path) -> Iterator[Item]:
    """Questions with `number0`, `number1`, … in the places of their Numbers, `27.0 16.0`, and prefix equations."""
    places = (data / "data" / "mawps-asdiv-a_svamp" / "train.csv", data / "train.csv")
    path = next((path for path in places if path.is_file()), data)
    if path.suffix != ".csv":
        raise MissingSplit(f"expected data/mawps-asdiv-a_svamp/train.csv or train.csv in {data}, SVAMP's training split")
    with open(path, encoding="utf-8-sig", newline="") as text:
        for place, row in enumerate(csv.DictReader(text)):
            where = f"{path}, row {place}"
            names = ("Question", "Numbers", "Equation", "Answer")
            question, numbers, equation, answer = (str(field_of(row, (name,), where)) for name in names)
            try:
                values = [write_number(float(number)) for number in numbers.split()]
                row = {"question": _filled(question, values), "answer": write_number(float(answer))}
                solution = _formula(_filled(equation, values))
            except (ValueError, IndexError, OverflowError, RecursionError):
                raise ValueError(
                    f"{where}: expected numbers for {question!r} and {equation!r}, got {numbers!r} and the answer {answer!r}"
                ) from None
            yield _item(
                "svamp", f"svamp-train-{place}", row, row["answer"], "MAWPS, ASDiv-A", "train", where, {"solution": solution}
            )


def _filled(text: str, values: list[str]) -> str:
    return re.sub(r"\bnumber(\d+)", lambda found: values[int(found[1])], text)


def _formula(prefix: str) -> str:
    """`* 2 + 3 4.0`, as people write it: 2 * (3 + 4)."""
    words = iter(prefix.split())
    formula = _infix(words)
    if next(words, None) is not None:
        raise ValueError(f"expected one formula, got {prefix!r}")
    return formula


def _infix(words: Iterator[str], *, inside: bool = False) -> str:
    word = next(words, "")  # float("") is a ValueError
    if word not in ("+", "-", "*", "/"):
        return write_number(float(word))
    formula = f"{_infix(words, inside=True)} {word} {_infix(words, inside=True)}"
    return f"({formula})" if inside else formula


def read_mathematics(data: Path, split: str) -> Iterator[Item]:
    if data.is_file() or any(data.glob("*.jsonl")):
        path = _file(data, split, "jsonl")
        rows = ((number, row, f"{path}, line {number}") for number, row in read_jsonl(path))
    else:
        wanted = ("train-easy", "train-medium", "train-hard") if split == "train" else ("interpolate", "extrapolate") if split == "test" else ()  # fmt: skip
        folders = [data / name for name in wanted if (data / name).is_dir()]
        if not folders:
            raise MissingSplit(
                f"expected .jsonl or the folders {', '.join(wanted) or 'train-* and interpolate'} in {data} for {split!r}"
            )
        rows = _module_files(folders)
    for place, (_, row, where) in enumerate(rows):
        kind = str(row.get("module") or "(none)")
        yield _item(
            "mathematics",
            f"mathematics-{split}-{place}",
            row,
            answer_text(field_of(row, ("answer",), where)),
            kind,
            split,
            where,
            {},
        )


def _module_files(folders: list[Path]) -> Iterator[tuple[int, dict[str, Any], str]]:
    for folder in folders:
        for path in sorted(folder.glob("*.txt")):
            with open(path, encoding="utf-8") as lines:
                for number, question in enumerate(lines, start=1):
                    answer = next(lines, "").strip()
                    row = {"module": f"{folder.name} / {path.stem}", "question": question.strip(), "answer": answer or None}
                    yield number, row, f"{path}, question {number}"


def _item(
    task: str, item_id: str, row: dict[str, Any], answer: str, kind: str, split: str, where: str, meta: dict[str, Any]
) -> Item:
    question = str(field_of(row, ("question",), where)).strip()
    gold = read_gold(answer)
    number = gold.kind in ("number", "year")  # 1875 is a sum here, whatever it looks like
    return Item(
        id=item_id, question=question, answer=answer, answer_type="number" if number else "text", value=gold.value if number else None,
        task=task, kind=kind, group=item_id, split=split, meta=meta,
    )  # fmt: skip


def _file(data: Path, split: str, ending: str) -> Path:
    """The file of a split: --data itself, or the one in it whose name holds the split."""
    if data.is_file():
        return data
    files = sorted(data.glob(f"*.{ending}"))
    named = [path for path in files if any(name in path.stem.lower() for name in SPLIT_NAMES[split])]
    if len(named) != 1:
        raise MissingSplit(
            f"expected one {ending} file of split {split!r} in {data}, found {', '.join(path.name for path in named or files) or 'none'}"
        )
    return named[0]
