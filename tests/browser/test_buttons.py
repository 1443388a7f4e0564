"""Every button, pressed in a browser: with scripts, and without."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from drumline import Drumline
from drumline.model.job import JobState
from drumline.web.dashboard import fleetpages, schedulepages
from tests.browser.conftest import PATIENCE_MILLIS, Complaints
from tests.browser.stage import BASE, Stage


@pytest.fixture(params=["with scripts", "without scripts"])
def visitor(request, chromium: Browser, stage: Stage, complaints: Complaints) -> Iterator[Page]:
    context = chromium.new_context(java_script_enabled=request.param == "with scripts")
    context.set_default_timeout(PATIENCE_MILLIS)
    page = context.new_page()
    complaints.watch(page)
    page.goto(stage.address)
    yield page
    context.close()


def dead(stage: Stage, words: str = "boom") -> str:
    job = stage.enqueue("fail", words=words)
    stage.work_off()
    return job


def state_of(stage: Stage, job: str) -> JobState:
    return stage.do(lambda drum: drum.jobs.get(job)).state


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).first.click()


def answer(page: Page, name: str, reason: str = "because") -> None:
    """Answer the question that stands on the page, or in its dialog."""
    page.get_by_label("Why?").fill(reason)
    page.locator("#confirm").get_by_role("button", name=name, exact=True).click()


def expect_told(page: Page, words: str) -> None:
    expect(page.locator(".toast")).to_contain_text(words)


def test_retry_a_job(visitor, stage):
    job = dead(stage)
    visitor.goto(stage.url(f"/jobs/{job}"))
    press(visitor, "Retry")
    expect_told(visitor, "1 job retried.")
    expect(visitor.locator(".head .state")).to_have_text("ready")
    assert state_of(stage, job) is JobState.READY


def test_cancel_a_job(visitor, stage):
    job = stage.enqueue("send_mail", user_id=1)
    visitor.goto(stage.url(f"/jobs/{job}"))
    press(visitor, "Cancel")
    expect(visitor.locator("#confirm-title")).to_have_text(f"Cancel job {job}?")
    answer(visitor, "Cancel", "wrong address")
    expect_told(visitor, "1 job cancelled.")
    expect(visitor.locator(".head .state")).to_have_text("cancelled")
    visitor.goto(stage.url("/audit"))
    expect(visitor.locator("tbody")).to_contain_text("wrong address")


def test_a_question_can_be_left_unanswered(visitor, stage):
    job = stage.enqueue("send_mail", user_id=1)
    visitor.goto(stage.url(f"/jobs/{job}"))
    press(visitor, "Cancel")
    visitor.locator("#confirm").get_by_text("Back").click()
    expect(visitor.locator("#confirm")).to_be_hidden()
    expect(visitor.get_by_role("heading", level=1)).to_have_text("send_mail")
    assert state_of(stage, job) is JobState.READY


def test_discard_a_job(visitor, stage):
    job = dead(stage)
    visitor.goto(stage.url(f"/jobs/{job}"))
    press(visitor, "Discard")
    answer(visitor, "Discard")
    expect_told(visitor, "1 job discarded.")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Jobs")
    assert visitor.url == stage.url("/jobs")


def test_reschedule_a_job(visitor, stage):
    job = stage.enqueue("send_mail", user_id=1)
    visitor.goto(stage.url(f"/jobs/{job}"))
    press(visitor, "Reschedule")
    visitor.get_by_label("Due in").fill("2h")
    answer(visitor, "Reschedule")
    expect_told(visitor, "1 job moved.")
    expect(visitor.locator("#waits")).to_contain_text("due at")
    assert state_of(stage, job) is JobState.DELAYED


# Goes to another field of the question as soon as that is on the screen, and hears when htmx is done with it.
HURRY = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("dialog[open] #confirm-reason")) return;
  observer.disconnect();
  document.getElementById("confirm-reason").focus();
}).observe(document, { subtree: true, childList: true, attributes: true });
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target.id === "dialog") document.body.dataset.settled = "true";
});
"""


def test_a_question_leaves_the_focus_where_it_was_put(chromium, stage):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(stage.address)
    page.goto(stage.url(f"/jobs/{stage.enqueue('send_mail', user_id=1)}"))
    page.evaluate(HURRY)
    press(page, "Reschedule")
    expect(page.locator("body[data-settled]")).to_be_attached()
    expect(page.get_by_label("Why?")).to_be_focused()
    context.close()


