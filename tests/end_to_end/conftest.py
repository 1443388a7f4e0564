from pathlib import Path

import pytest

from tests.end_to_end.homes import HOMES, Home, chosen_homes


@pytest.fixture(params=chosen_homes())
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """Each kind of store in turn, fresh and empty."""
    return HOMES[request.param](tmp_path)
