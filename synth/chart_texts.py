"""The words on a chart: title, subtitle, axis titles, footer, and how its numbers are written."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synth.chart_axis import MINUS, SUFFIXES, NumberStyle
from synth.chart_words import PUBLISHERS, SOURCES
from synth.looks import STYLES
from synth.tables import SCALE_WORDS, Table

_SIGNS = {"US dollars": "$", "euros": "€", "pounds": "£"}


@dataclass(frozen=True, kw_only=True)
class ChartTexts:
    title: str  # "" for none
    subtitle: str
    value_title: str
    x_title: str
    footer: tuple[str, ...]  # a line that starts with * is bold
    numbers: NumberStyle
    ticks: NumberStyle


def write_texts(table: Table, choices: Mapping[str, Any], rng: random.Random) -> ChartTexts:
    style = STYLES[choices["look"]]
    year, publisher, source = rng.randint(2005, 2025), rng.choice(PUBLISHERS), rng.choice(SOURCES)
    with_x_title, with_sign, long_minus = rng.random() < 0.6, rng.random() < 0.5, rng.random() < 0.6
    numbers, unit = _number_style(table, choices, with_sign, MINUS if long_minus else "-")
    measure = _capital(table.measure)
    who = f" {table.of_things.preposition} {table.of}" if table.of_things else ""
    in_unit = "" if not unit else " (%)" if unit == "%" else f" in {unit}"
    title = f"{measure}{who}{_by(table)}"
    if table.axis == "category" and rng.random() < 0.5 and not table.of:
        title += f", {year - 2}"
    if table.axis == "year":
        title += f", {table.x[0]}–{table.x[-1]}"
    has_title = choices["title"]
    subtitle = ""
    without_axis = style.hides_axis and choices["labels"] == "all"
    unit_in_axis = not has_title or (choices["unit_place"] == "axis" and not without_axis)
    if has_title and style.subtitle_italic is not None and not unit_in_axis and unit:
        subtitle = "In percent" if unit == "%" else f"In {unit}"
    elif has_title and not unit_in_axis:
        title += in_unit
    value_title = f"{measure}{'' if has_title else who}{in_unit if unit_in_axis else ''}"
    if has_title and not (unit_in_axis and unit) and choices["look"] not in ("plain", "bokeh"):
        value_title = ""
    shown_x = with_x_title and choices["look"] in ("plain", "bokeh")
    footer: tuple[str, ...] = ()
    if choices["source"]:
        footer = tuple(style.footer.format(source=source, publisher=publisher, year=year).split("\n"))
    return ChartTexts(
        title=title if has_title else "", subtitle=subtitle, value_title=value_title,
        x_title=table.x_name if shown_x or table.axis == "number" else "", footer=footer, numbers=numbers,
        ticks=NumberStyle(form="scientific", before=numbers.before, minus=numbers.minus) if choices["ticks"] == "scientific" else numbers,
    )  # fmt: skip


def _number_style(table: Table, choices: Mapping[str, Any], with_sign: bool, minus: str) -> tuple[NumberStyle, str]:
    """How numbers are printed, and what is left of the unit for words: the sign or suffix beside the number needs none."""
    form, unit, before, after = choices["ticks"], table.unit, "", ""
    if form == "scientific":
        form = "plain"
    if choices["ticks"] == "suffix" and table.scale:
        after = SUFFIXES[table.scale]
        word = SCALE_WORDS[table.scale]
        unit = "" if unit == f"{word}s" else unit.removeprefix(f"{word} ")
    if table.unit == "%" and with_sign:
        after = "%"
    elif unit in _SIGNS and with_sign:
        before, unit = _SIGNS[unit], ""
    return NumberStyle(form=form, before=before, after=after, minus=minus), unit


def _by(table: Table) -> str:
    parts = []
    if table.x_things:
        parts.append(table.x_things.singular)
    if table.series_things:
        parts.append(table.series_things.singular)
    if table.axis == "number":
        parts.insert(0, table.x_name.partition(" (")[0].lower())
    return f" by {' and '.join(parts)}" if parts else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
