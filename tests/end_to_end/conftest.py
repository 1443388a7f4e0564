from pathlib import Path

import pytest

from tests.end_to_end.homes import HOMES, Home


@pytest.fixture(params=list(HOMES))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """Each kind of store in turn, fresh and empty."""
    return HOMES[request.param](tmp_path)
