import asyncio
import json
from collections import Counter as Tally
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from drumline.clock import SystemClock
from drumline.errors import StoreUnreachable
from drumline.stores.base import Store
from drumline.web import sampler
from drumline.web.api import events
from drumline.web.web import Web
from tests.support.waiting import eventually
from tests.web.browser import Answer, Browser, bearer, living, make_scope
from tests.web.shop import AUTH, TOKENS, make_shop, serve, work_off

pytestmark = pytest.mark.asyncio
EVENTS = "/admin/jobs/api/events"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(sampler, "LOOK_EVERY", 0.01)


@pytest_asyncio.fixture
async def admin(drum):
    """Somebody who may watch an app that lives: when it leaves, nobody looks at the store any more."""
    app = serve(drum, AUTH, role=None)
    async with living(app):
        yield Browser(app).known_as(bearer(TOKENS["admin"]))


def read(answer: Answer) -> list[tuple[str, str, Any]]:
    """The events that came so far: id, name, data."""
    found = []
    for frame in answer.text.split("\n\n")[:-1]:
        fields = dict(line.partition(": ")[::2] for line in frame.splitlines())
        if "event" in fields:
            found.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return found


def all_are_told(answers: list[Answer]) -> bool:
    return all(read(answer) for answer in answers)


def was_told(answer: Answer, line: str) -> bool:
    return line in read(answer)[-1][2]


async def count_looks(drum, monkeypatch) -> list[int]:
    """How often anybody has asked the store for its counts from now on, in one number."""
    store = await drum.store()
    counts, looks = store.counts, [0]

    def count():
        looks[0] += 1
        return counts()

    monkeypatch.setattr(store, "counts", count)
    return looks


async def note_operations(drum, monkeypatch) -> list[str]:
    """The name of every operation that anybody asks the store for from now on."""
    store = await drum.store()
    asked: list[str] = []

    def noting(name: str, operation: Any) -> Any:
        def note(*args: Any, **options: Any) -> Any:
            asked.append(name)
            return operation(*args, **options)

        return note

    for name in (name for name in vars(Store) if not name.startswith("_") and name != "wakeups"):
        monkeypatch.setattr(store, name, noting(name, getattr(store, name)))
    return asked


def note_waits(monkeypatch) -> list[float]:
    """How long anybody has waited for the next look, once for each."""
    waits: list[float] = []
    wait = SystemClock.wait

    async def note(clock: SystemClock, event: asyncio.Event, seconds: float) -> bool:
        if seconds == sampler.LOOK_EVERY:
            waits.append(seconds)
        return await wait(clock, event, seconds)

    monkeypatch.setattr(SystemClock, "wait", note)
    return waits


async def test_a_new_watcher_is_told_all_and_then_what_changes(drum, admin):
    await drum.enqueue("send_mail", user_id=1)
    async with admin.open(EVENTS) as answer:
        await eventually(lambda: read(answer))
        assert answer.headers["content-type"].startswith("text/event-stream")
        ((_, name, table),) = read(answer)
        assert (name, table["jobs/mail/send_mail"]["ready"]) == ("reset", 1)
        await drum.enqueue("send_mail", user_id=2)
        await drum.queues.pause("mail")
        await eventually(lambda: any("queues/mail" in table for _, _, table in read(answer)[1:]))
        told = [(name, key) for _, name, table in read(answer)[1:] for key in table]
        assert set(told) == {("update", "jobs/mail/send_mail"), ("update", "queues/mail")}
        await drum.queues.resume("mail")
        await eventually(lambda: read(answer)[-1][2] == {"queues/mail": None})


async def test_what_changes_while_a_slow_watcher_is_told_comes_next(drum):
    web = Web(drum)
    seat = web.sampler.take_seat()
    watching = web.sampler.watch(seat, None)
    first = await anext(watching)
    # It is told the first, and has not asked for more.
    await drum.enqueue("send_mail", user_id=1)
    await eventually(lambda: web.sampler.number > 1)
    second = await anext(watching)
    assert first is not None
    assert second is not None
    assert (first.name, second.name, list(second.table)) == ("reset", "update", ["jobs/mail/send_mail"])
    seat.leave()
    assert [change async for change in watching] == []
    web.sampler.leave_seat(seat)
    await web.sampler.close()