def test_pause_and_resume_a_queue(visitor, stage):
    stage.enqueue("send_mail", user_id=1)
    visitor.goto(stage.url("/queues"))
    press(visitor, "Pause")
    answer(visitor, "Pause", "the provider is down")
    expect_told(visitor, "Queue mail is paused.")
    expect(visitor.locator("tbody")).to_contain_text("the provider is down")
    press(visitor, "Resume")
    expect_told(visitor, "Queue mail gives jobs again.")
    expect(visitor.locator("tbody")).not_to_contain_text("paused")


@pytest.mark.parametrize("path", ["/schedules", "/schedules/tidy"])
def test_pause_run_and_resume_a_schedule(visitor, stage, path):
    stage.work_off()
    visitor.goto(stage.url(path))
    press(visitor, "Pause")
    answer(visitor, "Pause", "migration")
    expect_told(visitor, "Schedule tidy is paused.")
    expect(visitor.locator("#page")).to_contain_text("migration")
    press(visitor, "Run now")
    expect_told(visitor, "Schedule tidy runs now, as job")
    press(visitor, "Resume")
    expect_told(visitor, "Schedule tidy fires again.")
    expect(visitor.get_by_role("button", name="Pause", exact=True)).to_be_visible()


def test_backfill_a_schedule(visitor, stage):
    stage.work_off()
    visitor.goto(stage.url("/schedules/tidy"))
    press(visitor, "Backfill")
    visitor.get_by_label("From (UTC)").fill("2026-01-01T00:00:00")
    visitor.get_by_label("To (UTC)").fill("2026-01-01T03:00:00")
    answer(visitor, "Backfill")
    expect_told(visitor, "Schedule tidy: 4 jobs made")
    expect(visitor.get_by_role("table", name="Ledger")).to_contain_text("1 Jan")


def test_unregister_a_schedule(visitor, stage):
    stage.do(lambda drum: drum.schedules.register("report", name="weekly", every="7d"))
    visitor.goto(stage.url("/schedules/weekly"))
    press(visitor, "Unregister")
    answer(visitor, "Unregister")
    expect_told(visitor, "Schedule weekly is unregistered.")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Schedules")
    assert visitor.url == stage.url("/schedules")


def test_retry_a_group_of_dead_letters(visitor, stage):
    for order in range(3):
        dead(stage, f"order {order} refused")
    other = dead(stage, "timed out")
    visitor.goto(stage.url("/dead"))
    press(visitor, "Retry 3")
    expect_told(visitor, "3 jobs retried.")
    expect(visitor.locator(".group")).to_have_count(1)
    assert state_of(stage, other) is JobState.DEAD


def test_discard_a_group_of_dead_letters(visitor, stage):
    dead(stage, "order 1 refused")
    dead(stage, "order 2 refused")
    visitor.goto(stage.url("/dead"))
    press(visitor, "Discard")
    answer(visitor, "Discard")
    expect_told(visitor, "2 jobs discarded.")
    expect(visitor.locator("#page")).to_contain_text("No dead letters")


@pytest.mark.parametrize("verb", ["Retry", "Discard"])
def test_all_dead_letters_at_once(visitor, stage, verb):
    dead(stage, "order 1 refused")
    dead(stage, "timed out")
    visitor.goto(stage.url("/dead"))
    press(visitor, f"{verb} all")
    expect(visitor.locator("#confirm-title")).to_have_text(f"{verb} all jobs with state dead?")
    answer(visitor, verb)
    expect_told(visitor, "2 jobs")
    expect(visitor.locator("#page")).to_contain_text("No dead letters")


@pytest.mark.parametrize(("verb", "told"), [("Retry", "retried"), ("Discard", "discarded")])
def test_what_is_ticked_is_acted_on(visitor, stage, verb, told):
    one, two, three = (dead(stage) for _ in range(3))
    visitor.goto(stage.url("/jobs?state=dead"))
    for job in (one, three):
        visitor.locator(f"#row-{job} input").check()
    press(visitor, verb)
    expect(visitor.locator("#confirm-title")).to_have_text(f"{verb} 2 jobs?")
    answer(visitor, verb)
    expect_told(visitor, f"2 jobs {told}.")
    assert state_of(stage, two) is JobState.DEAD


def test_all_that_fit_the_filter_are_cancelled(visitor, stage):
    for user in range(3):
        stage.enqueue("send_mail", user_id=user)
    other = stage.enqueue("report")
    visitor.goto(stage.url("/jobs?queue=mail"))
    visitor.get_by_label("all that fit the filter").check()
    press(visitor, "Cancel")
    expect(visitor.locator("#confirm-title")).to_have_text("Cancel all jobs with queue mail?")
    answer(visitor, "Cancel")
    expect_told(visitor, "3 jobs cancelled.")
    assert state_of(stage, other) is JobState.READY


