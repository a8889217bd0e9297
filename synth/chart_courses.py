"""Plausible courses: how numbers go along time, and how they spread across things. Floats from 0 to 1; the largest is near 1."""

from __future__ import annotations

import math
import random


def along(rng: random.Random, count: int, *, high_base: bool = False) -> list[float]:
    """A course over `count` ordered places: growth, decline, a peak, a dip, a jump, waves or a walk, with noise."""
    kind = rng.choice(("rise", "fall", "growth", "decay", "peak", "dip", "saturation", "jump", "waves", "walk", "flat"))
    steps = [k / max(count - 1, 1) for k in range(count)]
    bend, middle = rng.uniform(1, 3), rng.uniform(0.25, 0.75)
    match kind:
        case "rise":
            course = [0.25 + 0.75 * t for t in steps]
        case "fall":
            course = [1 - 0.7 * t for t in steps]
        case "growth":
            course = [math.exp(bend * (t - 1)) for t in steps]
        case "decay":
            course = [math.exp(-bend * t) for t in steps]
        case "peak":
            course = [0.2 + 0.8 * math.exp(-(((t - middle) / 0.25) ** 2)) for t in steps]
        case "dip":
            course = [1 - 0.6 * math.exp(-(((t - middle) / 0.2) ** 2)) for t in steps]
        case "saturation":
            course = [0.15 + 0.85 / (1 + math.exp(-10 * (t - middle))) for t in steps]
        case "jump":
            course = [0.45 + 0.1 * t if t < middle else 0.85 + 0.15 * t for t in steps]
        case "waves":
            course = [0.6 + 0.4 * math.sin(bend * 5 * t + 6 * middle) for t in steps]
        case "walk":
            course, level = [], 0.5
            for _ in steps:
                level = min(max(level + rng.gauss(0, 0.12), 0.12), 1.0)
                course.append(level)
        case _:
            course = [0.75 for _ in steps]
    noise = rng.choice((0.01, 0.03, 0.06))
    course = [max(value * (1 + rng.gauss(0, noise)), 0.02) for value in course]
    if high_base:
        low, high = min(course), max(course)
        spread = rng.uniform(0.05, 0.35)
        course = [1 - spread * (high - value) / ((high - low) or 1) for value in course]
    return _topped(course)


def across(rng: random.Random, count: int, *, wide: bool = False, high_base: bool = False) -> list[float]:
    """Sizes of `count` things: alike, spread evenly, or a few large and many small; often sorted, as published charts are."""
    if wide:
        values = [10 ** (-rng.uniform(0, rng.uniform(2.2, 4))) for _ in range(count)]
    elif high_base:
        values = [rng.uniform(0.75, 1) for _ in range(count)]
    else:
        match rng.choice(("alike", "even", "even", "steep")):
            case "alike":
                values = [rng.uniform(0.55, 1) for _ in range(count)]
            case "even":
                values = [rng.uniform(0.08, 1) for _ in range(count)]
            case _:
                ratio = rng.uniform(0.6, 0.85)
                values = [ratio**k * rng.uniform(0.9, 1) for k in range(count)]
                rng.shuffle(values)
    order = rng.random()
    if order < 0.45:
        values.sort(reverse=True)
    elif order < 0.55:
        values.sort()
    return _topped(values)


def _topped(values: list[float]) -> list[float]:
    top = max(values)
    return [value / top for value in values]
