"""The bare engine: the least that a durable queue on SQLite can do, with group commit and nothing around it.

Jobs are claimed in batches and run as asyncio tasks; the ended ones are written back in batches. Claims and ends that
have queued up share a commit, on one writer thread, as in the store. Without history an ended job is deleted; with
history it moves to a second table together with a line about its attempt.
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

BATCH = 100
SCHEMA = """
create table job (id integer primary key, state integer not null default 0, queue text not null default 'default',
  priority integer not null default 0, due integer not null default 0, attempt integer not null default 0,
  lease integer, args blob not null);
create index job_ready on job (queue, priority, due, id) where state = 0;
create table history (id integer primary key, queue text not null, attempt integer not null, finished integer not null,
  args blob not null, line text not null);
"""
INSERT = "insert into job (args) values (?)"
CLAIM = """update job set state = 1, attempt = attempt + 1, lease = ? where id in (
  select id from job where state = 0 and queue = 'default' and due <= ? order by priority, due, id limit ?)
  returning id, args"""
KEEP = """insert into history select id, queue, attempt, ?, args, ? from job where id = ? and state = 1"""
DROP = "delete from job where id = ? and state = 1"

Work = Callable[[sqlite3.Connection], Any]


class Writer:
    """One thread; whatever has queued up shares a commit."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute(f"pragma synchronous = {synchronous}")
        self._connection.executescript(SCHEMA)
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
    write = Writer(path, synchronous)
    texts = [json.dumps({"n": number}).encode() for number in range(jobs)]
    rates = {}

    began = time.perf_counter()
    for place in range(0, jobs, 10_000):
        await write(partial(_insert, texts=texts[place : place + 10_000]))
    rates["bulk"] = jobs / (time.perf_counter() - began)

    async def call(count: int) -> None:
        for text in texts[:count]:
            await write(partial(_insert, texts=[text]))

    began = time.perf_counter()
    await asyncio.gather(*(call(100) for _ in range(100)))
    rates["100 callers"] = 10_000 / (time.perf_counter() - began)
    began = time.perf_counter()
    await call(1000)
    rates["one by one"] = 1000 / (time.perf_counter() - began)

    total = jobs + 11_000
    began = time.perf_counter()
    await _drain(write, total, history=history)
    rates["drain"] = total / (time.perf_counter() - began)
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
        self._ended: list[int] = []
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
            rows = await self._write(partial(_claim, now=now))
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

    async def _run(self, number: int, args: bytes) -> None:
        json.loads(args)
        self._ended.append(number)
        self._wake.set()


def _insert(connection: sqlite3.Connection, *, texts: list[bytes]) -> None:
    connection.executemany(INSERT, [(text,) for text in texts])


def _claim(connection: sqlite3.Connection, *, now: int) -> list[Any]:
    return connection.execute(CLAIM, (now + 30_000, now, BATCH)).fetchall()


def _finish(connection: sqlite3.Connection, *, ids: list[int], history: bool) -> None:
    if history:
        now = time.time_ns() // 1_000_000
        line = json.dumps({"number": 1, "started": now, "ended": now, "how": "done", "replica": "bare"})
        connection.executemany(KEEP, [(now, line, number) for number in ids])
    connection.executemany(DROP, [(number,) for number in ids])
