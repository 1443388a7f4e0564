from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.house import ROOT
from website.links import adapt, place_on_site
from website.offline import find_fetches


def everywhere(_: str) -> bool:
    return True


def nowhere(_: str) -> bool:
    return False


def read_nav(part: Any) -> list[str]:
    """The pages that a navigation names, in order."""
    if isinstance(part, str):
        return [part]
    return [page for inner in (part.values() if isinstance(part, dict) else part) for page in read_nav(inner)]


def test_the_navigation_names_every_page_of_the_docs():
    named = read_nav(yaml.safe_load((ROOT / "website" / "mkdocs.yml").read_text())["nav"])
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    # Decisions are listed by the site itself.
    assert {page for page in pages if not page.startswith("decisions/")} - set(named) == set()


@pytest.mark.parametrize(
    ("path", "link", "shown"),
    [
        ("README.md", "docs/jobs.md#results", "jobs.md#results"),
        ("README.md", "docs/decisions/", "decisions/index.md"),
        ("docs/stores.md", "../CONTRIBUTING.md", "project/contributing.md"),
        ("docs/coming-from/rq.md", "../jobs.md", "../jobs.md"),
        ("docs/deploy.md", "../examples/deploy/compose.yaml", "examples/deploy.md"),
        ("examples/README.md", "worker", "worker.md"),
        ("docs/jobs.md", "#results", "#results"),
        ("docs/jobs.md", "https://example.com/", "https://example.com/"),
    ],
)
def test_a_link_leads_to_where_the_page_is_on_the_site(path, link, shown):
    assert adapt(f"[it]({link})", path, everywhere) == f"[it]({shown})"


def test_a_link_to_what_the_site_does_not_have_is_refused():
    with pytest.raises(ValueError, match=r"docs/jobs.md: the link to ../src/drumline leads to nothing"):
        adapt("[it](../src/drumline)", "docs/jobs.md", nowhere)


def test_code_is_left_alone():
    page = "```python\nx = [1](nothing.md)\n```"
    assert adapt(page, "docs/jobs.md", nowhere) == page


def test_a_reader_of_the_site_sees_neither_reasons_nor_hidden_blocks():
    page = "a\n<!-- not run: why -->\n```python no-run\nx\n```\n<!-- hidden\n```python\ny\n```\n-->\nb\n"
    assert adapt(page, "docs/jobs.md", nowhere) == "a\n```python\nx\n```\nb\n"


def test_a_page_of_the_repository_has_one_place_on_the_site():
    assert place_on_site("docs/coming-from/rq.md") == "coming-from/rq.md"
    assert place_on_site("examples/deploy/kubernetes/mail.yaml") == "examples/deploy.md"


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example.com/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.com/css">',
        "@import url(https://fonts.example.com/css)",
    ],
)
def test_what_a_page_would_fetch_from_elsewhere_is_found(tmp_path: Path, text: str):
    (tmp_path / "page.html").write_text(text)
    assert len(find_fetches(tmp_path)) == 1


def test_a_link_that_a_person_follows_is_no_fetch(tmp_path: Path):
    (tmp_path / "page.html").write_text(
        '<a href="https://example.com">x</a><link rel="canonical" href="https://x.org">'
    )
    assert find_fetches(tmp_path) == []
