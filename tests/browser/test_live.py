"""The page follows the fleet without being loaded again, and holds still when somebody needs it to."""

import re
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import BrowserContext, Page, Request, Route, expect

from drumline.web.dashboard import attention
from tests.browser.conftest import PATIENCE_MILLIS

# The looks that time alone brings would hide a lost update, so they are put off.
LIVE = re.compile(r"/static/live\.")
AGES = "const AGES_EVERY = 5000;"


@pytest.fixture
def context(context: BrowserContext) -> BrowserContext:
    """Its pages follow what they hear of, and nothing else."""

    def put_off(route: Route) -> None:
        answer = route.fetch()
        assert AGES in answer.text()
        route.fulfill(response=answer, body=answer.text().replace(AGES, "const AGES_EVERY = 600_000;"))

    context.route(LIVE, put_off)
    return context


def mark(page: Page) -> None:
    """Write on the page what a reload would wipe off."""
    page.evaluate("window.stillHere = true")


def is_marked(page: Page) -> bool:
    return bool(page.evaluate("window.stillHere === true"))


def test_a_new_job_appears_by_itself(page, stage):
    page.goto(stage.url("/jobs"))
    mark(page)
    expect(page.locator("#live")).to_have_text("Live")
    job = stage.enqueue("send_mail", user_id=1)
    expect(page.locator(f"#row-{job} .state")).to_have_text("ready")
    expect(page.locator("#n-jobs")).to_have_text("1")
    stage.work_off()
    expect(page.locator(f"#row-{job} .state")).to_have_text("done")
    assert is_marked(page)


def test_a_running_job_shows_its_progress_and_its_log_as_they_come(page, stage):
    stop = stage.start_worker()
    job = stage.enqueue("report")
    page.goto(stage.url(f"/jobs/{job}"))
    mark(page)
    expect(page.locator("progress")).to_have_attribute("value", "0.25")
    expect(page.locator(".log li")).to_have_count(1)
    stage.step()
    expect(page.locator("progress")).to_have_attribute("value", "0.5")
    expect(page.locator(".log li")).to_have_count(2)
    stage.step()
    stage.step()
    expect(page.locator(".head .state")).to_have_text("done")
    expect(page.locator("#result")).to_have_text('"written"')
    assert is_marked(page)
    stop()


def test_a_list_shows_the_progress_of_what_runs_as_it_comes(page, stage):
    stop = stage.start_worker()
    job = stage.enqueue("report", is_silent=True)
    page.goto(stage.url("/jobs"))
    expect(page.locator(f"#row-{job} .state")).to_have_text("running")
    progress = page.locator(f"#row-{job} progress")
    expect(progress).to_have_count(0)
    stage.step()
    expect(progress).to_have_attribute("value", "0.25")
    stage.step()
    expect(progress).to_have_attribute("value", "0.5")
    stage.step()
    expect(progress).to_have_attribute("value", "0.75")
    stage.step()
    expect(page.locator(f"#row-{job} .state")).to_have_text("done")
    stop()


def test_what_only_time_brings_about_is_told_though_nothing_changes(page, stage, monkeypatch):
    monkeypatch.setattr(attention, "UNSERVED_AFTER", timedelta(hours=1))
    page.context.unroute(LIVE)
    page.reload()
    mark(page)
    expect(page.locator("#live")).to_have_text("Live")
    stage.enqueue("send_mail", user_id=1)
    expect(page.locator("#page")).to_contain_text("No worker is alive")
    # As if it had waited that long.
    monkeypatch.setattr(attention, "UNSERVED_AFTER", timedelta())
    expect(page.locator(".attention")).to_contain_text("no worker is alive")
    assert is_marked(page)


def test_a_held_page_holds_still_until_it_is_let_go(page, stage):
    page.goto(stage.url("/jobs"))
    expect(page.locator("#live")).to_have_text("Live")
    page.get_by_role("button", name="Hold").click()
    expect(page.locator("#live")).to_have_text("Held")
    job = stage.enqueue("send_mail", user_id=1)
    other = page.context.new_page()
    other.goto(stage.url("/jobs"))
    expect(other.locator(f"#row-{job}")).to_be_visible()
    # The other has heard of it, and so has this one.
    second = stage.enqueue("send_mail", user_id=2)
    expect(other.locator(f"#row-{second}")).to_be_visible()
    expect(page.locator(f"#row-{job}")).to_have_count(0)
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(f"#row-{job}")).to_be_visible()
    other.close()


def test_what_somebody_types_or_has_ticked_is_not_taken_away(page, stage):
    first = stage.enqueue("send_mail", user_id=1)
    page.goto(stage.url("/jobs"))
    page.locator(f"#row-{first} input").check()
    expect(page.locator("#ticked")).to_have_text("1 chosen, the page holds still")
    page.locator("#f-task").fill("send")
    second = stage.enqueue("send_mail", user_id=2)
    other = page.context.new_page()
    other.goto(stage.url("/jobs"))
    expect(other.locator(f"#row-{second}")).to_be_visible()
    other.close()
    assert page.locator(f"#row-{first} input").is_checked()
    assert page.locator("#f-task").input_value() == "send"
    page.locator(f"#row-{first} input").uncheck()
    page.locator("#f-task").blur()
    expect(page.locator(f"#row-{second}")).to_be_visible()


