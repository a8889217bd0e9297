"""How fast clocks are drawn, beside what drawing and encoding must cost.

    python benchmarks/bench_synth.py [--seconds 2] [--whole 50000] [--out benchmarks/results/synth.json]

Per preset and size, one process: clocks per second of CPU time through the real path (choices, drawing, file, record), and in the
same run two bounds: encoding the same pictures again (as they are stored; by Pillow as PNG level 1 for comparison), and the
plainest aliased Pillow clock + PNG. With `--whole N` also the command itself, N clocks at 224 px with two workers: wall time,
scaled to 50,000, and the peak memory of its largest process for N / 4 and N.
Exit code 1 when `plain` falls below 60 % of the plainest at 224 or 448 px, `varied` below 20 % (64 px is shown only), when
50,000 would take more than three minutes (`plain`) or eight (`varied`), or when four times as many take a fifth more memory.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL
from PIL import Image, ImageDraw

from synth.clocks import ClockConfig
from synth.png import encode_png

WANTED = {"plain": 0.6, "varied": 0.2, "photo": None}
WANTED_MINUTES = {"plain": 3.0, "varied": 8.0, "photo": None}
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


def encode_as_stored(image: Image.Image, jpeg: bool) -> bytes:
    if not jpeg:
        return encode_png(image)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=80)
    return out.getvalue()


def per_second(draw_one: Callable[[int], object], seconds: float, first: int) -> float:
    start, done = time.process_time(), 0
    while time.process_time() - start < seconds:
        draw_one(first + done)
        done += 1
    return done / (time.process_time() - start)


def measure(preset: str, size_px: int, seconds: float) -> dict[str, float]:
    """Median clocks a second of each contender; rounds alternate, so that a busy moment hits all of them."""
    make = ClockConfig(preset=preset, size=size_px).maker()
    for index in range(400):  # fonts, fields and code are looked up once a run, not once a clock
        make(100_000 + index)
    stored = [Image.open(io.BytesIO(make(index).image or b"")) for index in range(64)]
    pictures = [image.convert("RGB") for image in stored]
    as_jpeg = [image.format == "JPEG" for image in stored]
    contenders: dict[str, Callable[[int], object]] = {
        "clocks": make,
        "encoding": lambda index: encode_as_stored(pictures[index % 64], as_jpeg[index % 64]),
        "pillow": lambda index: pillow_png(pictures[index % 64]),
        "plainest": lambda index: plainest(index, size_px),
    }
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for k in range(ROUNDS):
        for name, draw_one in contenders.items():
            rates[name].append(per_second(draw_one, seconds / ROUNDS, first=1000 * k))
    return {name: sorted(found)[ROUNDS // 2] for name, found in rates.items()}


def whole(preset: str, n: int) -> dict[str, float]:
    """The command with two workers: seconds of wall time, and the peak memory of its largest process in MB."""
    code = (
        "import resource, sys\nfrom synth.clocks import main\n"
        "if __name__ == '__main__':\n    assert main(sys.argv[1:]) == 0\n"
        "    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]\n"
        "    print(max(peaks) / 1024)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "run.py"  # spawned workers import the main module again, so it must be a file
        script.write_text(code)
        argv = ["--n", str(n), "--preset", preset, "--size", "224", "--workers", "2", "--out", f"{folder}/clocks"]
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(script), *argv], capture_output=True, text=True, check=True, env=_environment()
        )
        seconds = time.perf_counter() - start
    return {
        "n": n,
        "seconds": seconds,
        "peak_mb": float(done.stdout.split()[-1]),
        "minutes_for_50000": seconds * 50_000 / n / 60,
    }


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time for each of the four contenders (default: 2)")
    parser.add_argument("--whole", type=int, default=0, help="also run the command for so many clocks (default: 0, not)")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file too")
    options = parser.parse_args(argv)
    print(
        f"{'preset':8}{'size':>6}{'clocks/s':>10}{'encoding/s':>12}{'by Pillow/s':>13}{'plainest/s':>12}{'of plainest':>13}{'wanted':>8}"
    )
    missed: list[str] = []
    rows: list[dict[str, Any]] = []
    for preset, wanted in WANTED.items():
        for size_px in SIZES_PX:
            rate = measure(preset, size_px, options.seconds)
            share = rate["clocks"] / rate["plainest"]
            if wanted is not None and share < wanted and size_px >= 224:
                missed.append(f"{preset} at {size_px} px")
            rows.append({"preset": preset, "size_px": size_px, **rate, "share_of_plainest": share, "wanted": wanted})
            print(
                f"{preset:8}{size_px:6d}{rate['clocks']:10.0f}{rate['encoding']:12.0f}{rate['pillow']:13.0f}{rate['plainest']:12.0f}"
                f"{share:13.0%}{'' if wanted is None else f'{wanted:.0%}':>8}",
                flush=True,
            )
    runs: list[dict[str, Any]] = []
    for preset, wanted_minutes in WANTED_MINUTES.items() if options.whole else ():
        few, many = whole(preset, max(options.whole // 4, 1)), whole(preset, options.whole)
        runs += [{"preset": preset, **few}, {"preset": preset, **many}]
        print(
            f"{preset:8}{options.whole} clocks at 224 px, two workers: {many['seconds']:.0f} s, {many['minutes_for_50000']:.1f} minutes "
            f"for 50,000; largest process {few['peak_mb']:.0f} MB for a quarter, {many['peak_mb']:.0f} MB for all",
            flush=True,
        )
        if wanted_minutes is not None and many["minutes_for_50000"] > wanted_minutes:
            missed.append(f"{preset} within {wanted_minutes:g} minutes")
        if many["peak_mb"] > 1.2 * few["peak_mb"]:
            missed.append(f"{preset} in flat memory")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        versions = {"python": platform.python_version(), "pillow": PIL.__version__, "cores": os.cpu_count()}
        options.out.write_text(
            json.dumps({"rates": rows, "runs": runs, "versions": versions, "missed": missed}, indent=1) + "\n"
        )
    print(f"missed: {', '.join(missed)}" if missed else "everything wanted is reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
