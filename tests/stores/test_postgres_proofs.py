"""Long proofs: committed means exactly one job, and an old snapshot does not slow a drain down."""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import psycopg
import pytest

from drumline.clock import fresh_id
from drumline.model.claim import Share
from drumline.model.query import JobFilter
from drumline.stores.postgres import PostgresStore
from tests.support.build import REPLICA, done, new_job
from tests.support.postgres import new_server

pytestmark = [pytest.mark.prove, pytest.mark.timeout(3600)]

# Writes an order and its job in one transaction, again and again; each line that it prints was committed.
WRITER = """
import sys
import psycopg
from drumline.clock import fresh_id
from drumline.stores.postgres import PostgresStore
from tests.support.build import new_job

store = PostgresStore(sys.argv[1])
with psycopg.connect(sys.argv[1]) as own:
    while True:
        job = new_job(id=fresh_id())
        own.execute("insert into orders values (%s)", (job.id,))
        store.enqueue([job], tx=own).run()
        own.commit()
        print(job.id, flush=True)
"""


@contextmanager
def new_store() -> Iterator[tuple[str, PostgresStore]]:
    with new_server() as server:
        store = PostgresStore(server.url)
        store.migrate().run()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("create table orders (id uuid primary key)")
        try:
            yield server.url, store
        finally:
            store.close().run()


def ordered(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute("select id::text from orders")}


def stored(store: PostgresStore) -> list[str]:
    ids: list[str] = []
    after: str | None = None
    while True:
        page = store.jobs(JobFilter(), after=after, limit=1000).run()
        ids += [job.id for job in page.items]
        after = page.next
        if after is None:
            return ids


def test_of_ten_thousand_transactions_each_committed_one_has_exactly_one_job():
    random = Random(1)
    with new_store() as (url, store), psycopg.connect(url) as own:
        for _ in range(10_000):
            job_id = fresh_id()
            own.execute("insert into orders values (%s)", (job_id,))
            store.enqueue([new_job(id=job_id)], tx=own).run()
            (own.commit if random.random() < 0.5 else own.rollback)()
        jobs = stored(store)
        assert len(jobs) == len(set(jobs))
        assert set(jobs) == ordered(url)


def test_two_hundred_killed_writers_leave_no_order_without_its_job():
    random = Random(2)
    with new_store() as (url, store):
        for _ in range(200):
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, url],
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(random.random() * 0.02)
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            writer.stdout.close()
        jobs = stored(store)
        assert len(jobs) == len(set(jobs))
        assert set(jobs) == ordered(url)


def drain(jobs: int, *, is_pinned: bool) -> float:
    """Jobs a second of one worker's claims and ends, with an idle snapshot open or not."""
    with new_store() as (url, store), psycopg.connect(url) as idle:
        if is_pinned:
            idle.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            idle.execute("select count(*) from orders")
        for _ in range(0, jobs, 10_000):
            store.enqueue([new_job() for _ in range(10_000)]).run()
        began, ended = time.perf_counter(), 0
        while claims := store.claim(REPLICA, [Share("*", 200)], 200, ["job"], fresh_id()).run().claims:
            ended += sum(store.finish([done(claim) for claim in claims]).run())
        assert ended == jobs
        return jobs / (time.perf_counter() - began)


def test_a_drain_keeps_its_pace_while_an_old_snapshot_is_open():
    jobs = int(os.environ.get("DRUMLINE_TEST_PINNED_JOBS", "200000"))
    pairs = [(drain(jobs, is_pinned=True), drain(jobs, is_pinned=False)) for _ in range(3)]
    print(pairs)
    assert statistics.median(pinned / free for pinned, free in pairs) >= 0.6
