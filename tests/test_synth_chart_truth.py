"""What a chart's record says is true: marks measured in the pixels, answers worked out again, texts that can be read."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.scorers import score_answer
from smmd_vlm.numerals import find_numbers
from synth import chart_records
from synth.chart_maker import make_chart
from synth.chart_pen import paint
from synth.chart_presets import PRESETS
from synth.chart_shapes import Dots, Text
from synth.charts import ChartConfig
from tests.chart_evaluator import answer
from tests.chart_reader import hidden, measure, texts_touch, tick_offsets

CHARTS = 60


@cache
def records(preset, charts=CHARTS, first=0):
    """Records without pictures: what is asked and answered does not depend on them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chart_records, "paint", lambda *_: None)
        patch.setattr(chart_records, "encode_png", lambda _: b"")
        make = ChartConfig(preset=preset).maker()
        return [record for chart in range(first, first + charts) for record in make.records(chart)]


@pytest.mark.parametrize("preset", ["varied", "plain"])
def test_marks_measured_in_the_pixels_are_the_stored_numbers(preset):
    config = ChartConfig(preset=preset, questions_per_chart=1)
    # Printed numbers have the colour of their line, and near colours mix at edges: neither is for a reader this simple.
    plain_colours = {"look": 1.0, "shuffled": 1.0, "vivid": 0.4} if preset == "varied" else {"look": 1.0}
    make = replace(config, look=replace(config.look, labels={"none": 1.0}, colours=plain_colours)).maker()
    marks = []
    for index in range(CHARTS):
        record = make(index)
        truth = json.loads(record.meta)
        marks += [mark for mark in measure(record.image, record.meta) if not hidden(truth, mark.series, mark.place)]
    assert len(marks) > 5 * CHARTS
    wrong = [mark for mark in marks if not mark.fits]
    assert len(wrong) <= 0.01 * len(marks), wrong  # lines that cross within a pixel, dashes that end at a place


def test_ticks_stand_where_the_axis_says():
    look = replace(PRESETS["varied"], look={"plain": 1.0, "bokeh": 1.0}, scale={"linear": 1.0})
    make = ChartConfig(look=look, questions_per_chart=1).maker()
    for index in range(20):
        record = make(index)
        assert max(tick_offsets(record.image, record.meta)) <= 1.0


@given(st.floats(12, 28), st.floats(12, 28), st.sampled_from(["circle", "square", "diamond"]))
def test_a_dot_stands_where_it_is_told_to(x, y, shape):
    dots = Dots(points=((x, y),), shape=shape, size_px=9.0, fill=(0, 0, 0), edge=(0, 0, 0))
    ink = 255 - np.asarray(paint([dots], (40, 40), (255, 255, 255)).convert("L")).astype(float)
    middles, weight = np.arange(40) + 0.5, ink.sum()
    assert (ink.sum(axis=0) @ middles / weight, ink.sum(axis=1) @ middles / weight) == pytest.approx((x, y), abs=0.1)


def test_bars_of_the_embedded_preset_are_measured_to_the_unit_or_so():
    make = ChartConfig(preset="embedded").maker()
    for index in range(0, 160, 4):
        record = make(index)
        assert all(mark.fits for mark in measure(record.image, record.meta))
        assert record.answer == str(int(record.value)) and len(record.answer) == 2
        truth = json.loads(record.meta)
        assert (truth["axis"]["low"], truth["axis"]["high"], truth["size_px"]) == ("0", "99", [64, 64])


@pytest.mark.parametrize("preset", PRESETS)
def test_every_answer_follows_from_the_stored_table(preset):
    for record in records(preset, charts=150):
        assert answer(record.meta) == record.answer, record


@pytest.mark.parametrize("preset", PRESETS)
def test_gold_answers_are_right_under_every_scorer(preset):
    for record in records(preset, charts=150):
        verdict = score_answer(
            gold=record.answer, prediction=record.answer, answer_type=record.answer_type, tolerance=record.tolerance
        )
        assert verdict.exact and verdict.relaxed and verdict.relaxed_strict, record
        for name in ("numeric_equal", "within_1_percent", "within_tolerance"):
            assert getattr(verdict, name) in (True, None), record


