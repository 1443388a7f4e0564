"""What is on the server's disk when a call returns."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from drumline.clock import fresh_id
from drumline.model.claim import Share
from drumline.stores.open import open_store
from drumline.stores.postgres import PostgresStore
from tests.support.build import BY, REPLICA, done, new_job, new_schedule, replica_info, tick_at
from tests.support.postgres import Server, new_server

# Nobody writes to the disk on the side while a test looks.
SETTINGS = ("fsync=off", "wal_writer_delay=10s", "bgwriter_lru_maxpages=0", "autovacuum=off")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with new_server(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def log(server: Server) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


def end_of_log(log: psycopg.Connection[Any]) -> str:
    ((place,),) = log.execute("select pg_current_wal_insert_lsn()").fetchall()
    return str(place)


def is_flushed_beyond(log: psycopg.Connection[Any], place: str) -> bool:
    ((is_flushed,),) = log.execute("select pg_current_wal_flush_lsn() > %s::pg_lsn", (place,)).fetchall()
    return bool(is_flushed)


def open_migrated(server: Server, **options: Any) -> PostgresStore:
    store = open_store(server.url, namespace=f"t{fresh_id()}", **options)
    assert isinstance(store, PostgresStore)
    store.migrate().run()
    # Connected, and everything read once.
    store.enqueue([new_job("other")]).run()
    return store


@pytest.mark.parametrize(("synchronous", "is_waited_for"), [("full", True), ("normal", False)])
@pytest.mark.parametrize("key", [None, "k"])
def test_a_job_is_on_disk_when_enqueue_returns_unless_the_user_asks(server, log, synchronous, is_waited_for, key):
    store = open_migrated(server, synchronous=synchronous)
    before = end_of_log(log)
    store.enqueue([new_job(key=key)]).run()
    assert is_flushed_beyond(log, before) is is_waited_for
    store.close().run()


@pytest.mark.parametrize(("synchronous", "is_waited_for"), [("full", True), ("normal", False)])
def test_an_outcome_is_on_disk_when_finish_returns_unless_the_user_asks(server, log, synchronous, is_waited_for):
    store = open_migrated(server, synchronous=synchronous)
    (claim,) = store.claim(REPLICA, [Share("*", 1)], 1, ["other"], "t").run().claims
    before = end_of_log(log)
    assert store.finish([done(claim)]).run() == [True]
    assert is_flushed_beyond(log, before) is is_waited_for
    store.close().run()


def test_claims_and_beats_are_not_waited_for(server, log):
    store = open_migrated(server)
    store.beat(replica_info(), []).run()
    before = end_of_log(log)
    (claim,) = store.claim(REPLICA, [Share("*", 1)], 1, ["other"], "t").run().claims
    store.beat(replica_info(), [claim.ref]).run()
    assert not is_flushed_beyond(log, before)
    store.close().run()


def test_a_tick_is_on_disk_whatever_the_user_asks(server, log):
    store = open_migrated(server, synchronous="normal")
    store.declare([new_schedule()], by=BY).run()
    before = end_of_log(log)
    store.fire([tick_at(store.now().run())], by=REPLICA).run()
    assert is_flushed_beyond(log, before)
    store.close().run()


def test_in_the_callers_own_transaction_the_callers_durability_holds(server, log):
    store = open_migrated(server, synchronous="normal")
    with psycopg.connect(server.url) as own:
        before = end_of_log(log)
        store.enqueue([new_job()], tx=own).run()
        own.commit()
    assert is_flushed_beyond(log, before)
    store.close().run()
