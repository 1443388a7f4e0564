"""What mkdocs calls while it makes the site; the work is done next door."""

from __future__ import annotations

import logging
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

from website.links import ON_SITE, adapt
from website.pages import ROOT, decision_titles, examples, index_of_decisions
from website.reference import reference_pages

__all__ = ["on_config", "on_files", "on_page_markdown"]

# Pages that are made, and not read from the repository: nothing in them has to be adapted.
_made: set[str] = set()

# The icons of the theme are found by a plugin that is not needed here; it says so at every start.
logging.getLogger("mkdocs.material").setLevel(logging.WARNING)


def on_config(config: Any) -> Any:
    """Let the navigation list every decision: they are too many to name twice."""
    listed = [{title: place} for place, title in decision_titles().items()]
    for section in config.nav:
        for pages in section.values():
            if isinstance(pages, list) and "decisions/index.md" in pages:
                pages.extend(listed)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add what is not in docs/."""
    made = {**reference_pages(), **examples(), "decisions/index.md": index_of_decisions()}
    read = {place: (ROOT / path).read_text() for path, place in ON_SITE.items()}
    for place, content in {**read, **made}.items():
        files.append(File.generated(config, place, content=content))
    _made.update(made)
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Let links lead to where the pages are on the site."""
    place = page.file.src_uri
    if place in _made:
        return markdown
    papers = {on_site: path for path, on_site in ON_SITE.items()}
    try:
        return adapt(markdown, papers.get(place, f"docs/{place}"), lambda wanted: wanted in files.src_uris)
    except ValueError as error:
        raise PluginError(str(error)) from error
