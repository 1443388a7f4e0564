"""`drum.sync`: every verb, blocking, for code that is not async. One hidden event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from drumline.model.instant import Duration
from drumline.model.job import LogLine
from drumline.model.query import Answer, By, Counts
from drumline.model.queues import Queues as QueueChoice
from drumline.model.replica import Replica, Role
from drumline.model.schedule import Tick

if TYPE_CHECKING:
    from drumline.client import Client, JobHandle, OneJob
    from drumline.schedules import Schedules, ScheduleView
    from drumline.task import Call, Task

__all__ = ["Blocking", "BlockingJobs", "BlockingLoop", "BlockingQueues", "BlockingSchedules"]

T = TypeVar("T")


class BlockingLoop:
    """An event loop in a daemon thread, begun at first use and again after a fork."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid: int | None = None
        self._lock = threading.Lock()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's answer. Not for use on that loop itself."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._started()).result()

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items of an async iterator, one by one."""
        while (item := self.run(_next(items))) is not _END:
            yield item

    def close(self) -> None:
        if self._loop is not None and self._pid == os.getpid():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop = None

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                threading.Thread(target=self._serve, args=(self._loop,), name="drumline-sync", daemon=True).start()
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()


class BlockingJobs:
    """`drum.sync.jobs`."""

    def __init__(self, client: Client, loop: BlockingLoop) -> None:
        self._jobs = client.jobs
        self._loop = loop

    def get(self, job_id: str) -> JobHandle[Any]:
        return self._loop.run(self._jobs.get(job_id))

    def find(self, *, limit: int | None = None, **where: Any) -> Iterator[JobHandle[Any]]:
        return self._loop.iterate(self._jobs.find(limit=limit, **where))

    def wait(self, jobs: Iterable[OneJob], timeout: Duration | None = None) -> list[JobHandle[Any]]:
        return self._loop.run(self._jobs.wait(jobs, timeout))

    def as_ended(self, jobs: Iterable[OneJob], timeout: Duration | None = None) -> Iterator[JobHandle[Any]]:
        return self._loop.iterate(self._jobs.as_ended(jobs, timeout))

    def logs(self, job_id: str) -> list[LogLine]:
        return self._loop.run(self._jobs.logs(job_id))

    def retry(self, *jobs: OneJob | Iterable[OneJob], reason: str = "", **where: Any) -> dict[str, Answer]:
        return self._loop.run(self._jobs.retry(*jobs, reason=reason, **where))

    def cancel(self, *jobs: OneJob | Iterable[OneJob], reason: str = "", **where: Any) -> dict[str, Answer]:
        return self._loop.run(self._jobs.cancel(*jobs, reason=reason, **where))

    def discard(self, *jobs: OneJob | Iterable[OneJob], reason: str = "", **where: Any) -> dict[str, Answer]:
        return self._loop.run(self._jobs.discard(*jobs, reason=reason, **where))

    def reschedule(
        self,
        *jobs: OneJob | Iterable[OneJob],
        at: datetime | str | None = None,
        delay: Duration | None = None,
        reason: str = "",
        **where: Any,
    ) -> dict[str, Answer]:
        return self._loop.run(self._jobs.reschedule(*jobs, at=at, delay=delay, reason=reason, **where))


class BlockingQueues:
    """`drum.sync.queues`."""

    def __init__(self, client: Client, loop: BlockingLoop) -> None:
        self._queues = client.queues
        self._loop = loop

    def pause(self, *names: str, reason: str = "") -> list[bool]:
        return self._loop.run(self._queues.pause(*names, reason=reason))

    def resume(self, *names: str, reason: str = "") -> list[bool]:
        return self._loop.run(self._queues.resume(*names, reason=reason))

    def paused(self) -> dict[str, By]:
        return self._loop.run(self._queues.paused())


class BlockingSchedules:
    """`drum.sync.schedules`."""

    def __init__(self, schedules: Schedules, loop: BlockingLoop) -> None:
        self._schedules = schedules
        self._loop = loop

    def refresh(self) -> Schedules:
        return self._loop.run(self._schedules.refresh())

    def register(self, task: Any, /, **options: Any) -> ScheduleView:
        return self._loop.run(self._schedules.register(task, **options))

    def unregister(self, name: str, reason: str = "") -> None:
        self._loop.run(self._schedules.unregister(name, reason))

    def pause(self, name: str, reason: str = "") -> bool:
        return self._loop.run(self._schedules.pause(name, reason))

    def resume(self, name: str, reason: str = "") -> bool:
        return self._loop.run(self._schedules.resume(name, reason))

    def trigger(self, name: str, reason: str = "") -> JobHandle[Any]:
        return self._loop.run(self._schedules.trigger(name, reason))

    def backfill(self, name: str, start: datetime | str, end: datetime | str, reason: str = "") -> list[JobHandle[Any]]:
        return self._loop.run(self._schedules.backfill(name, start, end, reason))

    def ticks(self, name: str | None = None, *, limit: int | None = None) -> Iterator[Tick]:
        return self._loop.iterate(self._schedules.ticks(name, limit=limit))


class Program(Protocol):
    """Whoever has tasks, and runs their jobs: the app."""

    def find_task(self, name: str) -> Task[..., Any, Any]: ...

    def enqueue_many_sync(self, calls: Iterable[Call]) -> list[JobHandle[Any]]: ...

    async def run(
        self, *, queues: QueueChoice | None, concurrency: int | None, drain: bool, role: Role | str
    ) -> None: ...


class Blocking:
    """The verbs of an app and its client, blocking."""

    def __init__(self, program: Program, client: Client, schedules: Schedules, loop: BlockingLoop) -> None:
        self.schedules = BlockingSchedules(schedules, loop)
        self.jobs = BlockingJobs(client, loop)
        self.queues = BlockingQueues(client, loop)
        self._program = program
        self._client = client
        self._loop = loop

    def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        return self._program.find_task(task).enqueue_sync(*args, **kwargs)

    def enqueue_many(self, calls: Iterable[Call]) -> list[JobHandle[Any]]:
        return self._program.enqueue_many_sync(calls)

    def run(
        self,
        *,
        queues: QueueChoice | None = None,
        concurrency: int | None = None,
        drain: bool = False,
        role: Role | str = Role.COMBINED,
    ) -> None:
        """On an event loop of its own, in this thread: of the main one it has the signals."""
        asyncio.run(self._program.run(queues=queues, concurrency=concurrency, drain=drain, role=role))

    def counts(self) -> Counts:
        return self._loop.run(self._client.counts())

    def workers(self) -> list[Replica]:
        return self._loop.run(self._client.workers())

    def wait(self, job: JobHandle[T], timeout: Duration | None = None) -> T:
        """The result of one job, once it is done."""
        return self._loop.run(job.wait(timeout))


_END: Any = object()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items, _END)
