"""The callers' door: handles on jobs, and the verbs on many of them."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar

from drumline.clock import Clock, fresh_id
from drumline.errors import BadOption, DrumlineError, JobCancelled, JobDead, JobNotFound
from drumline.model.act import Act
from drumline.model.instant import Duration, parse_duration, parse_instant
from drumline.model.job import ENDED, Enqueued, Job, JobState, LogLine, Start
from drumline.model.options import check_name
from drumline.model.query import Answer, By, Command, CommandKind, Counts, JobFilter, PauseKind
from drumline.model.replica import Replica
from drumline.model.token import make_token
from drumline.policy.filter import job_filter
from drumline.policy.options import check_storable
from drumline.stores.base import Store, topic

__all__ = ["Client", "JobHandle", "Jobs", "OneJob", "Queues"]

R = TypeVar("R")

# One job, by its id or its handle.
OneJob: TypeAlias = "JobHandle[Any] | str"

# A hint of an ended job may be lost: so often we look without one.
LOOK_EVERY = 10.0
# While no hints arrive.
LOOK_WITHOUT_HINTS = 1.0
SLICE = 500


class JobHandle(Generic[R]):
    """One job, as last seen: its id at once, the rest after `refresh()`."""

    def __init__(self, client: Client, enqueued: Enqueued, job: Job | None = None) -> None:
        self.id = enqueued.id
        # Whether the call that gave this handle made the job, or replaced a waiting one.
        self.created = enqueued.created
        self.replaced = enqueued.replaced
        self.state = enqueued.state
        self._client = client
        self._job = job

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.state}>"

    @property
    def info(self) -> Job:
        """Everything that is stored of the job, as last seen."""
        if self._job is None:
            raise JobNotFound(f"job {self.id}: not read yet; await job.refresh() first")
        return self._job

    @property
    def tracking_token(self) -> str:
        """For an end user: `GET /track/{token}` tells how this job is doing. It cannot be guessed."""
        return self._client.tracking_token(self.id)

    async def refresh(self) -> JobHandle[R]:
        """Read the job again."""
        self._job = await self._client.jobs.read(self.id)
        self.state = self._job.state
        return self

    async def wait(self, timeout: Duration | None = None) -> R:
        """The job's result, once it is done. Raises JobDead, JobCancelled, or TimeoutError."""
        async for handle in self._client.jobs.as_ended([self], timeout=timeout):
            self._job, self.state = handle.info, handle.state
        return self.result

    @property
    def result(self) -> R:
        """The result of a job that is done; JobDead or JobCancelled otherwise."""
        job = self.info
        if job.state is JobState.DEAD:
            raise JobDead(f"job {job.id} of task {job.task} is dead: {job.last_error}")
        if job.state is JobState.CANCELLED:
            raise JobCancelled(f"job {job.id} of task {job.task} was cancelled")
        if job.state is not JobState.DONE:
            raise JobNotFound(f"job {job.id} has no result yet: it is {job.state}")
        result: R = self._client.decode_result(job)
        return result

    async def cancel(self, reason: str = "") -> Answer:
        """Cancel the job: one that waits ends at once, one that runs is asked to stop."""
        return (await self._client.jobs.cancel(self.id, reason=reason))[self.id]

    async def reschedule(self, *, at: datetime | str | None = None, delay: Duration | None = None) -> Answer:
        """Move a waiting job to another time."""
        return (await self._client.jobs.reschedule(self.id, at=at, delay=delay))[self.id]

    async def logs(self) -> list[LogLine]:
        """What the job has logged so far."""
        return await self._client.jobs.logs(self.id)