def test_the_focus_and_what_was_unfolded_stay_where_they_are(page, stage):
    stage.enqueue("fail")
    stage.work_off()
    page.goto(stage.url("/dead"))
    page.locator("summary").click()
    page.get_by_role("button", name="Retry all").focus()
    stage.enqueue("send_mail", user_id=1)
    expect(page.locator("#n-jobs")).to_have_text("1")
    expect(page.get_by_role("button", name="Retry all")).to_be_focused()
    assert page.locator("details").get_attribute("open") is None


def test_the_charts_of_the_overview_follow_too(page, stage):
    stage.enqueue("send_mail", user_id=1)
    stage.work_off()
    page.goto(stage.url("/"))
    expect(page.locator("#chart-finished .uplot")).to_be_visible()
    mark(page)
    before = page.locator("#chart-finished").get_attribute("data-series")
    for user in range(5):
        stage.enqueue("send_mail", user_id=user)
    stage.work_off()
    expect(page.locator("#chart-finished")).not_to_have_attribute("data-series", before or "")
    expect(page.locator("#chart-finished .uplot")).to_have_count(1)
    assert is_marked(page)


def test_a_lost_connection_is_shown(complaints, page, stage):
    expect(page.locator("#live")).to_have_text("Live")
    stage.begin_to_leave()
    expect(page.locator("#live")).to_have_text("Connection lost")
    # That the stream could not be opened again is what this is about.
    complaints.heard = [line for line in complaints.heard if "/api/events" not in line and "503" not in line]


def test_an_answer_to_a_form_that_has_left_the_page_shows_one_page(page, stage):
    job = stage.enqueue("fail")
    stage.work_off()
    page.goto(stage.url(f"/jobs/{job}"))

    def take_away(route: Route) -> None:
        page.locator("form[action*='/retry']").first.evaluate("form => form.remove()")
        route.continue_()

    page.route("**/do/retry**", take_away)
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("1 job retried.")
    expect(page.locator(".head .state")).to_have_text("ready")
    expect(page.locator("#page")).to_have_count(1)


HIDE = """
(isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}
"""

WATCH_FOR_LATE = """
window.sawLate = false;
new MutationObserver(() => { window.sawLate ||= document.body.textContent.includes("Too late"); })
  .observe(document.body, { childList: true, subtree: true, characterData: true });
"""


def until(page: Page, condition: Callable[[], object]) -> None:
    ends_at = time.monotonic() + PATIENCE_MILLIS / 1000
    while not condition():
        assert time.monotonic() < ends_at
        page.wait_for_timeout(20)


class Caught:
    """The first request of a page's scripts to an address, which gets no answer until the test gives it."""

    def __init__(self, page: Page, address: str) -> None:
        self._page = page
        self._first: Route | None = None
        page.route(address, self._catch)

    def _catch(self, route: Route) -> None:
        if self._first is None and route.request.resource_type != "document":
            self._first = route
        else:
            route.continue_()

    def wait(self) -> Route:
        until(self._page, lambda: self._first)
        assert self._first is not None
        return self._first

    def let_go(self) -> None:
        """Let it be answered, and wait until the page has the answer."""
        self.wait().continue_()
        answer = self.wait().request.response()
        assert answer is not None
        answer.finished()


def test_a_look_that_somebody_has_overtaken_is_not_shown(page, stage):
    """It may tell of before, as this one does, and take the form away whose answer is still to come."""
    job = stage.enqueue("fail")
    stage.work_off()
    address = stage.url(f"/jobs/{job}")
    looks, deeds = Caught(page, address), Caught(page, "**/do/retry**")
    page.goto(address)
    page.evaluate(WATCH_FOR_LATE)
    look = looks.wait()
    page.get_by_role("button", name="Retry", exact=True).click()
    deeds.wait()
    # Were it shown, there would be nothing left to act on.
    look.fulfill(body="<main id=page><h1>Too late</h1></main>", content_type="text/html")
    answer = look.request.response()
    assert answer is not None
    answer.finished()
    deeds.let_go()
    expect(page.locator(".toast")).to_contain_text("1 job retried.")
    expect(page.locator(".head .state")).to_have_text("ready")
    assert not page.evaluate("window.sawLate")