async def test_whoever_comes_back_goes_on_from_the_last_id(drum, admin):
    async with admin.open(EVENTS) as other:
        async with admin.open(EVENTS) as answer:
            await eventually(lambda: read(answer))
        last = read(answer)[-1][0]
        await drum.enqueue("send_mail", user_id=1)
        await eventually(lambda: len(read(other)) == 2)
        async with admin.open(EVENTS, last_event_id=last) as again:
            await eventually(lambda: read(again))
        assert read(again) == read(other)[1:]
        async with admin.open(f"{EVENTS}?last_event_id={last}") as by_query:
            await eventually(lambda: read(by_query))
        assert read(by_query) == read(again)


@pytest.mark.parametrize("last", ["nonsense", "0123456789ab-7", "-", "x-99999999999999999999", "é-1"])
async def test_an_id_of_elsewhere_is_answered_by_one_reset(admin, last):
    async with admin.open(EVENTS, last_event_id=last) as answer:
        await eventually(lambda: read(answer))
    assert [name for _, name, _ in read(answer)] == ["reset"]


async def test_ten_thousand_jobs_that_move_are_a_small_update(drum, admin):
    mail = drum.find_task("send_mail")
    async with admin.open(EVENTS) as answer:
        await eventually(lambda: read(answer))
        before = len(answer.body)
        await drum.enqueue_many([mail.call(user_id=number) for number in range(10_000)])
        await eventually(lambda: read(answer)[-1][2].get("jobs/mail/send_mail", {}).get("ready") == 10_000)
        assert len(answer.body) - before < 4_000


async def test_two_hundred_watchers_cost_the_store_what_one_does(drum, admin, monkeypatch):
    monkeypatch.setattr(sampler, "LOOK_EVERY", 3600)
    asked = await note_operations(drum, monkeypatch)
    costs = []
    for watchers in (1, 200):
        asked.clear()
        async with AsyncExitStack() as stack:
            answers = [await stack.enter_async_context(admin.open(EVENTS)) for _ in range(watchers)]
            await eventually(partial(all_are_told, answers))
            costs.append(Tally(asked))
    assert costs[0] == costs[1]
    assert costs[0]["counts"] == 1


async def test_looks_keep_their_pace_however_many_watch(drum, admin, monkeypatch):
    looks = await count_looks(drum, monkeypatch)
    waits = note_waits(monkeypatch)
    async with AsyncExitStack() as stack:
        for _ in range(200):
            await stack.enter_async_context(admin.open(EVENTS))
        await eventually(lambda: looks[0] > 20)
        # Between any two looks lies a whole wait.
        assert looks[0] <= len(waits) + 1


async def test_nobody_looks_while_nobody_watches(drum, admin, monkeypatch):
    async with admin.open(EVENTS) as answer:
        await eventually(lambda: read(answer))
    looks = await count_looks(drum, monkeypatch)
    await drum.counts()
    assert looks == [1]


async def test_too_many_watchers_are_turned_away(admin, monkeypatch):
    monkeypatch.setattr(sampler, "MOST_WATCHERS", 1)
    async with admin.open(EVENTS) as answer:
        await eventually(lambda: read(answer))
        assert (await admin.get(EVENTS)).status == 429


async def test_a_burst_of_watchers_is_turned_away_at_the_limit(admin, monkeypatch):
    monkeypatch.setattr(sampler, "MOST_WATCHERS", 3)
    async with AsyncExitStack() as stack:
        answers = [await stack.enter_async_context(admin.open(EVENTS)) for _ in range(10)]
        await eventually(lambda: all(answer.status for answer in answers))
        assert sorted(answer.status for answer in answers) == [200] * 3 + [429] * 7
    async with admin.open(EVENTS) as answer:
        await eventually(lambda: read(answer))


