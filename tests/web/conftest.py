import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from drumline import Drumline
from tests.web.browser import Browser, bearer
from tests.web.shop import AUTH, TOKENS, make_shop, serve


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and no settings but those of the test."""
    for variable in os.environ:
        if variable.startswith("DRUMLINE_"):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest_asyncio.fixture(params=["memory://", "sqlite:///shop.db"], ids=["memory", "sqlite"])
async def drum(request: pytest.FixtureRequest) -> AsyncIterator[Drumline]:
    """A shop's tasks, on each store."""
    drum = make_shop(request.param)
    yield drum
    await drum.close()


@pytest.fixture
def browser(drum: Drumline) -> Browser:
    """Nobody in particular, before the shop's pages."""
    return Browser(serve(drum, AUTH))


@pytest.fixture
def admin(browser: Browser) -> Browser:
    return browser.known_as(bearer(TOKENS["admin"]))
