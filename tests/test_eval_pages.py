"""report.html and compare.html: everything escaped, nothing from outside, and Chromium agrees; digits read as digits."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from eval.cli import main
from eval.digits import NONE, confusion, number_digits, time_digits
from eval.page import escape
from eval.pictures import find_pictures, thumbnail
from eval.reporttext import md_text
from smmd_vlm.records import write_jsonl
from tests.support import Tags, check_page, png

HOSTILE = [
    "<script>document.title='owned'</script>", "<img src=x onerror=\"document.title='owned'\">", "'\"><svg onload=alert(1)>", "</style><b>",
    "&lt;b&gt; & &amp;", "\x00\x1b[31m\u202e", "\ud800", "]]>--><!--", "javascript:alert(1)", "${7*7} {{7*7}}", "棒グラフ 📊", "x" * 5000,
]  # fmt: skip


def hostile_rows() -> list[dict]:
    rows = []
    for i, text in enumerate(HOSTILE * 3):
        time = i % 2 == 0
        gold = ["10:08", "3:30"][i % 4 // 2] if time else ["5", text or "x", "-1e300"][i % 3]
        row = {"id": f"{text[:40]}{i}", "question": text, "answer": gold, "prediction": [text, "10:09", "5.1"][i % 3], "kind": text[:50], "group": text[:9]}  # fmt: skip
        rows.append(row | ({"answer_type": "time"} if time else {}))
    return rows


@pytest.fixture
def hostile(tmp_path):
    rows = hostile_rows()
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "predictions.meta.json").write_text(
        json.dumps({"model": HOSTILE[0], "run": {"x": HOSTILE[1]}}), encoding="utf-8"
    )
    assert main(["score", str(path), "--out", str(tmp_path / "report")]) == 0
    return tmp_path


def test_nothing_a_model_says_becomes_markup(hostile):
    page = (hostile / "report" / "report.html").read_text(encoding="utf-8")
    check_page(page)
    assert "&lt;script&gt;document.title" in page and "Content-Security-Policy" in page
    assert (
        main(["compare", str(hostile / "p.jsonl"), "--against", str(hostile / "p.jsonl"), "--out", str(hostile / "cmp")]) == 0
    )
    check_page((hostile / "cmp" / "compare.html").read_text(encoding="utf-8"))
    assert "<script>" not in (hostile / "cmp" / "compare.md").read_text(encoding="utf-8")


def test_escape():
    assert escape("<a href='x'>\x00\ud800") == "&lt;a href=&#x27;x&#x27;&gt;\ufffd\ufffd"
    assert len(escape("x" * 10**6)) == 601 and escape("a\nb") == "a\nb"


@pytest.fixture
def pictured(tmp_path):
    """Twelve charts, half of them read wrongly, one picture broken, one record without."""
    rows, said = [], []
    for i in range(12):
        image = f"{i}.png" if i != 3 else None
        if image:
            (tmp_path / image).write_bytes(b"broken" if i == 4 else png(900, 300, color=(20 * i, 90, 90)))
        rows.append(
            {"id": f"r{i}", "image": image, "question": f"How tall is bar {i}?", "answer": str(10 * i), "split": "test"}
        )
        said.append({"id": f"r{i}", "question": rows[-1]["question"], "answer": str(10 * i), "prediction": str(10 * i if i % 2 else 77), "kind": "bar" if i < 6 else "pie"})  # fmt: skip
    write_jsonl(tmp_path / "own.jsonl", rows)
    write_jsonl(tmp_path / "p.jsonl", said)
    return tmp_path


def test_pictures_are_joined_from_the_data(pictured):
    argv = ["score", str(pictured / "p.jsonl"), "--out", str(pictured / "report"), "--data", str(pictured / "own.jsonl")]
    assert main(argv) == 0
    tags = check_page((pictured / "report" / "report.html").read_text(encoding="utf-8"))
    assert tags.tags["article"] == 12 and tags.tags["img"] == 10  # without the missing and the broken one
    assert main([*argv[:-1], str(pictured / "nowhere")]) == 2


def test_pictures_from_a_folder_are_found_by_id(clocks):
    from smmd_vlm.dataset import load_records

    records = load_records(clocks, "test")
    want = [records[0].id, records[len(records) - 1].id, "no such id"]
    found = find_pictures(clocks, want)
    assert found == {records[0].id: records[0].image, records[len(records) - 1].id: records[len(records) - 1].image}
    small = thumbnail(png(2000, 500))
    assert small is not None and small[:2] == b"\xff\xd8" and thumbnail(b"no") is None


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def rendered(page, folder) -> str:
    """The document after its script ran, in headless Chromium without a network."""
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--virtual-time-budget=3000"]
    argv = [CHROMIUM, *words, f"--user-data-dir={folder}", "--dump-dom", page.as_uri()]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_chromium_runs_our_script_and_no_other(hostile, tmp_path):
    dom = rendered(hostile / "report" / "report.html", tmp_path / "profile")
    assert re.search(r">(\d+) of \1 shown<", dom)  # our filters ran
    assert "<title>Scores of p.jsonl</title>" in dom and "<title>owned" not in dom
    tags = Tags(dom)
    assert tags.tags["script"] == 1 and not any(name.startswith("on") for name, _ in tags.attributes)


# ---- digits ----------------------------------------------------------------------------------------------------------


def test_digits_stand_at_their_places():
    assert number_digits(123.4, 1123.0) == [("10^2", "1", "1"), ("10^1", "2", "2"), ("10^0", "3", "3"), ("10^-1", "4", NONE)]
    assert number_digits(-50, 7) == [("10^1", "5", NONE), ("10^0", "0", "7")]
    assert number_digits(1e300, 5)[0] == ("10^300", "1", NONE) and len(number_digits(1e300, 5)) == 9
    assert time_digits(608.0, 0.5) == [("hour tens", "1", "1"), ("hour units", "0", "2"), ("minute tens", "0", "0"), ("minute units", "8", "0")]  # fmt: skip
    found = confusion([(12.0, 13.0), (12.0, 12.0)], times=False)
    assert found.places == {"10^1": (2, 2), "10^0": (1, 2)} and found.pairs["2", "3"] == 1 and found.n == 4


def test_what_a_model_wrote_cannot_become_markdown():
    assert md_text(r"\[x\](http://e) *b* | <i> exact_time") == r"\\\[x\\\](http://e) \*b\* \| &lt;i&gt; exact_time"
