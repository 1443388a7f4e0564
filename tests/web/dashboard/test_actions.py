"""What the buttons do, on every store, as plain forms."""

from urllib.parse import parse_qs, urlsplit

import pytest

from drumline.model.job import JobState
from drumline.web.dashboard import deeds
from tests.web.browser import bearer
from tests.web.dashboard.visitor import BASE, Visitor
from tests.web.shop import TOKENS, work_off

pytestmark = pytest.mark.asyncio


async def dead_job(drum, words="boom"):
    job = await drum.enqueue("fail", words=words)
    await work_off(drum)
    return job


async def state_of(job):
    return (await job.refresh()).state


async def find_group(visitor, words):
    """The group of dead letters whose error has these words."""
    seen = await visitor.look("/dead")
    forms = [
        parse_qs(urlsplit(value).query) for name, value in seen.attributes if name == "action" and "group" in value
    ]
    (kind,) = {form["group"][0] for form in forms if words in form["group"][0]}
    return ("group", kind)


async def test_retry_makes_a_dead_job_ready_again(drum, visitor):
    job = await dead_job(drum)
    assert await visitor.press("retry", ("job", job.id)) == "+1 job retried."
    assert await state_of(job) is JobState.READY


async def test_what_was_done_is_told_on_the_next_page_once(drum, admin, visitor):
    told = await visitor.send("retry", ("job", (await dead_job(drum)).id))
    cookie = told.headers["set-cookie"].partition(";")[0]
    after = await admin.get(f"{BASE}/jobs", cookie=cookie)
    assert "1 job retried." in after.text
    assert "drumline_told=" in after.headers["set-cookie"]
    assert "Max-Age=0" in after.headers["set-cookie"]


async def test_a_group_is_retried_by_its_error_and_others_are_left(drum, visitor):
    one, two = await dead_job(drum, "order 1 refused"), await dead_job(drum, "order 2 refused")
    other = await dead_job(drum, "timed out")
    group = await find_group(visitor, "order")
    assert await visitor.press("retry", ("task", "fail"), group, back="/dead") == "+2 jobs retried."
    assert [await state_of(job) for job in (one, two, other)] == [JobState.READY, JobState.READY, JobState.DEAD]


async def test_cancel_asks_first_and_then_cancels(drum, visitor):
    job = await drum.enqueue("send_mail", user_id=1)
    asked = await visitor.look("/do/cancel", job=job.id, back="/queues")
    assert f"Cancel job {job.id}?" in asked
    assert ("action", f"{BASE}/do/cancel?job={job.id}&back=%2Fqueues") in asked.attributes
    assert await state_of(job) is JobState.READY
    assert await visitor.press("cancel", ("job", job.id), ("reason", "wrong address")) == "+1 job cancelled."
    assert await state_of(job) is JobState.CANCELLED
    assert "wrong address" in await visitor.look("/audit")


async def test_all_that_fit_a_filter_are_cancelled_and_no_others(drum, visitor):
    mails = [await drum.enqueue("send_mail", user_id=n) for n in range(3)]
    other = await drum.enqueue("fail")
    asked = await visitor.look("/do/cancel", all="1", where="queue=mail&state=ready")
    assert "Cancel all jobs with state ready and queue mail?" in asked
    told = await visitor.press("cancel", ("all", "1"), ("where", "queue=mail&state=ready"))
    assert told == "+3 jobs cancelled."
    assert await state_of(other) is JobState.READY
    assert {await state_of(job) for job in mails} == {JobState.CANCELLED}


async def test_a_click_says_that_more_fit_than_it_acts_on(drum, visitor, monkeypatch):
    monkeypatch.setattr(deeds, "MOST_AT_ONCE", 2)
    await drum.enqueue_many([drum.find_task("send_mail").call(number) for number in range(4)])
    fitting = ("all", "1"), ("where", "queue=mail&state=ready")
    more = "+2 jobs cancelled. More jobs fit: do it again for the rest."
    assert [await visitor.press("cancel", *fitting) for _ in range(2)] == [more, "+2 jobs cancelled."]


async def test_a_group_is_found_behind_others_that_are_many(drum, visitor, monkeypatch):
    monkeypatch.setattr(deeds, "MOST_AT_ONCE", 2)
    first = await dead_job(drum, "timed out")
    for number in range(3):
        await dead_job(drum, f"order {number} refused")
    group = await find_group(visitor, "timed out")
    assert await visitor.press("retry", ("task", "fail"), group) == "+1 job retried."
    assert await state_of(first) is JobState.READY


async def test_the_slices_of_one_act_are_told_as_such(drum, visitor, monkeypatch):
    monkeypatch.setattr("drumline.client.SLICE", 2)
    await drum.enqueue_many([drum.find_task("send_mail").call(number) for number in range(5)])
    assert await visitor.press("cancel", ("all", "1"), ("where", "queue=mail")) == "+5 jobs cancelled."
    assert (await visitor.look("/audit")).text.count("more of the act below") == 2


