"""The page follows the fleet without being loaded again, and holds still when somebody needs it to."""

from datetime import timedelta

from playwright.sync_api import Page, expect

from drumline.web.dashboard import attention

# Behind by at most a second, plus what a busy machine takes to draw.
SOON = 5_000


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
    expect(page.locator(f"#row-{job} .state")).to_have_text("ready", timeout=SOON)
    expect(page.locator("#n-jobs")).to_have_text("1")
    stage.work_off()
    expect(page.locator(f"#row-{job} .state")).to_have_text("done", timeout=SOON)
    assert is_marked(page)


def test_a_running_job_shows_its_progress_and_its_log_as_they_come(page, stage):
    stop = stage.start_worker()
    job = stage.enqueue("report")
    page.goto(stage.url(f"/jobs/{job}"))
    mark(page)
    expect(page.locator("progress")).to_have_attribute("value", "0.25", timeout=SOON)
    expect(page.locator(".log li")).to_have_count(1, timeout=SOON)
    stage.step()
    expect(page.locator("progress")).to_have_attribute("value", "0.5", timeout=SOON)
    expect(page.locator(".log li")).to_have_count(2, timeout=SOON)
    stage.step()
    stage.step()
    expect(page.locator(".head .state")).to_have_text("done", timeout=SOON)
    expect(page.locator("#result")).to_have_text('"written"')
    assert is_marked(page)
    stop()


def test_a_list_shows_the_progress_of_what_runs_as_it_comes(page, stage):
    stop = stage.start_worker()
    job = stage.enqueue("report")
    page.goto(stage.url("/jobs"))
    progress = page.locator(f"#row-{job} progress")
    expect(progress).to_have_attribute("value", "0.25", timeout=SOON)
    stage.step()
    expect(progress).to_have_attribute("value", "0.5", timeout=SOON)
    stage.step()
    expect(progress).to_have_attribute("value", "0.75", timeout=SOON)
    stage.step()
    expect(page.locator(f"#row-{job} .state")).to_have_text("done", timeout=SOON)
    stop()


def test_what_only_time_brings_about_is_told_though_nothing_changes(page, stage, monkeypatch):
    monkeypatch.setattr(attention, "UNSERVED_AFTER", timedelta(seconds=3))
    mark(page)
    expect(page.locator("#live")).to_have_text("Live")
    stage.enqueue("send_mail", user_id=1)
    expect(page.locator("#page")).to_contain_text("No worker is alive", timeout=SOON)
    expect(page.locator(".attention")).to_contain_text("no worker is alive", timeout=3 * SOON)
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
    expect(other.locator(f"#row-{second}")).to_be_visible(timeout=SOON)
    expect(page.locator(f"#row-{job}")).to_have_count(0)
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(f"#row-{job}")).to_be_visible(timeout=SOON)
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
    expect(page.locator(f"#row-{second}")).to_be_visible(timeout=SOON)


def test_the_focus_and_what_was_unfolded_stay_where_they_are(page, stage):
    stage.enqueue("fail")
    stage.work_off()
    page.goto(stage.url("/dead"))
    page.locator("summary").click()
    page.get_by_role("button", name="Retry all").focus()
    stage.enqueue("send_mail", user_id=1)
    expect(page.locator("#n-jobs")).to_have_text("1", timeout=SOON)
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
    expect(page.locator("#chart-finished")).not_to_have_attribute("data-series", before or "", timeout=SOON)
    expect(page.locator("#chart-finished .uplot")).to_have_count(1)
    assert is_marked(page)


def test_a_lost_connection_is_shown(complaints, page, stage):
    expect(page.locator("#live")).to_have_text("Live")
    stage.begin_to_leave()
    expect(page.locator("#live")).to_have_text("Connection lost", timeout=SOON)
    # That the stream could not be opened again is what this is about.
    complaints.heard = [line for line in complaints.heard if "/api/events" not in line and "503" not in line]
