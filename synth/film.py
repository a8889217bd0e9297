"""What light, lens, sensor and storage do to a whole picture; nothing moves, so geometry stays as it was."""

from __future__ import annotations

import io
import math
import random
from functools import lru_cache

import numpy as np
from PIL import Image, ImageChops, ImageFilter

from synth.factors import Choices
from synth.fields import grain
from synth.png import encode_png

COARSE = 16  # light varies slowly: computed on 16 x 16 and spread out


def expose(image: Image.Image, scene: Choices, rng: random.Random) -> Image.Image:
    """Everything in the order in which a camera does it, up to the file."""
    if "light" in scene:
        image = _light(image, scene)
    if "scaling" in scene:
        small = max(round(scene["scaling_to"] * image.width), 8)
        image = image.resize((small, small), Image.Resampling.BOX).resize(image.size, Image.Resampling.BICUBIC)
    if "blur" in scene:
        image = image.filter(ImageFilter.GaussianBlur(scene["blur_radius"] * image.width))
    if "shake" in scene:
        image = _shake(image, scene["shake_deg"], scene["shake_length"] * image.width)
    if "noise" in scene:
        image = _noise(image, scene["noise_depth"], rng)
    return image


def encode(image: Image.Image, scene: Choices) -> bytes:
    """The file that is stored: the JPEG of a picture that ends in one, else PNG."""
    if "jpeg" not in scene:
        return encode_png(image)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=round(scene["jpeg_quality"]))
    return out.getvalue()


@lru_cache(maxsize=1)
def _coarse_grid() -> tuple[np.ndarray, np.ndarray]:
    y, x = (np.mgrid[:COARSE, :COARSE].astype(np.float32) + 0.5) / (COARSE / 2) - 1
    return x, y


def _light(image: Image.Image, scene: Choices) -> Image.Image:
    """Darker away from the light and into the corners, brighter or darker as a whole, warmer or colder."""
    x, y = _coarse_grid()
    towards = math.radians(scene["light_deg"])
    side = 0.5 + 0.35 * (x * math.sin(towards) - y * math.cos(towards))  # 0 far from the light, 1 near it
    field = scene["exposure"] * (1 - scene["light_fall"] * (1 - side)) * (1 - scene["vignette"] * (x * x + y * y) / 2)
    gains = field[..., None] * np.array([1 + scene["warmth"], 1.0, 1 - scene["warmth"]])
    brightest = float(gains.max())
    if brightest > 1:  # multiplying bytes only darkens; what is brighter is blown out here, as on film
        image = image.point([min(round(brightest * value), 255) for value in range(256)] * 3)
    shade = Image.fromarray(np.round(gains * (255 / max(brightest, 1.0))).astype(np.uint8))
    return ImageChops.multiply(image, shade.resize(image.size, Image.Resampling.BILINEAR))


def _shake(image: Image.Image, angle_deg: float, length_px: float) -> Image.Image:
    """The mean of the picture's places along the way; centred, so that nothing moves on average."""
    steps = max(2 * round(length_px / 2) + 1, 3)
    across, down = math.sin(math.radians(angle_deg)), -math.cos(math.radians(angle_deg))
    pixels = np.asarray(image, dtype=np.float32)
    margin = math.ceil(length_px / 2) + 1
    padded = np.pad(pixels, ((margin, margin), (margin, margin), (0, 0)), mode="edge")
    total = np.zeros_like(pixels)
    height, width = pixels.shape[:2]
    for k in range(steps):
        along = length_px * (k / (steps - 1) - 0.5)
        left, top = margin + round(along * across), margin + round(along * down)
        total += padded[top : top + height, left : left + width]
    return Image.fromarray(np.round(total / steps).astype(np.uint8))


def _noise(image: Image.Image, depth: float, rng: random.Random) -> Image.Image:
    tile = _grain_about_128(max(round(depth), 1))
    left, top = int(rng.random() * tile.width), int(rng.random() * tile.height)
    grain_image = Image.new("RGB", image.size)
    for x in range(-left, image.width, tile.width):
        for y in range(-top, image.height, tile.height):
            grain_image.paste(tile, (x, y))
    return ImageChops.add(image, grain_image, scale=1.0, offset=-128)


@lru_cache(maxsize=32)
def _grain_about_128(depth: int) -> Image.Image:
    return Image.fromarray(np.clip(np.round(128 + grain() * (depth / 32)), 0, 255).astype(np.uint8))