async def test_an_empty_filter_is_not_everything(drum, visitor):
    job = await drum.enqueue("send_mail", user_id=1)
    assert (await visitor.press("cancel", ("all", "1"))).startswith("-Choose jobs first")
    assert (await visitor.press("cancel", ("all", "1"), ("where", "state=,"))).startswith("-state must be one of")
    assert await state_of(job) is JobState.READY


async def test_discard_forgets(drum, visitor):
    job = await dead_job(drum)
    assert await visitor.press("discard", ("job", job.id)) == "+1 job discarded."
    assert (await visitor.look(f"/jobs/{job.id}")).status == 404


async def test_what_cannot_be_done_is_told_as_such(drum, visitor):
    job = await drum.enqueue("send_mail", user_id=1)
    assert (await visitor.press("retry", ("job", job.id))).startswith("-1 job in a state in which it cannot be")
    assert (await visitor.press("retry", ("job", "7"))).startswith("-the id of a job must be")


async def test_reschedule_moves_a_waiting_job(drum, visitor):
    job = await drum.enqueue("send_mail", user_id=1)
    assert await visitor.press("reschedule", ("job", job.id), ("delay", "1h")) == "+1 job moved."
    assert await state_of(job) is JobState.DELAYED
    assert (await visitor.press("reschedule", ("job", job.id), ("delay", "soon"))).startswith("-delay must be")


async def test_a_queue_is_paused_with_a_reason_and_resumed(drum, visitor):
    assert await visitor.press("pause-queue", ("name", "mail"), ("reason", "down")) == "+Queue mail is paused."
    assert (await drum.queues.paused())["mail"].why == "down"
    assert await visitor.press("pause-queue", ("name", "mail")) == "+Queue mail was paused already."
    assert await visitor.press("resume-queue", ("name", "mail")) == "+Queue mail gives jobs again."
    assert await drum.queues.paused() == {}


async def test_a_schedule_is_paused_run_backfilled_and_resumed(drum, visitor):
    await work_off(drum)
    assert await visitor.press("pause-schedule", ("name", "tidy")) == "+Schedule tidy is paused."
    told = await visitor.press("run-schedule", ("name", "tidy"), ("reason", "before the audit"))
    assert told.startswith("+Schedule tidy runs now, as job ")
    assert "before the audit" in await visitor.look("/audit")
    told = await visitor.press(
        "backfill-schedule", ("name", "tidy"), ("start", "2026-01-01T00:00"), ("end", "2026-01-01T03:00")
    )
    assert told == "+Schedule tidy: 4 jobs made for ticks of that range."
    assert await visitor.press("resume-schedule", ("name", "tidy")) == "+Schedule tidy fires again."
    assert (await visitor.press("pause-schedule", ("name", "nothing"))).startswith("-schedule 'nothing' is not known")


async def test_a_schedule_that_was_registered_is_unregistered(drum, visitor):
    await drum.schedules.register("send_mail", name="greet", every="1h", args={"user_id": 1})
    button = f"{BASE}/do/unregister-schedule?name=greet&back=%2Fschedules"
    assert ("href", button) in (await visitor.look("/schedules/greet")).attributes
    asked = await visitor.look("/do/unregister-schedule", name="greet")
    assert "Unregister schedule greet?" in asked
    told = await visitor.press("unregister-schedule", ("name", "greet"), ("reason", "no longer wanted"))
    assert told == "+Schedule greet is unregistered."
    assert "no longer wanted" in await visitor.look("/audit")
    assert "greet" not in await drum.schedules.refresh()


async def test_a_schedule_that_the_code_declares_is_not_unregistered(drum, visitor):
    await work_off(drum)
    assert "Unregister" not in await visitor.look("/schedules/tidy")
    assert (await visitor.press("unregister-schedule", ("name", "tidy"))).startswith(
        "-schedule tidy is declared in code"
    )


async def test_an_action_stands_in_the_audit_under_the_name_of_who_pressed(drum, browser):
    operator = Visitor(browser.known_as(bearer(TOKENS["operator"])))
    await operator.press("pause-queue", ("name", "mail"), ("reason", "the provider is down"))
    assert "operator by http pause queue mail the provider is down" in await operator.look("/audit")


async def test_a_page_of_another_origin_cannot_press_a_button(drum, visitor):
    answer = await visitor.send("pause-queue", ("name", "mail"), origin="https://evil.example")
    assert answer.status == 403
    assert await drum.queues.paused() == {}


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "", "jobs"])
async def test_nobody_is_sent_elsewhere_afterwards(drum, admin, visitor, back):
    answer = await visitor.send("pause-queue", ("name", "mail"), back=back)
    assert answer.headers["location"] == f"{BASE}/"


async def test_a_body_that_is_no_form_is_refused(admin):
    answer = await admin.post(f"{BASE}/do/pause-queue", {"name": "mail"})
    assert answer.status == 415
