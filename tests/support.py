"""What several test modules make by hand or hold pages to."""

import io
from collections import Counter
from html.parser import HTMLParser

from PIL import Image

TAGS = set("html head meta link title style body h1 h2 h3 p div b span details summary table thead tbody tr th td svg text line path circle rect select option input article img script".split())  # fmt: skip


def png(width: int = 64, height: int = 64, color="white", mode: str = "RGB") -> bytes:
    """Encoded PNG of one colour."""
    out = io.BytesIO()
    Image.new(mode, (width, height), color).save(out, "PNG")
    return out.getvalue()


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]


def check_page(page: str) -> Tags:
    """No tag, handler or address that is not ours."""
    tags = Tags(page)
    assert set(tags.tags) <= {tag.lower() for tag in TAGS}, set(tags.tags) - TAGS
    assert tags.tags["script"] == 1 and tags.tags["style"] == 1
    for name, value in tags.attributes:
        assert not name.startswith("on"), name
        if name in ("src", "href"):
            assert value.startswith("data:"), value
    assert "http://" not in page and "https://" not in page and "url(" not in page and "@import" not in page
    return tags
