"""Every page in light and dark, on a desk and on a phone: whole, legible, and open to everybody."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage

PAGES = (
    "/",
    "/?range=day",
    "/jobs",
    "/jobs?state=dead",
    "/schedules",
    "/schedules/tidy",
    "/dead",
    "/queues",
    "/workers",
    "/audit",
)
QUESTIONS = ("/do/cancel?job={job}", "/do/backfill-schedule?name=tidy", "/do/reschedule?job={job}")
DARK_BACKGROUND, LIGHT_BACKGROUND = "rgb(19, 18, 17)", "rgb(247, 247, 245)"


def set_up(stage: Stage) -> dict[str, str]:
    """Something of everything."""
    stage.enqueue("fail", words="no answer for order 7")
    stage.enqueue("send_mail", user_id=1)
    stage.work_off()
    dead = stage.enqueue("fail", words="x" * 300)
    stage.work_off()
    stage.do(lambda drum: drum.queues.pause("mail", reason="the provider is down"))
    stage.do(lambda drum: drum.schedules.pause("tidy", "migration"))
    waiting = stage.enqueue("send_mail", user_id=2)
    return {"job": waiting, "dead": dead}


def serious(page: Page) -> list[str]:
    """What keeps people out, as axe finds it."""
    found = Axe().run(page)
    return [
        f"{violation['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for violation in found.response["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_open_to_everybody(chromium, stage, complaints, scheme):
    ids = set_up(stage)
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 1360, "height": 860})
    page = context.new_page()
    complaints.watch(page)
    page.goto(stage.address)
    paths = [*PAGES, *QUESTIONS, "/jobs/{job}", "/jobs/{dead}"]
    found = {}
    for path in paths:
        page.goto(stage.url(path.format(**ids)))
        if problems := serious(page):
            found[path] = problems
    context.close()
    assert found == {}


def test_nothing_is_cut_off_on_a_phone(chromium, stage, complaints):
    ids = set_up(stage)
    context = chromium.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    page = context.new_page()
    complaints.watch(page)
    page.goto(stage.address)
    for path in (*PAGES, *QUESTIONS, "/jobs/{job}", "/jobs/{dead}"):
        page.goto(stage.url(path.format(**ids)))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    assert serious(page) == []
    context.close()


@pytest.mark.parametrize(("scheme", "background"), [("light", LIGHT_BACKGROUND), ("dark", DARK_BACKGROUND)])
def test_the_page_is_as_light_as_the_system_says(chromium, stage, complaints, scheme, background):
    context = chromium.new_context(color_scheme=scheme)
    page = context.new_page()
    complaints.watch(page)
    page.goto(stage.address)
    expect(page.locator("body")).to_have_css("background-color", background)
    context.close()


def test_a_switch_of_the_colours_is_kept(page, stage):
    expect(page.locator("body")).to_have_css("background-color", LIGHT_BACKGROUND)
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("body")).to_have_css("background-color", DARK_BACKGROUND)
    page.goto(stage.url("/queues"))
    expect(page.locator("body")).to_have_css("background-color", DARK_BACKGROUND)
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("body")).to_have_css("background-color", LIGHT_BACKGROUND)


def test_the_first_stop_of_the_keyboard_leads_past_the_navigation(page):
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the page")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#page")).to_be_focused()


def test_the_navigation_leads_to_every_page(page):
    for name in ("Jobs", "Schedules", "Dead letters", "Queues", "Workers", "Audit", "Overview"):
        page.get_by_role("navigation", name="Main").get_by_role("link", name=name).last.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        assert page.title() == f"{name} · Drumline"


def test_nothing_is_asked_of_any_other_host(context, stage):
    asked: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(stage.address)
    for path in PAGES:
        page.goto(stage.url(path))
    assert [url for url in asked if not url.startswith((stage.root, "data:"))] == []
