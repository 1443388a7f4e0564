"""The static files: served under names that hold a digest of what is in them, so that a browser may keep them for ever.

Own styles are joined into one file, in the order of `STYLES`; nothing is compiled, and nothing comes from elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from starlette.responses import Response

from drumline.web.answers import Refusal
from drumline.web.site import Ask

__all__ = ["Asset", "answer_asset", "assets", "name_of"]

# Tokens first: the others are written in them.
STYLES = (
    *("tokens", "fonts", "base", "layout", "controls", "progress", "table", "empty", "states", "cards", "spark"),
    *("attention", "strip", "chart", "timeline", "log", "dialog", "toast", "jobs", "dead", "workers", "phone"),
)
SCRIPTS = ("theme", "times", "charts", "live", "actions")
VENDORED = ("htmx.min.js", "idiomorph.min.js", "uplot.min.js", "uplot.min.css", "inter.woff2", "jetbrains-mono.woff2")
PICTURES = ("mark.svg",)
FOREVER = "private, max-age=31536000, immutable"
_MEDIA = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "woff2": "font/woff2",
    "svg": "image/svg+xml",
}
# A font that a style names, beside it.
_FONT = re.compile(r"url\(([a-z-]+\.woff2)\)")


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is served."""

    name: str
    media: str
    body: bytes


def name_of(plain: str) -> str:
    """The name under which a file is served."""
    return _names()[plain]


def assets() -> Mapping[str, Asset]:
    """All files, by the names under which they are served."""
    return {asset.name: asset for asset in _assets().values()}


async def answer_asset(ask: Ask) -> Response:
    """One of the static files."""
    asset = assets().get(ask.path["name"])
    if asset is None:
        raise Refusal(404, "there is no such file")
    response = Response(asset.body, media_type=asset.media)
    response.headers["Cache-Control"] = FOREVER
    return response


@cache
def _names() -> dict[str, str]:
    return {plain: asset.name for plain, asset in _assets().items()}


@cache
def _assets() -> dict[str, Asset]:
    folder = files("drumline.web.dashboard") / "static"
    found = {name: _make(name, (folder / "vendor" / name).read_bytes()) for name in VENDORED}
    found |= {name: _make(name, (folder / name).read_bytes()) for name in PICTURES}
    found |= {f"{name}.js": _make(f"{name}.js", (folder / "scripts" / f"{name}.js").read_bytes()) for name in SCRIPTS}
    joined = "".join((folder / "styles" / f"{name}.css").read_text("utf-8") for name in STYLES)
    found["drumline.css"] = _make("drumline.css", _name_fonts(joined, found).encode())
    return found


def _name_fonts(style: str, found: Mapping[str, Asset]) -> str:
    return _FONT.sub(lambda font: f"url({found[font[1]].name})", style)


def _make(name: str, body: bytes) -> Asset:
    stem, _, ending = name.rpartition(".")
    digest = hashlib.sha256(body).hexdigest()[:16]
    return Asset(f"{stem}.{digest}.{ending}", _MEDIA[ending], body)
