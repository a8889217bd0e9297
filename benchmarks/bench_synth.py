"""How fast clocks are drawn, beside what drawing and encoding must cost.

    python benchmarks/bench_synth.py [--seconds 2]

Per preset and size, one process: clocks per second of CPU time through the real path (choices, drawing, PNG, record), and in the same
run two bounds: encoding the same pictures again (by us, by Pillow at level 1), and the plainest aliased Pillow clock.
Exit code 1 when `plain` falls below 60 % of the second bound at 224 or 448 px, or `varied` below 20 %; 64 px is shown only.
"""

from __future__ import annotations

import argparse
import io
import math
import sys
import time
from collections.abc import Callable

from PIL import Image, ImageDraw

from synth.clocks import ClockConfig, ClockMaker
from synth.png import encode_png

WANTED = {"plain": 0.6, "varied": 0.2}
SIZES_PX = (64, 224, 448)
ROUNDS = 5


def plainest(index: int, size_px: int) -> bytes:
    """A disc, twelve lines and two hands, aliased, in the order a first draft would draw them."""
    image = Image.new("RGB", (size_px, size_px), "white")
    pen = ImageDraw.Draw(image)
    middle, radius = size_px / 2, size_px * 0.45
    pen.ellipse(
        (middle - radius, middle - radius, middle + radius, middle + radius), outline="black", width=max(size_px // 50, 1)
    )

    def line(angle_deg: float, low: float, high: float, width: int) -> None:
        x, y = math.sin(math.radians(angle_deg)), -math.cos(math.radians(angle_deg))
        ends = (middle + low * radius * x, middle + low * radius * y, middle + high * radius * x, middle + high * radius * y)
        pen.line(ends, fill="black", width=width)

    for hour in range(12):
        line(30 * hour, 0.85, 0.95, max(size_px // 100, 1))
    line(index % 720 / 2, 0, 0.5, max(size_px // 30, 1))
    line(index % 60 * 6, 0, 0.8, max(size_px // 50, 1))
    return pillow_png(image)


def pillow_png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def per_second(draw_one: Callable[[int], object], seconds: float, first: int) -> float:
    start, done = time.process_time(), 0
    while time.process_time() - start < seconds:
        draw_one(first + done)
        done += 1
    return done / (time.process_time() - start)


def measure(preset: str, size_px: int, seconds: float) -> dict[str, float]:
    """Median clocks a second of each contender; rounds alternate, so that a busy moment hits all of them."""
    make = ClockMaker(ClockConfig(preset=preset, size=size_px))
    pictures = [Image.open(io.BytesIO(make(index).image or b"")).convert("RGB") for index in range(64)]
    contenders: dict[str, Callable[[int], object]] = {
        "clocks": make,
        "encoding": lambda index: encode_png(pictures[index % len(pictures)]),
        "pillow": lambda index: pillow_png(pictures[index % len(pictures)]),
        "plainest": lambda index: plainest(index, size_px),
    }
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for k in range(ROUNDS):
        for name, draw_one in contenders.items():
            rates[name].append(per_second(draw_one, seconds / ROUNDS, first=1000 * k))
    return {name: sorted(found)[ROUNDS // 2] for name, found in rates.items()}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time for each of the four contenders (default: 2)")
    seconds = parser.parse_args(argv).seconds
    print(
        f"{'preset':8}{'size':>6}{'clocks/s':>10}{'encoding/s':>12}{'by Pillow/s':>13}{'plainest/s':>12}{'of plainest':>13}{'wanted':>8}"
    )
    missed = 0
    for preset, wanted in WANTED.items():
        for size_px in SIZES_PX:
            rate = measure(preset, size_px, seconds)
            share = rate["clocks"] / rate["plainest"]
            missed += share < wanted and size_px >= 224
            print(
                f"{preset:8}{size_px:6d}{rate['clocks']:10.0f}{rate['encoding']:12.0f}{rate['pillow']:13.0f}{rate['plainest']:12.0f}{share:13.0%}{wanted:8.0%}"
            )
    print("every wanted ratio is reached" if not missed else f"{missed} wanted ratios are missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
