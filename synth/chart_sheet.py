"""Charts on one sheet, each with all its questions and answers beneath: for people who want to look."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from smmd_vlm.records import Record
from synth.chart_fonts import font_file
from synth.png import encode_png

TILE_PX = (520, 400)
TEXT_PX = 12
COLUMNS = 4


def chart_sheet(groups: Sequence[Sequence[Record]]) -> bytes:
    """A PNG; a group is the records of one chart."""
    font = ImageFont.truetype(str(font_file("sans", False, False)), TEXT_PX)
    lines = [[line for record in group for line in _wrapped(record, font)] for group in groups]
    caption_px = (max(map(len, lines)) + 1) * (TEXT_PX + 4)
    columns = min(COLUMNS, len(groups))
    rows = -(-len(groups) // columns)
    width, height = TILE_PX[0] + 16, TILE_PX[1] + caption_px + 16
    sheet = Image.new("RGB", (columns * width, rows * height), (235, 235, 235))
    pen = ImageDraw.Draw(sheet)
    for k, group in enumerate(groups):
        left, top = k % columns * width + 8, k // columns * height + 8
        picture = Image.open(io.BytesIO(group[0].image or b"")).convert("RGB")
        scale = min(TILE_PX[0] / picture.width, TILE_PX[1] / picture.height)
        scale = min(scale, 1.0) if picture.width > 120 else int(scale)  # tiny ones enlarged by whole pixels
        size = (round(picture.width * scale), round(picture.height * scale))
        sheet.paste(picture.resize(size, Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.NEAREST), (left, top))
        for n, line in enumerate(lines[k]):
            pen.text((left, top + TILE_PX[1] + 4 + n * (TEXT_PX + 4)), line, fill="black", font=font)
    return encode_png(sheet)


def _wrapped(record: Record, font: ImageFont.FreeTypeFont) -> list[str]:
    slack = f" ± {record.tolerance:g}" if record.tolerance else ""
    words, lines = f"• {record.question} → {record.answer}{slack}".split(" "), [""]
    for word in words:
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) > TILE_PX[0]:
            lines.append(f"   {word}")
        else:
            lines[-1] = longer
    return lines