def test_nothing_chosen_is_nothing_done(complaints, visitor, stage):
    job = stage.enqueue("send_mail", user_id=1)
    visitor.goto(stage.url("/jobs"))
    press(visitor, "Cancel")
    expect(visitor.get_by_text("Choose jobs first")).to_be_visible()
    assert state_of(stage, job) is JobState.READY
    # The browser notes the status of the answer.
    complaints.heard = [line for line in complaints.heard if "422" not in line]


def test_the_filter_stands_in_the_address(visitor, stage):
    mail = stage.enqueue("send_mail", user_id=1)
    dead(stage, "needle in a stack")
    visitor.goto(stage.url("/jobs"))
    visitor.get_by_label("Error contains").fill("needle")
    press(visitor, "Filter")
    expect(visitor).to_have_url(re.compile("error=needle"))
    expect(visitor.locator(".jobs tbody tr")).to_have_count(1)
    visitor.get_by_role("link", name="Clear").click()
    expect(visitor.locator(".jobs tbody tr")).to_have_count(2)
    visitor.get_by_role("navigation", name="State").get_by_role("link", name=re.compile("Done")).click()
    assert visitor.url == stage.url("/jobs?state=done")
    expect(visitor.locator(f"#row-{mail}")).to_be_visible()
    visitor.go_back()
    expect(visitor.locator(".jobs tbody tr")).to_have_count(2)


def test_one_pages_through_many_jobs_and_back(visitor, stage):
    stage.do(lambda drum: drum.enqueue_many([drum.find_task("send_mail").call(n) for n in range(120)]))
    visitor.goto(stage.url("/jobs"))
    seen = set()
    for number in (50, 50, 20):
        expect(visitor.locator(".jobs tbody tr")).to_have_count(number)
        seen |= {row.get_attribute("id") for row in visitor.locator(".jobs tbody tr").all()}
        if number == 50:
            visitor.get_by_role("link", name="Older").click()
    assert len(seen) == 120
    visitor.get_by_role("link", name="Newest").click()
    assert visitor.url == stage.url("/jobs")


def test_one_pages_through_schedules_and_back(visitor, stage, monkeypatch):
    monkeypatch.setattr(schedulepages, "ON_A_PAGE", 1)
    stage.work_off()
    stage.do(lambda drum: drum.schedules.register("report", name="weekly", every="7d"))
    visitor.goto(stage.url("/schedules"))
    expect(visitor.locator("tbody")).to_contain_text("tidy")
    visitor.get_by_role("link", name="More").click()
    assert visitor.url == stage.url("/schedules?after=tidy")
    expect(visitor.locator("tbody")).to_contain_text("weekly")
    visitor.get_by_role("link", name="First").click()
    expect(visitor.locator("tbody")).to_contain_text("tidy")