class Jobs:
    """`drum.jobs`: find jobs, wait for them, act on them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, job_id: str) -> JobHandle[Any]:
        """The job of that id; JobNotFound if there is none."""
        return self._client.handle(await self.read(job_id))

    async def read(self, job_id: str) -> Job:
        """All that is stored of one job; JobNotFound if there is none."""
        store = await self._client.store()
        page = await store.jobs(JobFilter(ids=(job_id,)))
        if not page.items:
            raise JobNotFound(f"job {job_id}: no such job is stored; the id is wrong, or its retention is over")
        return page.items[0]

    async def find(self, *, limit: int | None = None, **where: Any) -> AsyncIterator[JobHandle[Any]]:
        """Jobs that fit, newest first: by state=, task=, queue=, tag=, key=, meta=, origin=, schedule=, source=, …"""
        async for job in self.select(job_filter(**where), limit):
            yield self._client.handle(job)

    async def select(self, where: JobFilter, limit: int | None = None) -> AsyncIterator[Job]:
        """The stored jobs that fit, newest first; of private queues only where the filter names them."""
        left = limit if limit is not None else float("inf")
        if left <= 0:
            return
        async for job in self.walk(where, int(min(left, 100))):
            if where.shows(job.queue):
                yield job
                left -= 1
            if left <= 0:
                return

    async def walk(self, where: JobFilter, first: int = 100) -> AsyncIterator[Job]:
        """The stored jobs that fit, newest first, of private queues too; `first`: so many are read to begin with."""
        store = await self._client.store()
        page = await store.jobs(where, limit=first)
        while True:
            for job in page.items:
                yield job
            if page.next is None:
                return
            page = await store.jobs(where, after=page.next, limit=SLICE)

    async def wait(self, jobs: Iterable[OneJob], timeout: Duration | None = None) -> list[JobHandle[Any]]:
        """All of these jobs, once each has ended, in the order given. Raises TimeoutError if some have not."""
        wanted = [job if isinstance(job, str) else job.id for job in jobs]
        ended = {handle.id: handle async for handle in self.as_ended(wanted, timeout=timeout)}
        return [ended[job_id] for job_id in wanted]

    async def as_ended(self, jobs: Iterable[OneJob], timeout: Duration | None = None) -> AsyncIterator[JobHandle[Any]]:
        """These jobs, each as soon as it has ended. Raises TimeoutError if time runs out before the last has."""
        store = await self._client.store()
        clock = self._client.clock
        left = {job if isinstance(job, str) else job.id for job in jobs}
        deadline = None if timeout is None else clock.monotonic() + parse_duration(timeout, "timeout").total_seconds()
        news = asyncio.Event()
        async with store.wakeups(lambda _: news.set()) as listener:
            listener.watch(topic.ended(job_id) for job_id in left)
            while left:
                # Before the look, so that an end during it is not overlooked.
                news.clear()
                for job in await self._ended_of(store, left):
                    left.discard(job.id)
                    yield self._client.handle(job)
                if left:
                    look_in = LOOK_EVERY if listener.is_hearing else LOOK_WITHOUT_HINTS
                    await self._wait_for_news(news, look_in, deadline, len(left))

    async def _ended_of(self, store: Store, ids: set[str]) -> list[Job]:
        page = await store.jobs(JobFilter(ids=tuple(ids)))
        missing = ids - {job.id for job in page.items}
        if missing:
            raise JobNotFound(f"job {min(missing)}: no such job is stored; the id is wrong, or its retention is over")
        return [job for job in page.items if job.state in ENDED]

    async def _wait_for_news(self, news: asyncio.Event, look_in: float, deadline: float | None, left: int) -> None:
        clock = self._client.clock
        patience = look_in if deadline is None else min(deadline - clock.monotonic(), look_in)
        if patience <= 0:
            raise TimeoutError(f"{left} of the jobs waited for have not ended in time")
        await clock.wait(news, patience)

    async def logs(self, job_id: str) -> list[LogLine]:
        """What the job has logged so far."""
        store = await self._client.store()
        return await store.logs(job_id)

    async def retry(self, *jobs: OneJob | Iterable[OneJob], reason: str = "", **where: Any) -> dict[str, Answer]:
        """Make ended jobs ready again, under their own ids, with fresh attempts. By id or handle, or by filter."""
        return await self._act(CommandKind.RETRY, jobs, where, reason)

    async def cancel(self, *jobs: OneJob | Iterable[OneJob], reason: str = "", **where: Any) -> dict[str, Answer]:
        """Cancel jobs: those that wait end at once, those that run are asked to stop. By id or handle, or by filter."""
        return await self._act(CommandKind.CANCEL, jobs, where, reason)

    async def discard(self, *jobs: OneJob | Iterable[OneJob], reason: str = "", **where: Any) -> dict[str, Answer]:
        """Forget ended jobs. By id or handle, or by filter."""
        return await self._act(CommandKind.DISCARD, jobs, where, reason)

    async def reschedule(
        self,
        *jobs: OneJob | Iterable[OneJob],
        at: datetime | str | None = None,
        delay: Duration | None = None,
        reason: str = "",
        **where: Any,
    ) -> dict[str, Answer]:
        """Move waiting jobs to another time. By id or handle, or by filter."""
        if (at is None) == (delay is None):
            raise BadOption("at", "given, or delay, but not both", at, "reschedule")
        start: Start = parse_duration(delay, "delay") if at is None else parse_instant(at, "at")
        return await self._act(CommandKind.RESCHEDULE, jobs, where, reason, start)

    async def _act(
        self,
        kind: CommandKind,
        jobs: tuple[OneJob | Iterable[OneJob], ...],
        where: dict[str, Any],
        reason: str,
        start: Start = None,
    ) -> dict[str, Answer]:
        if bool(jobs) == bool(where):
            raise BadOption("jobs", "ids, or a filter such as state=, but not both", jobs or where, kind.value)
        ids = tuple(_ids_of(jobs, kind))
        if where:
            wanted = job_filter(**where)
            if wanted.is_empty:
                raise BadOption("jobs", "chosen by a filter that names something, such as state=", where, kind.value)
            ids = tuple([job.id async for job in self.select(wanted)])
        store = await self._client.store()
        by = self._client.by(reason)
        whole: str | None = None
        answers: dict[str, Answer] = {}
        for place in range(0, len(ids), SLICE):
            part = ids[place : place + SLICE]
            command = Command(id=fresh_id(), kind=kind, ids=part, by=by, start=start, part_of=whole)
            whole = whole or command.id
            answers.update(zip(part, await store.command(command), strict=True))
            self._client.on_progress(len(answers), len(ids))
        return answers


class Queues:
    """`drum.queues`: pause and resume, for the whole fleet."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def pause(self, *names: str, reason: str = "") -> list[bool]:
        """Let the queues give no more jobs; what runs goes on. Says which were not paused already."""
        for name in names:
            check_name(name, "queue")
        return await self._set(names, reason, paused=True)

    async def resume(self, *names: str, reason: str = "") -> list[bool]:
        """Let the queues give jobs again. Says which were paused."""
        # Whatever its name: one that no queue can have may have been paused past this door.
        return await self._set(names, reason, paused=False)

    async def paused(self) -> dict[str, By]:
        """The queues that are paused, by whom and why."""
        store = await self._client.store()
        return await store.paused(PauseKind.QUEUE)

    async def _set(self, names: tuple[str, ...], reason: str, *, paused: bool) -> list[bool]:
        store = await self._client.store()
        by = self._client.by(reason)
        return await store.pause(PauseKind.QUEUE, names, paused=paused, by=by, token=fresh_id())


