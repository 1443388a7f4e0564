"""What the pages show, on every store."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

import pytest

from drumline import Context
from drumline.errors import StoreUnreachable
from drumline.model.replica import ReplicaInfo
from drumline.web.dashboard import deadpage
from drumline.web.dashboard.assets import FOREVER, name_of
from drumline.web.dashboard.glance import Glance
from drumline.web.web import Web
from tests.web.browser import Browser, bearer
from tests.web.dashboard.visitor import BASE, Visitor
from tests.web.shop import AUTH, TOKENS, make_shop, serve, work_off

pytestmark = pytest.mark.asyncio

PAGES = ("/", "/jobs", "/schedules", "/dead", "/queues", "/workers", "/audit")


@pytest.mark.parametrize("path", [*PAGES, "/?range=day"])
async def test_a_page_of_an_empty_store_helps(drum, visitor, path):
    seen = await visitor.look(path)
    assert seen.status == 200
    assert seen.answer.headers["content-type"] == "text/html; charset=utf-8"


async def test_the_overview_says_what_needs_a_person_and_how_it_goes(drum, visitor):
    await drum.enqueue("fail", words="no answer")
    for user in range(3):
        await drum.enqueue("send_mail", user_id=user)
    await work_off(drum)
    seen = await visitor.look("/")
    assert "1 dead letter fail ValueError: no answer" in seen
    assert "Finished 3 per minute" in seen
    assert "Failed attempts 25 %" in seen
    assert "tidy Every hour" in seen


async def test_jobs_are_filtered_by_the_address(drum, visitor):
    await drum.enqueue("fail")
    await work_off(drum)
    waiting = await drum.enqueue("send_mail", user_id=1)
    seen = await visitor.look("/jobs", state="ready", task="send_mail", queue="mail")
    assert f"{BASE}/jobs/{waiting.id}" in seen.answer.text
    assert "user_id=1" in seen
    assert "fail" not in seen.text.partition("Newest")[0].split("When")[1]
    assert "No job fits" in await visitor.look("/jobs", state="ready", task="fail")


async def test_the_tabs_count_what_is_in_each_state(drum, visitor):
    await drum.enqueue("fail")
    await work_off(drum)
    await drum.enqueue("send_mail", user_id=1)
    seen = await visitor.look("/jobs")
    assert "All 2 Ready 1 Delayed 0 Running 0 Done 0 Dead 1 Cancelled 0" in seen


async def test_jobs_are_found_by_id_key_tag_and_time(drum, visitor):
    task = drum.find_task("send_mail")
    job = await task.using(key="order-7", tags=["vip"]).enqueue(7)
    await task.enqueue(8)
    for words in ({"id": job.id}, {"key": "order-7"}, {"tag": "vip"}):
        seen = await visitor.look("/jobs", **words)
        assert seen.answer.text.count('name="job"') == 1
    assert "No job fits" in await visitor.look("/jobs", created_to="2020-01-01T00:00")
    assert (await visitor.look("/jobs", created_from="2020-01-01")).answer.text.count('name="job"') == 2


async def test_a_search_in_errors_says_how_far_it_looked(drum, visitor):
    await drum.enqueue("fail", words="needle")
    await work_off(drum)
    seen = await visitor.look("/jobs", error="needle")
    assert seen.answer.text.count('name="job"') == 1
    assert "the newest 10,000 that fit the rest were searched" in seen


async def test_a_page_of_jobs_leads_to_the_next(drum, visitor):
    await drum.enqueue_many([drum.find_task("send_mail").call(n) for n in range(60)])
    first = await visitor.look("/jobs")
    assert first.answer.text.count('name="job"') == 50
    (more,) = [value for name, value in first.attributes if name == "href" and "after=" in value]
    second = await visitor.look(more.removeprefix(BASE))
    assert second.answer.text.count('name="job"') == 10
    assert "Newest" in second


@pytest.mark.parametrize("query", ["state=mad", "source=x", "id=7", "created_from=soon", "error=a%00b"])
async def test_a_filter_that_cannot_be_is_refused_in_words(drum, visitor, query):
    seen = await visitor.look(f"/jobs?{query}")
    assert seen.status == 422
    assert "That did not work" in seen


async def test_a_job_tells_what_happened(drum, visitor):
    job = await drum.enqueue("fail", words="no answer", password="hunter22")
    await work_off(drum)
    seen = await visitor.look(f"/jobs/{job.id}")
    for words in (
        "fail",
        "dead",
        "about to fail with ***",
        "ValueError: no answer",
        "Traceback",
        "1 of 1",
        "attempt 1",
    ):
        assert words in seen
    assert "hunter22" not in seen.answer.text


@pytest.mark.parametrize("attempts", [1, 2])
async def test_log_lines_tell_their_attempt_where_there_was_more_than_one(drum, visitor, attempts):
    @drum.task(max_attempts=attempts, backoff="1ms")
    async def stumble(ctx: Context) -> None:
        ctx.log(f"try {ctx.attempt}")
        raise ValueError

    job = await stumble.enqueue()
    await work_off(drum)
    seen = await visitor.look(f"/jobs/{job.id}")
    assert ("attempt 1 try 1" in seen, "attempt 2 try 2" in seen) == (attempts == 2, attempts == 2)
    assert f"try {attempts}" in seen


async def test_a_job_tells_why_it_waits(drum, visitor):
    job = await drum.find_task("send_mail").using(delay="1h").enqueue(1)
    assert "Why it waits due at" in await visitor.look(f"/jobs/{job.id}")
    ready = await drum.enqueue("send_mail", user_id=1)
    assert "no worker is alive" in await visitor.look(f"/jobs/{ready.id}")


@pytest.mark.parametrize("path", ["/jobs/7", "/jobs/00000000-0000-7000-8000-000000000000", "/schedules/nothing"])
async def test_what_is_not_there_is_said_in_a_page(drum, visitor, path):
    seen = await visitor.look(path)
    assert seen.status == 404
    assert "Not found" in seen


async def test_a_schedule_shows_its_rule_and_its_next_runs(drum, visitor):
    await drum.schedules.register(
        "send_mail", name="greet", cron="0 9 * * *", timezone="Asia/Tokyo", args={"user_id": 1}
    )
    seen = await visitor.look("/schedules/greet")
    assert "Every day at 09:00, Tokyo cron 0 9 * * * Asia/Tokyo" in seen
    assert seen.text.count("09:00 JST") == 6
    assert "at run time" in seen


async def test_next_runs_tell_what_the_clocks_do_to_them(drum, visitor, monkeypatch):
    async def before_the_change(_glance):
        return datetime(2050, 3, 26, 12, tzinfo=UTC)

    monkeypatch.setattr(Glance, "now", before_the_change)
    await drum.schedules.register(
        "send_mail", name="greet", cron="30 2 * * *", timezone="Europe/Berlin", args={"user_id": 1}
    )
    words = "moved: 2050-03-27 02:30 does not exist, the clocks go forward to 2050-03-27 03:00"
    assert f"tomorrow 03:00 CEST {words}" in await visitor.look("/schedules/greet")
    assert f"27 Mar: tomorrow 03:00: {words}" in await visitor.look("/schedules")


async def test_a_schedule_of_each_replica_tells_on_how_many_it_is(drum, visitor):
    store = await drum.store()
    for name in ("web-1", "web-2", "web-3"):
        await store.beat(ReplicaInfo(id=f"{name}:1", name=name), [])
    await drum.schedules.register("send_mail", name="warm", every="1m", coordination="per_replica", args={"user_id": 1})
    assert "3 of 3" in await visitor.look("/schedules")
    assert "On 3 of 3 replicas" in await visitor.look("/schedules/warm")


async def test_a_paused_schedule_says_by_whom_and_why_and_that_it_does_not_fire(drum, visitor):
    await work_off(drum)
    await drum.schedules.pause("tidy", "migration")
    seen = await visitor.look("/schedules/tidy")
    assert ": migration" in seen
    assert "None while it is paused." in seen


async def test_a_schedule_that_nobody_declares_any_more_says_so(drum, visitor):
    await work_off(drum)
    assert "No live replica declares it" in await visitor.look("/schedules")


async def test_runs_tell_whether_a_schedule_or_somebody_asked_for_them(drum, visitor):
    await work_off(drum)
    await drum.schedules.backfill("tidy", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")
    by_hand = await drum.schedules.trigger("tidy")
    seen = await visitor.look("/schedules/tidy")
    assert "Last runs Last runs ready manual" in seen
    assert "ready scheduled" in seen
    listed = await visitor.look("/jobs")
    assert ("tidy manual" in listed, "tidy scheduled" in listed) == (True, True)
    assert "tidy ready manual" in await visitor.look(f"/jobs/{by_hand.id}")


async def test_dead_letters_are_grouped(drum, visitor):
    for order in range(3):
        await drum.enqueue("fail", words=f"order {order} refused")
    await drum.enqueue("fail", words="timed out")
    await work_off(drum)
    seen = await visitor.look("/dead")
    assert "4 dead letters, in 2 groups" in seen
    assert "Retry 3" in seen


async def test_a_group_that_may_be_larger_than_what_was_read_says_so(drum, visitor, monkeypatch):
    monkeypatch.setattr(deadpage, "READ", 2)
    for order in range(3):
        await drum.enqueue("fail", words=f"order {order} refused")
    await work_off(drum)
    seen = await visitor.look("/dead")
    assert "3 dead letters, in 1 group" in seen
    assert "The newest 2 are grouped here" in seen
    assert "Retry 2+" in seen


async def test_dead_letters_of_private_queues_are_not_listed(drum, visitor):
    @drum.schedule(every="1h", coordination="per_replica", run_on_startup=True, max_attempts=1)
    async def warm() -> None:
        raise ValueError("cold")

    await work_off(drum)
    assert "No dead letters" in await visitor.look("/dead")


async def test_the_jobs_of_a_schedule_are_listed_though_each_replica_has_its_own(drum, visitor):
    @drum.schedule(every="1h", coordination="per_replica", run_on_startup=True)
    async def warm() -> None: ...

    await work_off(drum)
    (job,) = [job async for job in drum.jobs.find(schedule="warm")]
    assert job.id in (await visitor.look("/jobs", schedule="warm")).answer.text
    assert job.id not in (await visitor.look("/jobs")).answer.text


async def test_queues_tell_who_has_paused_them_and_why(drum, visitor):
    await drum.enqueue("send_mail", user_id=1)
    await drum.queues.pause("mail", reason="the provider is down")
    seen = await visitor.look("/queues")
    assert "mail paused" in seen
    assert "the provider is down" in seen
    assert "never" in seen


async def test_workers_tell_what_they_run(drum, visitor):
    begun, leaving = asyncio.Event(), asyncio.Event()

    @drum.task
    async def linger() -> None:
        begun.set()
        await leaving.wait()

    job = await linger.enqueue()
    running = asyncio.create_task(drum.run(until=leaving))
    try:
        await asyncio.wait_for(begun.wait(), 20)
        seen = await visitor.look("/workers")
        while "nothing" in seen:
            await asyncio.sleep(0.01)
            seen = await visitor.look("/workers")
    finally:
        leaving.set()
        await running
    assert "alive 1 of 100 linger" in seen
    assert f"{BASE}/jobs/{job.id}" in seen.answer.text


async def test_a_store_out_of_reach_is_said_in_a_page(drum, visitor, monkeypatch):
    async def away():
        raise StoreUnreachable("gone fishing")

    monkeypatch.setattr(drum, "store", away)
    seen = await visitor.look("/jobs")
    assert seen.status == 503
    assert "The store is out of reach" in seen


async def test_a_viewer_sees_no_buttons(drum, browser):
    await drum.enqueue("fail")
    await work_off(drum)
    viewer = Visitor(browser.known_as(bearer(TOKENS["viewer"])))
    for path in PAGES:
        seen = await viewer.look(path)
        assert "/do/" not in seen.answer.text.replace('do/retry" id="choice', "")


async def test_an_operator_is_not_offered_what_only_an_admin_may(drum, browser):
    await drum.enqueue("fail")
    await work_off(drum)
    operator = Visitor(browser.known_as(bearer(TOKENS["operator"])))
    seen = await operator.look("/dead")
    assert "Retry" in seen
    assert "Discard" not in seen


async def test_files_are_kept_by_the_browser_and_unknown_ones_are_not_there(admin):
    answer = await admin.get(f"{BASE}/static/{name_of('drumline.css')}")
    assert answer.headers["cache-control"] == FOREVER
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert (await admin.get(f"{BASE}/static/drumline.css")).status == 404
    assert (await admin.get(f"{BASE}/static/..%2f..%2f__init__.py")).status == 404


async def test_ten_tabs_ask_the_store_no_more_than_one(monkeypatch):
    drum = make_shop("memory://")
    store = await drum.store()
    read, asked = store.counts, itertools.count()

    def count_and_read():
        next(asked)
        return read()

    monkeypatch.setattr(store, "counts", count_and_read)
    browser = Browser(serve(drum, AUTH)).known_as(bearer(TOKENS["viewer"]))
    await asyncio.gather(*(browser.get(f"{BASE}/") for _ in range(10)))
    assert next(asked) == 1
    await drum.close()


async def test_the_day_is_read_once_and_then_only_what_is_new(drum, monkeypatch):
    web = Web(drum)
    asked = []
    read = web.glance.series

    async def note_and_read(start, end):
        asked.append(end - start)
        return await read(start, end)

    monkeypatch.setattr(web.glance, "series", note_and_read)
    await drum.enqueue("send_mail", user_id=1)
    await work_off(drum)
    now = await (await drum.store()).now()
    for _ in range(2):
        minutes = await web.quarters.day(now)
        assert len(minutes.steps) == 96
        assert sum(minutes.done) == 1
    assert asked[0] == timedelta(days=1)
    assert asked[1] <= timedelta(minutes=30)
