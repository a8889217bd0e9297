"""Clock times in free text: `**2:07:41**`, `10.42 p.m.`, `quarter past 3`, `3h 45m`, `Hour: 6, Minute: 2`, JSON, `3点半`.

In:  folded text.   Out: every time it names, in order, as `ClockTime` on a 12-hour dial; times that no clock shows are
marked, not repaired, except that 11:60 carries to 12:00 (models write it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from smmd_vlm.numerals import DIAL_MINUTES, read_number_words

DIAL_SECONDS = DIAL_MINUTES * 60
_MOST = 32  # times of one form in one text: nobody answers with more, hostile text does


@dataclass(frozen=True, kw_only=True)
class ClockTime:
    """A time as read, and where. Hours beyond 12 are kept as written; the dial position takes them modulo 12."""

    hour: int
    minute: int
    second: int | None = None
    start: int = 0
    end: int = 0

    @property
    def possible(self) -> bool:
        """A 60 carries into the next minute or hour; anything above is no time."""
        return self.hour <= 24 and self.minute <= 60 and (self.second or 0) <= 60

    @property
    def dial_s(self) -> int:
        """Seconds after 12:00, 0 <= s < 43200."""
        return (self.hour * 3600 + self.minute * 60 + (self.second or 0)) % DIAL_SECONDS


_NUMBER_WORD = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
    "|(?:twenty|thirty|forty|fifty)(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?"
)
_HOUR_WORD = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_FIELDS = re.compile(
    r"\bhours?[\"']?\s{0,3}[:=]\s{0,3}[\"']?(\d{1,3})\b[^\d]{0,40}?\bmin(?:ute)?s?[\"']?\s{0,3}[:=]\s{0,3}[\"']?(\d{1,3})\b"
    r"(?:[^\d]{0,40}?\bsec(?:ond)?s?[\"']?\s{0,3}[:=]\s{0,3}[\"']?(\d{1,3})\b)?",
    re.IGNORECASE,
)
_DIGITAL = re.compile(
    r"(?<![\d:.,/\w-])(\d{1,2}) ?: ?(\d{2})(?: ?: ?(\d{2})(?:\.\d{1,3})?)?(?![\d:/]|[.,]\d)(?:\s?[ap]\.?\s?m\b\.?)?",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"(?<![\d:.,/\w-])(\d{1,2})\.(\d{2})(?:\.(\d{2}))?\s?[ap]\.?\s?m\b\.?", re.IGNORECASE)
_UNITS = re.compile(
    r"(?<![\d:.,/\w-])(\d{1,2})\s?(?:h|uhr)\s?(\d{2})(?![\d:\w])"  # 3h45, 15 Uhr 30
    r"|(?<![\d:.,/\w-])(\d{1,2})\s?(?:h|hrs?|hours?)[ ,]{0,2}(?:and )?(\d{1,2})\s?(?:m|mins?|minutes?)\b"
    r"(?:[ ,]{0,2}(?:and )?(\d{1,2})\s?(?:s|secs?|seconds?)\b)?",
    re.IGNORECASE,
)
_CJK = re.compile(r"(?<!\d)(\d{1,2})\s?[時时点點시]\s?(?:(半)|(\d{1,2})\s?[分분])?(?:\s?(\d{1,2})\s?[秒초])?")
_PAST_TO = re.compile(
    rf"(?<![\w.:-])(?:(?P<quarter>quarter)|(?P<half>half)|(?P<count>\d{{1,2}}|{_NUMBER_WORD})(?: min(?:ute)?s?)?) "
    rf"(?P<way>past|after|to|before|of|till|until) (?P<hour>\d{{1,2}}|{_HOUR_WORD}|noon|midnight)(?![\w:/%-]|\.\d)",
    re.IGNORECASE,
)
_OCLOCK = re.compile(rf"(?<![\w.:-])(\d{{1,2}}|{_HOUR_WORD}) ?(?:o'? ?clock|[ap]\.?m\b\.?)", re.IGNORECASE)
_SPELLED = re.compile(
    rf"(?<![\w-])({_HOUR_WORD})[ -]((?:oh |o')?(?:{_NUMBER_WORD}))(?! (?:past|to|after|before|min))(?![\w-])", re.IGNORECASE
)
_NOON = re.compile(r"\b(?:noon|midnight)\b", re.IGNORECASE)


def find_times(text: str) -> list[ClockTime]:
    """Every time that a folded text names, left to right, the longest reading at each place."""
    found: list[ClockTime] = []
    for read in (_fields, _digital, _dotted, _cjk, _units, _past_to, _oclock, _spelled, _noon):
        for time in read(text):
            if not any(time.start < other.end and other.start < time.end for other in found):
                found.append(time)
    return sorted(found, key=lambda time: time.start)


def read_bare_time(text: str) -> ClockTime | None:
    """`10.42` or `3 45` standing alone: a time only where a time was asked for."""
    match = re.fullmatch(r"(\d{1,2})[. ](\d{2})", text)
    return _time(match, match[1], match[2]) if match else None


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    return islice(pattern.finditer(text), _MOST)


def _time(match: re.Match[str], hour: str | int, minute: str | int, second: str | None = None) -> ClockTime:
    return ClockTime(
        hour=int(hour),
        minute=int(minute),
        second=int(second) if second is not None else None,
        start=match.start(),
        end=match.end(),
    )


def _fields(text: str) -> list[ClockTime]:
    return [_time(m, m[1], m[2], m[3]) for m in _matches(_FIELDS, text)]


def _digital(text: str) -> list[ClockTime]:
    return [_time(m, m[1], m[2], m[3]) for m in _matches(_DIGITAL, text)]


def _dotted(text: str) -> list[ClockTime]:
    return [_time(m, m[1], m[2], m[3]) for m in _matches(_DOTTED, text)]


def _cjk(text: str) -> list[ClockTime]:
    return [_time(m, m[1], 30 if m[2] else m[3] or 0, m[4]) for m in _matches(_CJK, text)]


def _units(text: str) -> list[ClockTime]:
    return [_time(m, m[1] or m[3], m[2] or m[4], m[5]) for m in _matches(_UNITS, text)]


def _past_to(text: str) -> list[ClockTime]:
    times = []
    for match in _matches(_PAST_TO, text):
        after = match["way"].lower() in ("past", "after")
        if match["half"] and not after:
            continue
        minute = 15 if match["quarter"] else 30 if match["half"] else _count(match["count"])
        hour = _count(match["hour"])
        if minute < 60 and hour <= 24:
            times.append(_time(match, hour, minute) if after else _time(match, (hour - 1) % 24, 60 - minute))
    return times


def _oclock(text: str) -> list[ClockTime]:
    return [_time(m, _count(m[1]), 0) for m in _matches(_OCLOCK, text)]


def _spelled(text: str) -> list[ClockTime]:
    return [_time(m, _count(m[1]), _count(re.sub(r"(?i)^(?:oh |o')", "", m[2]))) for m in _matches(_SPELLED, text)]


def _noon(text: str) -> list[ClockTime]:
    return [_time(m, 12, 0) for m in _matches(_NOON, text)]


def _count(text: str) -> int:
    if text.isdigit():
        return int(text)
    return 12 if text.lower() in ("noon", "midnight") else read_number_words(text) or 0
