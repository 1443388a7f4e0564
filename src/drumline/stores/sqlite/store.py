"""SqliteStore: the protocol over one file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from drumline.clock import Clock, SystemClock
from drumline.errors import StoreUnusable
from drumline.model.act import Act, Fate, fates_of_firings, fates_of_jobs, fates_of_names
from drumline.model.claim import Claim, Claimed, ClaimRef, Note, Share
from drumline.model.instant import from_millis, to_millis
from drumline.model.job import Enqueued, Job, LogLine, NewJob
from drumline.model.outcome import Outcome
from drumline.model.query import Answer, AuditRow, By, Command, Count, JobFilter, Keep, Page, PauseKind, SeriesPoint
from drumline.model.replica import Beat, Replica, ReplicaInfo
from drumline.model.schedule import Fired, Firing, Schedule, ScheduleStatus, Tick
from drumline.model.schema import Pending
from drumline.model.sealed import Resealing
from drumline.stores.base import ALL_LINES, Hear, Listener, Op, cannot_stand_by
from drumline.stores.forks import watch_forks
from drumline.stores.relational import fire, listing, operate, produce, read, reseal, schedule
from drumline.stores.sqlite import beat, claim, finish, purge, series
from drumline.stores.sqlite.connect import Place, Synchronous
from drumline.stores.sqlite.inspect import inspect
from drumline.stores.sqlite.schema import find_pending
from drumline.stores.sqlite.step import Step, settle
from drumline.stores.sqlite.threads import Reader, Writer
from drumline.stores.sqlite.transaction import find_store_id, run_inside
from drumline.stores.sqlite.wakeups import watcher_of
from drumline.stores.sqlite.ways import WAYS
from drumline.stores.statements import Operation

__all__ = ["SqliteStore"]

T = TypeVar("T")


class SqliteStore:
    """A store in one file, shared by all processes of one host."""

    kind = "sqlite"
    batch = 500
    tells_of_all = False

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None = None,
        synchronous: Synchronous = "full",
        allow_network_fs: bool = False,
    ) -> None:
        if str(path) in ("", ".", ":memory:") or str(path).startswith("file:"):
            raise StoreUnusable(f"a SQLite store needs the path of a file, got {str(path)!r}: for tests use memory://")
        self._clock = clock or SystemClock()
        # Absolute, so that a change of the working folder does not move the store.
        self._place = Place(Path(path).absolute(), synchronous, allow_network_fs=allow_network_fs)
        self._watcher = watcher_of(self._place)
        self._writer = Writer(self._place, self._clock, "drumline-writer", self._watcher.tell)
        self._reader = Reader(self._place, self._clock, "drumline-reader")
        self._store_id: str | None = None
        watch_forks(self)

    # Life.

    def migrate(self) -> Op[None]:
        return _in_thread(lambda: self._place.migrate(self._now()))

    def pending(self) -> Op[list[Pending]]:
        return _in_thread(lambda: find_pending(self._place.path))

    def inspect(self) -> Op[dict[str, str]]:
        return _in_thread(lambda: inspect(self._place))

    def now(self) -> Op[datetime]:
        async def asynchronous() -> datetime:
            return from_millis(self._now())

        return Op(lambda: from_millis(self._now()), asynchronous)

    def close(self) -> Op[None]:
        return _in_thread(self._close)

    def stop_for_fork(self) -> None:
        """Hold still while this process forks."""
        self._writer.stop_for_fork()
        self._reader.stop_for_fork()
        self._place.mutex.close()

    def go_on(self) -> None:
        """This process has forked."""
        self._writer.go_on()
        self._reader.go_on()

    def forget(self) -> None:
        """This process is a fork: begin anew."""
        self._place.mutex.forget()
        self._writer.forget()
        self._reader.forget()

    # Produce.

    def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, act: Act | None = None
    ) -> Op[list[Enqueued]]:
        if tx is None and act is not None:
            return self._acted(act, lambda step: _enqueue(step, jobs), partial(fates_of_jobs, jobs))
        if tx is None:
            return Op(
                lambda: self._writer.call_batch(jobs, _enqueue),
                lambda: self._writer.submit_batch(jobs, _enqueue),
            )

        def inside(store_id: str) -> list[Enqueued]:
            self._store_id = store_id
            step = Step(self._now())
            acted = operate.acted(WAYS, step, act, _enqueue(step, jobs), partial(fates_of_jobs, jobs))
            return run_inside(tx, self._place.path, store_id, _settled(step, acted))

        async def asynchronous() -> list[Enqueued]:
            store_id = self._store_id
            return inside(await self._reader.submit(_find_store_id) if store_id is None else store_id)

        return Op(lambda: inside(self._store_id or self._reader.call(_find_store_id)), asynchronous)

    # Consume.

    def claim(self, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str) -> Op[Claimed]:
        return self._write(lambda step: claim.claim(step, replica, queues, limit, tasks, token))

    def stand_by(
        self, replica: str, queues: Sequence[Share], tasks: Sequence[str], token: str, *, seconds: float
    ) -> Op[Claimed | None]:
        del replica, queues, tasks, token, seconds
        return cannot_stand_by()

    def report(self, notes: Sequence[Note]) -> Op[list[bool]]:
        return self._write(lambda step: beat.report(notes))

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        return self._write(lambda step: finish.finish(step, outcomes))

    def beat(self, info: ReplicaInfo, held: Sequence[ClaimRef]) -> Op[Beat]:
        def make(step: Step) -> Operation[Beat]:
            return beat.beat(step, info, held)

        return Op(
            lambda: self._writer.call(make, is_urgent=True),
            lambda: self._writer.submit(make, is_urgent=True),
        )

    def expired(self, limit: int) -> Op[list[Claim]]:
        return self._read(lambda step: beat.expired(step, limit))

    # Schedule.

    def declare(self, schedules: Sequence[Schedule], *, by: By, act: Act | None = None) -> Op[list[bool]]:
        names = [declared.name for declared in schedules]
        return self._acted(
            act, lambda step: schedule.declare(WAYS, step, schedules, by), partial(fates_of_names, names)
        )

    def withdraw(self, names: Sequence[str], *, by: By, act: Act | None = None) -> Op[list[bool]]:
        return self._acted(act, lambda step: schedule.withdraw(WAYS, step, names, by), partial(fates_of_names, names))

    def schedules(self, names: Sequence[str] = ()) -> Op[list[ScheduleStatus]]:
        return self._read(lambda step: schedule.schedules(WAYS, step, names))

    def fire(self, firings: Sequence[Firing], *, by: str, act: Act | None = None) -> Op[list[Fired]]:
        return self._acted(act, lambda step: fire.fire(WAYS, step, firings, by), partial(fates_of_firings, firings))

    # Operate.

    def pause(self, kind: PauseKind, names: Sequence[str], *, paused: bool, by: By, token: str) -> Op[list[bool]]:
        return self._write(lambda step: operate.pause(WAYS, step, kind, names, is_pause=paused, by=by, token=token))

    def paused(self, kind: PauseKind) -> Op[dict[str, By]]:
        return self._read(lambda step: operate.paused(WAYS, kind))

    def command(self, command: Command) -> Op[list[Answer]]:
        return self._write(lambda step: operate.command(WAYS, step, command))

    def reseal(self, resealings: Sequence[Resealing]) -> Op[list[bool]]:
        return self._write(lambda step: reseal.reseal(WAYS, step, resealings))

    # Read.

    def jobs(self, where: JobFilter, *, after: str | None = None, limit: int = 50) -> Op[Page[Job]]:
        return self._read(lambda step: listing.jobs(WAYS, step, where, after, limit))

    def counts(self) -> Op[list[Count]]:
        def blocking() -> list[Count]:
            while self._is_clock_back() or self._reader.call(claim.is_promotion_due):
                self._writer.call(claim.promote)
            return self._reader.call(lambda _: read.counts(WAYS))

        async def asynchronous() -> list[Count]:
            while self._is_clock_back() or await self._reader.submit(claim.is_promotion_due):
                await self._writer.submit(claim.promote)
            return await self._reader.submit(lambda _: read.counts(WAYS))

        return Op(blocking, asynchronous)

    def series(self, start: datetime, end: datetime) -> Op[list[SeriesPoint]]:
        return self._read(lambda step: series.series(start, end))

    def ticks(self, schedule: str | None = None, *, after: str | None = None, limit: int = 50) -> Op[Page[Tick]]:
        return self._read(lambda step: read.ticks(WAYS, schedule, after, limit))

    def workers(self) -> Op[list[Replica]]:
        return self._read(lambda step: read.workers(WAYS, step))

    def logs(self, job_id: str, *, after: int = 0, limit: int = ALL_LINES) -> Op[list[LogLine]]:
        return self._read(lambda step: read.logs(WAYS, job_id, after, limit))

    def audit(self, *, after: str | None = None, limit: int = 50) -> Op[Page[AuditRow]]:
        return self._read(lambda step: read.audit(WAYS, after, limit))

    def purge(self, keep: Keep, limit: int = 1000) -> Op[int]:
        return self._write(lambda step: purge.purge(step, keep, limit))

    # Hint.

    def wakeups(self, hear: Hear) -> AbstractAsyncContextManager[Listener]:
        return self._watcher.listen(hear)

    def _write(self, make: Callable[[Step], Operation[T]]) -> Op[T]:
        return Op(lambda: self._writer.call(make), lambda: self._writer.submit(make))

    def _acted(
        self, act: Act | None, make: Callable[[Step], Operation[T]], fates_of: Callable[[T], list[Fate]]
    ) -> Op[T]:
        """The same, and, if it is somebody's act, the audit row of it."""
        return self._write(lambda step: operate.acted(WAYS, step, act, make(step), fates_of))

    def _read(self, make: Callable[[Step], Operation[T]]) -> Op[T]:
        return Op(lambda: self._reader.call(make), lambda: self._reader.submit(make))

    def _now(self) -> int:
        return to_millis(self._clock.now())

    def _is_clock_back(self) -> bool:
        return self._now() < self._writer.latest

    def _close(self) -> None:
        self._writer.close()
        self._reader.close()
        self._place.mutex.close()


def _enqueue(step: Step, jobs: Sequence[NewJob]) -> Operation[list[Enqueued]]:
    return produce.enqueue(WAYS, step, jobs)


def _settled(step: Step, operation: Operation[T]) -> Operation[T]:
    answer = yield from operation
    yield from settle(step)
    return answer


def _find_store_id(_: Step) -> Operation[str]:
    return find_store_id()


def _in_thread(work: Callable[[], T]) -> Op[T]:
    def asynchronous() -> Coroutine[Any, Any, T]:
        return asyncio.to_thread(work)

    return Op(work, asynchronous)
