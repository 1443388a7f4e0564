"""Claims that stand by in the server: made in the moment in which a job comes, and settled whatever disturbs them."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from redis import Redis

from drumline.clock import fresh_id
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.job import JobState
from drumline.model.query import JobFilter
from drumline.stores.redis import RedisStore
from tests.support.build import REPLICA, new_job, replica_info
from tests.support.proxy import Proxy, new_proxy
from tests.support.valkey import Valkey, new_server
from tests.support.waiting import eventually, run_together

ALL = [Share(ANY_QUEUE, 1)]


@pytest.fixture(scope="module")
def server() -> Iterator[Valkey]:
    with new_server("--save", "", "--appendonly", "no") as made:
        yield made


@pytest.fixture
def store(server: Valkey) -> Iterator[RedisStore]:
    made = open_store(server.url)
    begin(made)
    yield made
    made.close().run()


@pytest.fixture
def proxy(server: Valkey) -> Iterator[Proxy]:
    with new_proxy(server.port) as made:
        yield made


@pytest.fixture
def client(server):
    with closing(Redis(port=server.port)) as made:
        yield made


def open_store(url: str, namespace: str | None = None) -> RedisStore:
    return RedisStore(url, namespace=namespace or f"t{fresh_id()}")


def begin(store: RedisStore) -> None:
    store.migrate().run()
    store.beat(replica_info(), []).run()


def stand_by(store, token=None, seconds=20.0):
    return store.stand_by(REPLICA, ALL, ["job"], token or fresh_id(), seconds=seconds)


def standing(store, **given):
    async def wait():
        return await stand_by(store, **given)

    return asyncio.create_task(wait())


def waiting(client):
    """The connections on which somebody waits."""
    return [one for one in client.client_list() if one["cmd"] == "bzpopmin"]


def state_of(store, job):
    return store.jobs(JobFilter(ids=(job.id,))).run().items[0].state


@pytest.mark.asyncio
async def test_a_job_is_claimed_by_the_step_that_makes_it(store, client):
    claim = standing(store)
    await eventually(lambda: waiting(client))
    job = new_job()
    await store.enqueue([job])
    # Nobody had to ask for it: it is running when its maker is answered.
    assert state_of(store, job) is JobState.RUNNING
    claimed = await claim
    assert claimed is not None
    assert [one.id for one in claimed.claims] == [job.id]


def test_a_thread_can_stand_by_too(store):
    job = new_job()
    claimed: Any
    claimed, _ = run_together(stand_by(store).run, store.enqueue([job]).run)
    assert [one.id for one in claimed.claims] == [job.id]


def test_an_event_loop_that_cannot_watch_a_connection_has_a_thread_wait(store):
    class Unwatching(asyncio.SelectorEventLoop):
        """As on Windows."""

        def remove_reader(self, fd):
            if threads:
                raise NotImplementedError
            return super().remove_reader(fd)

    threads: list[str] = []
    job = new_job()

    async def play():
        threads.append("from here on")
        claim = standing(store)
        await asyncio.sleep(0)
        await store.enqueue([job])
        claimed = await claim
        threads.clear()
        return claimed

    with asyncio.Runner(loop_factory=Unwatching) as runner:
        claimed = runner.run(play())
    assert [one.id for one in claimed.claims] == [job.id]


@pytest.mark.asyncio
async def test_one_whose_connection_is_cut_is_settled_and_the_next_one_stands_by_again(store, client):
    claim = standing(store)
    await eventually(lambda: waiting(client))
    client.client_kill_filter(_type="normal", skipme=True)
    claimed = await claim
    assert (claimed is not None, claimed and claimed.claims) == (True, [])
    job = new_job()
    await store.enqueue([job])
    taken = await standing(store)
    assert taken is not None
    assert [one.id for one in taken.claims] == [job.id]


@pytest.mark.asyncio
async def test_one_whose_answer_is_lost_has_taken_its_job_all_the_same(store, server, proxy, client):
    namespace = f"t{fresh_id()}"
    behind, direct = open_store(proxy.url, namespace), open_store(server.url, namespace)
    begin(direct)
    proxy.lose_answer_of("claim")
    claim = standing(behind)
    await eventually(lambda: waiting(client))
    job = new_job()
    await direct.enqueue([job])
    claimed = await claim
    assert claimed is not None
    (one,) = claimed.claims
    (kept,) = direct.jobs(JobFilter(ids=(job.id,))).run().items
    assert (one.id, one.fence, one.attempt, proxy.lost) == (job.id, kept.fence, 1, 1)
    for opened in (behind, direct):
        await opened.close()


@pytest.mark.asyncio
async def test_scripts_that_the_server_forgot_are_there_when_the_claim_is_made(store, client):
    claim = standing(store)
    await eventually(lambda: waiting(client))
    client.script_flush()
    job = new_job()
    await store.enqueue([job])
    claimed = await claim
    assert claimed is not None
    assert [one.id for one in claimed.claims] == [job.id]


@pytest.mark.asyncio
async def test_who_may_not_wait_is_told_so_once_and_can_claim(server, store, client, caplog):
    client.acl_setuser("hasty", enabled=True, nopass=True, keys="*", channels="*", commands=["+@all", "-bzpopmin"])
    hasty = open_store(f"redis://hasty:any@127.0.0.1:{server.port}")
    begin(hasty)
    job = new_job()
    await hasty.enqueue([job])
    with caplog.at_level("INFO", "drumline.redis"):
        first, second = await stand_by(hasty), await stand_by(hasty)
    assert first is not None
    assert ([one.id for one in first.claims], second) == ([job.id], None)
    assert caplog.text.count("claims cannot stand by") == 1
    await hasty.close()


@pytest.mark.asyncio
async def test_nobody_waits_for_a_server_that_is_away():
    with new_server("--save", "", "--appendonly", "no") as server:
        store = open_store(server.url)
        await store.migrate()
    assert await stand_by(store) is None
    await store.close()


@pytest.mark.asyncio
async def test_a_call_that_is_recalled_leaves_nothing_behind(store, client):
    claim = standing(store, token="mine")
    await eventually(lambda: waiting(client))
    await store.claim(REPLICA, ALL, 0, ["job"], "mine")
    claimed = await claim
    assert claimed is not None
    assert (claimed.claims, waiting(client), list(client.scan_iter("*:bell:mine"))) == ([], [], [])


@pytest.mark.asyncio
async def test_a_hundred_that_are_cancelled_as_jobs_come_lose_none(store):
    """Each job is claimed by the one that stood by, and found by its beat, or is still ready: none is in between."""
    jobs = [new_job() for _ in range(100)]
    for job in jobs:
        claim = standing(store)
        making = asyncio.create_task(enqueue(store, job))
        await asyncio.sleep(0)
        claim.cancel()
        await asyncio.gather(claim, making, return_exceptions=True)
    states = [state_of(store, job) for job in jobs]
    assert set(states) <= {JobState.READY, JobState.RUNNING}
    taken = (await store.claim(REPLICA, [Share(ANY_QUEUE, 200)], 200, ["job"], fresh_id())).claims
    assert len(taken) == states.count(JobState.READY)


async def enqueue(store, job):
    return await store.enqueue([job])
