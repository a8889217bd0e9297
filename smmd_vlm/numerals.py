"""Numbers and clock times in text: what counts as one, how it is read, how it is written.

The patterns and `read_time` are ASCII only: full-width and other scripts' digits are text there. `fold` brings
foreign digits, minus signs and spaces to ASCII, and `find_numbers` reads folded prose: thousands groups, percents,
scale words, fractions, powers. Every pattern is bounded, so that hostile text costs linear time.
Standard library only; `vocab`, `synth` and `eval` all read numbers through here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

DIGIT = re.compile(r"[0-9]")
INTEGER = re.compile(r"[0-9]+")
# An explicit pattern, not Python's float(): no inf, nan, 1_0 or other scripts; at most one leading space.
FLOAT = re.compile(r" ?[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

DIAL_MINUTES = 720  # a 12-hour dial; a time is minutes after 12:00, 0 <= time < 720
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")


def write_time(minute: int, second: int | None = None) -> str:
    """Minutes after 12:00 on a 12-hour dial -> `HH:MM`, hours 01 to 12; with a second, `HH:MM:SS`."""
    if not 0 <= minute < DIAL_MINUTES:
        raise ValueError(f"a dial time is 0 to 719 minutes after 12:00, got {minute}")
    text = f"{minute // 60 or 12:02d}:{minute % 60:02d}"
    return text if second is None else f"{text}:{second:02d}"


def read_time(text: str) -> float | None:
    """`H:MM`, `HH:MM` or `HH:MM:SS` and nothing else -> minutes after 12:00 on a 12-hour dial; None when it is no time.

    24-hour readings count modulo 12 hours: `15:30` and `03:30` are one dial position.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 24 or minute > 59 or second > 59:
        return None
    return (hour * 60 + minute) % DIAL_MINUTES + second / 60


def clock_error_min(a_min: float, b_min: float) -> float:
    """Minutes between two dial positions, the short way round: 11:59 and 12:01 differ by 2."""
    gap_min = abs(a_min - b_min) % DIAL_MINUTES
    return min(gap_min, DIAL_MINUTES - gap_min)


NOISE_DIGITS = 16  # significant digits that no chart prints: binary arithmetic, or a quotient without end


def write_number(value: float) -> str:
    """A number as a person writes it: no exponent, no `.0`, no float noise.

    Fewer than 16 significant digits are all meant. Of more, 12 free 1.1600000000000001 of its noise; a number that fills
    them is an endless quotient and keeps 6 (25.083333333333332 -> 25.0833), its integer part always whole.
    """
    number = Decimal(repr(float(value)))
    if not number.is_finite():
        raise ValueError(f"expected a finite number to write, got {value!r}")
    if number == number.to_integral_value():
        return f"{number.to_integral_value():f}" if number else "0"
    if len(number.as_tuple().digits) >= NOISE_DIGITS:
        short = _significant(number, 12)
        quotient = len(short.normalize().as_tuple().digits) > 10
        number = _significant(number, max(6, number.adjusted() + 1)) if quotient else short
    return f"{number.normalize():f}"


def _significant(number: Decimal, digits: int) -> Decimal:
    return round(number, digits - 1 - number.adjusted())


_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_SUPERSCRIPT = re.compile(r"(?<=\d)([\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]{1,4})")
_VULGAR = re.compile(r"(?<=\d)(?=[\u00bc-\u00be\u2150-\u215e])")
_CHARACTERS = str.maketrans(
    {"\u2212": "-", "\u2013": "-", "\u2012": "-", "\u2010": "-", "\u2011": "-", "\u2044": "/", "\u00d7": "x", "\u2019": "'"}
)


