"""What one job costs, in microseconds, by part: `make bench ARGS=--parts`.

Each part by itself, in batches of 100 as in the drain. The engine's is measured with a store that answers at once;
the store's, statement by statement, with the operations driven on one connection. CPU is what the thread itself
took; the rest of the wall time is waiting for the disk, or for a processor.
"""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from benchmarks.outcomes import succeed
from drumline.clock import SystemClock, fresh_id
from drumline.engine.worker import Worker, WorkerOptions
from drumline.model.claim import ANY_QUEUE, Claim, Claimed, Share
from drumline.model.instant import to_millis
from drumline.model.job import NewJob
from drumline.model.options import JobOptions
from drumline.model.outcome import Outcome
from drumline.policy.task import define
from drumline.stores.base import Op
from drumline.stores.memory.store import MemoryStore
from drumline.stores.relational.produce import enqueue
from drumline.stores.sqlite.claim import claim
from drumline.stores.sqlite.connect import Place, Synchronous
from drumline.stores.sqlite.finish import finish
from drumline.stores.sqlite.step import Step, settle
from drumline.stores.sqlite.ways import WAYS
from drumline.stores.statements import run

BATCH = 100
REPLICA = "bench:00000000"


class Cost(NamedTuple):
    """Seconds of one thread, by the processor and by the wall."""

    cpu: float
    wall: float


class Ledger:
    """Who took how long."""

    def __init__(self) -> None:
        self._spent: dict[str, list[Cost]] = {}

    def add(self, part: str, cpu: float, wall: float) -> None:
        self._spent.setdefault(part, []).append(Cost(cpu, wall))

    def per_job(self, jobs: int) -> dict[str, tuple[float, float]]:
        """Microseconds a job: CPU and wall."""
        return {
            part: (sum(cost.cpu for cost in costs) / jobs * 1e6, sum(cost.wall for cost in costs) / jobs * 1e6)
            for part, costs in self._spent.items()
        }


class Timed:
    """Adds what the time inside it took."""

    def __init__(self, ledger: Ledger, part: str) -> None:
        self._ledger = ledger
        self._part = part

    def __enter__(self) -> None:
        self._cpu, self._wall = time.thread_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._ledger.add(self._part, time.thread_time() - self._cpu, time.perf_counter() - self._wall)


class TimedCursor:
    """A cursor that notes what each statement takes, by the line of duty above it."""

    def __init__(self, cursor: sqlite3.Cursor, ledger: Ledger, operation: str) -> None:
        self._cursor = cursor
        self._ledger = ledger
        self._operation = operation
        self._part = ""

    @property
    def description(self) -> Any:
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def execute(self, sql: str, params: Any, /) -> Any:
        self._part = f"{self._operation}: {_name(sql)}"
        with Timed(self._ledger, self._part):
            return self._cursor.execute(sql, params)

    def executemany(self, sql: str, rows: Any, /) -> Any:
        self._part = f"{self._operation}: {_name(sql)}"
        with Timed(self._ledger, self._part):
            return self._cursor.executemany(sql, rows)

    def fetchall(self) -> list[Any]:
        with Timed(self._ledger, self._part):
            return self._cursor.fetchall()


def _name(sql: str) -> str:
    return sql.split("\n", maxsplit=1)[0].lstrip("- ")[:50]


def measure_store(path: Path, synchronous: Synchronous, jobs: int) -> dict[str, tuple[float, float]]:
    place = Place(path, synchronous, allow_network_fs=False)
    clock = SystemClock()
    place.migrate(to_millis(clock.now()))
    connection = place.connect_writer()
    ledger = Ledger()

    def commit(operation: str, make: Any) -> Any:
        with Timed(ledger, f"{operation}, all"):
            connection.execute("begin immediate")
            step = Step(to_millis(clock.now()))
            answer = run(TimedCursor(connection.cursor(), ledger, operation), make(step))
            with Timed(ledger, f"{operation}: totals, series, hints"):
                run(connection.cursor(), settle(step))
            with Timed(ledger, f"{operation}: commit"):
                connection.commit()
        return answer

    for first in range(0, jobs, 1000):
        new = [NewJob(id=fresh_id(), task="beat", args=b'{"n":%d}' % n) for n in range(first, first + 1000)]
        commit("enqueue", lambda step, new=new: enqueue(WAYS, step, new))
    while True:
        claimed: Claimed = commit(
            "claim", lambda step: claim(step, REPLICA, [Share(ANY_QUEUE, BATCH)], BATCH, ["beat"], fresh_id())
        )
        if not claimed.claims:
            break
        outcomes = [succeed(one, REPLICA) for one in claimed.claims]
        assert all(commit("finish", lambda step, outcomes=outcomes: finish(step, outcomes)))
    place.close(connection)
    return ledger.per_job(jobs)


class ReadyStore(MemoryStore):
    """A store whose claims are ready made: what is left is what the engine costs."""

    def __init__(self, claims: list[Claim]) -> None:
        super().__init__()
        self._claims = claims
        self._at = self._clock.now()

    def claim(
        self,
        replica: str,  # noqa: ARG002 - as the protocol says, here and below
        queues: Sequence[Share],  # noqa: ARG002
        limit: int,
        tasks: Sequence[str],  # noqa: ARG002
        token: str,  # noqa: ARG002
    ) -> Op[Claimed]:
        async def give() -> Claimed:
            given = self._claims[-limit:]
            del self._claims[-limit:]
            return Claimed(claims=given, now=self._at)

        return Op(lambda: asyncio.run(give()), give)

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        async def take() -> list[bool]:
            return [True] * len(outcomes)

        return Op(lambda: [True] * len(outcomes), take)


async def measure_engine(jobs: int) -> Cost:
    """Seconds for each job, on the event loop."""
    at = SystemClock().now()
    claims = [
        Claim(fresh_id(), n + 1, "beat", "default", 1, b'{"n":%d}' % n, JobOptions(), REPLICA, at, at, at, at)
        for n in range(jobs)
    ]

    async def beat(n: int) -> None: ...

    worker = Worker(ReadyStore(claims), {"beat": define(beat)}, WorkerOptions(name="bench", drain=True))
    cpu, wall = time.thread_time(), time.perf_counter()
    await worker.run()
    return Cost((time.thread_time() - cpu) / jobs, (time.perf_counter() - wall) / jobs)


def show(path: Path, synchronous: Synchronous, jobs: int) -> None:
    """Print the costs of all parts."""
    cost = uvloop.run(measure_engine(jobs))
    print(f"synchronous={synchronous}, {jobs:,} jobs in batches of {BATCH}, microseconds a job")
    print(f"{'':64}{'CPU':>8}{'wall':>8}")
    print(f"{'engine, on the event loop':64}{cost.cpu * 1e6:8.1f}{cost.wall * 1e6:8.1f}")
    for part, (cpu, wall) in sorted(measure_store(path, synchronous, jobs).items()):
        if wall >= 0.05:
            print(f"{part:64}{cpu:8.1f}{wall:8.1f}")
