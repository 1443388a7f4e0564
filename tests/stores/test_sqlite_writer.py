import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from drumline.clock import fresh_id
from drumline.errors import KeyTaken, StoreError, StoreUnreachable
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.job import NewJob
from drumline.model.query import JobFilter
from drumline.stores.relational import produce
from drumline.stores.sqlite import SqliteStore, connect
from drumline.stores.sqlite.mutex import WriteMutex
from drumline.stores.statements import Statement
from tests.support.build import new_job, replica_info, unique


@contextmanager
def writer_kept_waiting(path: Path) -> Iterator[None]:
    """As if another process were writing: what is asked for meanwhile queues up."""
    mutex = WriteMutex(path, 1)
    with mutex.held():
        yield
    mutex.close()


async def queue_up(*operations: Any) -> list[asyncio.Future[Any]]:
    """Begin each operation, and let it reach the writer's queue."""
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(asyncio.wait_for(item, 30)) for item in operations]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def answers_of(tasks: list[asyncio.Future[Any]]) -> list[Any]:
    """What each came to, an error too."""
    return list(await asyncio.gather(*tasks, return_exceptions=True))


def commits(said: list[str]) -> int:
    return sum(statement.upper().startswith("COMMIT") for statement in said)


@pytest.mark.asyncio
async def test_what_has_queued_up_shares_a_commit(path, store, statements):
    await store.enqueue([new_job()])
    before = commits(statements)
    with writer_kept_waiting(path):
        tasks = await queue_up(*(store.enqueue([new_job()]) for _ in range(100)))
    answers = await asyncio.gather(*tasks)
    assert all(answer.created for (answer,) in answers)
    # One that the writer had already taken in hand, and all the others.
    assert commits(statements) - before <= 2
    assert len((await store.jobs(JobFilter(), limit=200)).items) == 101


@pytest.mark.asyncio
async def test_totals_and_hints_are_written_once_for_all_that_share_a_commit(path, store, statements):
    await store.enqueue([new_job()])
    with writer_kept_waiting(path):
        tasks = await queue_up(*(store.enqueue([new_job()]) for _ in range(50)))
    statements.clear()
    await asyncio.gather(*tasks)
    assert sum("insert into drumline_total" in statement for statement in statements) <= 2
    assert [count.ready for count in await store.counts()] == [51]


@pytest.mark.asyncio
async def test_a_member_that_fails_leaves_its_neighbours_alone(path, store):
    holder = new_job(key="k")
    await store.enqueue([holder])
    refused = [new_job(), new_job(key=unique("k", on_conflict="raise"))]
    with writer_kept_waiting(path):
        tasks = await queue_up(store.enqueue([new_job()]), store.enqueue(refused), store.enqueue([new_job()]))
    first, failed, last = await answers_of(tasks)
    assert isinstance(failed, KeyTaken)
    assert first[0].created
    assert last[0].created
    stored = {job.id for job in (await store.jobs(JobFilter())).items}
    assert stored == {holder.id, first[0].id, last[0].id}
    assert [count.ready for count in await store.counts()] == [3]


@pytest.mark.asyncio
async def test_a_member_that_the_driver_refuses_leaves_its_neighbours_alone(path, store):
    unfit = NewJob(id=fresh_id(), task="job", args=object())  # type: ignore[arg-type]
    await store.enqueue([new_job()])
    with writer_kept_waiting(path):
        tasks = await queue_up(store.enqueue([new_job()]), store.enqueue([unfit]), store.enqueue([new_job()]))
    first, failed, last = await answers_of(tasks)
    assert isinstance(failed, StoreError)
    assert isinstance(failed.__cause__, sqlite3.Error)
    assert first[0].created
    assert last[0].created


@pytest.mark.asyncio
async def test_a_member_that_breaks_the_whole_transaction_fails_alone(path, store, monkeypatch):
    """Some errors make SQLite undo everything, and leave no savepoint to go back to."""
    enqueue = produce.enqueue

    def enqueue_or_break(ways, step, jobs):
        if any(job.task == "broken" for job in jobs):
            yield Statement("rollback")
            raise sqlite3.OperationalError("disk I/O error")
        return (yield from enqueue(ways, step, jobs))

    monkeypatch.setattr(produce, "enqueue", enqueue_or_break)
    await store.enqueue([new_job()])
    with writer_kept_waiting(path):
        tasks = await queue_up(*(store.enqueue([new_job(task)]) for task in ("job", "job", "broken", "job")))
    *_, broken, last = answers = await answers_of(tasks)
    assert isinstance(broken, StoreError)
    assert last[0].created
    stored = {job.id for job in (await store.jobs(JobFilter())).items}
    assert {answer[0].id for answer in answers if answer is not broken} < stored
    assert [count.ready for count in await store.counts()] == [4]


