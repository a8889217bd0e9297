"""A model's whole output -> the part of it that answers, in plain text.

In:  raw text of any length.   Out: `Part`: the answering text, how it was found, or a reason why there is none.
The order is fixed: cut long text, drop the thinking, cut what runs on into a next question, unwrap markdown and
LaTeX, then take what follows the last answer marker (`Answer:`, `the answer is`, `####`, `\\boxed{}`, `<answer>`).
Every pattern is bounded, so that a hostile megabyte costs no more than a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from smmd_vlm.numerals import fold

WINDOW = 32 * 1024  # characters read at either end of a long output
FOCUS = 4 * 1024  # characters at either end of a long answering part, where the answer itself is looked for
_SPECIAL = re.compile(r"<\|(?:im_end|endoftext|eot_id|end|eom_id)\|>|</s>|<end_of_turn>")
_THINK_OPEN = re.compile(r"<(?:think|thinking|reasoning)>", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_RUN_ON = re.compile(r"\n[ \t]*(?:#{1,6} |\*\*)?(?:question|problem|q|user|human)[ ]?\d{0,4}(?:\*\*)?[:：]", re.IGNORECASE)

_BOLD = re.compile(r"(\*{2,3}|__)(?=[^\s*_])([^*\n]{1,400}?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])(\*|_)(?=[^\s*_])([^*_\n]{1,400}?)(?<=[^\s*_])\1(?![\w*])")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+(?=[^\d\s+\-$.])|>[ \t]+|[*+•][ \t]+|-[ \t]+(?=\D))", re.MULTILINE)
_ENUMERATED = re.compile(r"^[ \t]*\d{1,2}[.)][ \t]+(?=[^\W\d])", re.MULTILINE)
_LATEX_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|mathit|operatorname|mbox)\s?\{([^{}]{0,400})\}")
_LATEX_FRACTION = re.compile(r"(\d?)\s?\\[dt]?frac\s?\{([^{}]{1,60})\}\s?\{([^{}]{1,60})\}")
_LATEX_ROOT = re.compile(r"\\(?:left|right|displaystyle|Big|big)(?![a-zA-Z])|\\[()\[\]]")
_LATEX_SPACE = re.compile(r"\\[,;: ]|\\q?quad(?![a-zA-Z])|(?<=[\d{])~|~(?=\\|[A-Za-z])")
_LATEX_SIGNS = (
    ("{,}", ","),
    ("\\!", ""),
    ("\\times", "x"),
    ("\\cdot", "x"),
    ("\\%", "%"),
    ("\\$", "$"),
    ("^\\circ", "°"),
    ("\\approx", "≈"),
    ("\\&", "&"),
)
_TAG = re.compile(r"</?(?:b|i|em|strong|p|br|span|div|sup|sub|code|u|font)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE)

_BOXED = re.compile(r"\\(?:boxed|fbox)\s?\{")
_ANSWER_TAG = re.compile(r"<answer>", re.IGNORECASE)
_HASHES = re.compile(r"####[ \t]*(?=\S)")
_ANSWER = re.compile(
    r"\b(?:the[ ])?(?:final|correct|short)?[ ]?(?:answer|result)(?:[ ](?:is|would be|should be)\b|[ ]?[:=：])[ \t]*:?[ \t]*(?=\S)"
    r"|\bfinal answer[ \t]*\n+(?=\S)"
    r"|\banswer[:：][ \t]*\n+(?=\S)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Part:
    """The answering text and how it was found."""

    text: str
    marked: bool = False  # an answer marker stood before it
    bold: str | None = None  # the one bold phrase, when there is exactly one
    reason: str | None = None  # why there is no answer
    cut: bool = False  # the output, or its answering part, was so long that its middle was not read


def unwrap(output: str) -> Part:
    """The part of an output that answers; `reason` is set, and the text empty, when there is none."""
    cut = len(output) > 2 * WINDOW
    text = output[:WINDOW] + "\n\n" + output[-WINDOW:] if cut else output
    text = _without_run_on(_SPECIAL.split(text, maxsplit=1)[0] if not text.startswith("<|") else text)
    closes = list(_THINK_CLOSE.finditer(text))
    if closes:
        text = text[closes[-1].end() :]
    elif opened := _THINK_OPEN.search(text):
        text = text[: opened.start()]
        if not text.strip():
            return Part(text="", reason="only thinking", cut=cut)
    text, marked = _after_marker(text)
    if len(text) > 2 * FOCUS:
        text, cut = text[:FOCUS] + "\n\n" + text[-FOCUS:], True
    text = fold(text).replace("\r\n", "\n").replace("\r", "\n")
    bold = [match[2] for match in _BOLD.finditer(text)]
    text = plain(text)
    if not marked:
        text, marked = _after_marker(text)
    if not text:
        return Part(text="", reason="empty", cut=cut)
    return Part(text=text, marked=marked, bold=plain(bold[0]) if len(bold) == 1 else None, cut=cut)


def plain(text: str) -> str:
    """Markdown, LaTeX and simple HTML taken off; the words and numbers stay. `LAAP*` and `1_000` stay as they are."""
    if "\\" in text or "{,}" in text:
        for _ in range(3):  # \text{} inside \mathbf{} inside \text{}: three levels are plenty
            text = _LATEX_TEXT.sub(r"\1", text)
        text = _LATEX_FRACTION.sub(lambda m: f"{m[1]} {m[2]}/{m[3]}", text)
        text = _LATEX_SPACE.sub(" ", _LATEX_ROOT.sub(" ", text))
        for sign, written in _LATEX_SIGNS:
            text = text.replace(sign, written)
    text = _EMPHASIS.sub(r"\2", _BOLD.sub(r"\2", text)) if "*" in text or "_" in text else text
    text = _TAG.sub("", text) if "<" in text else text
    text = _LINE_START.sub("", text.replace("`", ""))
    if "\n" in text and len(_ENUMERATED.findall(text)) > 1:  # `1. Look`, `2. Add`: the numbers of steps
        text = _ENUMERATED.sub("", text)
    return text.strip()


def _without_run_on(text: str) -> str:
    """Base models go on with a next `Question:`; what follows it answers something else."""
    body = len(text) - len(text.lstrip())
    run_on = _RUN_ON.search(text, body)
    return text[: run_on.start()] if run_on else text


def _after_marker(text: str) -> tuple[str, bool]:
    """What follows the last answer marker that is followed by anything; else the text itself, unmarked."""
    last = None
    for pattern in (_ANSWER, _HASHES, _ANSWER_TAG, _BOXED):
        for match in pattern.finditer(text):
            if last is None or match.end() > last[0]:
                last = (match.end(), pattern)
    if last is None:
        return text.strip(), False
    start, pattern = last
    tail = text[start:]
    if pattern is _BOXED:
        tail = _to_closing_brace(tail)
    elif pattern is _ANSWER_TAG:
        tail = re.split(r"</answer", tail, maxsplit=1, flags=re.IGNORECASE)[0]
    elif pattern is _HASHES:
        tail = tail.split("\n", 1)[0]
    else:
        tail = re.split(r"\n[ \t]*\n", tail.lstrip("*_ \t\n"), maxsplit=1)[0]
        tail = tail.lstrip(":* \t")
    tail = tail.strip()
    # `**Answer: 5**` leaves its closing stars behind
    if tail.endswith("**") and tail.count("**") % 2:
        tail = tail[:-2].rstrip()
    return (tail, True) if tail else (text.strip(), False)


def _to_closing_brace(text: str) -> str:
    depth = 1
    for match in re.finditer(r"(?<!\\)[{}]", text[:2000]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return text[: match.start()]
    return text.split("\n", 1)[0]