def test_one_pages_through_a_ledger_and_back(visitor, stage, monkeypatch):
    monkeypatch.setattr(schedulepages, "TICKS_ON_A_PAGE", 1)
    stage.work_off()
    stage.do(lambda drum: drum.schedules.backfill("tidy", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"))
    visitor.goto(stage.url("/schedules/tidy"))
    ledger = visitor.get_by_role("table", name="Ledger")
    expect(ledger).to_contain_text("fired")
    visitor.get_by_role("link", name="Older").click()
    expect(ledger).to_contain_text("declared")
    visitor.get_by_role("link", name="Newest").click()
    expect(ledger).to_contain_text("fired")


def test_one_pages_through_the_audit_and_back(visitor, stage, monkeypatch):
    monkeypatch.setattr(fleetpages, "ON_A_PAGE", 1)
    for queue in ("first", "second"):
        stage.do(lambda drum, queue=queue: drum.queues.pause(queue))
    visitor.goto(stage.url("/audit"))
    expect(visitor.locator("tbody")).to_contain_text("second")
    visitor.get_by_role("link", name="Older").click()
    expect(visitor.locator("tbody")).to_contain_text("first")
    visitor.get_by_role("link", name="Newest").click()
    expect(visitor.locator("tbody")).to_contain_text("second")


def test_the_time_shown_by_the_overview_is_chosen(visitor, stage):
    stage.enqueue("send_mail", user_id=1)
    stage.work_off()
    visitor.goto(stage.url("/"))
    visitor.get_by_role("link", name="Last day").click()
    assert visitor.url == stage.url("/?range=day")
    expect(visitor.get_by_role("heading", name="Finished per 15 minutes")).to_be_visible()
    visitor.get_by_role("link", name="Last hour").click()
    assert visitor.url == stage.url("/")


def test_what_needs_attention_leads_to_what_helps(visitor, stage):
    dead(stage)
    visitor.goto(stage.url("/"))
    visitor.get_by_role("link", name="Review and retry").click()
    assert visitor.url == stage.url("/dead?task=fail")
    visitor.get_by_role("link", name="task fail").click()
    assert visitor.url == stage.url("/dead")


def test_a_chart_is_shown_without_scripts_too(visitor, stage):
    stage.enqueue("send_mail", user_id=1)
    stage.work_off()
    visitor.goto(stage.url("/"))
    expect(visitor.locator("#chart-finished").get_by_role("img")).to_be_visible()


def test_an_action_changes_the_page_without_loading_it_again(page, stage):
    job = dead(stage)
    page.goto(stage.url(f"/jobs/{job}"))
    page.evaluate("window.stillHere = true")
    press(page, "Retry")
    expect(page.locator(".head .state")).to_have_text("ready")
    assert page.evaluate("window.stillHere === true")
    assert page.url == f"{stage.root}{BASE}/jobs/{job}"


def test_a_dialog_closes_by_escape_and_opens_by_the_keyboard(page, stage):
    job = stage.enqueue("send_mail", user_id=1)
    page.goto(stage.url(f"/jobs/{job}"))
    page.get_by_role("button", name="Cancel").focus()
    page.keyboard.press("Space")
    expect(page.locator("dialog")).to_be_visible()
    expect(page.get_by_label("Why?")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()


def test_a_toast_is_closed(page, stage):
    page.goto(stage.url(f"/jobs/{dead(stage)}"))
    press(page, "Retry")
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".toast")).to_have_count(0)


def test_all_on_the_page_are_ticked_at_once(page, stage):
    for _ in range(3):
        dead(stage)
    page.goto(stage.url("/jobs"))
    page.get_by_label("all on this page").check()
    expect(page.locator("#ticked")).to_contain_text("3 chosen")
    page.get_by_label("all on this page").uncheck()
    expect(page.locator("#ticked")).to_have_text("")


@pytest.fixture
def copier(chromium: Browser, stage: Stage, complaints: Complaints) -> Iterator[Page]:
    """The page of a dead job, in a browser that lets it copy."""
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    context.set_default_timeout(PATIENCE_MILLIS)
    page = context.new_page()
    complaints.watch(page)
    page.goto(stage.address)
    page.goto(stage.url(f"/jobs/{dead(stage)}"))
    yield page
    context.close()


def test_a_traceback_is_copied(copier):
    press(copier, "Copy")
    expect(copier.get_by_role("button", name="Copied")).to_be_visible()
    assert "ValueError: boom" in copier.evaluate("navigator.clipboard.readText()")


def test_copied_stays_said_when_the_page_is_looked_at_again(copier, stage):
    press(copier, "Copy")
    stage.enqueue("send_mail", user_id=1)
    expect(copier.locator("#n-jobs")).to_have_text("1")
    expect(copier.get_by_role("button", name="Copied")).to_be_visible()


def test_where_nothing_can_be_copied_the_button_says_so(page, stage):
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.goto(stage.url(f"/jobs/{dead(stage)}"))
    press(page, "Copy")
    expect(page.get_by_role("button", name="Not allowed here")).to_be_visible()


async def enqueue_very_many(drum: Drumline) -> None:
    task = drum.find_task("send_mail")
    for start in range(0, 100_000, 10_000):
        await drum.enqueue_many([task.call(start + number) for number in range(10_000)])


@pytest.mark.timeout(300)
def test_one_pages_through_a_hundred_thousand_jobs(context, complaints, folder):
    stage = Stage("sqlite:///shop.db")
    try:
        page = context.new_page()
        complaints.watch(page)
        page.goto(stage.address)
        stage.do(enqueue_very_many, patience=240)
        page.goto(stage.url("/jobs"))
        expect(page.get_by_role("link", name="All 100,000")).to_be_visible()
        seen: set[str | None] = set()
        for number in range(20):
            expect(page.locator(".jobs tbody tr")).to_have_count(50)
            seen |= {row.get_attribute("id") for row in page.locator(".jobs tbody tr").all()}
            assert len(seen) == 50 * (number + 1)
            before = page.url
            page.get_by_role("link", name="Older").click()
            page.wait_for_function("before => location.href !== before", arg=before)
    finally:
        stage.close()