async def test_whoever_asks_for_the_headers_only_is_not_kept(admin):
    answer = await admin.ask("HEAD", EVENTS)
    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")


async def test_a_watcher_who_takes_nothing_loses_its_place(admin, monkeypatch):
    monkeypatch.setattr(events, "SLOWEST", 0.01)
    monkeypatch.setattr(sampler, "MOST_WATCHERS", 1)
    is_stuck = asyncio.Event()

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        if message["type"] == "http.response.body":
            is_stuck.set()
            await asyncio.Event().wait()

    stalled = asyncio.ensure_future(admin.app(make_scope("GET", EVENTS, admin.headers), receive, send))
    await asyncio.wait_for(is_stuck.wait(), 10)
    await asyncio.wait_for(stalled, 10)
    async with admin.open(EVENTS) as answer:
        await eventually(lambda: read(answer))


@pytest.mark.parametrize("trouble", [StoreUnreachable(), ValueError("a bug")])
async def test_a_watcher_who_comes_while_the_look_fails_is_told_when_it_does_not(drum, admin, monkeypatch, trouble):
    store = await drum.store()
    counts, tries = store.counts, [0]

    def fail_at_first():
        tries[0] += 1
        if tries[0] <= 3:
            raise trouble
        return counts()

    monkeypatch.setattr(store, "counts", fail_at_first)
    async with admin.open(EVENTS) as answer:
        await eventually(lambda: read(answer))
    assert ([name for _, name, _ in read(answer)], tries[0] > 3) == (["reset"], True)


async def test_a_store_that_does_not_answer_is_asked_again(drum, admin, monkeypatch):
    monkeypatch.setattr(sampler, "PATIENCE", 0.05)
    store = await drum.store()
    counts, tries = store.counts, [0]

    def hang_at_first():
        tries[0] += 1
        return asyncio.Event().wait() if tries[0] == 1 else counts()

    monkeypatch.setattr(store, "counts", hang_at_first)
    async with admin.open(EVENTS) as answer:
        await eventually(lambda: read(answer))


async def test_what_is_kept_for_those_who_come_back_is_bounded(drum, admin, monkeypatch):
    monkeypatch.setattr(sampler, "MOST_KEPT_LINES", 2)
    async with admin.open(EVENTS) as other:
        await eventually(lambda: read(other))
        last = read(other)[-1][0]
        for queue in ("a", "b", "c"):
            await drum.queues.pause(queue)
            await eventually(partial(was_told, other, f"queues/{queue}"))
        async with admin.open(EVENTS, last_event_id=last) as again:
            await eventually(lambda: read(again))
        assert [name for _, name, _ in read(again)] == ["reset"]


async def test_the_stream_ends_when_the_app_leaves(drum):
    app = serve(drum, AUTH)
    browser = Browser(app).known_as(bearer(TOKENS["viewer"]))
    async with AsyncExitStack() as stack:
        async with living(app):
            answer = await stack.enter_async_context(browser.open(EVENTS))
            await eventually(lambda: read(answer))
        await asyncio.wait_for(answer.ended.wait(), 10)
        assert (await browser.get(EVENTS)).status == 503


async def test_a_silent_watcher_is_told_that_it_is_not_forgotten(admin, monkeypatch):
    monkeypatch.setattr(sampler, "SILENCE", 0.01)
    async with admin.open(EVENTS) as answer:
        await eventually(lambda: ": still here" in answer.text)


async def test_a_watch_that_lasts_too_long_is_ended(admin, monkeypatch):
    monkeypatch.setattr(sampler, "LONGEST_WATCH", -1)
    async with admin.open(EVENTS) as answer:
        await asyncio.wait_for(answer.ended.wait(), 10)


async def test_no_error_text_is_told():
    drum = make_shop("memory://")
    await drum.enqueue("fail", password="canary-3f9c1d")
    await work_off(drum)
    app = serve(drum, AUTH, role=None)
    async with living(app), Browser(app).known_as(bearer(TOKENS["admin"])).open(EVENTS) as answer:
        await eventually(lambda: read(answer))
    assert "canary" not in answer.text
