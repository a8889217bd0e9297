"""How often `eval compare`'s 95 % interval holds the true difference where runs either learn or do not.

    python benchmarks/interval_coverage.py

200 samples; a run that has learned answers half of them, another 2 %. Each side has its own share of runs that learn.
"""

import numpy as np

from eval.paired import paired_difference

TRIALS, SAMPLES, LEARNED, NOT = 300, 200, 0.5, 0.02


def coverage(a: float, b: float, seeds: int, draw: np.random.Generator) -> tuple[float, float]:
    """Shares of runs that learn on either side -> (intervals that hold the truth, intervals without zero), of all trials."""
    truth, held, settled = (a - b) * (LEARNED - NOT), 0, 0
    for trial in range(TRIALS):
        sides = [draw.random((seeds, SAMPLES)) < np.where(draw.random((seeds, 1)) < share, LEARNED, NOT) for share in (a, b)]
        found = paired_difference(sides[0].astype(float) - sides[1], seed=trial)
        held += found.low <= truth <= found.high
        settled += found.settled
    return held / TRIALS, settled / TRIALS


if __name__ == "__main__":
    draw = np.random.default_rng(0)
    print("share of runs that learn, a and b; seeds; interval holds the truth; interval without zero")
    for a, b in ((0.5, 0.5), (0.2, 0.2), (0.5, 0.2), (0.8, 0.2), (0.2, 0.0)):
        for seeds in (3, 5, 12):
            held, settled = coverage(a, b, seeds, draw)
            print(f"{a:.1f} {b:.1f}  {seeds}  {100 * held:5.1f} %  {100 * settled:5.1f} %")
