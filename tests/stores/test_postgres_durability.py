"""What is on the server's disk when a call returns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from drumline.clock import fresh_id
from drumline.model.claim import Claim, Share
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


def is_on_disk(log: psycopg.Connection[Any], prepare: Callable[[], Callable[[], object]]) -> bool:
    """Whether what is written so is on disk when the call returns, each time of three.

    Now and then the server brings its log to the disk by itself, and perhaps just then.
    """
    for _ in range(3):
        write = prepare()
        before = end_of_log(log)
        write()
        if not is_flushed_beyond(log, before):
            return False
    return True


@contextmanager
def opened(server: Server, **options: Any) -> Iterator[PostgresStore]:
    store = open_store(server.url, namespace=f"t{fresh_id()}", **options)
    assert isinstance(store, PostgresStore)
    try:
        store.migrate().run()
        # Connected, and everything read once.
        store.enqueue([new_job("other")]).run()
        yield store
    finally:
        store.close().run()


def claim_one(store: PostgresStore) -> Claim:
    store.enqueue([new_job("other")]).run()
    return store.claim(REPLICA, [Share("*", 1)], 1, ["other"], fresh_id()).run().claims[0]


@pytest.mark.parametrize(("synchronous", "is_waited_for"), [("full", True), ("normal", False)])
@pytest.mark.parametrize("has_key", [False, True])
def test_a_job_is_on_disk_when_enqueue_returns_unless_the_user_asks(server, log, synchronous, is_waited_for, has_key):
    with opened(server, synchronous=synchronous) as store:
        found = is_on_disk(log, lambda: store.enqueue([new_job(key=fresh_id() if has_key else None)]).run)
    assert found is is_waited_for


@pytest.mark.parametrize(("synchronous", "is_waited_for"), [("full", True), ("normal", False)])
def test_an_outcome_is_on_disk_when_finish_returns_unless_the_user_asks(server, log, synchronous, is_waited_for):
    with opened(server, synchronous=synchronous) as store:
        found = is_on_disk(log, lambda: store.finish([done(claim_one(store))]).run)
    assert found is is_waited_for


def test_claims_and_beats_are_not_waited_for(server, log):
    with opened(server) as store:

        def prepare() -> Callable[[], object]:
            store.enqueue([new_job("other")]).run()
            return claim_and_beat

        def claim_and_beat() -> None:
            (claim,) = store.claim(REPLICA, [Share("*", 1)], 1, ["other"], fresh_id()).run().claims
            store.beat(replica_info(), [claim.ref]).run()

        store.beat(replica_info(), []).run()
        assert not is_on_disk(log, prepare)


def test_a_tick_is_on_disk_whatever_the_user_asks(server, log):
    with opened(server, synchronous="normal") as store:
        store.declare([new_schedule()], by=BY).run()
        assert is_on_disk(log, lambda: store.fire([tick_at(store.now().run())], by=REPLICA).run)


def test_in_the_callers_own_transaction_the_callers_durability_holds(server, log):
    with opened(server, synchronous="normal") as store, psycopg.connect(server.url) as own:

        def prepare() -> Callable[[], object]:
            store.enqueue([new_job()], tx=own).run()
            return own.commit

        assert is_on_disk(log, prepare)
