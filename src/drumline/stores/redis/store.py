"""RedisStore: the protocol over one namespace of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, TypeVar

from drumline.errors import StoreUnusable
from drumline.model.act import Act
from drumline.model.claim import Claim, Claimed, ClaimRef, Note, Share
from drumline.model.job import Enqueued, Job, LogLine, NewJob
from drumline.model.outcome import Outcome
from drumline.model.query import Answer, AuditRow, By, Command, Count, JobFilter, Keep, Page, PauseKind, SeriesPoint
from drumline.model.replica import Beat, Replica, ReplicaInfo
from drumline.model.schedule import Fired, Firing, Schedule, ScheduleStatus, Tick
from drumline.model.schema import Pending
from drumline.model.sealed import Resealing
from drumline.stores.base import ALL_LINES, Hear, Listener, Op
from drumline.stores.forks import watch_forks
from drumline.stores.redis import consume, listing, operate, produce, read, schedule
from drumline.stores.redis.address import parse_address
from drumline.stores.redis.calls import Operation
from drumline.stores.redis.confirm import Confirm
from drumline.stores.redis.connect import Server
from drumline.stores.redis.line import Line
from drumline.stores.redis.standby import Standby, Standing
from drumline.stores.redis.wakeups import Watcher

__all__ = ["RedisStore"]

T = TypeVar("T")

# For how many seconds an operation is tried while the server is away, unless a store is told otherwise.
PATIENCE = 5.0
# A token is good for a minute, and has to outlive the call that stands by with it.
LONGEST_STANDBY = 30.0


class RedisStore:
    """A store in one namespace of a Redis or Valkey server."""

    kind = "redis"
    batch = 500
    tells_of_all = True

    def __init__(
        self, url: str, *, namespace: str = "drumline", confirm: Confirm = "server", patience: float = PATIENCE
    ) -> None:
        self._server = Server(parse_address(url), namespace, confirm)
        self._work = Line(self._server, "drumline-work", patience)
        # Beats and reads each have a line of their own, so that none waits behind a long queue of work.
        self._beats = Line(self._server, "drumline-beats", patience)
        self._reads = Line(self._server, "drumline-reads", patience)
        self._standby = Standby(self._server, self._work)
        self._watcher = Watcher(self._server, self._reads)
        watch_forks(self)

    # Life.

    def migrate(self) -> Op[None]:
        return _through(self._work, operate.migrate)

    def pending(self) -> Op[list[Pending]]:
        return _in_thread(self._server.find_pending)

    def inspect(self) -> Op[dict[str, str]]:
        return _in_thread(self._server.inspect)

    def now(self) -> Op[datetime]:
        return _through(self._reads, operate.now)

    def close(self) -> Op[None]:
        return _in_thread(self._close)

    def stop_for_fork(self) -> None:
        """Nothing has to hold still: the child takes up none of what it is a copy of."""

    def go_on(self) -> None:
        """This process has forked, and keeps what it had."""

    def forget(self) -> None:
        """This process is a fork: begin anew."""
        for line in (self._work, self._beats, self._reads):
            line.forget()
        self._standby.forget()
        self._watcher.forget()

    # Produce.

    def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, act: Act | None = None
    ) -> Op[list[Enqueued]]:
        if tx is not None:
            raise StoreUnusable("Redis has no transactions that a caller's could be part of: leave out transaction=")
        return _through(self._work, lambda: produce.enqueue(jobs, act))

    # Consume.

    def claim(self, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str) -> Op[Claimed]:
        return _through(self._work, lambda: consume.claim(replica, queues, limit, tasks, token))

    def stand_by(
        self, replica: str, queues: Sequence[Share], tasks: Sequence[str], token: str, *, seconds: float
    ) -> Op[Claimed | None]:
        call = consume.claim_call(replica, queues, 1, tasks, token, stands_by=True)
        settle = consume.claim_call(replica, queues, 0, tasks, token)
        claim = self._standby.claim(Standing(call, settle, token, min(seconds, LONGEST_STANDBY)))
        return claim.then(lambda answer: None if answer is None else consume.read_claimed(replica, answer))

    def report(self, notes: Sequence[Note]) -> Op[list[bool]]:
        return _through(self._work, lambda: consume.report(notes))

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        return _through(self._work, lambda: consume.finish(outcomes))

    def beat(self, info: ReplicaInfo, held: Sequence[ClaimRef]) -> Op[Beat]:
        return _through(self._beats, lambda: consume.beat(info, held))

    def expired(self, limit: int) -> Op[list[Claim]]:
        return _through(self._reads, lambda: consume.expired(limit))

    # Schedule.

    def declare(self, schedules: Sequence[Schedule], *, by: By, act: Act | None = None) -> Op[list[bool]]:
        return _through(self._work, lambda: schedule.declare(schedules, by, act))

    def withdraw(self, names: Sequence[str], *, by: By, act: Act | None = None) -> Op[list[bool]]:
        return _through(self._work, lambda: schedule.withdraw(names, by, act))

    def schedules(self, names: Sequence[str] = ()) -> Op[list[ScheduleStatus]]:
        return _through(self._reads, lambda: schedule.schedules(names))

    def fire(self, firings: Sequence[Firing], *, by: str, act: Act | None = None) -> Op[list[Fired]]:
        return _through(self._work, lambda: schedule.fire(firings, by, act))

    # Operate.

    def pause(self, kind: PauseKind, names: Sequence[str], *, paused: bool, by: By, token: str) -> Op[list[bool]]:
        return _through(self._work, lambda: operate.pause(kind, names, by, token, is_pause=paused))

    def paused(self, kind: PauseKind) -> Op[dict[str, By]]:
        return _through(self._reads, lambda: operate.paused(kind))

    def command(self, command: Command) -> Op[list[Answer]]:
        return _through(self._work, lambda: operate.command(command))

    def reseal(self, resealings: Sequence[Resealing]) -> Op[list[bool]]:
        return _through(self._work, lambda: operate.reseal(resealings))

    # Read.

    def jobs(self, where: JobFilter, *, after: str | None = None, limit: int = 50) -> Op[Page[Job]]:
        return _through(self._reads, lambda: listing.jobs(where, after, limit))

    def counts(self) -> Op[list[Count]]:
        return _through(self._reads, read.counts)

    def series(self, start: datetime, end: datetime) -> Op[list[SeriesPoint]]:
        return _through(self._reads, lambda: read.series(start, end))

    def ticks(self, schedule: str | None = None, *, after: str | None = None, limit: int = 50) -> Op[Page[Tick]]:
        return _through(self._reads, lambda: read.ticks(schedule, after, limit))

    def workers(self) -> Op[list[Replica]]:
        return _through(self._reads, read.workers)

    def logs(self, job_id: str, *, after: int = 0, limit: int = ALL_LINES) -> Op[list[LogLine]]:
        return _through(self._reads, lambda: read.logs(job_id, after, limit))

    def audit(self, *, after: str | None = None, limit: int = 50) -> Op[Page[AuditRow]]:
        return _through(self._reads, lambda: read.audit(after, limit))

    def purge(self, keep: Keep, limit: int = 1000) -> Op[int]:
        return _through(self._work, lambda: operate.purge(keep, limit))

    # Hint.

    def wakeups(self, hear: Hear) -> AbstractAsyncContextManager[Listener]:
        return self._watcher.listen(hear)

    def _close(self) -> None:
        self._standby.close()
        for line in (self._work, self._beats, self._reads):
            line.close()


def _through(line: Line, make: Callable[[], Operation[T]]) -> Op[T]:
    """The operation in both colours: the only place where they differ."""

    def blocking() -> T:
        operation, answer = make(), None
        try:
            while True:
                answer = line.call(operation.send(answer))
        except StopIteration as end:
            result: T = end.value
            return result

    async def asynchronous() -> T:
        operation, answer = make(), None
        try:
            while True:
                answer = await line.submit(operation.send(answer))
        except StopIteration as end:
            result: T = end.value
            return result

    return Op(blocking, asynchronous)


def _in_thread(work: Callable[[], T]) -> Op[T]:
    def asynchronous() -> Coroutine[Any, Any, T]:
        return asyncio.to_thread(work)

    return Op(work, asynchronous)