@pytest.mark.parametrize("preset", ["plain", "varied", "hard"])
def test_no_text_is_clipped_and_none_lies_on_another(preset):
    for index in range(150):
        chart = make_chart(PRESETS[preset], f"texts/{index}").chart
        texts = [shape for shape in chart.shapes if isinstance(shape, Text) and shape.text]
        width, height = chart.size_px
        for k, text in enumerate(texts):
            assert text.font.size_px >= 7.5
            assert all(0 <= x <= width and 0 <= y <= height for x, y in text.corners()), text
            assert not any(texts_touch(text, other) for other in texts[:k]), (
                text,
                [o for o in texts[:k] if texts_touch(text, o)],
            )


def test_printed_numbers_are_exact_and_readings_say_how_far_off_they_may_be():
    seen = 0
    for record in records("varied"):
        truth = json.loads(record.meta)
        asked = truth["question"]
        if asked["template"] != "retrieve":
            continue
        seen += 1
        stored = truth["table"]["series"][asked["series"]]["values"][asked["place"]]
        if truth["printed"][asked["series"]][asked["place"]]:
            assert Decimal(record.answer) == Decimal(stored) and record.tolerance == 0
        else:
            assert record.tolerance == float(truth["reading_tolerance"][asked["series"]][asked["place"]])
            off = abs(Decimal(record.answer) - Decimal(stored))
            assert off <= Decimal(asked["round_to"]) / 2 and off <= Decimal(str(record.tolerance))
    assert seen > 30


def test_readings_are_no_finer_than_a_pixel_and_a_half_the_line_or_a_twentieth_of_a_step():
    for record in records("hard"):
        truth = json.loads(record.meta)
        axis = truth["axis"]
        if axis["log"]:
            continue
        per_px = (Fraction(axis["high"]) - Fraction(axis["low"])) / abs(Fraction(axis["high_px"]) - Fraction(axis["low_px"]))
        step = Fraction(axis["ticks"][1]) - Fraction(axis["ticks"][0])
        line_px = Fraction(str(round(truth["choices"]["line_width"] * int(truth["choices"]["dpi"]) / 100, 2)))
        least = max(per_px * Fraction(3, 2), step / 20, per_px * line_px if truth["marks"] == "points" else 0)
        for row in truth["reading_tolerance"]:
            # Two digits, rounded up: at most a tenth more; twice that on upper parts of a stack.
            assert all(cell is None or least * Fraction(99, 100) <= Fraction(cell) <= Fraction(11, 5) * least for cell in row)


def test_questions_name_only_what_the_picture_shows():
    for record in records("hard"):
        truth = json.loads(record.meta)
        asked = truth["question"]
        if "place" in asked and asked["template"] not in ("by position", "coloured value"):
            assert truth["places_named"][asked["place"]], record
        if record.answer_type == "text" and record.answer in truth["table"]["places"]:
            assert truth["places_named"][truth["table"]["places"].index(record.answer)], record
        if not all(
            all(p or v is None for p, v in zip(row, s["values"], strict=True))
            for row, s in zip(truth["printed"], truth["table"]["series"], strict=True)
        ):
            assert truth["axis"]["shown"], record


def test_questions_do_not_give_the_answer_away():
    for record in records("varied"):
        if record.answer_type != "number" or " or " in record.question:
            continue
        thresholds = [float(number.value) for number in find_numbers(record.question)]
        asked = json.loads(record.meta)["question"]["template"]
        if asked in ("retrieve", "highest value", "lowest value", "difference", "sum", "average"):
            years = [float(place) for place in json.loads(record.meta)["table"]["places"] if place.isdigit()]
            assert record.value not in set(thresholds) - set(years), record


def test_tables_span_the_magnitudes_and_have_no_ties():
    largest = []
    for record in records("varied", charts=150)[::4]:
        table = json.loads(record.meta)["table"]
        assert not table["ties"] or "100 %" in record.kind  # parts of a hundred may be equal, and say so
        largest.append(max(abs(float(v)) for s in table["series"] for v in s["values"] if v is not None) * table["scale"])
    assert min(largest) < 0.1 and max(largest) > 1e7


def test_parts_of_a_hundred_add_up_exactly():
    look = replace(PRESETS["varied"], kind={"100 % bars": 1.0})
    for index in range(30):
        table = make_chart(look, f"hundred/{index}").table
        assert all(sum(series.values[place] for series in table.series) == 100 for place in range(len(table.x)))
