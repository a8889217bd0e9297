"""One self-contained HTML page: skeleton, style, filters, cards. Offline; every text of a model, a user or a file is escaped.

The page carries its own content security policy: no request of any kind, pictures from data: URIs only, and of all scripts
only the one below, by its hash. So even a text that slipped through unescaped could neither run nor call home.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

LONGEST_TEXT = 600  # characters of a question or answer on a card

STYLE = """
:root { --ink: #1d2330; --soft: #667085; --paper: #fff; --card: #f6f7f9; --rule: #d7dbe2; --blue: #2a6fbb; --red: #c0392b; --green: #1f8a4c; --amber: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --paper: #14171d; --card: #1d222b; --rule: #343b47; --blue: #6aa9ec; --red: #ef7d70; --green: #5fc48c; --amber: #e0b252; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1180px; margin: 0 auto; padding: 24px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 10px; } h3 { font-size: 16px; margin: 24px 0 8px; }
.soft { color: var(--soft); } .mono { font-family: ui-monospace, monospace; font-size: 13px; }
.concern { border-left: 4px solid var(--amber); background: var(--card); padding: 8px 12px; margin: 8px 0; }
.verdict { border-left: 4px solid var(--blue); background: var(--card); padding: 12px 16px; margin: 12px 0; font-size: 17px; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 14px 0; }
.tile { background: var(--card); border-radius: 8px; padding: 10px 16px; min-width: 130px; } .tile b { display: block; font-size: 26px; line-height: 1.2; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(380px, 1fr)); gap: 14px; } svg { width: 100%; height: auto; background: var(--card); border-radius: 8px; }
svg text { fill: var(--ink); } .title { font: 600 13px system-ui, sans-serif; } .small { font: 10.5px system-ui, sans-serif; }
.line, .far { stroke: var(--blue); stroke-width: 2; fill: none; } .far { stroke: var(--red); } .dot { fill: var(--blue); } .point { fill: var(--blue); fill-opacity: .45; } .bar { fill: var(--blue); } .bad { fill: var(--red); } .axis { stroke: var(--soft); } .grid { stroke: var(--rule); }
img { max-width: 100%; } .scroll { overflow-x: auto; margin: 14px 0; } .nowrap td { white-space: nowrap; } .scroll td:first-child, .scroll th:first-child { position: sticky; left: 0; background: var(--paper); } table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: 4px 10px; text-align: right; border-bottom: 1px solid var(--rule); } td:first-child, th:first-child { text-align: left; } th { font-weight: 600; }
.filters { position: sticky; top: 0; background: var(--paper); padding: 10px 0; display: flex; flex-wrap: wrap; gap: 10px; align-items: center; z-index: 1; }
select, input { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: 4px 8px; max-width: 100%; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); gap: 12px; } .card { background: var(--card); border-radius: 8px; overflow: hidden; border-top: 4px solid var(--soft); overflow-wrap: anywhere; }
.card.right, .card.A-better { border-top-color: var(--green); } .card.wrong, .card.B-better { border-top-color: var(--red); } .card.unparsed { border-top-color: var(--amber); }
.card img { display: block; width: 100%; max-height: 260px; object-fit: contain; background: #fff; } .card div { padding: 8px 12px; } .card p { margin: 3px 0; white-space: pre-line; } .card .small { font-size: 12px; } .none { padding: 24px 12px; text-align: center; }
[hidden] { display: none !important; }
details { margin: 10px 0; } summary { cursor: pointer; }
"""

SCRIPT = """
for (const box of document.querySelectorAll('.filters')) {
  const cards = [...box.nextElementSibling.querySelectorAll('.card')];
  const fields = [...box.querySelectorAll('select, input')];
  const count = box.querySelector('.count');
  const apply = () => {
    let shown = 0;
    for (const card of cards) {
      const keep = fields.every(f => !f.value || (f.tagName === 'SELECT' ? card.dataset[f.name].split(' ').includes(f.value)
        : card.textContent.toLowerCase().includes(f.value.toLowerCase())));
      card.hidden = !keep;
      shown += keep;
    }
    count.textContent = shown + ' of ' + cards.length + ' shown';
  };
  fields.forEach(f => f.addEventListener('input', apply));
  apply();
}
"""
_SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
_POLICY = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{_SCRIPT_HASH}'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One card: a picture, labelled lines, and what the filters look at."""

    outcome: str
    kind: str
    sets: tuple[str, ...]  # worst, random, ...
    lines: tuple[tuple[str, str], ...]  # label, text; an empty label is the small print
    picture: bytes | None = None  # JPEG
    note: str = ""  # why there is no picture


@dataclass
class Page:
    """Parts in order, all escaped already; `text` is the document."""

    title: str
    parts: list[str] = field(default_factory=list)

    def add(self, *parts: str) -> None:
        self.parts.extend(parts)

    def text(self) -> str:
        body = "\n".join(self.parts)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n<meta name="referrer" content="no-referrer">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(self.title)}</h1>\n{body}\n"
            f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
        )


