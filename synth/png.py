"""Encode drawn pictures as PNG, fast.

Drawn pictures are flat: rows left unfiltered compress better than filtered ones (a fifth smaller) and skip the search for
a filter, which is most of what Pillow's encoder does; benchmarks/bench_synth.py shows both. Photographs want filters.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from PIL import Image

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPES = {"L": 0, "RGB": 2}


def encode_png(image: Image.Image) -> bytes:
    """An 8-bit grey or RGB PNG; other modes are converted to RGB first."""
    if image.mode not in _COLOUR_TYPES:
        image = image.convert("RGB")
    pixels = np.asarray(image).reshape(image.height, -1)
    rows = np.zeros((image.height, 1 + pixels.shape[1]), dtype=np.uint8)  # column 0: filter type 0, none
    rows[:, 1:] = pixels
    header = struct.pack(">IIBBBBB", image.width, image.height, 8, _COLOUR_TYPES[image.mode], 0, 0, 0)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 1)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
