"""What happens to a server, and what a store makes of it."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from redis import Redis

from drumline.clock import fresh_id
from drumline.errors import StoreError, StoreUnreachable, StoreUnusable
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.query import JobFilter
from drumline.stores.base import topic
from drumline.stores.redis import RedisStore
from drumline.stores.redis.connect import read_slots
from tests.support.build import BY, done, new_job, new_schedule, replica_info
from tests.support.ports import free_port
from tests.support.valkey import Valkey, new_server
from tests.support.waiting import eventually

IN_MEMORY = ("--save", "", "--appendonly", "no")
DURABLE = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


@pytest.fixture
def server() -> Iterator[Valkey]:
    with new_server(*IN_MEMORY) as made:
        yield made


@contextmanager
def opened(url: str, **given: Any) -> Iterator[RedisStore]:
    store = RedisStore(url, namespace="t", **given)
    try:
        yield store
    finally:
        store.close().run()


@pytest.fixture
def store(server: Valkey) -> Iterator[RedisStore]:
    with opened(server.url) as made:
        made.migrate().run()
        yield made


def ids_of(store: RedisStore) -> list[str]:
    return [job.id for job in store.jobs(JobFilter()).run().items]


def client_of(server: Valkey) -> Any:
    return closing(Redis(port=server.port))


def test_a_server_that_forgot_the_scripts_is_given_them_again(server, store):
    store.enqueue([new_job()]).run()
    with client_of(server) as client:
        client.script_flush()
    assert [answer.created for answer in store.enqueue([new_job()]).run()] == [True]


def test_cut_connections_are_opened_again(server, store):
    store.enqueue([new_job()]).run()
    with client_of(server) as client:
        client.client_kill_filter(_type="normal", skipme=True)
    assert [answer.created for answer in store.enqueue([new_job()]).run()] == [True]


def test_a_paused_server_is_waited_for(server, store):
    with client_of(server) as client:
        client.client_pause(300)
    assert [answer.created for answer in store.enqueue([new_job()]).run()] == [True]


def test_a_call_that_takes_too_long_is_made_again_and_done_once(server):
    with opened(f"{server.url}?socket_timeout=0.2") as store, client_of(server) as client:
        store.migrate().run()
        job = new_job()
        sleeper = threading.Thread(target=lambda: client.execute_command("DEBUG", "SLEEP", "1"))
        sleeper.start()
        store.enqueue([job]).run()
        sleeper.join()
        assert ids_of(store) == [job.id]


def test_a_restart_without_persistence_is_told_and_survived(server, store, caplog):
    store.enqueue([new_job()]).run()
    (claim,) = store.claim("r1:1", [Share(ANY_QUEUE, 1)], 1, ["job"], "t").run().claims
    server.kill()
    server.start()
    with caplog.at_level(logging.ERROR, "drumline.redis"):
        assert store.finish([done(claim)]).run() == [False]
    assert "all jobs and schedules are gone" in caplog.text
    assert store.beat(replica_info(), [claim.ref]).run().lost == [claim.ref]
    assert store.declare([new_schedule()], by=BY).run() == [True]
    job = new_job()
    store.enqueue([job]).run()
    assert ids_of(store) == [job.id]


def test_every_process_tells_of_a_loss_once(server, store, caplog):
    other = RedisStore(server.url, namespace="t")
    other.counts().run()
    store.enqueue([new_job()]).run()
    server.kill()
    server.start()
    with caplog.at_level(logging.ERROR, "drumline.redis"):
        for one in (store, other):
            one.enqueue([new_job()]).run()
            one.counts().run()
    assert len([record for record in caplog.records if "are gone" in record.message]) == 2
    other.close().run()


def test_a_restart_with_persistence_keeps_everything():
    with new_server(*DURABLE) as server, opened(server.url) as store:
        store.migrate().run()
        jobs = [new_job() for _ in range(3)]
        store.enqueue(jobs).run()
        server.kill()
        server.start()
        assert sorted(ids_of(store)) == sorted(job.id for job in jobs)


@pytest.mark.asyncio
async def test_hints_come_again_after_a_restart(server, store):
    heard: list[str] = []
    async with store.wakeups(heard.append) as listener:
        listener.watch([topic.queue("default")])
        assert listener.is_hearing
        server.kill()
        # Those who sleep are told to look.
        await eventually(lambda: not listener.is_hearing and heard)
        heard.clear()
        await asyncio.to_thread(server.start)
        await eventually(lambda: listener.is_hearing and heard)
        heard.clear()
        await store.enqueue([new_job()])
        await eventually(lambda: topic.queue("default") in heard)


def test_a_server_that_is_away_is_out_of_reach():
    with opened(f"redis://:hidden@127.0.0.1:{free_port()}/0", patience=0.2) as store:
        with pytest.raises(StoreUnreachable) as caught:
            store.enqueue([new_job()]).run()
        assert "hidden" not in str(caught.value)
        with pytest.raises(StoreUnreachable):
            asyncio.run(_await(store.counts))


async def _await(make: Callable[[], Any]) -> Any:
    return await make()


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".internal"])
def test_an_address_that_no_resolver_takes_is_an_error_and_no_silence(host):
    with pytest.raises(StoreError, match="redis://"):
        RedisStore(f"redis://{host}:6379").now().run()


def test_a_name_that_cannot_be_sent_is_an_error_and_the_next_call_is_answered(store):
    with pytest.raises(StoreError):
        store.ticks("\udcff").run()
    store.now().run()


def test_a_node_that_is_told_without_a_name_is_the_one_that_was_asked():
    asked = ("10.0.0.1", 7000)
    slots = [(0, 99, [b"10.0.0.2", 7000]), (100, 16383, [None, 7001], [b"", 7002])]
    owner, nodes = read_slots(slots, 100, asked)
    assert owner == ("10.0.0.1", 7001)
    assert nodes == (("10.0.0.2", 7000), ("10.0.0.1", 7001), ("10.0.0.1", 7002))


def test_a_wrong_password_is_refused_and_not_told():
    with new_server(*IN_MEMORY, "--requirepass", "right") as server:
        for secret in ("wrong", ""):
            address = server.url.replace("redis://", f"redis://:{secret}@" if secret else "redis://")
            with opened(address, patience=0.2) as store:
                with pytest.raises(StoreUnusable) as caught:
                    store.migrate().run()
                assert "mend user and password" in str(caught.value)
                assert "wrong" not in str(caught.value)
        with opened(server.url.replace("redis://", "redis://:right@")) as store:
            store.migrate().run()


def test_a_full_memory_refuses_whole_calls(server, store):
    job = new_job()
    store.enqueue([job]).run()
    with client_of(server) as client:
        client.config_set("maxmemory", "1mb")
        with pytest.raises(StoreUnusable, match="memory is full"):
            store.enqueue([new_job(), new_job()]).run()
        assert ids_of(store) == [job.id]
        client.config_set("maxmemory", "0")
    assert len(store.enqueue([new_job()]).run()) == 1


def test_a_fork_opens_connections_of_its_own(server, store):
    store.enqueue([new_job()]).run()
    child = os.fork()
    if child == 0:
        made = store.enqueue([new_job()]).run()
        store.close().run()
        os._exit(0 if made[0].created else 1)
    store.enqueue([new_job()]).run()
    assert os.waitpid(child, 0)[1] == 0
    assert len(ids_of(store)) == 3


def test_what_weakens_the_promises_is_told_once(server, caplog):
    with caplog.at_level(logging.WARNING, "drumline.redis"), opened(server.url) as store:
        store.migrate().run()
        store.counts().run()
        store.close().run()
        store.counts().run()
    assert [record.message for record in caplog.records if "keeps nothing" in record.message] == [
        f"{server.url}: it keeps nothing over a restart (appendonly no, no save): set appendonly yes"
    ]


def test_namespaces_do_not_see_each_other(server, store):
    other = RedisStore(server.url, namespace=f"t{fresh_id()}")
    other.migrate().run()
    store.enqueue([new_job()]).run()
    assert (len(ids_of(store)), ids_of(other)) == (1, [])
    other.close().run()


def test_a_node_of_a_cluster_is_not_taken_for_a_server():
    with (
        new_server(*IN_MEMORY, "--cluster-enabled", "yes") as server,
        opened(server.url, patience=0.2) as store,
        pytest.raises(StoreUnusable, match=r"redis\+cluster://"),
    ):
        store.migrate().run()


def test_an_enqueue_waits_for_the_disk_if_asked_to():
    with new_server(*DURABLE) as server, opened(server.url, confirm="disk") as store, client_of(server) as client:
        store.migrate().run()
        if "waitaof" not in {name.lower() for name in client.command()}:
            with pytest.raises(StoreUnusable, match=r"needs Redis 7\.2 or Valkey"):
                store.enqueue([new_job()]).run()
            return
        assert store.enqueue([new_job(), new_job()]).run()[0].created
        assert client.info("commandstats")["cmdstat_waitaof"]["calls"] == 1


def test_a_server_without_a_disk_cannot_confirm_by_it(server):
    with opened(server.url, confirm="disk") as store:
        store.migrate().run()
        with pytest.raises(StoreUnusable, match="appendonly yes"):
            store.enqueue([new_job()]).run()
        # Only enqueues are confirmed.
        assert store.counts().run()


def test_an_enqueue_that_no_replica_confirms_is_in_doubt(server):
    with opened(server.url, confirm="replica") as store:
        store.migrate().run()
        job = new_job()
        with pytest.raises(StoreUnreachable, match="not confirmed by its replica"):
            store.enqueue([job]).run()
        assert ids_of(store) == [job.id]
