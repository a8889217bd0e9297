"""Measure a drawn chart in its pixels: where marks end, where ticks stand. Knows nothing of the code that drew it.

What it is told is what a reader sees too: which colour belongs to which series, and where along the chart a place lies.
"""

import io
import json
import math
from dataclasses import dataclass

import numpy as np
from PIL import Image

_NEAR = 26.0  # distance of RGB colours that count as one


@dataclass(frozen=True)
class Measured:
    series: int
    place: int
    stored: float
    tolerance: float  # what the record says a careful reader may be off
    measured: float | None  # None: nothing of that colour could be seen there

    @property
    def fits(self) -> bool:
        return self.measured is not None and abs(self.measured - self.stored) <= self.tolerance


def measure(image: bytes, meta: str) -> list[Measured]:
    """Every mark of the chart that has a value."""
    pixels = np.asarray(Image.open(io.BytesIO(image)).convert("RGB")).astype(float)
    truth = json.loads(meta)
    found = []
    for k, series in enumerate(truth["table"]["series"]):
        for i, value in enumerate(series["values"]):
            if value is not None:
                read = _bar(pixels, truth, k, i) if truth["marks"] == "boxes" else _point(pixels, truth, k, i)
                found.append(Measured(k, i, float(value), float(truth["reading_tolerance"][k][i]), read))
    return found


def _value_at(truth: dict, px: float) -> float:
    """Through the axis: pixel -> value."""
    axis = truth["axis"]
    low, high = float(axis["low"]), float(axis["high"])
    share = (px - axis["low_px"]) / (axis["high_px"] - axis["low_px"])
    if axis["log"]:
        return 10 ** (math.log10(low) + share * (math.log10(high) - math.log10(low)))
    return low + share * (high - low)


def _colour(truth: dict, k: int, i: int) -> np.ndarray:
    return np.array(truth["colours"][i if truth["colour_by"] == "place" else k]["rgb"], dtype=float)


def _bar(pixels: np.ndarray, truth: dict, k: int, i: int) -> float | None:
    """The bar's extent along the value axis, over its middle columns; a part of a stack is as long as its value."""
    horizontal = truth["axis"]["horizontal"]
    left, top, right, bottom = truth["marks_px"][k][i]
    across = (top, bottom) if horizontal else (left, right)
    plot = truth["plot_px"]
    start, stop = (int(plot[0]), int(plot[2])) if horizontal else (int(plot[1]), int(plot[3]))
    quarter = (across[1] - across[0]) / 4
    columns = range(int(across[0] + quarter), max(int(across[1] - quarter), int(across[0] + quarter) + 1))
    strip = pixels[columns, start:stop] if horizontal else pixels[start:stop, columns].swapaxes(0, 1)
    # Where most of the bar's width has its colour: a number inside leaves enough of it, one in the same colour beside it has less.
    filled = np.flatnonzero((np.linalg.norm(strip - _colour(truth, k, i), axis=2) < _NEAR).mean(axis=0) > 0.5)
    if not len(filled):
        return None
    letter_px = 16 * int(truth["choices"]["dpi"]) / 100
    pieces = np.split(filled, np.flatnonzero(np.diff(filled) > letter_px) + 1)
    piece = max(pieces, key=len)
    near, far = float(start + piece[0]), float(start + piece[-1] + 1)
    axis = truth["axis"]
    if truth["choices"]["look"] == "bokeh":  # black outlines, a pixel wide
        near, far = near - 1, far + 1
    parts = len(truth["table"]["series"]) > 1 and "stack" in truth["choices"]["kind"] or "100 %" in truth["choices"]["kind"]
    if parts:
        return abs(_value_at(truth, far) - _value_at(truth, near))
    base = axis["low_px"] if axis["log"] or float(axis["low"]) >= 0 else axis["low_px"] + (axis["high_px"] - axis["low_px"]) * (
        -float(axis["low"]) / (float(axis["high"]) - float(axis["low"]))
    )  # fmt: skip
    end = near if abs(near - base) > abs(far - base) else far
    return _value_at(truth, end)


def _point(pixels: np.ndarray, truth: dict, k: int, i: int) -> float | None:
    """At the place's column, or, where that falls into the gap of a dashed line, at the next ones."""
    x, last = truth["places_px"][i], len(truth["places_px"]) - 1
    column = int(x + 0.5) if i == 0 else int(x - 0.5) if i == last else int(x)  # where a line begins it fills half a pixel
    for shift in (0, 1, -1, 2, -2, 3, -3):
        read = _line_at(pixels, truth, k, column + shift)
        if read is not None:
            return read
    return None


