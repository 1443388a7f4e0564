"""Finds what no file of the project may hold: addresses of package indexes, paths of one machine, notes to self."""

import re
import subprocess
from pathlib import Path

# Written so that no pattern matches its own text.
ANYWHERE = {
    "address of a package index": re.compile(
        r"pypi\.org|pythonhosted\.org|registry\.npmjs\.org|--(extra-)?index-url|--find[-]links"
    ),
    "path of one machine": re.compile(r"(?<![\w.)}>-])/(work|root|home|Users)/"),
}
IN_SOURCE = {"note to self": re.compile(r"\b(TODO|FIXME|XXX)\b")}
MADE_BY_TOOLS = frozenset(
    [".git", ".venv", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "dist"]
)


def find_forbidden(root: Path) -> list[str]:
    """Say where each forbidden text stands."""
    return [complaint for path in _files(root) for complaint in _search(root, path)]


def _files(root: Path) -> list[Path]:
    """List the project's files: what git tracks or would, or what is there where git cannot tell."""
    listing = ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(listing, cwd=root, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        files = (path for path in root.rglob("*") if not MADE_BY_TOOLS.intersection(path.relative_to(root).parts))
    else:
        files = (root / name for name in names.split("\0"))
    return sorted(path for path in files if path.is_file())


def _search(root: Path, path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    shown = path.relative_to(root)
    patterns = ANYWHERE | IN_SOURCE if shown.parts[0] == "src" else ANYWHERE
    return [
        f"{shown}:{number}: {kind}: {found.group()}"
        for number, line in enumerate(text.splitlines(), start=1)
        for kind, pattern in patterns.items()
        if (found := pattern.search(line))
    ]
