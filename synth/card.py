"""What people look at first in a dataset folder: the card (README.md) and the first records (preview.png, or preview.md of text)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from smmd_vlm.records import Record

TILE_PX = 160
CAPTION_PX = 22
COLUMNS = 6
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10_000_000, "1M<n<10M"))


@dataclass(frozen=True, kw_only=True)
class CardText:
    """What a generator says about its own data."""

    title: str
    summary: str  # a paragraph of Markdown
    command: str  # what makes the folder again
    tags: tuple[str, ...] = ()
    license: str = "apache-2.0"


def write_card(text: CardText, counts: Mapping[str, int], example: Record, content: str, files: str = "*.parquet") -> str:
    """The dataset card: YAML front matter that maps files to splits, the preview, one row, how to load and to rebuild.

    content: the content hash. `datasets` keys its cache by the folder's last name and this configuration's, not by what the files
    hold, so the configuration is named after the content: another folder of that name must not be loaded in this one's place.
    """
    n = sum(counts.values())
    pictured = example.image is not None
    size = next((name for limit, name in _SIZES if n < limit), "n>10M")
    front = [
        "---",
        f"pretty_name: {text.title}",
        f"license: {text.license}",
        "task_categories:",
        "- visual-question-answering" if pictured else "- question-answering",
        "language:",
        "- en",
        "tags:",
        *(f"- {tag}" for tag in ("synthetic", *text.tags)),
        "size_categories:",
        f"- {size}",
        "configs:",
        f"- config_name: content-{content[-12:]}",
        "  data_files:",
        *(f"  - split: {split}\n    path: data/{split}-{files}" for split in counts),
        "---",
    ]
    body = [
        f"# {text.title}",
        text.summary,
        "![The first records, each with its answer](preview.png)"
        if pictured
        else "[The first records, each with its answer](preview.md)",
        "| split | records |\n|---|---|\n" + "\n".join(f"| {split} | {counts[split]:,} |" for split in counts),
        f"The first record asks “{example.question}” and answers `{example.answer}`.",
        "```python\nfrom datasets import load_dataset\n\ndata = load_dataset('path/to/this/folder')\n```",
        f"Made by\n\n```bash\n{text.command}\n```",
        f"`manifest.json` holds every setting, the versions of the {'drawing ' if pictured else ''}libraries and a hash of the content.",
    ]
    return "\n".join(front) + "\n\n" + "\n\n".join(body) + "\n"


def contact_sheet(records: Sequence[Record]) -> Image.Image:
    """The records' pictures side by side, each with its answer underneath."""
    pictured = [record for record in records if record.image is not None]
    columns = min(COLUMNS, len(pictured)) or 1
    rows = -(-len(pictured) // columns) or 1
    gap = TILE_PX // 16
    sheet = Image.new("RGB", (columns * (TILE_PX + gap) + gap, rows * (TILE_PX + CAPTION_PX + gap) + gap), "white")
    pen = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=CAPTION_PX * 0.65)
    for k, record in enumerate(pictured):
        left, top = gap + k % columns * (TILE_PX + gap), gap + k // columns * (TILE_PX + CAPTION_PX + gap)
        picture = Image.open(io.BytesIO(record.image or b"")).convert("RGB")
        scale = TILE_PX / max(picture.size)
        smooth = Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.BICUBIC
        picture = picture.resize((max(round(picture.width * scale), 1), max(round(picture.height * scale), 1)), smooth)
        sheet.paste(picture, (left + (TILE_PX - picture.width) // 2, top + (TILE_PX - picture.height) // 2))
        pen.text(
            (left + TILE_PX / 2, top + TILE_PX + CAPTION_PX / 2), _caption(record.answer), fill="black", font=font, anchor="mm"
        )
    return sheet


def question_sheet(records: Sequence[Record]) -> str:
    """The records' questions as a table in Markdown, each with its answer."""
    rows = [
        " | ".join(text.replace("|", "\\|") for text in (record.kind, record.question, record.answer)) for record in records
    ]
    return "\n".join(["| kind | question | answer |", "|---|---|---|", *(f"| {row} |" for row in rows)]) + "\n"


def _caption(answer: str) -> str:
    line = " ".join(answer.split())
    return line if len(line) <= 20 else f"{line[:19]}…"
