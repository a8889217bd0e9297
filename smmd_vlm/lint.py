"""What is wrong with data before a model learns it: `smmd-vlm data check FOLDER [--write CLEAN]`.

In:  the records of every split of a dataset folder or a file of rows.   Out: findings, each an id, a check and a sentence.
An error teaches something false or stops a run; a warning may be meant. `--write` leaves out the rows with errors, writes
numbers without their float noise, and changes nothing else. Text and labels are read one record at a time; what is kept
is a hash of each id and picture.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Literal

from PIL import Image

from smmd_vlm.dataset import check_image, load_records, numbered_rows
from smmd_vlm.numerals import NOISE_DIGITS, find_numbers, fold, read_time, write_number
from smmd_vlm.records import SPLITS, Record
from smmd_vlm.rows import IMAGE_MARK, ManyImages

Level = Literal["error", "warning"]
# name -> what it means, in the order of the report
CHECKS: dict[str, str] = {
    "unreadable row": "no record can be made of it",
    "duplicate id": "every record needs its own id",
    "leak between splits": "a picture (without one, a question) of a later split is also in an earlier one",
    "two answers": "the same question about the same picture is answered otherwise in an earlier record",
    "spreadsheet time": "a ratio A:B that a spreadsheet took for a time of day: (A h + B min) / 24 h",
    "fraction beside percents": "an answer between 0 and 1 where answers of its kind run to 100",
    "float noise": "digits that come from binary arithmetic, not from the chart",
    "not a number": "the answer does not read as its answer_type, or not as its value",
    "number as text": "digits, but neither number nor time as they are written: it is learned and scored as text",
    "broken image": "the picture cannot be decoded",
    "transparent image": "transparent pixels; they are shown on white",
    "control token": "text that a tokenizer reads as a control token",
    "blank question": "nothing is asked",
}
_CONTROL = re.compile(r"<\|[^|<>\s]{1,40}\|>|</?(?:s|think|image|video|tool_call)>|\[/?INST\]|<(?:pad|unk|bos|eos)>")
_NUMBER = re.compile(r"[-+]?(?:\d+|\d*\.\d+|\d{1,3}(?:,\d{3})+(?:\.\d+)?)")
_DIGITS = re.compile(r"[-+]?\d[\d.,:/ ]*\d")
_PERCENT = re.compile(r"percent|share|%|\bproportion|\brate\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong with one record."""

    check: str
    level: Level
    id: str
    split: str
    index: int  # of the record in its split
    what: str


def _finding(record_id: str, split: str, index: int, check: str, what: str, level: Level = "error") -> Finding:
    return Finding(check=check, level=level, id=record_id, split=split, index=index, what=what)


@dataclass(frozen=True, kw_only=True)
class Report:
    """All findings of a source."""

    n: int
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> frozenset[tuple[str, int]]:
        """(split, index) of the records that --write leaves out."""
        return frozenset((found.split, found.index) for found in self.findings if found.level == "error")


def check(records: dict[str, Iterable[Record | ValueError]]) -> Report:
    """Look at every record of every split once; `records`: split -> its records, or why there is none."""
    findings: list[Finding] = []
    texts = Texts()
    ids: set[bytes] = set()
    pictures: dict[bytes, tuple[str, bool]] = {}  # picture -> the split it was seen in first, is it sound
    answers: dict[bytes, str] = {}  # of a question about its pictures, the first
    trained: dict[bytes, list[Finding]] = {}
    n = 0
    for split in sorted(records, key=_place, reverse=True):
        for index, record in enumerate(records[split]):
            n += 1
            if isinstance(record, ValueError):
                findings.append(_finding(f"row {index + 1}", split, index, "unreadable row", " ".join(str(record).split())))
                continue
            found = partial(_finding, record.id, split, index)
            key = _hash(record.id.encode(errors="surrogatepass"))
            if key in ids:
                findings.append(found("duplicate id", "occurs more than once"))
            ids.add(key)
            texts.look(record, split, index)
            question = record.question.encode(errors="surrogatepass")
            picture = _hash(question if record.image is None else record.image)
            asked = _hash(question, *record.images)
            if answers.setdefault(asked, record.answer) != record.answer:
                findings.append(found("two answers", f"{record.answer!r}, elsewhere {answers[asked]!r}", "warning"))
            if picture not in pictures:
                problems = [] if record.image is None else list(image_findings(record.image))
                pictures[picture] = (split, not any(level == "error" for _, _, level in problems))
                findings += [found(*each) for each in problems]
            else:
                first, sound = pictures[picture]
                if not sound:
                    findings.append(found("broken image", "the same picture as an earlier record's"))
                if first != split:  # test comes first, so what is left out is the training row
                    shared = f"its {'question' if record.image is None else 'picture'} is also in {first}"
                    trained.setdefault(picture, []).append(found("leak between splits", shared))
    findings += [each for group in trained.values() for each in group]
    findings += texts.findings()
    order = list(CHECKS)
    return Report(n=n, findings=tuple(sorted(findings, key=lambda each: (order.index(each.check), each.split, each.index))))


