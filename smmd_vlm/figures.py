"""The quickstart's one figure: learning curves over the whole course, and how far off the wrong answers are."""

from __future__ import annotations

from pathlib import Path

from smmd_vlm.records import read_jsonl

COLOURS = {"ce": "#6b7280", "smmd": "#c2410c", "brier": "#0f766e", "shuffled": "#7c3aed"}
# edges in minutes; the last class is everything from an hour up
BINS = ((0, 0, "exact"), (1, 1, "1"), (2, 5, "2-5"), (6, 15, "6-15"), (16, 59, "16-59"), (60, 360, "60+"))


def draw_quickstart(out: Path, labels: dict[str, str]) -> Path:
    """quickstart.png from the runs' metrics.jsonl and the reports' scores.jsonl; labels: run name -> what it is."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 3.8), layout="constrained")
    exact, error, histogram = figure.subplots(1, 3)
    seen: set[str] = set()
    for name, label in labels.items():
        loss = name.partition("-")[0]
        style = {"color": COLOURS[loss], "label": None if loss in seen else label, "linewidth": 1.8}
        seen.add(loss)
        steps, values = _curve(out, name, "eval_exact")
        exact.plot(steps, [100 * value for value in values], **style)
        error.plot(*_curve(out, name, "eval_mean_error_min"), **style)
    exact.set(title="exact answers, 200 validation clocks", xlabel="step", ylabel="percent", ylim=(0, 100))
    error.set(title="mean error of the answers", xlabel="step", ylabel="minutes on the dial", yscale="log")
    for axes in (exact, error):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)

    losses = list(dict.fromkeys(name.partition("-")[0] for name in labels))
    width = 0.8 / len(losses)
    for place, loss in enumerate(losses):
        shares = _shares(out, [name for name in labels if name.startswith(f"{loss}-")])
        at = [index + (place - (len(losses) - 1) / 2) * width for index in range(len(BINS))]
        bars = histogram.bar(
            at,
            [100 * share for share in shares],
            width,
            color=COLOURS[loss],
            label=labels[next(n for n in labels if n.startswith(loss))],
        )
        if len(losses) == 2:
            histogram.bar_label(bars, fmt="%.1f", fontsize=7)
    histogram.set(
        title="error on the test clocks",
        xlabel="minutes off",
        ylabel="percent",
        xticks=range(len(BINS)),
        xticklabels=[b[2] for b in BINS],
    )
    histogram.legend(frameon=False)
    figure.savefig(out / "quickstart.png", dpi=130)
    return out / "quickstart.png"


def _shares(out: Path, names: list[str]) -> list[float]:
    """Share of the test answers in each class of BINS; unreadable answers fall in none, so a bar may be missing to 100 %."""
    errors = [row["error_min"] for name in names for _, row in read_jsonl(out / "reports" / name / "scores.jsonl")]
    return [sum(error is not None and low <= round(error) <= high for error in errors) / len(errors) for low, high, _ in BINS]


def _curve(out: Path, name: str, metric: str) -> tuple[list[int], list[float]]:
    """(steps, values) of an evaluation metric over a run."""
    rows = [row for _, row in read_jsonl(out / "runs" / name / "metrics.jsonl") if metric in row]
    return [row["step"] for row in rows], [row[metric] for row in rows]
