import pytest

from tests.house import ROOT


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes a `document` once for each page of the project."""
    if "document" in metafunc.fixturenames:
        documents = [path for places in ("*.md", "docs/**/*.md", "examples/*.md") for path in sorted(ROOT.glob(places))]
        metafunc.parametrize("document", documents, ids=lambda path: str(path.relative_to(ROOT)))
