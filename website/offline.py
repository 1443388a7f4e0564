"""Says which pages of the site would fetch something from elsewhere when they are looked at: `offline.py SITE`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["find_fetches"]

# A link in the text is followed by a person; these are followed by the browser.
_FETCH = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon))[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//[^"'\s)]+"""
)


def find_fetches(site: Path) -> list[str]:
    """Each as `page: what is fetched`."""
    pages = sorted(path for path in site.rglob("*") if path.suffix in (".html", ".css"))
    return [f"{page.relative_to(site)}: {found}" for page in pages for found in _FETCH.findall(page.read_text())]


if __name__ == "__main__":
    if fetches := find_fetches(Path(sys.argv[1])):
        sys.exit("\n".join(["the site is not whole by itself:", *fetches]))
