"""python -m eval compare: pairing, intervals that cover, honest sentences, what is refused."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest

from eval.cli import main
from eval.compare import compare, to_dict
from eval.compare_report import ONE_RUN, markdown, screen, settling, verdict
from eval.paired import mcnemar, paired_difference
from smmd_vlm.records import write_jsonl


def write_run(path, right: list[bool], *, time: bool = False) -> str:
    """Row i is right or not; kinds alternate, two rows share a picture."""
    rows = []
    for i, good in enumerate(right):
        gold, wrong = (f"{i % 12 + 1:02d}:30", f"{i % 12 + 1:02d}:10") if time else (str(100 + i), str(500 + i))
        row = {"id": f"r{i}", "question": "?", "answer": gold, "prediction": gold if good else wrong, "kind": "ab"[i % 2], "group": f"g{i // 2}"}  # fmt: skip
        rows.append(row | ({"answer_type": "time"} if time else {}))
    write_jsonl(path, rows)
    return str(path)


def sides(tmp_path, rate_a: float, rate_b: float, *, seeds: int, n: int, time: bool = False) -> tuple[list[str], list[str]]:
    draw = random.Random(0)
    made = {}
    for side, rate in (("a", rate_a), ("b", rate_b)):
        made[side] = [write_run(tmp_path / f"{side}{s}.jsonl", [draw.random() < rate for _ in range(n)], time=time) for s in range(seeds)]  # fmt: skip
    return made["a"], made["b"]


def test_the_numbers_worked(tmp_path):
    # A right on rows 0 1 2, B right on rows 2 3: A alone 2, B alone 1, A - B = 1/4
    a = write_run(tmp_path / "a.jsonl", [True, True, True, False])
    b = write_run(tmp_path / "b.jsonl", [False, False, True, True])
    part = to_dict(compare([a], [b]))["other"]
    assert (part["headline"]["a"], part["headline"]["b"], part["headline"]["difference"]) == (0.75, 0.5, 0.25)
    assert part["mcnemar"] == [{"only_a": 2, "only_b": 1, "p": 1.0}]  # 2 * (1 + 3) / 8 = 1
    assert part["by_kind"]["a"]["difference"] == 0.5 and part["by_kind"]["b"]["difference"] == 0.0
    assert part["headline"]["n"] == 4 and part["headline"]["groups"] == 2 and part["headline"]["per_seed"] == [0.25]


def test_rows_are_paired_by_id_whatever_their_order(tmp_path):
    right = [True, False, True, True, False, False]
    a = write_run(tmp_path / "a.jsonl", right)
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "b.jsonl").write_text("\n".join(reversed(lines)), encoding="utf-8")
    part = compare([a], [tmp_path / "b.jsonl"]).parts[0]
    assert part.discordant == ((0, 0, 1.0),) and part.headline.estimate.difference == 0
    assert part.headline.estimate.low < 0 < part.headline.estimate.high  # never empty


def test_swapping_the_sides_swaps_the_sign(tmp_path):
    a, b = sides(tmp_path, 0.8, 0.6, seeds=3, n=200)
    one, two = compare(a, b).parts[0].headline.estimate, compare(b, a).parts[0].headline.estimate
    assert (one.difference, one.low) == pytest.approx((-two.difference, -two.high))


def test_a_clear_difference_is_called_so(tmp_path, capsys):
    a, b = sides(tmp_path, 0.8, 0.5, seeds=3, n=400)
    assert main(["compare", *a, "--against", *b, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "A is better by 31.6 points of relaxed v1" in said and ONE_RUN not in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"compare.json", "compare.md", "compare.html"}
    found = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))
    assert found["covers_training_noise"] and found["other"]["headline"]["settled"] and found["seeds"] == 3
    assert main(["compare", *b, "--against", *a, "--out", str(tmp_path / "out")]) == 0  # an earlier comparison is replaced
    assert "B is better" in capsys.readouterr().out


def test_noise_is_called_noise_and_what_would_settle_it(tmp_path):
    a, b = sides(tmp_path, 0.62, 0.60, seeds=1, n=300)
    comparison = compare(a, b)
    said = verdict(comparison.parts[0], 1)
    assert "inside the noise" in said and "samples instead of 300" in said and "better" not in said
    assert ONE_RUN in screen(comparison)
    same = compare(a, a)
    assert "No number of samples" in settling(same.parts[0].headline)


def test_more_samples_or_seeds_settle_what_they_say():
    """Noise is planted; with the promised number of samples (or seeds) the same difference is settled in about four of five."""
    draw = np.random.default_rng(0)

    def experiment(seeds: int, n: int) -> np.ndarray:
        return 0.05 + draw.normal(0, 1, (seeds, n))

    def experiment_is_settled(rows: np.ndarray) -> bool:
        return abs(rows.mean()) > 1.96 * rows.std() / rows.size**0.5  # the interval of one seed, without its bootstrap

    first = paired_difference(experiment(1, 400), bounded=False)
    need = math.ceil(400 * first.variance_samples / (0.05 / 2.8016) ** 2)
    settled = sum(experiment_is_settled(experiment(1, need)) for _ in range(200))
    assert 0.7 <= settled / 200 <= 0.9
    noisy = paired_difference(np.array([[0.3] * 400, [-0.2] * 400, [0.05] * 400]) + draw.normal(0, 0.2, (1, 400)))
    assert noisy.samples_needed() is None and noisy.seeds_needed() > 3  # seeds make this noise: samples alone cannot mend it


@pytest.mark.parametrize(("seeds", "spread", "low", "high"), [(1, 0.0, 0.92, 0.98), (3, 0.0, 0.93, 1.0), (3, 0.1, 0.91, 0.985), (5, 0.03, 0.93, 1.0)])  # fmt: skip
def test_intervals_cover(seeds, spread, low, high):
    """95 % intervals hold the true difference, with the noise in samples, in seeds, or in both; two samples a picture."""
    draw = np.random.default_rng(1)
    n, trials, inside = 120, 250, 0
    groups = [f"g{i // 2}" for i in range(n)]
    for _ in range(trials):
        shared = np.repeat(draw.normal(0, 0.2, (seeds, n // 2)), 2, axis=1)
        rows = draw.normal(0, spread, (seeds, 1)) + shared + draw.normal(0, 0.5, (seeds, n))
        found = paired_difference(rows, groups, bounded=False)
        inside += found.low <= 0 <= found.high
    assert low <= inside / trials <= high


@pytest.mark.parametrize(("shares", "seeds", "least"), [((0.5, 0.5), 3, 0.9), ((0.2, 0.2), 5, 0.93), ((0.5, 0.2), 12, 0.92), ((0.8, 0.2), 12, 0.87)])  # fmt: skip
def test_intervals_where_runs_learn_or_do_not(shares, seeds, least):
    """No normal noise: a run answers half of its questions or 2 %, and which is chance (benchmarks/interval_coverage.py)."""
    draw = np.random.default_rng(2)
    n, trials, inside = 100, 200, 0
    for _ in range(trials):
        sides = [draw.random((seeds, n)) < np.where(draw.random((seeds, 1)) < share, 0.5, 0.02) for share in shares]
        found = paired_difference(sides[0].astype(float) - sides[1])
        inside += found.low <= (shares[0] - shares[1]) * 0.48 <= found.high
    assert inside / trials >= least


def test_mcnemar_against_the_binomial():
    for a, b in [(0, 0), (1, 0), (5, 1), (10, 10), (40, 20), (3, 300)]:
        n = a + b
        slow = min(1.0, 2 * sum(math.comb(n, k) for k in range(min(a, b) + 1)) / 2**n) if n else 1.0
        assert mcnemar(a, b) == pytest.approx(slow, rel=1e-9) == mcnemar(b, a)


def test_clock_times_have_their_own_part(tmp_path):
    a, b = sides(tmp_path, 0.9, 0.4, seeds=3, n=60, time=True)
    (part,) = compare(a, b).parts
    assert part.name == "time" and part.headline.scorer == "exact_time v1"
    rows = {row.metric: row for row in part.rows}
    assert rows["mean_error_min"].a < rows["mean_error_min"].b and rows["mean_error_min"].estimate.high < 0
    assert "better" in screen(compare(a, b))


def test_errors_are_compared_in_the_answers_unit_where_all_could_be_read(tmp_path):
    def side(name: str, predictions: list[str]) -> str:
        rows = [{"id": f"r{i}", "question": "?", "answer": "40", "prediction": said} for i, said in enumerate(predictions)]
        write_jsonl(tmp_path / name, rows)
        return str(tmp_path / name)

    comparison = compare([side("a", ["41", "38", "no idea"])], [side("b", ["40", "50", "40"])])
    row = next(row for row in comparison.parts[0].rows if row.metric == "mean_absolute_error")
    assert (row.a, row.b, row.estimate.difference, row.estimate.n, row.unit) == (1.5, 5.0, -3.5, 2, "")
    assert "−3.5" in screen(comparison) and "−3.5" in markdown(comparison)


@pytest.mark.parametrize("time", [False, True])
def test_distributions_are_compared_by_their_crps(tmp_path, time):
    def side(name: str, chance: float) -> str:
        gold, values = ("3:00", [180.0, 190.0]) if time else ("3", [3.0, 13.0])
        kind = {"values": values, "probabilities": [chance, 1 - chance], "pruned": 0.0, "other": 0.0}
        kind |= {"period": 720} if time else {"decimals": 0}
        row = {"id": "r", "question": "?", "answer": gold, "prediction": gold, "distribution": kind}
        write_jsonl(tmp_path / name, [row | ({"answer_type": "time"} if time else {})])
        return str(tmp_path / name)

    (part,) = compare([side("a", 0.8)], [side("b", 0.5)]).parts
    row = next(row for row in part.rows if row.metric == "crps")
    # a gold with probability p, the rest ten off: 10 (1 - p) - 10 p (1 - p) = 10 (1 - p)^2
    assert (row.a, row.b) == (pytest.approx(0.4), pytest.approx(2.5)) and row.unit == ("min" if time else "")


def test_what_is_refused(tmp_path, capsys):
    a, b = sides(tmp_path, 0.9, 0.4, seeds=2, n=10)

    def refused(*words: object) -> str:
        assert main(["compare", *map(str, words)]) == 2
        return capsys.readouterr().err.splitlines()[-1]

    out = tmp_path / "out"
    assert "as many runs on either side" in refused(*a, "--against", b[0], "--out", out)
    assert "is neither" in refused(a[0], "--against", tmp_path / "nope", "--out", out)
    other = write_run(tmp_path / "other.jsonl", [True] * 11)
    assert "different questions: 1 of 11 ids" in refused(a[0], "--against", other, "--out", out)
    rows = [json.loads(line) for line in (tmp_path / "b0.jsonl").read_text(encoding="utf-8").splitlines()]
    write_jsonl(tmp_path / "gold.jsonl", [rows[0] | {"answer": "7"}, *rows[1:]])
    assert "disagree about the gold of 'r0'" in refused(a[0], "--against", tmp_path / "gold.jsonl", "--out", out)
    assert "holds" in refused(a[0], "--against", b[0], "--out", tmp_path)
    assert "does not exist" in refused(a[0], "--against", b[0], "--out", out, "--data", tmp_path / "no")
    assert not out.exists()
