import pytest

from tests.engine.kit import Kit


@pytest.fixture
def kit() -> Kit:
    return Kit()
