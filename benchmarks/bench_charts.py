"""How fast charts are drawn, beside what matplotlib needs for empty axes.

    python benchmarks/bench_charts.py [--seconds 4] [--charts 1000]

In one run, one process, alternating: charts per second of CPU time through the real path (choices, table, layout, painting, PNG, four
questions, records), and two bounds at the very same picture sizes: `savefig` of empty axes with tick labels on a figure that is kept
and only resized, and the same on a new figure each time, as a first draft would do it. Then wall clock: datasets with one worker and with two.
Exit code 1 when `plain` falls below 70 % of the first bound, `varied` below 30 %, two workers below 1.5 times one, or 50,000 records
would take more than 15 minutes on two workers.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from synth.charts import ChartConfig
from synth.writer import write_dataset

WANTED = {"plain": 0.7, "varied": 0.3}
WANTED_SPEED_UP, WANTED_MINUTES = 1.5, 15.0
ROUNDS = 5
DPI = 100
WARM_UP = 8  # charts a worker draws before it is at speed: fonts


def empty_axes() -> Figure:
    figure = Figure(dpi=DPI)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.12, 0.12, 0.8, 0.8))
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 100)
    return figure


def save(figure: Figure, size_px: tuple[int, int]) -> bytes:
    figure.set_size_inches(size_px[0] / DPI, size_px[1] / DPI)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def per_second(draw_one: Callable[[int], object], seconds: float, first: int) -> float:
    start, done = time.process_time(), 0
    while time.process_time() - start < seconds:
        draw_one(first + done)
        done += 1
    return done / (time.process_time() - start)


def measure(preset: str, seconds: float) -> dict[str, float]:
    """Median rate of each contender; rounds alternate, so that a busy moment hits all of them."""
    make = ChartConfig(preset=preset).maker()
    sizes = [make.made(chart).chart.size_px for chart in range(100)]
    kept = empty_axes()
    contenders: dict[str, Callable[[int], object]] = {
        "charts": lambda chart: make.records(chart % len(sizes)),
        "kept": lambda chart: save(kept, sizes[chart % len(sizes)]),
        "new": lambda chart: save(empty_axes(), sizes[chart % len(sizes)]),
    }
    for draw_one in contenders.values():
        for chart in range(WARM_UP):
            draw_one(chart)
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for k in range(ROUNDS):
        for name, draw_one in contenders.items():
            rates[name].append(per_second(draw_one, seconds / ROUNDS, first=1000 * k))
    return {name: sorted(found)[ROUNDS // 2] for name, found in rates.items()}


def dataset_seconds(charts: int, workers: int) -> float:
    """Wall clock of a whole dataset, starting the workers included."""
    with tempfile.TemporaryDirectory() as folder:
        config = ChartConfig(n=4 * charts, out=str(Path(folder) / "charts"), shard_size=200, workers=workers)
        start = time.perf_counter()
        write_dataset(config.plan(), config.maker(), workers=workers)
        return time.perf_counter() - start


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU time for each of the three contenders (default: 4)")
    parser.add_argument("--charts", type=int, default=1000, help="charts of each dataset on the wall clock (default: 1000)")
    given = parser.parse_args(argv)
    missed = 0
    print(f"{'preset':8}{'charts/s':>10}{'empty, kept/s':>15}{'empty, new/s':>14}{'of kept':>9}{'wanted':>8}")
    for preset, wanted in WANTED.items():
        rate = measure(preset, given.seconds)
        share = rate["charts"] / rate["kept"]
        missed += share < wanted
        print(f"{preset:8}{rate['charts']:10.0f}{rate['kept']:15.0f}{rate['new']:14.0f}{share:9.0%}{wanted:8.0%}")
    one, two = (dataset_seconds(given.charts, workers) for workers in (1, 2))
    minutes = 12_500 / given.charts * two / 60
    missed += one / two < WANTED_SPEED_UP
    missed += minutes > WANTED_MINUTES
    print(
        f"{given.charts} charts: {one:.1f} s with one worker, {two:.1f} s with two, {one / two:.2f} times (wanted {WANTED_SPEED_UP})"
    )
    print(f"50,000 records on two workers: {minutes:.1f} min (wanted at most {WANTED_MINUTES:.0f})")
    print("every wanted ratio is reached" if not missed else f"{missed} wanted ratios are missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
