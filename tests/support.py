"""What several test modules make by hand."""

import io

from PIL import Image


def png(width: int = 64, height: int = 64, color="white", mode: str = "RGB") -> bytes:
    """Encoded PNG of one colour."""
    out = io.BytesIO()
    Image.new(mode, (width, height), color).save(out, "PNG")
    return out.getvalue()
