"""What tabs share of what was read."""

import pytest
import pytest_asyncio

from drumline.clock import ManualClock
from drumline.model.query import JobFilter
from drumline.web.web import Web
from tests.support.build import BY, new_schedule, tick_at
from tests.web.shop import make_shop

pytestmark = pytest.mark.asyncio

ID = "0199b9b8-0000-7000-8000-000000000000"


class Told:
    """A store's operation that counts how often it is asked."""

    def __init__(self, operation):
        self.asked = 0
        self._operation = operation

    def __call__(self, *words, **named):
        self.asked += 1
        return self._operation(*words, **named)


@pytest_asyncio.fixture
async def web():
    drum = make_shop("memory://")
    web = Web(drum, clock=ManualClock())
    yield web
    await drum.close()


async def test_tabs_that_look_once_a_second_each_in_its_own_time_ask_the_store_once(web, monkeypatch):
    store = await web.drum.store()
    counts = Told(store.counts)
    monkeypatch.setattr(store, "counts", counts)
    for _ in range(10):
        await web.glance.counts()
        web.clock.advance(0.099)
    assert counts.asked == 1
    web.clock.advance(0.1)
    await web.glance.counts()
    assert counts.asked == 2


async def test_what_one_job_says_is_read_anew_at_every_look_of_one_tab(web, monkeypatch):
    store = await web.drum.store()
    jobs, logs = Told(store.jobs), Told(store.logs)
    monkeypatch.setattr(store, "jobs", jobs)
    monkeypatch.setattr(store, "logs", logs)
    for _ in range(3):
        await web.glance.jobs(JobFilter(ids=(ID,)), limit=1)
        await web.glance.logs(ID)
        web.clock.advance(0.5)
    assert (jobs.asked, logs.asked) == (3, 3)


async def test_an_action_of_anybody_is_seen_at_once(web, monkeypatch):
    store = await web.drum.store()
    counts = Told(store.counts)
    monkeypatch.setattr(store, "counts", counts)
    await web.glance.counts()
    web.glance.forget()
    await web.glance.counts()
    assert counts.asked == 2


async def outcomes_of_ticks(web, status):
    """How their jobs ended, of those that have one."""
    return [tick.outcome for tick in await web.glance.newest_ticks(status, 10) if tick.job_id is not None]


async def test_a_tick_whose_job_had_not_ended_is_read_anew(web):
    store = await web.drum.store()
    await store.declare([new_schedule()], by=BY)
    (fired,) = await store.fire([tick_at(await store.now())], by="web-1:abc")
    (status,) = await store.schedules()
    assert await outcomes_of_ticks(web, status) == [None]
    await web.drum.jobs.cancel(fired.job_id)
    web.clock.advance(1.1)
    assert await outcomes_of_ticks(web, status) == ["cancelled"]


async def test_ticks_whose_jobs_have_ended_are_not_read_again(web, monkeypatch):
    store = await web.drum.store()
    await store.declare([new_schedule()], by=BY)
    (status,) = await store.schedules()
    ticks = Told(store.ticks)
    monkeypatch.setattr(store, "ticks", ticks)
    for _ in range(3):
        await web.glance.newest_ticks(status, 10)
        web.clock.advance(60)
    assert ticks.asked == 1
