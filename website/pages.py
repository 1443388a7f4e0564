"""Pages of the site that are no file of docs/: the project's own papers, the examples, the list of decisions."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ROOT", "decision_titles", "examples", "index_of_decisions"]

ROOT = Path(__file__).parent.parent
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".service": "ini", "": "dockerfile"}


def decision_titles() -> dict[str, str]:
    """The title of each page about a decision, by its path on the site."""
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    return {f"decisions/{page.name}": _title(page) for page in pages}


def index_of_decisions() -> str:
    """A page that lists them."""
    lines = [f"- [{title}]({Path(place).name})" for place, title in decision_titles().items()]
    return "\n".join(["# Decisions that surprised us", "", *lines])


def examples() -> dict[str, str]:
    """A page for each example, with all its files, by its path on the site."""
    folders = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())
    return {f"examples/{folder.name}.md": _show(folder) for folder in folders}


def _title(page: Path) -> str:
    return page.read_text().partition("\n")[0].removeprefix("# ")


def _show(folder: Path) -> str:
    lines = [f"# examples/{folder.name}"]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _LANGUAGES:
            lines += [
                "",
                f"## {path.relative_to(folder)}",
                "",
                f"```{_LANGUAGES[path.suffix]}",
                path.read_text(),
                "```",
            ]
    return "\n".join(lines)
