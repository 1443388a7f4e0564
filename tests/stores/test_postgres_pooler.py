"""The store works through pgbouncer in transaction mode, and says what does not."""

import logging
from collections.abc import Iterator
from typing import cast

import pytest

from drumline.model.claim import Claim, Share
from drumline.model.query import JobFilter
from drumline.stores.base import topic
from drumline.stores.postgres import PostgresStore
from tests.support.build import BY, REPLICA, done, new_job, new_schedule, replica_info, tick_at
from tests.support.players import take_all
from tests.support.pooler import new_pooler
from tests.support.postgres import Server, new_server
from tests.support.waiting import eventually, run_together


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with new_server() as running:
        yield running


@pytest.fixture(scope="module")
def pooled(server: Server) -> Iterator[str]:
    with new_pooler(server.url) as url:
        yield url


@pytest.fixture
def store(pooled: str, server: Server, request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    made = PostgresStore(pooled, namespace=f"n{abs(hash(request.node.name)):x}"[:40])
    made.migrate().run()
    yield made
    made.close().run()


def test_the_life_of_a_job_goes_through_a_pooler(store):
    store.enqueue([new_job(key="k"), new_job()]).run()
    claimed = store.claim(REPLICA, [Share("default", 5), Share("*", 5)], 5, ["job"], "t").run()
    assert len(claimed.claims) == 2
    store.beat(replica_info(), [claim.ref for claim in claimed.claims]).run()
    assert store.finish([done(claim) for claim in claimed.claims]).run() == [True, True]
    store.declare([new_schedule()], by=BY).run()
    store.fire([tick_at(store.now().run())], by=REPLICA).run()
    assert sum(count.done for count in store.counts().run()) == 2
    assert len(store.jobs(JobFilter()).run().items) == 3


def test_eight_claimers_take_each_job_once_through_a_pooler(store):
    store.enqueue([new_job() for _ in range(500)]).run()
    taken = run_together(*(lambda place=place: take_all(store, f"r{place}:1", 20) for place in range(8)))
    ids = [claim.id for part in taken for claim in cast("list[Claim]", part)]
    assert (len(ids), len(set(ids))) == (500, 500)


@pytest.mark.asyncio
async def test_through_a_pooler_a_listener_says_that_it_hears_nothing(store, caplog):
    with caplog.at_level(logging.WARNING, "drumline.postgres"):
        async with store.wakeups(lambda _: None) as ear:
            assert not ear.is_hearing
    assert "store.listen_url" in caplog.text
    assert caplog.text.count("pooler") == 1


@pytest.mark.asyncio
async def test_hints_arrive_by_the_servers_own_address(store, server, pooled):
    listening = PostgresStore(pooled, namespace=store.place.namespace, listen_url=server.url)
    heard: list[str] = []
    async with listening.wakeups(heard.append) as ear:
        assert ear.is_hearing
        ear.watch([topic.queue("default")])
        await store.enqueue([new_job()])
        await eventually(lambda: heard == [topic.queue("default")])
    await listening.close()
