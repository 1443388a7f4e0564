"""What the machine does to a store: full disks, forks, kills."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta

import pytest

from drumline.clock import fresh_id
from drumline.errors import StoreUnusable
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.query import JobFilter
from drumline.stores.base import topic
from drumline.stores.sqlite import SqliteStore
from drumline.stores.sqlite.connect import Place
from tests.support.build import done, new_job
from tests.support.waiting import eventually

ENQUEUE_WITHOUT_END = """
import sys
from drumline.clock import fresh_id
from drumline.model.claim import ANY_QUEUE, Share
from drumline.stores.sqlite import SqliteStore
from tests.support.build import done, new_job

store = SqliteStore(sys.argv[1])
while True:
    (answer,) = store.enqueue([new_job(args=b"x" * 2000)]).run()
    print(answer.id, flush=True)
    claims = store.claim("r:1", [Share(ANY_QUEUE, 1)], 1, ["job"], fresh_id()).run().claims
    store.finish([done(claim) for claim in claims]).run()
"""


def is_whole(path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("pragma integrity_check").fetchall() == [("ok",)])


def recount(path) -> bool:
    """Whether the kept counts are those of the rows."""
    with closing(sqlite3.connect(path)) as connection:
        kept = connection.execute(
            "select sum(ready + delayed + running), sum(done + dead + cancelled) from drumline_total"
        )
        rows = "select (select count(*) from drumline_job), (select count(*) from drumline_history)"
        return bool(kept.fetchall() == connection.execute(rows).fetchall())


@pytest.fixture
def disk(monkeypatch):
    """A disk that has room for as many pages as the test says."""
    room: dict[str, int] = {}
    connect = Place.connect_writer

    def connect_with_little_room(place: Place) -> sqlite3.Connection:
        connection = connect(place)
        if "pages" in room:
            connection.execute(f"pragma max_page_count = {room['pages']}")
        return connection

    monkeypatch.setattr(Place, "connect_writer", connect_with_little_room)
    return room


def test_a_full_disk_is_told_of_keeps_the_state_and_is_over_when_there_is_room(path, store, disk):
    kept = new_job()
    store.enqueue([kept]).run()
    claims = store.claim("r:1", [Share(ANY_QUEUE, 1)], 1, ["job"], fresh_id()).run().claims
    store.close().run()
    disk["pages"] = 1
    large = [new_job(args=b"x" * 100_000) for _ in range(10)]
    with pytest.raises(StoreUnusable, match="the disk is full: make room"):
        store.enqueue(large).run()
    assert [job.id for job in store.jobs(JobFilter()).run().items] == [kept.id]
    del disk["pages"]
    assert store.finish([done(claim) for claim in claims]).run() == [True]
    assert all(answer.created for answer in store.enqueue(large).run())
    assert is_whole(path)
    assert recount(path)


def test_a_damaged_file_is_told_of(path, store):
    for _ in range(20):
        store.enqueue([new_job(args=b"x" * 3000) for _ in range(20)]).run()
    store.close().run()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(os.urandom(size - 4096 * 3))
    with pytest.raises(StoreUnusable, match="damaged"):
        store.jobs(JobFilter(), limit=1000).run()
    with pytest.raises(StoreUnusable, match="damaged"):
        store.enqueue([new_job()]).run()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_store_may_be_used_on_both_sides_of_a_fork(path, store):
    store.enqueue([new_job()]).run()
    assert len(store.jobs(JobFilter()).run().items) == 1
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            is_well = False
            try:
                for _ in range(20):
                    store.enqueue([new_job()]).run()
                store.close().run()
                is_well = True
            finally:
                os._exit(0 if is_well else 1)
        children.append(child)
        store.enqueue([new_job()]).run()
    for _ in range(20):
        store.enqueue([new_job()]).run()
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert len(store.jobs(JobFilter(), limit=1000).run().items) == 1 + 3 + 20 + 60
    assert is_whole(path)
    assert recount(path)


@pytest.mark.asyncio
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_listener_goes_on_hearing_after_a_fork(path, store):
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        ear.watch([topic.queue("default")])
        child = os.fork()
        if child == 0:
            is_well = False
            try:
                store.enqueue([new_job()]).run()
                store.close().run()
                is_well = True
            finally:
                os._exit(0 if is_well else 1)
        assert os.waitpid(child, 0)[1] == 0
        await eventually(lambda: heard)
        heard.clear()
        await store.enqueue([new_job()])
        await eventually(lambda: heard)


def test_a_kill_in_the_middle_of_commits_loses_nothing_that_was_answered(path, store):
    store.close().run()
    seed = random.Random(fresh_id())
    answered: set[str] = set()
    for _ in range(3):
        command = [sys.executable, "-c", ENQUEUE_WITHOUT_END, str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(seed.randint(20, 120)):
            answered.add(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        answered |= set(process.communicate()[0].split())
        assert is_whole(path)
        assert recount(path)
    assert answered <= {job.id for job in store.jobs(JobFilter(), limit=10_000).run().items}
    assert store.enqueue([new_job()]).run()[0].created


def test_two_processes_that_write_without_end_take_turns(path, store):
    store.close().run()
    command = [sys.executable, "-c", ENQUEUE_WITHOUT_END, str(path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        for _ in range(100):
            assert process.stdout.readline()
    for process in processes:
        process.kill()
        process.communicate()
    assert is_whole(path)
    assert recount(path)


def test_the_log_is_written_back_when_the_last_one_closes(path, store):
    store.enqueue([new_job() for _ in range(100)]).run()
    store.jobs(JobFilter()).run()
    store.close().run()
    assert not path.with_name("jobs.db-wal").exists()
    other = SqliteStore(path)
    assert len(other.jobs(JobFilter(), limit=200).run().items) == 100
    other.close().run()


def test_a_file_that_was_removed_is_missed_at_once(path, store):
    store.enqueue([new_job()]).run()
    store.counts().run()
    path.unlink()
    for operation in (store.enqueue([new_job()]), store.counts()):
        with pytest.raises(StoreUnusable, match="no such database"):
            operation.run()
    store.migrate().run()
    assert store.enqueue([new_job()]).run()[0].created
    assert len(store.jobs(JobFilter()).run().items) == 1


def test_a_lock_file_that_was_removed_is_made_anew(path, store):
    store.enqueue([new_job()]).run()
    path.with_name("jobs.db-lock").unlink()
    store.enqueue([new_job()]).run()
    assert path.with_name("jobs.db-lock").exists()


def test_jobs_due_at_once_in_great_number_are_counted_as_ready(path, store, clock):
    for _ in range(3):
        store.enqueue([new_job(delay=60) for _ in range(10_000)]).run()
    clock.advance(timedelta(seconds=60))
    assert [(count.ready, count.delayed) for count in store.counts().run()] == [(30_000, 0)]
    assert recount(path)
