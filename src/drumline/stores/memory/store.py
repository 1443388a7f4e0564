"""MemoryStore: the protocol over one State, one lock and one clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import TypeVar

from drumline.clock import Clock, SystemClock
from drumline.errors import StoreUnusable
from drumline.model.act import Act, Fate, fates_of_firings, fates_of_jobs, fates_of_names
from drumline.model.claim import Claim, Claimed, ClaimRef, Note, Share
from drumline.model.job import Enqueued, Job, LogLine, NewJob
from drumline.model.outcome import Outcome
from drumline.model.query import Answer, AuditRow, By, Command, Count, JobFilter, Keep, Page, PauseKind, SeriesPoint
from drumline.model.replica import Beat, Replica, ReplicaInfo
from drumline.model.schedule import Fired, Firing, Schedule, ScheduleStatus, Tick
from drumline.model.schema import Pending
from drumline.model.sealed import Resealing
from drumline.stores.base import ALL_LINES, Hear, Listener, Op, cannot_stand_by
from drumline.stores.hub import Hub
from drumline.stores.memory import consume, operate, produce, read, schedule
from drumline.stores.memory.state import State

__all__ = ["MemoryStore"]

T = TypeVar("T")


class MemoryStore:
    """A store that lives and dies with its process."""

    kind = "memory"
    batch = 500
    tells_of_all = False

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._state = State()
        self._lock = threading.Lock()
        self._hub = Hub()

    def _step(self, step: Callable[[State, datetime], T]) -> Op[T]:
        """An operation: one step under the lock, then the hints it gave rise to."""

        def blocking() -> T:
            with self._lock:
                answer = step(self._state, self._clock.now())
                news, self._state.news = self._state.news, set()
            self._hub.tell(news)
            return answer

        async def asynchronous() -> T:
            return blocking()

        return Op(blocking, asynchronous)

    def _acted(
        self, act: Act | None, step: Callable[[State, datetime], T], fates_of: Callable[[T], list[Fate]]
    ) -> Op[T]:
        """The same, and, if it is somebody's act, the audit row of it."""

        def acted(state: State, now: datetime) -> T:
            answer = step(state, now)
            if act is not None and (fates := fates_of(answer)):
                state.audit.setdefault(act.id, act.row(now, fates))
            return answer

        return self._step(acted)

    def pending(self) -> Op[list[Pending]]:
        return self._step(lambda state, now: [])

    def migrate(self) -> Op[None]:
        return self._step(lambda state, now: None)

    def inspect(self) -> Op[dict[str, str]]:
        return self._step(lambda state, now: {})

    def now(self) -> Op[datetime]:
        return self._step(lambda state, now: now)

    def close(self) -> Op[None]:
        return self._step(lambda state, now: None)

    def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, act: Act | None = None
    ) -> Op[list[Enqueued]]:
        if tx is not None:
            raise StoreUnusable("the memory store has no transactions to join: leave out transaction=")
        return self._acted(act, lambda state, now: produce.enqueue(state, now, jobs), partial(fates_of_jobs, jobs))

    def claim(self, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str) -> Op[Claimed]:
        return self._step(lambda state, now: consume.claim(state, now, replica, queues, limit, tasks, token))

    def stand_by(
        self, replica: str, queues: Sequence[Share], tasks: Sequence[str], token: str, *, seconds: float
    ) -> Op[Claimed | None]:
        del replica, queues, tasks, token, seconds
        return cannot_stand_by()

    def report(self, notes: Sequence[Note]) -> Op[list[bool]]:
        return self._step(lambda state, now: consume.report(state, notes))

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        return self._step(lambda state, now: consume.finish(state, now, outcomes))

    def beat(self, info: ReplicaInfo, held: Sequence[ClaimRef]) -> Op[Beat]:
        return self._step(lambda state, now: consume.beat(state, now, info, held))

    def expired(self, limit: int) -> Op[list[Claim]]:
        return self._step(lambda state, now: consume.expired(state, now, limit))

    def declare(self, schedules: Sequence[Schedule], *, by: By, act: Act | None = None) -> Op[list[bool]]:
        names = [declared.name for declared in schedules]
        return self._acted(
            act, lambda state, now: schedule.declare(state, now, schedules, by), partial(fates_of_names, names)
        )

    def withdraw(self, names: Sequence[str], *, by: By, act: Act | None = None) -> Op[list[bool]]:
        return self._acted(
            act, lambda state, now: schedule.withdraw(state, now, names, by), partial(fates_of_names, names)
        )

    def schedules(self, names: Sequence[str] = ()) -> Op[list[ScheduleStatus]]:
        return self._step(lambda state, now: schedule.schedules(state, now, names))

    def fire(self, firings: Sequence[Firing], *, by: str, act: Act | None = None) -> Op[list[Fired]]:
        return self._acted(
            act, lambda state, now: schedule.fire(state, now, firings, by), partial(fates_of_firings, firings)
        )

    def pause(self, kind: PauseKind, names: Sequence[str], *, paused: bool, by: By, token: str) -> Op[list[bool]]:
        return self._step(lambda state, now: operate.pause(state, now, kind, names, by, token, paused=paused))

    def paused(self, kind: PauseKind) -> Op[dict[str, By]]:
        return self._step(lambda state, now: operate.paused(state, kind))

    def command(self, command: Command) -> Op[list[Answer]]:
        return self._step(lambda state, now: operate.command(state, now, command))

    def reseal(self, resealings: Sequence[Resealing]) -> Op[list[bool]]:
        return self._step(lambda state, now: operate.reseal(state, resealings))

    def jobs(self, where: JobFilter, *, after: str | None = None, limit: int = 50) -> Op[Page[Job]]:
        return self._step(lambda state, now: read.jobs(state, now, where, after, limit))

    def counts(self) -> Op[list[Count]]:
        return self._step(read.counts)

    def series(self, start: datetime, end: datetime) -> Op[list[SeriesPoint]]:
        return self._step(lambda state, now: read.series(state, start, end))

    def ticks(self, schedule: str | None = None, *, after: str | None = None, limit: int = 50) -> Op[Page[Tick]]:
        return self._step(lambda state, now: read.ticks(state, schedule, after, limit))

    def workers(self) -> Op[list[Replica]]:
        return self._step(read.workers)

    def logs(self, job_id: str, *, after: int = 0, limit: int = ALL_LINES) -> Op[list[LogLine]]:
        return self._step(lambda state, now: read.logs(state, job_id, after, limit))

    def audit(self, *, after: str | None = None, limit: int = 50) -> Op[Page[AuditRow]]:
        return self._step(lambda state, now: read.audit(state, after, limit))

    def purge(self, keep: Keep, limit: int = 1000) -> Op[int]:
        return self._step(lambda state, now: operate.purge(state, now, keep, limit))

    def wakeups(self, hear: Hear) -> AbstractAsyncContextManager[Listener]:
        return self._hub.listen(hear)
