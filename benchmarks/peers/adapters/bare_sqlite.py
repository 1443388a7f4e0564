"""The bare engine: the least that a durable queue on SQLite can do, with group commit and nothing around it.

Jobs are claimed in batches of 100 and run as asyncio tasks; the ended ones are written back in batches. Claims and ends
that have queued up share a commit, on one writer thread, as in the store, and equally durable. At most 300 jobs are in
flight, as in the engine: 100 that run, 200 that have ended and are not written.

Without history an ended job is deleted, and a number is its whole name: a floor that no queue with our promises can
reach. With history the facts are the same that the store keeps of each job, found in the same ways: an id made by the
caller, options, fence, replica, times, result and a line for the attempt, by id, by creation and by expiry.
"""

import asyncio
import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

import uvloop

from benchmarks.peers import adapter
from benchmarks.peers.place import URL
from benchmarks.peers.starts import note
from drumline.clock import fresh_id

FILE = URL.removeprefix("sqlite:///")
SYNCHRONOUS = os.environ.get("DRUMLINE_BENCH_SYNCHRONOUS", "full")
HISTORY = os.environ.get("DRUMLINE_BENCH_HISTORY", "none")
BATCH = 100
PLAIN = """
create table job (id integer primary key, state integer not null default 0, queue text not null default 'default',
  priority integer not null default 0, due integer not null default 0, attempt integer not null default 0,
  lease integer, args blob not null);
create index job_ready on job (queue, priority, due, id) where state = 0;
"""
KEEPING = """
create table job (id text primary key not null, state integer not null default 0, queue text not null default 'default',
  task text not null default 'beat', priority integer not null default 0, due integer not null default 0,
  attempt integer not null default 0, fence integer not null default 0, replica text, claimed integer, lease integer,
  created integer not null default 0, options blob not null default x'7b7d', source text not null default 'manual',
  args blob not null);
create index job_ready on job (queue, task, priority, due, id) where state = 0;
create index job_running on job (lease, id) where state = 1;
create index job_created on job (created, id);
create table history (number integer primary key, id text not null unique, queue text not null, task text not null,
  due integer not null, attempt integer not null, fence integer not null, created integer not null,
  finished integer not null, expires integer not null, options blob not null, source text not null, args blob not null,
  result blob, line text not null);
create index history_created on history (created, id);
create index history_expires on history (expires);
"""
INSERT = "insert into job (args) values (?)"
INSERT_KEEPING = "insert into job (args, id) values (?, ?)"
CLAIM_KEEPING = """update job set state = 1, attempt = attempt + 1, fence = max(fence + 1, :now * 1000),
  replica = 'bare', claimed = :now, lease = :now + 30000 where id in (
  select id from job where state = 0 and queue = 'default' and task = 'beat' and due <= :now
  order by priority, due, id limit :limit)
  returning id, args"""
CLAIM = """update job set state = 1, attempt = attempt + 1, lease = :now + 30000 where id in (
  select id from job where state = 0 and queue = 'default' and due <= :now order by priority, due, id limit :limit)
  returning id, args"""
KEEP = """insert into history (id, queue, task, due, attempt, fence, created, finished, expires, options, source, args,
  result, line)
  select id, queue, task, due, attempt, fence, created, ?1, ?1 + 86400000, options, source, args, x'6e756c6c', ?2
  from job where id = ?3 and state = 1"""
DROP = "delete from job where id = ? and state = 1"

Work = Callable[[sqlite3.Connection], Any]


class Plain:
    """An ended job is deleted."""

    schema = PLAIN
    claiming = CLAIM

    def insert(self, connection: sqlite3.Connection, texts: Sequence[bytes]) -> None:
        connection.executemany(INSERT, [(text,) for text in texts])

    def claim(self, connection: sqlite3.Connection) -> list[Any]:
        return connection.execute(self.claiming, {"now": _now(), "limit": BATCH}).fetchall()

    def finish(self, connection: sqlite3.Connection, ids: Sequence[Any]) -> None:
        connection.executemany(DROP, [(job_id,) for job_id in ids])