@pytest.mark.asyncio
async def test_a_beat_goes_ahead_of_what_is_queued(path, store, statements):
    await store.enqueue([new_job()])
    # Kept waiting with one call in hand, the writer cannot see what queues up behind it.
    with writer_kept_waiting(path):
        tasks = await queue_up(*(store.enqueue([new_job()]) for _ in range(5)), store.beat(replica_info(), []))
    statements.clear()
    await asyncio.gather(*tasks)
    written = [said for said in statements if "insert into drumline_job" in said or "drumline_replica" in said]
    place = next(number for number, said in enumerate(written) if "drumline_replica" in said)
    assert place <= 1


@pytest.mark.asyncio
async def test_a_caller_who_was_cancelled_harms_nobody(path, store):
    await store.enqueue([new_job()])
    with writer_kept_waiting(path):
        tasks = await queue_up(*(store.enqueue([new_job()]) for _ in range(3)))
        tasks[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
    first, last = await asyncio.gather(tasks[0], tasks[2])
    assert first[0].created
    assert last[0].created
    assert (await store.enqueue([new_job()]))[0].created


def test_a_caller_whose_loop_has_closed_harms_nobody(path, store):
    store.enqueue([new_job()]).run()

    async def ask_and_go():
        await queue_up(store.enqueue([new_job()]))

    with writer_kept_waiting(path):
        asyncio.run(ask_and_go())
    assert store.enqueue([new_job()]).run()[0].created


def test_a_claim_that_takes_nothing_writes_nothing(path, store):
    store.enqueue([new_job("other"), new_job(delay=60)]).run()
    with closing(sqlite3.connect(path)) as watcher:
        before = watcher.execute("pragma data_version").fetchall()
        claimed = store.claim("r:1", [Share(ANY_QUEUE, 9)], 9, ["job"], fresh_id()).run()
        assert claimed.claims == []
        assert claimed.next_due is not None
        assert watcher.execute("pragma data_version").fetchall() == before


def test_reads_do_not_wait_for_the_writer(path, store):
    store.enqueue([new_job()]).run()
    with closing(sqlite3.connect(path, isolation_level=None)) as other, writer_kept_waiting(path):
        other.execute("begin immediate")
        assert len(store.jobs(JobFilter()).run().items) == 1
        assert [count.ready for count in store.counts().run()] == [1]


@pytest.mark.parametrize("holder", ["a process of the fleet", "another program"])
def test_a_write_that_waits_too_long_says_so_and_the_next_one_works(path, monkeypatch, holder):
    monkeypatch.setattr(connect, "PATIENCE", 0.05)
    store = SqliteStore(path, synchronous="normal")
    store.migrate().run()
    store.enqueue([new_job()]).run()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        if holder == "another program":
            other.execute("begin immediate")
            with pytest.raises(StoreUnreachable, match="another program"):
                store.enqueue([new_job()]).run()
            other.execute("rollback")
        else:
            with writer_kept_waiting(path), pytest.raises(StoreUnreachable, match="another process"):
                store.enqueue([new_job()]).run()
    assert store.enqueue([new_job()]).run()[0].created
    store.close().run()


def test_a_busy_process_lets_others_have_their_turn(path, store):
    """The lock file tells the holder that somebody waits, so that it does not take the lock again at once."""
    hurried, patient = WriteMutex(path, 5), WriteMutex(path, 5)
    turns = 0
    over = threading.Event()

    def write_without_end() -> None:
        while not over.is_set():
            with hurried.held():
                pass

    thread = threading.Thread(target=write_without_end, daemon=True)
    thread.start()
    for _ in range(20):
        with patient.held():
            turns += 1
    over.set()
    thread.join(10)
    assert turns == 20
    hurried.close()
    patient.close()