def _hash(*parts: bytes) -> bytes:
    """Twelve bytes for some parts; their borders count."""
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


class Texts:
    """What texts alone show, record by record; odd fractions among percentages come out when all were seen."""

    def __init__(self) -> None:
        self._findings: list[Finding] = []
        self._percents: dict[str, list[tuple[float, Finding]]] = {}

    def look(self, record: Record, split: str, index: int) -> None:
        found = partial(_finding, record.id, split, index)
        self._findings += [found(*each) for each in _text_findings(record)]
        percent = _percent_value(record)
        if percent is not None:
            what = f"{record.answer!r} where most answers about a percentage of kind {record.kind!r} run to 100"
            self._percents.setdefault(record.kind, []).append((percent, found("fraction beside percents", what, "warning")))

    def findings(self) -> list[Finding]:
        return self._findings + [each for values in self._percents.values() for each in _odd_fractions(values)]


class Glance:
    """The cheap part of `check` over one split, for the start of a run: every text, and the first PICTURES pictures.

    Ids and unreadable pictures are preflight's: they stop the run.
    """

    PICTURES = 200

    def __init__(self, split: str) -> None:
        self.split, self.n, self.pictures = split, 0, 0
        self._texts, self._findings = Texts(), list[Finding]()

    def look(self, record: Record) -> None:
        self._texts.look(record, self.split, self.n)
        for image in record.images[: self.PICTURES - self.pictures]:
            self.pictures += 1
            self._findings += [_finding(record.id, self.split, self.n, *each) for each in image_findings(image)]
        self.n += 1

    def sentences(self, source: str) -> list[str]:
        """One sentence for what teaches something false and one for what may be meant; none where all is well."""
        findings = [*self._texts.findings(), *self._findings]
        said = []
        for level, words in (("error", "are wrong"), ("warning", "look odd")):
            found = [each for each in findings if each.level == level]
            if found:
                counts = Counter(each.check for each in found)
                named = ", ".join(f"{counts[name]} {name}" for name in CHECKS if name in counts)
                records = len({each.index for each in found})
                said.append(
                    f"{records:,} of {self.n:,} {self.split} records {words} ({named}), {_plain(found[0].id)} for one: "
                    f"{_plain(found[0].what)}; see `smmd-vlm data check {source}`"
                )
        return said


def repaired(record: Record) -> Record:
    """The record with float noise out of its answer; value and answer stay the same number."""
    if not _is_noise(record):
        return record
    text = write_number(float(record.answer))
    return replace(record, answer=text, value=None if record.value is None else float(text))


def is_spreadsheet_time(question: str, answer: str) -> bool:
    """A "ratio" whose answer is a whole number of minutes over a day, to 5 decimals or more, and no plain fraction.

    1.179861111 = (28 h 19 min) / 24 h stood for 28:19. Thirds and ninths are multiples of a minute as well: 0.33333333 is 1/3.
    """
    if "ratio" not in question.lower() or not re.fullmatch(r"\d+\.\d{5,}", answer.strip()):
        return False
    minutes = float(answer) * 1440
    whole = round(minutes)
    return whole > 0 and abs(minutes - whole) <= 2e-3 and Fraction(whole, 1440).denominator > 20