def test_a_tick_is_not_taken_away_by_a_look_that_was_under_way(page, stage):
    job = stage.enqueue("send_mail", user_id=1)
    looks = Caught(page, stage.url("/jobs"))
    page.goto(stage.url("/jobs"))
    looks.wait()
    second = stage.enqueue("send_mail", user_id=2)
    page.locator(f"#row-{job} input").check()
    looks.let_go()
    expect(page.locator("#ticked")).to_have_text("1 chosen, the page holds still")
    expect(page.locator(f"#row-{job} input")).to_be_checked()
    assert page.locator(f"#row-{second}").count() == 0
    page.locator(f"#row-{job} input").uncheck()
    expect(page.locator(f"#row-{second}")).to_be_visible()


def test_a_page_is_held_though_a_look_was_under_way(page, stage):
    looks = Caught(page, stage.url("/jobs"))
    page.goto(stage.url("/jobs"))
    looks.wait()
    job = stage.enqueue("send_mail", user_id=1)
    page.get_by_role("button", name="Hold").click()
    expect(page.locator("#live")).to_have_text("Held")
    looks.let_go()
    assert page.locator(f"#row-{job}").count() == 0
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(f"#row-{job}")).to_be_visible()


def test_what_was_typed_and_not_sent_stays_when_the_focus_leaves(page, stage):
    page.goto(stage.url("/jobs"))
    page.locator("#f-task").fill("send")
    page.get_by_role("button", name="Filter").focus()
    job = stage.enqueue("send_mail", user_id=1)
    expect(page.locator(f"#row-{job}")).to_be_visible()
    expect(page.locator("#f-task")).to_have_value("send")


def test_what_happens_while_the_stream_opens_is_seen(page, stage):
    streams = Caught(page, "**/api/events")
    page.goto(stage.url("/jobs"))
    stream = streams.wait()
    job = stage.enqueue("send_mail", user_id=1)
    stream.continue_()
    expect(page.locator(f"#row-{job}")).to_be_visible()


def test_a_tab_that_nobody_sees_gives_its_connection_back(page, stage):
    page.goto(stage.url("/jobs"))
    expect(page.locator("#live")).to_have_text("Live")
    page.evaluate(HIDE, True)
    expect(page.locator("#live")).to_have_text("Connecting")
    job = stage.enqueue("send_mail", user_id=1)
    page.evaluate(HIDE, False)
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator(f"#row-{job}")).to_be_visible()


def test_a_question_on_a_page_of_its_own_leads_to_a_page_that_is_live(page, stage):
    stage.enqueue("send_mail", user_id=1)
    page.goto(stage.url("/do/pause-queue?name=mail&back=/queues"))
    page.get_by_label("Why?").fill("because")
    page.locator("#confirm").get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator(".toast")).to_be_visible()
    expect(page.locator("#live")).to_have_text("Live")
    stage.enqueue("send_mail", user_id=2)
    expect(page.locator("#n-jobs")).to_have_text("2")


def test_a_second_click_does_nothing_while_the_first_is_under_way(page, stage):
    job = stage.enqueue("fail")
    stage.work_off()
    page.goto(stage.url(f"/jobs/{job}"))
    posts: list[Request] = []
    page.on("request", lambda request: posts.append(request) if request.method == "POST" else None)
    deeds = Caught(page, "**/do/retry**")
    button = page.get_by_role("button", name="Retry", exact=True)
    button.click()
    deeds.wait()
    button.click()
    deeds.let_go()
    expect(page.locator(".toast")).to_contain_text("1 job retried.")
    # What was sent behind it would have been answered before this is heard of.
    stage.enqueue("send_mail", user_id=1)
    expect(page.locator("#n-jobs")).to_have_text("2")
    assert len(posts) == 1
    expect(page.locator(".toast.bad")).to_have_count(0)


def test_a_job_that_is_gone_is_said_to_be_gone_once(complaints, page, stage):
    job = stage.enqueue("fail")
    stage.work_off()
    page.goto(stage.url(f"/jobs/{job}"))
    expect(page.locator("#live")).to_have_text("Live")
    stage.do(lambda drum: drum.jobs.discard(job))
    expect(page.locator("h1")).to_have_text("Not found")
    assert page.locator(".toast").count() == 0
    complaints.heard = [line for line in complaints.heard if "404" not in line]


def test_a_page_whose_looks_fail_does_not_call_itself_live(complaints, page, stage):
    page.goto(stage.url("/jobs"))
    expect(page.locator("#live")).to_have_text("Live")
    is_away = True

    def refuse(route: Route) -> None:
        if is_away:
            route.fulfill(status=503, body="away")
        else:
            route.continue_()

    page.route(stage.url("/jobs"), refuse)
    stage.enqueue("send_mail", user_id=1)
    expect(page.locator("#live")).to_have_text("Connection lost")
    assert page.locator(".toast").count() == 0
    is_away = False
    job = stage.enqueue("send_mail", user_id=2)
    expect(page.locator(f"#row-{job}")).to_be_visible()
    expect(page.locator("#live")).to_have_text("Live")
    complaints.heard = [line for line in complaints.heard if "503" not in line]