def _line_at(pixels: np.ndarray, truth: dict, k: int, column: int) -> float | None:
    """The middle of the line or dot at the place's column: of the longest run of its colour, anti-aliased edges by their share.

    What most of a row or of the column shows is its background, so grid, frame and the line at zero are none of the series' pixels.
    """
    left, top, right, bottom = (int(edge) for edge in truth["plot_px"])
    first, paper = max(top - 8, 0), pixels[2, 2]
    line = pixels[first:bottom, column]
    behind = np.median(pixels[first:bottom, left:right], axis=1)
    if truth["choices"]["kind"] == "area":
        behind[:] = paper
    else:
        behind[np.linalg.norm(behind - paper, axis=1) < 20] = np.median(line, axis=0)
    colours = [np.array(each["rgb"], dtype=float) for each in truth["colours"]]
    shares, misfits = zip(*(_mixed(line, behind, colour) for colour in colours), strict=True)
    share = np.where((misfits[k] <= np.min(misfits, axis=0) + 1e-9) & (misfits[k] < 30), shares[k], 0)
    share[share < (0.7 if truth["choices"]["kind"] == "area" else 0.12)] = 0
    best: tuple[float, float] | None = None
    for run in np.split(np.arange(len(share)), np.flatnonzero(np.diff((share > 0).astype(int))) + 1):
        weight = float(share[run].sum())
        if share[run[0]] > 0 and (best is None or weight > best[0]):
            best = weight, first + float((share[run] @ (run + 0.5)) / weight)
    if best is None or best[0] < 0.6:
        return None
    rows = np.arange(len(share))
    if truth["choices"]["hollow"] and "dot" in truth["choices"]["kind"]:  # a ring: both its sides
        share[np.abs(first + rows - best[1]) > 16 * int(truth["choices"]["dpi"]) / 100] = 0
        return _value_at(truth, first + float(share @ (rows + 0.5) / share.sum()))
    return _value_at(truth, best[1])


def _mixed(line: np.ndarray, behind: np.ndarray, colour: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much of `colour` over what is behind each pixel holds, and how badly that explains the pixel."""
    towards = colour - behind
    length = np.maximum((towards**2).sum(axis=1), 1.0)
    share = np.clip(((line - behind) * towards).sum(axis=1) / length, 0, 1)
    share[length < 60**2] = 0
    return share, np.linalg.norm(line - behind - share[:, None] * towards, axis=1)


def hidden(truth: dict, k: int, i: int) -> bool:
    """Does another series lie over this point, or so near that their dots touch?"""
    point = truth["marks_px"][k][i]
    near_px = 12 * int(truth["choices"]["dpi"]) / 100
    return truth["marks"] == "points" and any(
        row[i] is not None and abs(row[i][1] - point[1]) < near_px for j, row in enumerate(truth["marks_px"]) if j != k
    )


def tick_offsets(image: bytes, meta: str) -> list[float]:
    """How far each tick of the value axis lies from the nearest mark drawn just outside the plot, in pixels."""
    pixels = np.asarray(Image.open(io.BytesIO(image)).convert("L")).astype(float)
    truth = json.loads(meta)
    axis, (left, _, _, bottom) = truth["axis"], truth["plot_px"]
    strip = pixels[int(bottom) + 2, :] if axis["horizontal"] else pixels[:, int(left) - 2]
    dark = np.flatnonzero(strip < strip.max() - 60) + 0.5
    low, high = float(axis["low"]), float(axis["high"])
    places = [
        axis["low_px"] + (axis["high_px"] - axis["low_px"]) * (float(tick) - low) / (high - low) for tick in axis["ticks"]
    ]
    return [float(np.min(np.abs(dark - place))) if len(dark) else math.inf for place in places]


def texts_touch(a, b) -> bool:
    """Do the inked parts of two lines of text overlap by more than half a pixel? (separating axes of two turned rectangles)"""
    first, second = _ink(a), _ink(b)
    for corners in (first, second):
        for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
            length = math.hypot(x2 - x1, y2 - y1)
            along_first = [((y1 - y2) * x + (x2 - x1) * y) / length for x, y in first]
            along_second = [((y1 - y2) * x + (x2 - x1) * y) / length for x, y in second]
            if max(along_first) <= min(along_second) + 0.5 or max(along_second) <= min(along_first) + 0.5:
                return False
    return True


def _ink(text) -> list[tuple[float, float]]:
    """From the top of capitals to a little below the baseline; `corners` leave more room."""
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = text.corners()  # top left, top right, bottom right, bottom left
    return [
        (ax + (dx - ax) * 0.04, ay + (dy - ay) * 0.04),
        (bx + (cx - bx) * 0.04, by + (cy - by) * 0.04),
        (bx + (cx - bx) * 0.96, by + (cy - by) * 0.96),
        (ax + (dx - ax) * 0.96, ay + (dy - ay) * 0.96),
    ]


def main(argv: list[str] | None = None) -> int:
    """`python -m tests.chart_reader --charts 300`: without printed numbers, which may have a mark's colour and move no mark."""
    import argparse
    from dataclasses import replace

    from synth.charts import ChartConfig

    parser = argparse.ArgumentParser(description="Measure charts in their pixels and compare with the stored tables.")
    parser.add_argument("--charts", type=int, default=300)
    parser.add_argument("--preset", default="varied")
    parser.add_argument("--start", type=int, default=0)
    given = parser.parse_args(argv)
    base = ChartConfig(preset=given.preset, questions_per_chart=1)
    colours = {name: weight for name, weight in base.look.colours.items() if name != "near"}
    bare = replace(base, look=replace(base.look, colours=colours, labels={"none": 1.0})).maker()
    count, covered, wrong = 0, 0, []
    for index in range(given.start, given.start + given.charts):
        record = bare(index)
        truth = json.loads(record.meta)
        for mark in measure(record.image, record.meta):
            if hidden(truth, mark.series, mark.place):
                covered += 1
                continue
            count += 1
            if not mark.fits:
                wrong.append((index, truth["choices"]["kind"], mark))
    for each in wrong:
        print(*each)
    print(
        f"{given.charts} charts, {count} marks measured, {len(wrong)} outside the stored tolerance ({len(wrong) / count:.2%}); {covered} covered by others"
    )
    return int(len(wrong) > 0.01 * count)


if __name__ == "__main__":
    raise SystemExit(main())
