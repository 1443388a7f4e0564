import asyncio
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from drumline.clock import fresh_id
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.query import Command, CommandKind
from drumline.stores.base import topic
from drumline.stores.sqlite import SqliteStore, pace, wakeups
from tests.support.build import BY, dead, new_job
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

# Works on what is given line by line: the name of a queue to put a job into, or `end` to take one and finish it.
OTHER_PROCESS = """
import sys
from drumline.clock import fresh_id
from drumline.model.claim import ANY_QUEUE, Share
from drumline.stores.sqlite import SqliteStore, pace
from tests.support.build import done, new_job

store = SqliteStore(sys.argv[1], synchronous="normal")
for line in sys.stdin:
    if line.strip() == "end":
        claims = store.claim("r:1", [Share(ANY_QUEUE, 1)], 1, ["job"], fresh_id()).run().claims
        store.finish([done(claim) for claim in claims]).run()
    else:
        store.enqueue([new_job(queue=line.strip())]).run()
    print("ok", flush=True)
store.close().run()
"""


class Other:
    """Another process on the same file."""

    def __init__(self, path) -> None:
        command = [sys.executable, "-c", OTHER_PROCESS, str(path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    async def do(self, what: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        assert await asyncio.to_thread(self._process.stdout.readline) == "ok\n"

    def close(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


@pytest.fixture(params=["events", "no events", "events of another file"])
def kernel(request, monkeypatch, tmp_path):
    """What the kernel tells of writes to the log: there are systems without events, and file systems that give none."""
    listen = pace.listen_to_writes
    if request.param == "no events":
        monkeypatch.setattr(pace, "listen_to_writes", lambda log: None)
    if request.param == "events of another file":
        (tmp_path / "other").touch()
        monkeypatch.setattr(pace, "listen_to_writes", lambda log: listen(tmp_path / "other"))
        monkeypatch.setattr(pace, "_EVEN_FOR", 0)
        monkeypatch.setattr(pace, "_CLOSE_FOR", 0)


@pytest.mark.usefixtures("kernel")
async def test_a_job_of_another_process_is_heard_of(path, store):
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        ear.watch([topic.queue("mail")])
        with closing(Other(path)) as other:
            for number in range(1, 6):
                await other.do("quiet")
                await other.do("mail")
                await eventually(lambda: len(heard) == number)  # noqa: B023 - awaited in the same turn
    assert set(heard) == {topic.queue("mail")}


async def test_a_job_of_any_queue_is_heard_of(path, store):
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        ear.watch([topic.queue(ANY_QUEUE)])
        with closing(Other(path)) as other:
            await other.do("mail")
            await eventually(lambda: heard)
    assert set(heard) == {topic.queue(ANY_QUEUE)}


async def test_an_end_in_another_process_is_heard_of(path, store):
    jobs = [new_job(), new_job()]
    await store.enqueue(jobs)
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        ear.watch([topic.ended(job.id) for job in jobs])
        with closing(Other(path)) as other:
            await other.do("end")
            await eventually(lambda: topic.ended(jobs[0].id) in heard)
            assert topic.ended(jobs[1].id) not in heard
            await other.do("end")
            await eventually(lambda: topic.ended(jobs[1].id) in heard)


async def test_a_job_that_ends_again_has_another_number_than_before(path, store):
    """By its number another process finds out: one that it knows already would be no news."""
    (job,) = await store.enqueue([new_job()])
    numbers = []
    for _ in range(2):
        (claim,) = (await store.claim("r:1", [Share(ANY_QUEUE, 1)], 1, ["job"], fresh_id())).claims
        await store.finish([dead(claim)])
        with closing(sqlite3.connect(path)) as connection:
            numbers += connection.execute("select number from drumline_history").fetchone()
        await store.command(Command(id=fresh_id(), kind=CommandKind.RETRY, ids=(job.id,), by=BY))
    assert numbers[0] < numbers[1]


async def test_another_store_on_the_same_file_hears_at_once(path, store):
    other = SqliteStore(path)
    heard: list[str] = []
    async with other.wakeups(heard.append) as ear:
        ear.watch([topic.queue("default")])
        await store.enqueue([new_job()])
        # Told by the writer before it answers: no look at the file is needed.
        await asyncio.sleep(0)
        assert heard == [topic.queue("default")]
    await other.close()


async def test_a_job_in_the_callers_transaction_is_heard_of_after_its_commit(path, store):
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        ear.watch([topic.queue("default")])
        with closing(sqlite3.connect(path)) as own:
            await store.enqueue([new_job()], tx=own)
            assert heard == []
            own.commit()
        await eventually(lambda: heard)


async def test_nobody_is_told_twice_of_what_this_process_did(path, store):
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear, store.wakeups(lambda _: None):
        ear.watch([topic.queue("default"), topic.queue("last")])
        for _ in range(5):
            await store.enqueue([new_job()])
        # When the watcher has found this one in the file, it has passed the others.
        with closing(sqlite3.connect(path)) as own:
            await store.enqueue([new_job(queue="last")], tx=own)
            own.commit()
        await eventually(lambda: topic.queue("last") in heard)
    assert heard.count(topic.queue("default")) == 5


async def test_the_watcher_lives_only_while_somebody_listens(store):
    def watchers() -> list[str]:
        return [thread.name for thread in threading.enumerate() if "watcher" in thread.name]

    async with store.wakeups(lambda _: None):
        async with store.wakeups(lambda _: None):
            assert len(watchers()) == 1
        assert len(watchers()) == 1
    assert watchers() == []


async def test_a_listener_may_come_before_the_file(path):
    store = SqliteStore(path)
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        ear.watch([topic.queue("default")])
        await store.migrate()
        await store.enqueue([new_job()])
        await eventually(lambda: heard)
    await store.close()


async def test_a_listener_that_cannot_read_the_file_says_so_once_and_hears_again_when_it_can(path, store, monkeypatch):
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        ear.watch([topic.queue("default"), topic.CHANGES])
        await store.enqueue([new_job()])
        await eventually(lambda: heard)
        heard.clear()
        with monkeypatch.context() as broken:
            broken.setattr(wakeups.Watcher, "_look", refuse)
            await eventually(lambda: not ear.is_hearing)
            await eventually(lambda: set(heard) == {topic.queue("default"), topic.CHANGES})
        await eventually(lambda: ear.is_hearing)
        heard.clear()
        await store.enqueue([new_job()])
        await eventually(lambda: topic.queue("default") in heard)


def refuse(_watcher):
    raise sqlite3.OperationalError("disk I/O error")