class Client:
    """What handles and verbs share: the store, ready for use, and how to read a result."""

    def __init__(
        self,
        store: Callable[[], Awaitable[Store]],
        *,
        clock: Clock,
        decode_result: Callable[[Job], Any],
        via: str = "code",
        who: str | None = None,
        secret: Callable[[], bytes] | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.decode_result = decode_result
        # The door through which this client acts, for the audit.
        self.via = via
        # In whose name; None: the operating system's user.
        self._who = who
        self._secret = secret
        # Told, after each slice of long work, how much of it is done, and how much there is.
        self.on_progress: Callable[[int, int], None] = lambda done, of: None
        self.jobs = Jobs(self)
        self.queues = Queues(self)

    def tracking_token(self, job_id: str) -> str:
        """What lets an end user follow this job, and nobody who only knows its id."""
        if self._secret is None:
            raise DrumlineError("tracking tokens are made by the program's own Drumline")
        return make_token(self._secret(), job_id)

    def by(self, reason: str = "") -> By:
        """Who acts through this client, for the audit."""
        return By(check_storable(self._who or _system_user(), "who"), self.via, check_storable(reason, "reason"))

    def act(self, action: str, reason: str = "", *, part_of: str | None = None) -> Act:
        """What is done through this client, for the audit."""
        return Act(id=fresh_id(), by=self.by(reason), action=action, part_of=part_of)

    def answer(self, enqueued: Enqueued) -> JobHandle[Any]:
        """The handle that a call of enqueue gives."""
        return JobHandle(self, enqueued)

    def handle(self, job: Job) -> JobHandle[Any]:
        return JobHandle(self, Enqueued(job.id, job.state, created=False), job)

    async def workers(self) -> list[Replica]:
        """The replicas of the fleet, with what each runs now."""
        store = await self.store()
        return await store.workers()

    async def counts(self) -> Counts:
        """How many jobs are in each state: in all, by queue, by task."""
        store = await self.store()
        return Counts(await store.counts())


def _ids_of(jobs: Iterable[OneJob | Iterable[OneJob]], kind: CommandKind) -> Iterator[str]:
    """The ids of jobs that were named one by one or in lists."""
    for job in jobs:
        if isinstance(job, str):
            yield job
        elif isinstance(job, JobHandle):
            yield job.id
        elif isinstance(job, Iterable):
            yield from _ids_of(job, kind)
        else:
            raise BadOption("jobs", "ids or handles of jobs, or lists of them", job, kind.value)


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a number that has no name.
        return "unknown"