def _text_findings(record: Record) -> Iterator[tuple[str, str, Level]]:
    if not record.question.strip():
        yield "blank question", "the question is empty", "error"
    for name in ("question", "answer"):
        text = getattr(record, name)
        if name == "question" and record.images:
            text = text.replace(IMAGE_MARK, "")  # where an image stands
        if token := _CONTROL.search(text):
            yield "control token", f"the {name} holds {token[0]!r}", "error"
    if is_spreadsheet_time(record.question, record.answer):
        minutes = round(float(record.answer) * 1440)
        yield "spreadsheet time", f"{record.answer} is {minutes // 60} h {minutes % 60} min of a day, so {minutes // 60}:{minutes % 60:02d}", "error"  # fmt: skip
    if _is_noise(record):
        yield "float noise", f"{record.answer} should be {write_number(float(record.answer))}", "warning"
    if record.answer_type == "text" and _DIGITS.fullmatch(record.answer.strip()):
        yield "number as text", f"{record.answer!r} reads as neither number nor time", "warning"
    if problem := _value_problem(record):
        yield "not a number", problem, "error"


def _value_problem(record: Record) -> str | None:
    """Does the answer read as its type says, and as its value?"""
    answer = record.answer.strip()
    if record.answer_type == "time":
        if re.fullmatch(r'\{\s*"valid":\s*false\s*\}', answer):
            return None  # an impossible clock
        read = _dial_minutes(answer)
        if read is None:
            return f"{answer!r} is no time like 10:08"
        if record.value is not None and abs(read - record.value) > 1e-6:
            return f"{answer!r} is minute {read:g}, its value says {record.value:g}"
    elif record.answer_type in ("number", "year"):
        numbers = find_numbers(fold(answer))
        plain = _NUMBER.fullmatch(answer.rstrip("%"))
        if not numbers and not plain:
            return f"{answer!r} is no {record.answer_type}"
        if record.answer_type == "year" and not re.fullmatch(r"-?\d{1,4}", answer):
            return f"{answer!r} is no year"
        if record.value is not None and plain:
            read = float(answer.rstrip("%").replace(",", ""))
            close = abs(read - record.value) <= 1e-6 * max(1.0, abs(record.value))
            if not close and not (
                answer.endswith("%") and abs(read / 100 - record.value) <= 1e-6 * max(1.0, abs(record.value))
            ):
                return f"{answer!r} is {read:g}, its value says {record.value:g}"
    return None


def _dial_minutes(answer: str) -> float | None:
    """`10:08`, `10:08:42` or `{"hours": 10, "minutes": 8, "seconds": 42}` -> minutes after 12:00."""
    if not answer.startswith("{"):
        return read_time(answer)
    try:
        fields = json.loads(answer)
        parts = [int(fields[name]) for name in ("hours", "minutes")] + [int(fields.get("seconds") or 0)]
    except (ValueError, KeyError, TypeError):
        return None
    return read_time(":".join(f"{part:02d}" for part in parts))


def _is_noise(record: Record) -> bool:
    digits = record.answer.strip().lstrip("-+")
    return (
        record.answer_type == "number"
        and bool(re.fullmatch(r"\d*\.\d+", digits))
        and len(digits.replace(".", "").lstrip("0")) >= NOISE_DIGITS
    )


def _percent_value(record: Record) -> float | None:
    if record.answer_type != "number" or record.value is None or not _PERCENT.search(record.question):
        return None
    return record.value if 0 < record.value <= 100 else None


def _odd_fractions(values: list[tuple[float, Finding]]) -> list[Finding]:
    """Of a kind's percentages, those in (0, 1) with digits behind the point, where at least nine in ten exceed 1."""
    odd = [finding for value, finding in values if value < 1]
    return odd if len(values) >= 10 and 0 < len(odd) <= len(values) / 10 else []


