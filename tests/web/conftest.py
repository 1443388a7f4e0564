import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from drumline import Drumline
from tests.end_to_end.homes import HOMES
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


@pytest_asyncio.fixture(params=["memory", *HOMES])
async def drum(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Drumline]:
    """A shop's tasks, on each store."""
    if request.param in ("postgres", "redis"):
        # The servers of the tests have no password of which a secret could be made.
        monkeypatch.setenv("DRUMLINE_WEB__SECRET", "a secret of the tests")
    home = None if request.param == "memory" else HOMES[request.param](tmp_path)
    drum = make_shop("memory://") if home is None else make_shop(home.url, home.namespace)
    yield drum
    await drum.close()


@pytest.fixture
def browser(drum: Drumline) -> Browser:
    """Nobody in particular, before the shop's pages."""
    return Browser(serve(drum, AUTH))


@pytest.fixture
def admin(browser: Browser) -> Browser:
    return browser.known_as(bearer(TOKENS["admin"]))
