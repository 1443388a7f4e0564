"""Hostile texts do nothing in a real browser, and leave every page in shape."""

import pytest
from playwright.sync_api import expect

from tests.support.hostile import SCRIPT, fill


@pytest.mark.timeout(180)
@pytest.mark.parametrize("width", [1360, 390])
def test_no_page_runs_or_breaks_what_is_only_text(page, stage, width):
    page.set_viewport_size({"width": width, "height": 860})
    job = stage.do(_fill)
    paths = (
        "/",
        "/jobs",
        "/schedules",
        "/dead",
        "/queues",
        "/workers",
        "/audit",
        f"/jobs/{job}",
        "/schedules/tock",
    )
    for path in paths:
        page.goto(stage.url(path))
        expect(page.locator("body")).to_contain_text(SCRIPT)
        assert page.evaluate("window.hostile === undefined"), path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_buttons_work_on_what_has_such_a_name(page, stage):
    stage.do(_fill)
    page.goto(stage.url("/queues"))
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".toast")).to_contain_text(SCRIPT)
    assert stage.do(lambda drum: drum.queues.paused()) == {}
    assert page.evaluate("window.hostile === undefined")


async def _fill(drum):
    return await fill(await drum.store())