def image_findings(data: bytes) -> Iterator[tuple[str, str, Level]]:
    """(check, what, level) of an encoded picture; it is decoded where it could be transparent."""
    try:
        check_image(data)
        with Image.open(io.BytesIO(data)) as image:
            if image.mode not in ("RGBA", "LA", "PA") and "transparency" not in image.info:
                return
            low = image.convert("RGBA").getchannel("A").getextrema()[0]
    except (ValueError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        yield "broken image", " ".join(str(error).removeprefix("record '': ").split())[:160], "error"
        return
    if low < 255:
        yield "transparent image", f"its least alpha is {low} of 255", "warning"


# ---- the command -----------------------------------------------------------------------------------------------------


def main(argv: list[str]) -> int:
    """`smmd-vlm data check FOLDER [--write CLEAN]`: 0 sound (warnings allowed), 1 errors, 2 the call cannot work."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="smmd-vlm data", description="Look at a dataset before a model learns it.", exit_on_error=False
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser(
        "check", help="what is wrong with a dataset folder or a .jsonl, .json or .csv file", exit_on_error=False
    )
    verb.add_argument("folder", help="dataset folder, or a .jsonl, .json or .csv file of rows")
    verb.add_argument("--write", metavar="CLEAN", help="new dataset folder without the rows that have errors")
    verb.add_argument("--show", type=int, default=3, help="examples of each check (default: 3)")
    verb.add_argument("--json", metavar="FILE", help="every finding as JSON lines")
    options = parser.parse_args(argv)
    source = Path(options.folder)
    if options.write:
        from smmd_vlm.folder import existing

        identity = {"generator": "smmd-vlm data check", "generator_version": 1, "config": {"source": str(source)}}
        if existing(Path(options.write), identity) is not None:
            raise ValueError(f"--write {options.write} is already there; name a new folder")
    records = {split: load_records(source, split) for split in _splits(source)}
    report = check({split: _each(rows) for split, rows in records.items()})
    print(text_report(report, options.show))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(vars(found)) + "\n" for found in report.findings)
    if options.write:
        from smmd_vlm.folder import Card, write_folder

        kept = (
            _storable(repaired(record))
            for split, rows in records.items()
            for index, record in enumerate(_each(rows))
            if (split, index) not in report.errors
        )
        card = Card(
            title=f"{source.name}, checked",
            summary=f"`{source.name}` without the {len(report.errors)} of {report.n} rows that `smmd-vlm data check` calls wrong.",
            command=f"smmd-vlm data check {source} --write {options.write}",
        )
        manifest = write_folder(Path(options.write), kept, identity=identity, card=card)
        print(f"wrote {sum(manifest['counts'].values())} of {report.n} records to {options.write}")
    return 1 if report.errors else 0


def text_report(report: Report, show: int = 3) -> str:
    """One line a check that found something, with examples."""
    lines = [f"{report.n} records, {len(report.errors)} with errors"]
    for name, meaning in CHECKS.items():
        found = [each for each in report.findings if each.check == name]
        if found:
            lines.append(f"  {found[0].level:7} {name:25} {len(found):6}  {meaning}")
            lines += [f"            {each.split} {_plain(each.id)}: {_plain(each.what)}" for each in found[:show]]
    if len(lines) == 1:
        lines.append("  nothing to complain about")
    return "\n".join(lines)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:200]


def _each(rows: Sequence[Record]) -> Iterator[Record | ValueError]:
    """Every record, or the error that its row raises."""
    for index in range(len(rows)):
        try:
            yield rows[index]
        except ValueError as error:
            yield error


def _storable(record: Record) -> Record:
    if isinstance(record, ManyImages):
        raise ValueError(
            f"record {record.id!r} has {len(record.images)} images, a dataset folder holds one a record; keep the file as it is"
        )
    return record


def _splits(source: Path) -> list[str]:
    """The splits that a folder or file has; load_records says what is wrong with anything else."""
    names: set[str] = set()
    if source.is_dir():
        names = {path.name.split("-")[0] for path in (source / "data").glob("*.parquet")}
    elif source.is_file():
        names = {str(row.get("split") or "train") for _, row in numbered_rows(source)}
    return sorted(names, key=_place) or ["train"]


def _place(split: str) -> int:
    return SPLITS.index(split) if split in SPLITS else len(SPLITS)