class Keeping(Plain):
    """An ended job moves to history."""

    schema = KEEPING
    claiming = CLAIM_KEEPING

    def insert(self, connection: sqlite3.Connection, texts: Sequence[bytes]) -> None:
        connection.executemany(INSERT_KEEPING, [(text, fresh_id()) for text in texts])

    def finish(self, connection: sqlite3.Connection, ids: Sequence[Any]) -> None:
        now = _now()
        times = {"started_at": "2026-01-01T00:00:00.000Z", "ended_at": "2026-01-01T00:00:00.000Z"}
        line = json.dumps({"number": 1, "fence": now * 1000, "replica": "bare", "by": "bare", **times, "ended": "done"})
        connection.executemany(KEEP, [(now, line, job_id) for job_id in ids])
        super().finish(connection, ids)


TABLES = Keeping() if HISTORY == "kept" else Plain()


class Writer:
    """One thread; whatever has queued up shares a commit."""

    def __init__(self) -> None:
        self._connection = _connect()
        self._queue: SimpleQueue[tuple[Work, asyncio.Future[Any]] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __call__(self, work: Work) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put((work, future))
        return future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            items = [item]
            while not self._queue.empty() and len(items) < 500:
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                items.append(more)
            self._connection.execute("begin immediate")
            answers = [(future, work(self._connection)) for work, future in items]
            self._connection.execute("commit")
            self._loop.call_soon_threadsafe(_settle, answers)


def _settle(answers: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in answers:
        future.set_result(answer)


class Adapter(adapter.Adapter):
    _write: Writer
    _reading: sqlite3.Connection

    async def lay_out(self) -> None:
        connection = _connect()
        connection.executescript(TABLES.schema)
        connection.close()

    async def open(self) -> None:
        self._write = Writer()
        self._reading = _connect()

    async def close(self) -> None:
        self._write.close()
        self._reading.close()

    async def enqueue(self, number: int) -> None:
        await self.enqueue_many([number])

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        await self._write(partial(TABLES.insert, texts=[json.dumps({"n": number}).encode() for number in numbers]))

    async def count_unfinished(self) -> int:
        return int(self._reading.execute("select count(*) from job").fetchone()[0])

    def work(self) -> None:
        uvloop.run(_drain())
        signal.pause()


async def _drain() -> None:
    """Claim, run and write back until all are through, claims and ends side by side."""
    write = Writer()
    loop = Loop(write)
    await asyncio.gather(loop.claim(), loop.record())
    write.close()


class Loop:
    """What is in flight between the two sides."""

    def __init__(self, write: Writer) -> None:
        self._write = write
        self._ended: list[Any] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._unwritten = 0
        self._is_empty = False
        self._wake = asyncio.Event()
        self._room = asyncio.Event()

    async def claim(self) -> None:
        while rows := await self._write(TABLES.claim):
            self._unwritten += len(rows)
            for row in rows:
                task = asyncio.get_running_loop().create_task(self._run(*row))
                # Held, or the garbage collector may take it; the engine holds its own in the same way.
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            while self._unwritten > 2 * BATCH:
                self._room.clear()
                await self._room.wait()
        self._is_empty = True
        self._wake.set()

    async def record(self) -> None:
        while self._unwritten or not self._is_empty:
            if not self._ended:
                self._wake.clear()
                await self._wake.wait()
                continue
            ids, self._ended = self._ended[:500], self._ended[500:]
            await self._write(partial(TABLES.finish, ids=ids))
            self._unwritten -= len(ids)
            self._room.set()

    async def _run(self, job_id: Any, args: bytes) -> None:
        note(json.loads(args)["n"])
        self._ended.append(job_id)
        self._wake.set()


def _connect() -> sqlite3.Connection:
    connection = sqlite3.connect(FILE, isolation_level=None, check_same_thread=False)
    connection.execute("pragma journal_mode = wal")
    connection.execute(f"pragma synchronous = {SYNCHRONOUS}")
    return connection


def _now() -> int:
    return time.time_ns() // 1_000_000
