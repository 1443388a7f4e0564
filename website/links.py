"""Turns a page of the repository into a page of the site: links lead to where the pages are there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

__all__ = ["ON_SITE", "adapt", "place_on_site"]

# Pages outside docs/, by their path in the repository, with their place on the site.
ON_SITE = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/reporting.md",
    "examples/README.md": "examples/index.md",
}
_FOLDERS = {"docs/decisions": "decisions/index.md", "examples": "examples/index.md"}
_FENCE = re.compile(r"^ *(```|~~~)")
# A comment of its own lines: why a block is not run, or what is checked out of the reader's sight.
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_INFO = re.compile(r"^( *```)python (?:no-run|fragment)$")


def adapt(text: str, path: str, exists: Callable[[str], bool]) -> str:
    """The page at this path of the repository as the site shows it.

    ValueError if a link leads to nothing on the site.
    """
    lines, fenced = [], False
    for line in _COMMENT.sub("", text).split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
            line = _INFO.sub(r"\1python", line)
        elif not fenced:
            line = _LINK.sub(lambda found: f"]({_redirect(found['target'], path, exists)})", line)
        lines.append(line)
    return "\n".join(lines)


def place_on_site(path: str) -> str:
    """Where a path of the repository is on the site, if it is there."""
    path = path.rstrip("/")
    if path in ON_SITE:
        return ON_SITE[path]
    if path in _FOLDERS:
        return _FOLDERS[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    head, _, example = path.partition("/")
    # An example is one page, with all its files.
    return f"examples/{example.partition('/')[0]}.md" if head == "examples" and example else path


def _redirect(target: str, path: str, exists: Callable[[str], bool]) -> str:
    if re.match(r"[a-z]+:|#", target):
        return target
    target, _, anchor = target.partition("#")
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    place = place_on_site(wanted)
    if not exists(place):
        raise ValueError(f"{path}: the link to {target} leads to nothing on the site")
    shown = posixpath.relpath(place, posixpath.dirname(place_on_site(path)) or ".")
    return f"{shown}#{anchor}" if anchor else shown
