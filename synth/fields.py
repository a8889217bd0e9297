"""Grey fields that textures and finishes are made of: computed once, small, then cut, turned and scaled per picture.

Every field is an 8-bit image of FIELD_PX x FIELD_PX, the same on every machine: numpy's legacy random stream is frozen.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PIL import Image

FIELD_PX = 256
VARIANTS = 6
TURN_STEP_DEG = 30


@lru_cache(maxsize=64)
def field(kind: str, variant: int = 0) -> Image.Image:
    """radial, sunburst, brushed, paper (stains), clouds (soft), fibre (grain along x) or weave; `variant` is another of its kind."""
    random = np.random.RandomState(1000 * variant + 7)
    y, x = (np.mgrid[:FIELD_PX, :FIELD_PX] + 0.5) / (FIELD_PX / 2) - 1
    match kind:
        case "radial":
            grey = np.clip(np.hypot(x, y), 0, 1) ** (2 + variant % 3)
        case "sunburst":
            turn = np.arctan2(y, x)
            waves = sum(np.cos(k * turn + random.rand() * 6.3) / k for k in (1, 2, 3, 5, 8, 21, 55)[variant % 2 :])
            grey = _full_range(waves)
        case "brushed":
            grey = _noise(random, 1.0, shape=(FIELD_PX, 6)) * 0.7 + 0.3 * (y + 1) / 2
        case "paper":
            stains = _noise(random, 1.8, shape=(4, 4))
            grey = np.clip(1.6 * _full_range(stains) - 0.5, 0, 1) * 0.7 + 0.3 * np.clip(np.hypot(x, y), 0, 1) ** 4
        case "clouds":
            grey = _noise(random, 1.6, shape=(3, 3))
        case "fibre":
            rings = _noise(random, 1.2, shape=(24, 2))
            grey = 0.5 + 0.5 * np.sin(14 * rings + 0.5 * _noise(random, 1.0, shape=(96, 4)))
        case "weave":
            step = 10 + 2 * variant
            grey = 0.5 + 0.25 * (np.sin(step * np.pi * x) + np.sin(step * np.pi * y)) * _noise(random, 1.0, shape=(64, 64))
        case _:
            raise ValueError(f"unknown field {kind!r}")
    return Image.fromarray(np.round(255 * np.clip(grey, 0, 1)).astype(np.uint8))


@lru_cache(maxsize=512)
def turned_field(kind: str, variant: int, step: int) -> Image.Image:
    """A field, or a ramp from above (`lit`), turned by `step` TURN_STEPs and cut to the square that turning always fills."""
    upright = Image.linear_gradient("L") if kind == "lit" else field(kind, variant)
    return upright.rotate(-step * TURN_STEP_DEG, Image.Resampling.BILINEAR).crop((38, 38, 218, 218))


@lru_cache(maxsize=1)
def grain() -> np.ndarray:
    """(384, 384, 3) int8 noise with a standard deviation of 32; pictures take a window of it."""
    return np.clip(np.round(np.random.RandomState(5).standard_normal((384, 384, 3)) * 32), -127, 127).astype(np.int8)


def _noise(random: np.random.RandomState, roughness: float, shape: tuple[int, int]) -> np.ndarray:
    """Smooth noise from 0 to 1: octaves from `shape` cells on, each of 1 / 2^roughness the strength of the one before."""
    total = np.zeros((FIELD_PX, FIELD_PX))
    rows, columns = shape
    strength = 1.0
    while max(rows, columns) <= FIELD_PX:
        cells = Image.fromarray(random.rand(rows, columns).astype(np.float32))
        total += strength * np.asarray(cells.resize((FIELD_PX, FIELD_PX), Image.Resampling.BICUBIC))
        rows, columns, strength = 2 * rows, 2 * columns, strength / 2**roughness
    return _full_range(total)


def _full_range(values: np.ndarray) -> np.ndarray:
    return (values - values.min()) / (values.max() - values.min())
