"""Eager mode: enqueue runs the task at once, in the caller, and gives a handle on a job that has already ended.

A plain function runs in the caller's own thread, so it sees what the caller sees: an open transaction, a thread's
local variables. Delays and the waits between attempts are passed over by moving a manual clock; nothing is waited for.
A job that asks to be snoozed is left waiting, for its own run would never end. Time limits do not count: nothing is
there that could interrupt the caller.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec

from drumline.app import Drumline
from drumline.client import Client, JobHandle
from drumline.clock import ManualClock, fresh_id
from drumline.engine.context import context_of
from drumline.engine.execution import Execution
from drumline.engine.failure import failure, raised
from drumline.model.act import Act
from drumline.model.claim import Claim, Share
from drumline.model.context import active
from drumline.model.job import WAITING, Enqueued, Job, NewJob
from drumline.model.query import JobFilter
from drumline.model.result import encode_result
from drumline.policy.verdict import Ending, Misfit, Returned, verdict
from drumline.stores.base import Op
from drumline.stores.memory import MemoryStore
from drumline.testing.clock import HarnessClock
from drumline.testing.seen import Inspection
from drumline.testing.store import HarnessStore

__all__ = ["eager"]

T = TypeVar("T")

REPLICA = "eager"

# Yields each call that is to be made; is sent what it returned, or thrown what it raised.
Calls = Generator[Callable[[], Any], Any, T]


@contextmanager
def eager(drum: Drumline, *, now: datetime | str | None = None, state: Any = None) -> Iterator[Inspection]:
    """Run every job where it is enqueued, while the context is open: `with testing.eager(drum) as seen`.

    `now`: the instant at which it begins, else the present. `state`: what jobs get as `ctx.state`; the app's lifespan
    is not opened.
    """
    clock = HarnessClock(now)
    store = EagerStore(drum, clock, state)
    with drum.standing_in(store, clock, partial(EagerClient, store)) as client:
        yield Inspection(drum, store, clock, client)


class EagerClient(Client):
    """A client whose enqueue answers with what became of the job."""

    def __init__(self, memory: MemoryStore, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._memory = memory

    def answer(self, enqueued: Enqueued) -> JobHandle[Any]:
        (job,) = self._memory.jobs(JobFilter(ids=(enqueued.id,))).run().items
        return JobHandle(self, Enqueued(job.id, job.state, enqueued.created, enqueued.replaced), job)


class EagerStore(HarnessStore):
    """A store that runs what is put into it."""

    def __init__(self, drum: Drumline, clock: ManualClock, state: Any) -> None:
        super().__init__(clock)
        self._drum = drum
        self._manual = clock
        self._job_state = state

    def enqueue(
        self,
        jobs: Sequence[NewJob],
        *,
        tx: object | None = None,  # noqa: ARG002
        act: Act | None = None,
    ) -> Op[list[Enqueued]]:
        # One after the other, so that each has ended before the next is made.
        made = [super(EagerStore, self).enqueue([job], act=act) for job in jobs]

        def blocking() -> list[Enqueued]:
            return [_drive(self._run(one.run()[0])) for one in made]

        async def asynchronous() -> list[Enqueued]:
            return [await _drive_async(self._run(one.run()[0])) for one in made]

        return Op(blocking, asynchronous)

    def _run(self, enqueued: Enqueued) -> Calls[Enqueued]:
        """Run one job to its end, without waiting for anything."""
        while (job := self._read(enqueued.id)).state in WAITING and not _is_snoozed(job):
            if (wait := job.due_at - self._manual.now()) > timedelta():
                self._manual.advance(wait)
            shares = [Share(job.queue, 1)]
            claimed = self.claim(REPLICA, shares, 1, list(self._names(job)), fresh_id()).run()
            if not claimed.claims:
                # Paused, or a task whose code lives elsewhere: it waits, as it would in production.
                break
            yield from self._attempt(claimed.claims[0])
        return msgspec.structs.replace(enqueued, state=job.state)

    def _attempt(self, claim: Claim) -> Calls[None]:
        definition = self._drum.find_task(claim.task).definition
        execution = Execution(claim, definition, self._manual, self._manual.monotonic(), lambda _: None)
        execution.begin()
        ending = yield from self._call(execution)
        if (words := execution.take_words()) is not None:
            self.report([words]).run()
        times = {"started_at": execution.started_at, "ended_at": execution.now()}
        self.finish([verdict(claim, ending, by=REPLICA, **times)]).run()

    def _call(self, execution: Execution) -> Calls[Ending]:
        definition = execution.definition
        try:
            args, kwargs = definition.codec.decode(execution.claim.args)
        except Exception as misfit:  # noqa: BLE001 - a model's own code may fail in any way on a shape it does not know
            return Misfit(failure(misfit))
        context = context_of(execution.claim, execution, self._job_state)
        before = active.set(context)
        try:
            value = yield partial(
                definition.function, *((context,) if definition.takes_context else ()), *args, **kwargs
            )
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it belongs to the job
            return raised(definition, error)
        finally:
            active.reset(before)
        return Returned(*encode_result(value))

    def _names(self, job: Job) -> Iterator[str]:
        """The job's task, if its code is here."""
        if any(job.task in (task.name, *task.aliases) for task in self._drum.tasks.values()):
            yield job.task

    def _read(self, job_id: str) -> Job:
        return self.jobs(JobFilter(ids=(job_id,))).run().items[0]


def _is_snoozed(job: Job) -> bool:
    return bool(job.attempts) and job.attempts[-1].ended in ("snoozed", "released")


def _drive(calls: Calls[T]) -> T:
    """Make the calls here; a coroutine gets an event loop of its own."""
    try:
        call = next(calls)
        while True:
            try:
                value = _finish(call())
            except BaseException as error:  # noqa: BLE001 - thrown into the run, which knows what to do with it
                call = calls.throw(error)
            else:
                call = calls.send(value)
    except StopIteration as ended:
        answer: T = ended.value
        return answer


async def _drive_async(calls: Calls[T]) -> T:
    """Make the calls on the caller's event loop."""
    try:
        call = next(calls)
        while True:
            try:
                value = call()
                value = await value if inspect.iscoroutine(value) else value
            except BaseException as error:  # noqa: BLE001 - thrown into the run, which knows what to do with it
                call = calls.throw(error)
            else:
                call = calls.send(value)
    except StopIteration as ended:
        answer: T = ended.value
        return answer


def _finish(value: Any) -> Any:
    """What a call came to: of a coroutine its result."""
    if not inspect.iscoroutine(value):
        return value
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(value)
    # Blocking code inside async code: this thread's loop is busy waiting for us.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, value).result()
