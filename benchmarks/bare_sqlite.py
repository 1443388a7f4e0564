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
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from drumline.clock import fresh_id

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
CLAIM = """update job set state = 1, attempt = attempt + 1, lease = ? where id in (
  select id from job where state = 0 and queue = 'default' and due <= ? order by priority, due, id limit ?)
  returning id, args"""
KEEP = """insert into history (id, queue, task, due, attempt, fence, created, finished, expires, options, source, args,
  result, line)
  select id, queue, task, due, attempt, fence, created, ?1, ?1 + 86400000, options, source, args, x'6e756c6c', ?2
  from job where id = ?3 and state = 1"""
DROP = "delete from job where id = ? and state = 1"

Work = Callable[[sqlite3.Connection], Any]


class Writer:
    """One thread; whatever has queued up shares a commit."""

    def __init__(self, path: Path, synchronous: str, schema: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute(f"pragma synchronous = {synchronous}")
        self._connection.executescript(schema)
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


async def measure(path: Path, synchronous: str, jobs: int, *, history: bool) -> dict[str, float]:
    """Jobs a second: enqueued in bulk, by 100 callers at once, one by one; and drained."""
    write = Writer(path, synchronous, KEEPING if history else PLAIN)
    insert = partial(_insert, history=history)
    texts = [json.dumps({"n": number}).encode() for number in range(jobs)]
    rates = {}

    began = time.perf_counter()
    for place in range(0, jobs, 10_000):
        await write(partial(insert, texts=texts[place : place + 10_000]))
    rates["bulk"] = jobs / (time.perf_counter() - began)

    async def call(count: int) -> None:
        for text in texts[:count]:
            await write(partial(insert, texts=[text]))

    began = time.perf_counter()
    await asyncio.gather(*(call(100) for _ in range(100)))
    rates["100 callers"] = 10_000 / (time.perf_counter() - began)
    began = time.perf_counter()
    await call(1000)
    rates["one by one"] = 1000 / (time.perf_counter() - began)

    total = jobs + 11_000
    began, cpu = time.perf_counter(), time.process_time()
    await _drain(write, total, history=history)
    rates["drain"] = total / (time.perf_counter() - began)
    rates["drain, CPU µs"] = (time.process_time() - cpu) / total * 1e6
    write.close()
    return rates


async def _drain(write: Writer, total: int, *, history: bool) -> None:
    """Claim, run and write back until all are through, claims and ends side by side."""
    bench = _Bench(write, total, history=history)
    await asyncio.gather(bench.claim(), bench.record())


class _Bench:
    def __init__(self, write: Writer, total: int, *, history: bool) -> None:
        self._write = write
        self._total = total
        self._history = history
        self._ended: list[Any] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = 0
        self._wake = asyncio.Event()
        self._room = asyncio.Event()

    async def claim(self) -> None:
        taken = 0
        while taken < self._total:
            while self._running > 2 * BATCH:
                self._room.clear()
                await self._room.wait()
            now = time.time_ns() // 1_000_000
            rows = await self._write(partial(_claim, now=now, history=self._history))
            taken += len(rows)
            self._running += len(rows)
            for row in rows:
                task = asyncio.get_running_loop().create_task(self._run(*row))
                # Held, or the garbage collector may take it; the engine holds its own in the same way.
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def record(self) -> None:
        finished = 0
        while finished < self._total:
            while not self._ended:
                self._wake.clear()
                await self._wake.wait()
            ids, self._ended = self._ended[:500], self._ended[500:]
            await self._write(partial(_finish, ids=ids, history=self._history))
            finished += len(ids)
            self._running -= len(ids)
            self._room.set()

    async def _run(self, number: Any, args: bytes) -> None:
        json.loads(args)
        self._ended.append(number)
        self._wake.set()


def _insert(connection: sqlite3.Connection, *, texts: list[bytes], history: bool) -> None:
    if history:
        connection.executemany(INSERT_KEEPING, [(text, fresh_id()) for text in texts])
        return
    connection.executemany(INSERT, [(text,) for text in texts])


def _claim(connection: sqlite3.Connection, *, now: int, history: bool) -> list[Any]:
    if history:
        return connection.execute(CLAIM_KEEPING, {"now": now, "limit": BATCH}).fetchall()
    return connection.execute(CLAIM, (now + 30_000, now, BATCH)).fetchall()


def _finish(connection: sqlite3.Connection, *, ids: list[Any], history: bool) -> None:
    if history:
        now = time.time_ns() // 1_000_000
        times = {"started_at": "2026-01-01T00:00:00.000Z", "ended_at": "2026-01-01T00:00:00.000Z"}
        line = json.dumps({"number": 1, "fence": now * 1000, "replica": "bare", "by": "bare", **times, "ended": "done"})
        connection.executemany(KEEP, [(now, line, number) for number in ids])
    connection.executemany(DROP, [(number,) for number in ids])
