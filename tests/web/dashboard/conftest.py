import pytest

from tests.web.browser import Browser
from tests.web.dashboard.visitor import Visitor


@pytest.fixture
def visitor(admin: Browser) -> Visitor:
    return Visitor(admin)
