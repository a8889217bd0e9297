"""How wide a text is: sums of the fonts' own advance widths, so that no layout depends on a text renderer's version.

The fonts are those that matplotlib ships.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from PIL import ImageFont

ASCENT, DESCENT = 0.76, 0.24  # of the size: what a line of Latin text reaches above and below its baseline
CAP = 0.72
_UNITS_PER_EM = {"sans": 2048, "serif": 2048, "times": 1000}
_FILES = {
    "sans": ("DejaVuSans", "-Bold", "-Oblique", "-BoldOblique"),
    "serif": ("DejaVuSerif", "-Bold", "-Italic", "-BoldItalic"),
    "times": ("STIXGeneral", "Bol", "Italic", "BolIta"),
}
FAMILIES = tuple(_FILES)


@dataclass(frozen=True)
class Font:
    family: str
    size_px: float
    bold: bool = False
    italic: bool = False

    @property
    def line_px(self) -> float:
        return round(1.22 * self.size_px, 2)


@lru_cache
def font_file(family: str, bold: bool, italic: bool) -> Path:
    from matplotlib import get_data_path

    stem, *endings = _FILES[family]
    ending = ["", *endings][bold + 2 * italic]
    return Path(get_data_path()) / "fonts" / "ttf" / f"{stem}{ending}.ttf"


@lru_cache
def _measure(family: str, bold: bool, italic: bool) -> ImageFont.FreeTypeFont:
    # One pixel a font unit: the advance is then the integer in the font's own table.
    size = _UNITS_PER_EM[family]
    return ImageFont.truetype(str(font_file(family, bold, italic)), size, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(maxsize=4096)
def _advance_em(character: str, family: str, bold: bool, italic: bool) -> float:
    return _measure(family, bold, italic).getlength(character) / _UNITS_PER_EM[family]


def text_width(text: str, font: Font) -> float:
    """Pixels from the start of the first character to the end of the last."""
    return font.size_px * sum(_advance_em(character, font.family, font.bold, font.italic) for character in text)


def wrap(text: str, font: Font, width_px: float) -> list[str]:
    """The text in lines of at most `width_px`, broken at spaces only; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, font) <= width_px:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
