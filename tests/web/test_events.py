import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from drumline.web import sampler
from tests.support.waiting import eventually
from tests.web.browser import Answer, Browser, bearer, living
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


async def count_looks(drum, monkeypatch) -> list[int]:
    """How often anybody has asked the store for its counts from now on, in one number."""
    store = await drum.store()
    counts, looks = store.counts, [0]

    def count():
        looks[0] += 1
        return counts()

    monkeypatch.setattr(store, "counts", count)
    return looks


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


async def test_however_many_watch_one_looks(drum, admin, monkeypatch):
    monkeypatch.setattr(sampler, "LOOK_EVERY", 3600)
    looks = await count_looks(drum, monkeypatch)
    async with AsyncExitStack() as stack:
        answers = [await stack.enter_async_context(admin.open(EVENTS)) for _ in range(200)]
        await eventually(lambda: all(read(answer) for answer in answers))
        assert looks == [1]


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
