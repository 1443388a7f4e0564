import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.chromium import FLAGS, LANGUAGE, MISSING, find_chromium
from tests.browser.stage import Stage
from tests.support.require import give_up

# A browser that has to start on a busy machine.
START_MILLIS = 60_000
# What no page needs that works, on no machine.
PATIENCE_MILLIS = 30_000
expect.set_options(timeout=PATIENCE_MILLIS)


# No longer than a module: while it is open, an event loop runs in this thread, and no other test could have one.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        give_up(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=list(FLAGS), env={**os.environ, **LANGUAGE}, timeout=START_MILLIS
        )
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in os.environ:
        if variable.startswith("DRUMLINE_") and variable != "DRUMLINE_TEST_REQUIRE":
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


class Complaints:
    """What a browser complains about: errors of scripts, refused resources, broken rules of the policy."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def watch(self, page: Page) -> None:
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.heard.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.heard.append(message.text)


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    complaints = Complaints()
    yield complaints
    assert complaints.heard == []


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1360, "height": 860})
    context.set_default_timeout(PATIENCE_MILLIS)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, stage: Stage, complaints: Complaints) -> Page:
    """The overview, open in a browser; at the end of the test it must not have complained."""
    page = context.new_page()
    complaints.watch(page)
    page.goto(stage.address)
    return page