def escape(text: object, longest: int = LONGEST_TEXT) -> str:
    """Text for HTML and attributes: control characters and halves of surrogate pairs shown as �, long texts cut."""
    clean = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in str(text)[: longest + 1])
    return html.escape(clean if len(clean) <= longest else clean[:longest] + "…", quote=True)


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text, 4000)}</p>' if kind else f"<p>{escape(text, 4000)}</p>"


def heading(text: str, level: int = 2) -> str:
    return f"<h{level}>{escape(text)}</h{level}>"


def tiles(values: Iterable[tuple[str, str, str]]) -> str:
    """(name, value, small print) side by side."""
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile">{escape(name)}<b>{escape(value)}</b><span class="soft">{escape(small)}</span></div>' for name, value, small in values)
        + "</div>"
    )  # fmt: skip


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "scroll") -> str:
    """`kind`: "scroll", or "scroll nowrap" where a cell is to stay on one line."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="{kind}"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def image(png: bytes, alt: str) -> str:
    return f'<p><img alt="{escape(alt)}" src="data:image/png;base64,{base64.b64encode(png).decode()}"></p>'


def figures(charts: Iterable[str]) -> str:
    return f'<div class="figures">{"".join(charts)}</div>'


def facts(pairs: Iterable[tuple[str, object]], title: str) -> str:
    rows = [(key, str(value)) for key, value in pairs]
    return f"<details><summary>{escape(title)}</summary>{table(('', ''), rows)}</details>"


def gallery(samples: Sequence[Sample]) -> str:
    """The cards under filters by set, outcome, kind and text. Kinds are numbered in attributes: names may hold anything."""
    kinds = sorted({sample.kind for sample in samples})
    number = {kind: f"k{place}" for place, kind in enumerate(kinds)}
    menus = [
        _menu(
            "set", "all samples", [(each, each) for each in dict.fromkeys(name for sample in samples for name in sample.sets)]
        ),
        _menu("outcome", "every outcome", [(_word(each), each) for each in sorted({sample.outcome for sample in samples})]),
        _menu("kind", "every kind", [(number[kind], kind) for kind in kinds]),
    ]
    search = '<input name="text" type="search" placeholder="search" aria-label="search">'
    cards = "".join(_card(sample, number[sample.kind]) for sample in samples)
    return (
        f'<div class="filters">{"".join(menus)}{search}<span class="count soft"></span></div>\n<div class="cards">{cards}</div>'
    )


def _menu(name: str, all_: str, options: Iterable[tuple[str, str]]) -> str:
    choices = "".join(f'<option value="{escape(value)}">{escape(text, 60)}</option>' for value, text in options)
    return f'<select name="{name}" aria-label="{name}"><option value="">{all_}</option>{choices}</select>'


def _card(sample: Sample, kind: str) -> str:
    if sample.picture is not None:
        data = base64.b64encode(sample.picture).decode()
        picture = f'<img loading="lazy" alt="" src="data:image/jpeg;base64,{data}">'
    else:
        picture = f'<div class="none soft">{escape(sample.note)}</div>' if sample.note else ""
    lines = "".join(
        f"<p><b>{escape(label)}</b> {escape(text)}</p>" if label else f'<p class="small soft">{escape(text)}</p>'
        for label, text in sample.lines
    )
    outcome = _word(sample.outcome)
    sets = escape(" ".join(sample.sets))
    return f'<article class="card {outcome}" data-set="{sets}" data-outcome="{outcome}" data-kind="{kind}">{picture}<div>{lines}</div></article>'


def _word(text: str) -> str:
    """A name that is safe as a class and as one word of a data attribute."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text)