def fold(text: str) -> str:
    """Text with compatibility forms, digits of other scripts, minus signs, dashes and spaces brought to ASCII.

    `10²` becomes `10^2` and `3½` becomes `3 1/2`, which plain NFKC would turn into 102 and 31/2.
    """
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", text)
    text = _SUPERSCRIPT.sub(r"^\1", text)
    text = unicodedata.normalize("NFKC", _VULGAR.sub(" ", text)).translate(_CHARACTERS)
    if any(c.isdecimal() and not c.isascii() for c in text):
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return text


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number of a text. A suffix written onto it (`1.5bn`) belongs to the value; a scale word behind it
    (`1.5 billion`) is kept apart, because chart labels leave it out and readers add it."""

    start: int
    end: int
    digits: Decimal  # as written, no scale
    scale: Decimal = Decimal(1)
    attached: bool = False  # the scale is written onto the number
    unit: str | None = None  # "%", a currency sign, or the letters written behind the digits
    form: Literal["plain", "fraction", "ratio", "power", "ordinal", "words"] = "plain"

    @property
    def value(self) -> Decimal:
        return self.amount if self.attached else self.digits

    @property
    def amount(self) -> Decimal:
        return self.digits * self.scale

    @property
    def percent(self) -> bool:
        return self.unit == "%"


_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "lakh": 5, "crore": 7}
_SUFFIXES = {"k": 3, "K": 3, "M": 6, "mn": 6, "mln": 6, "mio": 6, "B": 9, "bn": 9, "mrd": 9, "T": 12, "tn": 12, "trn": 12}
_MONEY_SUFFIXES = {"m": 6, "b": 9, "t": 12}  # `$5m` is five million, `5m` five metres
_UNITS = set(
    "km m cm mm kg g mg t lb lbs oz l ml h hr hrs min mins s sec ms Hz kHz MHz GHz W kW MW GW Wh kWh MWh GWh TWh V A J kJ "
    "C F K x pp pts px mph eur usd gbp EUR USD GBP".split()
)
_ORDINALS = {"st", "nd", "rd", "th"}

_DIGITS = r"""(?:
    \d{1,3}(?:,\d{3}){1,12}(?:\.\d+)?(?![\d])       # 1,234,567.8
  | \d{1,2}(?:,\d{2}){1,8},\d{3}(?:\.\d+)?(?!\d)    # 12,34,567
  | \d{1,3}(?:\.\d{3}){1,12},\d+(?![\d,.]\d)        # 1.234,5
  | \d{1,3}(?:\.\d{3}){2,12}(?![\d]|[.,]\d)         # 1.234.567
  | [1-9]\d{0,2}(?:[ ]\d{3}){1,12}(?:[.,]\d+)?(?![\d]|[ ,.]?\d) # 1 234 567
  | [1-9]\d{0,2}(?:'\d{3}){1,12}(?:\.\d+)?(?!\d)    # 1'234
  | 0,\d+(?![\d]|[,.]\d)                            # 0,5 cannot be a list or a group
  | \d+(?:\.\d+)?
  | \.\d+
)"""
_NUMBER = re.compile(
    rf"""(?<![\w.^/])(?<![\d][,:'])(?<![\w)%\]][-+])           # never inside a word, a date, a range or another number
    (?P<sign>[-+](?=[\d.$€£¥₹]))?(?P<money>US\$|[$€£¥₹][ ]?)?(?P<inner>(?<=[$€£¥₹])[-+])?
    (?:
      (?P<whole>\d{{1,12}})[ ](?P<above>\d{{1,12}})/(?P<below>\d{{1,12}})
    | (?P<top>\d{{1,12}})[ ]?/[ ]?(?P<bottom>\d{{1,12}})
    | (?P<left>\d{{1,12}}(?:\.\d{{1,12}})?)[ ]?:[ ]?(?P<right>\d{{1,12}}(?:\.\d{{1,12}})?)
    | (?P<base>\d{{1,15}}(?:\.\d{{1,15}})?)\^[ ]?\{{?(?P<exponent>-?\d{{1,4}})\}}?
    | (?P<digits>{_DIGITS})
      (?:[eE](?P<e>[-+]?\d{{1,5}})(?!\d)|[ ]?[eE][ ]?(?P<spaced_e>[-+][ ]?\d{{1,5}})(?!\d)
        |[ ]?[x*·][ ]?10[ ]?\^[ ]?\{{?(?P<ten>-?\d{{1,5}})\}}?|[ ]?\*\*[ ]?10\^(?P<star_ten>-?\d{{1,5}}))?
    )
    (?P<tail>[^\W\d_]{{0,12}})""",
    re.VERBOSE | re.ASCII,
)
_AFTER_BAD = re.compile(
    r"_|\+(?=$|[\s,.;:)])(?!\s?[\d.=])|[-/:]\d|\.\d|\^|,\d|[^\x00-\x7f\W]"
    r"|-(?!(?:hundred|thousand|million|billion|trillion|percent))[A-Za-z]"  # 5-fold, 12-year
)
_PERCENT = re.compile(r"[ ]?%|[ ]?(?:percentage points?|percent|per cent|pct)\b", re.IGNORECASE)
_SCALE_WORD = re.compile(r"[ -]?(hundred|thousand|million|billion|trillion|lakh|crore)s?\b", re.IGNORECASE)
_SPACED_SUFFIX = re.compile(r" (K|M|mn|mln|mio|B|bn|mrd|T|tn|trn)\b")
_GROUP_MARKS = re.compile(r"[ ,']")
_LARGEST_EXPONENT = 400  # beyond any float: such a number is found, and `eval` calls it out of range


def find_numbers(text: str) -> list[Number]:
    """The numbers of a folded text, left to right. `5G`, `65+`, `1_000`, `2007-2008`, dates and times are no numbers."""
    found = []
    for match in _NUMBER.finditer(text):
        number = _number(match, text)
        if number is not None:
            found.append(number)
    return found


def _number(match: re.Match[str], text: str) -> Number | None:
    start, end, tail, money = match.start(), match.start("tail"), match["tail"], (match["money"] or "").strip()
    digits, form = _digits(match), "plain"
    if digits is None:
        return None
    if match["sign"] == "-" or match["inner"] == "-":
        digits = -digits
    if match["below"] or match["bottom"]:
        form = "fraction"
    elif match["left"]:
        form = "ratio"
    elif match["base"]:
        form = "power"
    scale, attached, unit = Decimal(1), False, money or None
    if tail:
        suffix = _SUFFIXES.get(tail, _SUFFIXES.get(tail.lower()) if len(tail) > 1 else None)
        if suffix is None and money:
            suffix = _MONEY_SUFFIXES.get(tail)
        if suffix is not None:
            scale, attached = Decimal(10) ** suffix, True
        elif tail.lower() in _SCALES:
            scale = Decimal(10) ** _SCALES[tail.lower()]
        elif tail in _ORDINALS:
            form = "ordinal"
        elif tail in _UNITS:
            unit = unit or tail
        elif tail.lower() in ("percent", "pct"):
            unit = "%"
        else:
            return None  # 5G, 2D, 42nd-street: a name
        end += len(tail)
    if _AFTER_BAD.match(text, end):
        return None
    if scale == 1 and form == "plain":
        if word := _SCALE_WORD.match(text, end):
            scale, end = Decimal(10) ** _SCALES[word[1].lower()], word.end()
        elif suffix_match := _SPACED_SUFFIX.match(text, end):
            scale, attached, end = Decimal(10) ** _SUFFIXES[suffix_match[1]], True, suffix_match.end()
    if percent := _PERCENT.match(text, end):
        unit, end = "%", percent.end()
    return Number(start=start, end=end, digits=digits, scale=scale, attached=attached, unit=unit, form=form)


def _digits(match: re.Match[str]) -> Decimal | None:
    """The magnitude that a match spells; None for what only looks like a number: x/0, a season, a time of day."""
    if match["below"]:
        return Decimal(match["whole"]) + Decimal(match["above"]) / Decimal(match["below"]) if int(match["below"]) else None
    if match["bottom"]:
        season = len(match["top"]) == 4 and match["top"][:2] in ("18", "19", "20") and len(match["bottom"]) in (2, 4)
        return None if season or not int(match["bottom"]) else Decimal(match["top"]) / Decimal(match["bottom"])
    if match["left"]:
        if _TIME.fullmatch(f"{match['left']}:{match['right']}") and int(match["left"]) <= 24 and int(match["right"]) <= 60:
            return None
        return Decimal(match["left"]) / Decimal(match["right"]) if Decimal(match["right"]) else None
    if match["base"]:
        base, exponent = Decimal(match["base"]), int(match["exponent"])
        if base == 0:
            return None if exponent <= 0 else base
        return base**exponent if abs(exponent) <= _LARGEST_EXPONENT else Decimal(10) ** _LARGEST_EXPONENT
    written = match["digits"]
    decimal_comma = re.fullmatch(r"(?:\d{1,3}(?:[. ]\d{3})+|0),\d+", written) and not re.fullmatch(
        r"\d{1,3}(?:,\d{3})+", written
    )
    if decimal_comma:
        written = written.replace(".", "").replace(",", ".")
    elif written.count(".") > 1:
        written = written.replace(".", "")
    written = _GROUP_MARKS.sub("", written)
    power = match["e"] or match["spaced_e"] or match["ten"] or match["star_ten"]
    exponent = int(power.replace(" ", "")) if power else 0
    return Decimal(written).scaleb(max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, exponent)))


_ONES = dict(zip("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(), range(20), strict=True))  # fmt: skip
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_WORD = "|".join([*_TENS, *sorted(_ONES, key=len, reverse=True)])
_BIG = "hundred|thousand|million|billion|trillion"
_WORDS = re.compile(
    rf"(?<![\w-])(minus |negative )?((?:{_WORD}|a(?= (?:{_BIG})\b))(?:(?:[ -]| and )(?:{_WORD}|{_BIG})){{0,20}})(?![\w-])",
    re.IGNORECASE,
)
_LAST_SCALE = re.compile(r"[ -](thousand|million|billion|trillion)$", re.IGNORECASE)


def find_number_words(text: str) -> list[Number]:
    """Numbers written in English words: `five`, `twenty-one`, `two hundred and six`; `three million` keeps its scale apart."""
    found = []
    for match in _WORDS.finditer(text):
        value = read_number_words(match[2])
        if value is None:
            continue
        digits, scale = Decimal(-value if match[1] else value), Decimal(1)
        if (word := _LAST_SCALE.search(match[2])) and read_number_words(match[2][: word.start()]):
            scale = Decimal(10) ** _SCALES[word[1].lower()]
            digits /= scale
        percent = _PERCENT.match(text, match.end())
        end = percent.end() if percent else match.end()
        found.append(
            Number(start=match.start(), end=end, digits=digits, scale=scale, unit="%" if percent else None, form="words")
        )
    return found


def read_number_words(text: str) -> int | None:
    """English number words and nothing else -> the integer; None for what does not compose (`five six`)."""
    total, part, floor = 0, 0, 10**15  # floor: what a further word must stay below, so that `five six` is no number
    words = re.split(r"[ -]+", text.lower())
    for word in ["one", *words[1:]] if words[0] == "a" else words:
        if word == "and":
            continue
        if word in _ONES or word in _TENS:
            value = _ONES.get(word, _TENS.get(word, 0))
            if value >= floor:
                return None
            part, floor = part + value, 10 if word in _TENS else 0
        elif word == "hundred":
            if not 0 < part < 100:
                return None
            part, floor = part * 100, 100
        elif word in _SCALES:
            scale = 10 ** _SCALES[word]
            if not part or (total and total % (scale * 1000)):
                return None
            total, part, floor = total + part * scale, 0, 1000
        else:
            return None
    return total + part
