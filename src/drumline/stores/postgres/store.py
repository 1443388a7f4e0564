"""PostgresStore: the protocol over one schema of a Postgres database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec

from drumline.clock import fresh_id
from drumline.errors import StoreUnreachable
from drumline.model.act import Act, Fate, fates_of_firings, fates_of_jobs, fates_of_names
from drumline.model.claim import Claim, Claimed, ClaimRef, Note, Share
from drumline.model.instant import from_millis
from drumline.model.job import Enqueued, Job, LogLine, NewJob
from drumline.model.outcome import Outcome
from drumline.model.query import Answer, AuditRow, By, Command, Count, JobFilter, Keep, Page, PauseKind, SeriesPoint
from drumline.model.replica import Beat, Replica, ReplicaInfo
from drumline.model.schedule import Fired, Firing, Schedule, ScheduleStatus, Tick
from drumline.model.schema import Pending
from drumline.model.sealed import Resealing
from drumline.stores.base import ALL_LINES, Hear, Listener, Op, topic
from drumline.stores.forks import watch_forks
from drumline.stores.postgres import beat, claim, finish, purge, series
from drumline.stores.postgres.callers import on_commit
from drumline.stores.postgres.claim import Asked
from drumline.stores.postgres.connect import Place
from drumline.stores.postgres.floors import Floors
from drumline.stores.postgres.group import Group
from drumline.stores.postgres.hot import HOT
from drumline.stores.postgres.inspect import inspect
from drumline.stores.postgres.plain import enqueue_plain, has_keys
from drumline.stores.postgres.session import Make, Sessions
from drumline.stores.postgres.standby import Standbys
from drumline.stores.postgres.step import News, Step
from drumline.stores.postgres.transaction import find_store, run_inside, run_inside_async
from drumline.stores.postgres.wakeups import Hints
from drumline.stores.postgres.ways import WAYS
from drumline.stores.relational import fire, listing, operate, produce, read, reseal, schedule

__all__ = ["PostgresStore"]

T = TypeVar("T")

Run = Callable[[Make[Any], Step], Any]


class PostgresStore:
    """A store in one schema, shared by all processes that reach the server."""

    kind = "postgres"
    batch = 1000
    tells_of_all = False

    def __init__(
        self,
        url: str,
        *,
        namespace: str = "drumline",
        listen_url: str | None = None,
        synchronous: Literal["full", "normal"] = "full",
    ) -> None:
        """`listen_url` leads to the server itself, where `url` leads to a pooler.

        With `synchronous="normal"`, neither enqueue nor finish waits for the server's disk.
        """
        self.place = Place(url, namespace, listen_url, HOT)
        self._is_quick = synchronous == "normal"
        self._sessions = Sessions(self.place)
        self._standbys = Standbys(self._sessions.hands, self._take_new)
        self._hints = Hints(self.place, self._sessions, self._standbys)
        self._group = Group(self._sessions, self._enqueue_plain)
        self._store_id: str | None = None
        self._floors = Floors()
        # The latest instant that this process knows of.
        self._latest = 0
        watch_forks(self)

    # Life.

    def migrate(self) -> Op[None]:
        return _in_thread(self.place.migrate)

    def pending(self) -> Op[list[Pending]]:
        return _in_thread(self.place.find_pending)

    def inspect(self) -> Op[dict[str, str]]:
        asked = "normal" if self._is_quick else "full"
        return _in_thread(lambda: {**inspect(self.place), "store.synchronous": asked})

    def now(self) -> Op[datetime]:
        return self._op(self._now)

    def close(self) -> Op[None]:
        return _in_thread(self._close)

    def stop_for_fork(self) -> None:
        """This process is about to fork: its connections stay its own."""

    def go_on(self) -> None:
        """This process has forked."""

    def forget(self) -> None:
        """This process is a fork: begin anew."""
        self._sessions.forget()
        self._standbys.forget()
        self._hints.forget()
        self._group.forget()

    # Produce.

    def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, act: Act | None = None
    ) -> Op[list[Enqueued]]:
        if tx is not None:
            make = _enqueuing(jobs, act)
            return Op(lambda: self._enqueue_inside(tx, make), lambda: self._enqueue_inside_async(tx, make))
        if act is not None or has_keys(jobs):
            # Apart from the others: it may have to wait for somebody else's transaction.
            return self._op(lambda: self._accept(self._sessions.run_step, _enqueuing(jobs, act)))
        return Op(lambda: self._group.call(jobs), lambda: self._group.wait(jobs))

    # Consume.

    def claim(self, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str) -> Op[Claimed]:
        def run() -> Claimed:
            asked = Asked(replica, queues, limit, tasks, token, fresh_id(), self._floors)
            if not limit:
                self._standbys.recall(token)
            step = Step()
            # One queue is one statement, and that is a step by itself.
            run_claim = self._sessions.run_statement if len(queues) == 1 else self._sessions.run_step
            claimed = run_claim(lambda step: claim.claim(step, asked, self._latest), step)
            self._latest = step.now
            return claimed

        return self._op(run)

    def stand_by(
        self, replica: str, queues: Sequence[Share], tasks: Sequence[str], token: str, *, seconds: float
    ) -> Op[Claimed | None]:
        asked = Asked(replica, queues, 1, tasks, token, fresh_id(), self._floors)
        return self._standbys.claim(asked, seconds, lambda limit: self.claim(replica, queues, limit, tasks, token))

    def report(self, notes: Sequence[Note]) -> Op[list[bool]]:
        return self._write(lambda step: beat.report(notes))

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        run = self._sessions.run_step if finish.has_schedules(outcomes) else self._sessions.run_statement
        return self._op(lambda: self._accept(run, lambda step: finish.finish(step, outcomes)))

    def beat(self, info: ReplicaInfo, held: Sequence[ClaimRef]) -> Op[Beat]:
        def run() -> Beat:
            answer, is_new = self._sessions.run_statement(lambda step: beat.beat(info, held), Step())
            self._standbys.hear_beat(info)
            if not is_new:
                return answer
            epoch = self._sessions.run_step(lambda step: beat.join_fleet(step, info), Step())
            return msgspec.structs.replace(answer, epoch=epoch)

        return self._op(run)

    def expired(self, limit: int) -> Op[list[Claim]]:
        return self._state(lambda step: beat.expired(limit))

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
        return self._state(lambda step: operate.paused(WAYS, kind))

    def command(self, command: Command) -> Op[list[Answer]]:
        return self._write(lambda step: operate.command(WAYS, step, command))

    def reseal(self, resealings: Sequence[Resealing]) -> Op[list[bool]]:
        return self._write(lambda step: reseal.reseal(WAYS, step, resealings))

    # Read.

    def jobs(self, where: JobFilter, *, after: str | None = None, limit: int = 50) -> Op[Page[Job]]:
        return self._read(lambda step: listing.jobs(WAYS, step, where, after, limit))

    def counts(self) -> Op[list[Count]]:
        def run() -> list[Count]:
            now, is_overdue = self._sessions.run_statement(lambda step: claim.look_at_clock(), Step())
            if now < self._latest:
                self._sessions.run_statement(lambda step: claim.demote(), Step())
            self._latest = now
            while is_overdue and self._sessions.run_statement(lambda step: claim.promote(), Step())[0]:
                pass
            return self._sessions.run_statement(lambda step: read.counts(WAYS), Step())

        return self._op(run)

    def series(self, start: datetime, end: datetime) -> Op[list[SeriesPoint]]:
        return self._read(lambda step: series.series(start, end))

    def ticks(self, schedule: str | None = None, *, after: str | None = None, limit: int = 50) -> Op[Page[Tick]]:
        return self._state(lambda step: read.ticks(WAYS, schedule, after, limit))

    def workers(self) -> Op[list[Replica]]:
        return self._read(lambda step: read.workers(WAYS, step))

    def logs(self, job_id: str, *, after: int = 0, limit: int = ALL_LINES) -> Op[list[LogLine]]:
        return self._state(lambda step: read.logs(WAYS, job_id, after, limit))

    def audit(self, *, after: str | None = None, limit: int = 50) -> Op[Page[AuditRow]]:
        return self._state(lambda step: read.audit(WAYS, after, limit))

    def purge(self, keep: Keep, limit: int = 1000) -> Op[int]:
        def run() -> int:
            # Apart, so that what was appended is not held back by a long slice.
            self._sessions.run_step(lambda step: purge.fold(self.place.namespace), Step())
            return self._sessions.run_step(lambda step: purge.purge(step, keep, limit), Step())

        return self._op(run)

    # Hint.

    def wakeups(self, hear: Hear) -> AbstractAsyncContextManager[Listener]:
        return self._hints.listen(hear)

    # Steps, in both colours.

    def _op(self, work: Callable[[], T]) -> Op[T]:
        return Op(work, lambda: self._sessions.hands.wait(work))

    def _state(self, make: Make[T]) -> Op[T]:
        """An operation of one statement."""
        return self._op(lambda: self._told(self._sessions.run_statement, make, Step()))

    def _write(self, make: Make[T]) -> Op[T]:
        """An operation of several statements, of which all or none take effect."""
        return self._op(lambda: self._told(self._sessions.run_step, make, Step()))

    def _acted(self, act: Act | None, make: Make[T], fates_of: Callable[[T], list[Fate]]) -> Op[T]:
        """The same, and, if it is somebody's act, the audit row of it."""
        return self._write(lambda step: operate.acted(WAYS, step, act, make(step), fates_of))

    def _read(self, make: Make[T]) -> Op[T]:
        """An operation of several statements that only read."""
        return self._op(lambda: self._sessions.run_reading(make, Step()))

    def _accept(self, run: Run, make: Make[T]) -> T:
        """Take in jobs or outcomes, as durably as the user asks."""
        return self._told(run, make, Step(is_quick=self._is_quick))

    def _told(self, run: Run, make: Make[T], step: Step) -> T:
        answer: T = run(make, step)
        self._hints.tell_here(step)
        return answer

    def _close(self) -> None:
        with self._hints.hurried():
            self._sessions.close()

    def _now(self) -> datetime:
        now = self._sessions.run_statement(lambda step: claim.ask_the_time(), Step())
        if now is None:
            raise StoreUnreachable(f"{self.place.shown}: the server is read-only: wait for the one that takes over")
        return from_millis(now)

    def _take_new(self, asked: Asked, job_id: str) -> Claimed | None:
        latest = self._latest
        return self._sessions.run_statement(lambda step: claim.take_new(step, asked, job_id, latest), Step())

    def _enqueue_plain(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        topics = {topic.queue(job.options.queue) for job in jobs}
        news = None
        if len(jobs) == 1 and jobs[0].start is None:
            news = News(jobs[0].id, jobs[0].options.queue, jobs[0].task)
        step = Step(is_quick=self._is_quick, news=news, message=self._hints.compose(topics, news))
        return self._told(self._sessions.run_statement, lambda step: enqueue_plain(step, jobs), step)

    def _enqueue_inside(self, tx: object, make: Make[list[Enqueued]]) -> list[Enqueued]:
        step = Step()
        answers = run_inside(tx, self.place, self._store_id or self._find_store_id(), make, step)
        self._tell_after_commit(tx, step)
        return answers

    async def _enqueue_inside_async(self, tx: object, make: Make[list[Enqueued]]) -> list[Enqueued]:
        step = Step()
        store_id = self._store_id
        if store_id is None:
            store_id = await self._sessions.hands.wait(self._find_store_id)
        answers = await run_inside_async(tx, self.place, store_id, make, step)
        self._tell_after_commit(tx, step)
        return answers

    def _find_store_id(self) -> str:
        store_id, _ = self._sessions.run_statement(lambda step: find_store(), Step())
        self._store_id = store_id
        return store_id

    def _tell_after_commit(self, tx: object, step: Step) -> None:
        if not on_commit(tx, lambda: self._hints.tell(step)):
            # Nobody tells when the caller commits: mostly soon.
            self._hints.tell_later(step)


def _enqueuing(jobs: Sequence[NewJob], act: Act | None) -> Make[list[Enqueued]]:
    if act is not None or has_keys(jobs):
        return lambda step: operate.acted(
            WAYS, step, act, produce.enqueue(WAYS, step, jobs), partial(fates_of_jobs, jobs)
        )
    return lambda step: enqueue_plain(step, jobs)


def _in_thread(work: Callable[[], T]) -> Op[T]:
    return Op(work, lambda: asyncio.to_thread(work))
