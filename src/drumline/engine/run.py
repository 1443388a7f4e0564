"""Running: a claim in, its task called, how it ended out."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from drumline.clock import Clock
from drumline.engine.childrun import Children, ChildRun, EndedInChild
from drumline.engine.context import context_of
from drumline.engine.execution import Execution, Executions, Reason
from drumline.engine.failure import failure, find_unreadable, raised
from drumline.engine.slots import Limits, Slots
from drumline.engine.stuck import complain
from drumline.engine.threads import DaemonPool
from drumline.events import Events, JobStarted
from drumline.middleware import AroundRun, wrap_run
from drumline.model.claim import Claim
from drumline.model.context import active
from drumline.model.job import Failure
from drumline.model.result import encode_result
from drumline.policy.options import Executor
from drumline.policy.task import TaskDefinition
from drumline.policy.verdict import Cancelled, Ending, Misfit, Returned, Stopped, TimedOut
from drumline.policy.zone import zone

__all__ = ["Runner"]

# Whoever was told to stop for one of these, and came to its end all the same, did stop.
_FINAL = (Reason.CANCEL, Reason.TIMEOUT)


class Runner:
    """Calls tasks, each in an asyncio task of its own; tells `close` how each ended, once."""

    def __init__(
        self,
        registry: Mapping[str, TaskDefinition],
        executions: Executions,
        *,
        concurrency: int,
        threads: int,
        clock: Clock,
        events: Events,
        on_start: Callable[[Execution], None],
        close: Callable[[Execution, Ending], None],
        on_words: Callable[[Execution], None],
        around: Sequence[AroundRun] = (),
        on_free: Callable[[], None] = lambda: None,
        children: Children | None = None,
        zone_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        """Without `children`, tasks that ask for a child process run in threads of this one."""
        self.state: Any = None
        self._registry = registry
        self._executions = executions
        size = None if children is None else children.size
        self._slots = Slots(Limits(concurrency=concurrency, threads=threads, children=size))
        self._pool = DaemonPool(threads)
        self._clock = clock
        self._events = events
        self._on_start = on_start
        self._close = close
        self._on_words = on_words
        self._around = around
        self._on_free = on_free
        self._children = children
        # The time zone of a schedule, if it is known here.
        self._zone_of = zone_of
        self._running: set[Execution] = set()
        # Recorded as timed out, but not ended: each still has its slot.
        self._stuck: set[Execution] = set()

    @property
    def running(self) -> int:
        """How many tasks have been called and have not ended."""
        return len(self._running)

    @property
    def stuck(self) -> int:
        """How many slots are held by tasks that were given up, and have not ended."""
        return len(self._stuck)

    def room(self, executor: Executor) -> int:
        """How many more claims of this executor can start at once."""
        return self._slots.room(executor)

    def busy(self) -> Iterator[Execution]:
        """What has a slot now."""
        yield from self._running
        yield from self._stuck

    @property
    def limits(self) -> Limits:
        return self._slots.limits

    def resize(self, limits: Limits) -> None:
        """Change the limits; what runs beyond them goes on."""
        self._pool.resize(limits.threads)
        if self._children is not None and limits.children is not None:
            self._children.resize(limits.children)
        self._slots.limits = limits

    def hold(self, claim: Claim, received: float) -> Execution:
        """Keep the claim alive until it is started. `received` is the monotonic time at which it came."""
        if claim.tick is not None and claim.schedule is not None:
            claim = self._localise(claim, claim.schedule, claim.tick)
        execution = Execution(claim, self._registry[claim.task], self._clock, received, self._on_words)
        self._executions.add(execution)
        return execution

    def start(self, execution: Execution) -> None:
        """Call the task of a claim that is held."""
        self._running.add(execution)
        self._slots.take(execution.definition.executor)
        execution.task = asyncio.get_running_loop().create_task(self._run(execution))

    def _localise(self, claim: Claim, schedule: str, tick: datetime) -> Claim:
        """The claim with its tick in the schedule's own zone."""
        name = self._zone_of(schedule)
        return claim if name is None else msgspec.structs.replace(claim, tick=tick.astimezone(zone(name)))

    def release(self) -> None:
        """Give every job that still runs back; coroutines have had their chance, threads are left to themselves."""
        for execution in list(self._running):
            self._end(execution, Stopped())

    def give_up(self, execution: Execution) -> None:
        """Record an execution as timed out though it has not ended; its slot is taken until it has."""
        if execution not in self._running:
            return
        self._running.discard(execution)
        self._stuck.add(execution)
        complain(execution)
        self._close(execution, _timed_out(execution))
        execution.held = False

    async def close(self) -> None:
        """Let child processes end in good order."""
        if self._children is not None:
            await self._children.close()

    def shut(self) -> None:
        """Leave busy threads to themselves, and no child process alive."""
        self._pool.close()
        if self._children is not None:
            self._children.shut()

    async def _run(self, execution: Execution) -> None:
        self._begin(execution)
        if self._is_for_child(execution):
            # Its time counts from the call in the child, and not while that starts.
            execution.deadline = None
        if self._events:
            self._tell_start(execution)
        try:
            # It may have been told to stop before it began.
            ending = await self._call(execution) if execution.reason is None else _interrupted(execution)
        except BaseException as error:
            # SystemExit in a task belongs to its job, and must not end the worker.
            if isinstance(error, GeneratorExit) and not _is_current(execution):
                # Thrown away with its event loop: this is no end of the job.
                raise
            if execution.reason is not None:
                ending = _interrupted(execution)
            else:
                ending = error.ending if isinstance(error, EndedInChild) else raised(execution.definition, error)
        # The task's context leads back to the execution: both would be left to the garbage collector.
        execution.task = None
        self._end(execution, ending)

    def _begin(self, execution: Execution) -> None:
        execution.begin()
        self._on_start(execution)

    def _is_for_child(self, execution: Execution) -> bool:
        return self._children is not None and execution.definition.executor is Executor.PROCESS

    async def _call(self, execution: Execution) -> Ending:
        if unreadable := find_unreadable(execution.claim):
            return unreadable
        if self._children is not None and self._is_for_child(execution):
            return await self._call_in_child(self._children, execution)
        definition = execution.definition
        try:
            args, kwargs = definition.codec.decode(execution.claim.args)
        except Exception as misfit:  # noqa: BLE001 - a model's own code may fail in any way on a shape it does not know
            return Misfit(failure(misfit))
        context = context_of(execution.claim, execution, self.state)
        active.set(context)
        if definition.takes_context:
            args = (context, *args)
        if definition.executor is Executor.COROUTINE and not self._around:
            value = await definition.function(*args, **kwargs)
        else:
            call = partial(definition.function, *args, **kwargs)
            run = (
                call
                if definition.executor is Executor.COROUTINE
                else partial(self._pool.run, partial(_call_in_thread, execution, call))
            )
            value = await wrap_run(self._around, context, run)()
        if execution.reason is not None and execution.reason in _FINAL:
            return _interrupted(execution)
        return Returned(*encode_result(value))

    async def _call_in_child(self, children: Children, execution: Execution) -> Ending:
        context = context_of(execution.claim, execution, self.state)
        active.set(context)
        run = ChildRun(children, execution, partial(self._begin, execution))
        value = await wrap_run(self._around, context, run)()
        if execution.reason in _FINAL:
            return _interrupted(execution)
        return run.returned(value)

    def _end(self, execution: Execution, ending: Ending) -> None:
        if execution in self._stuck:
            self._stuck.discard(execution)
            self._slots.free(execution.definition.executor)
            self._on_free()
        if execution not in self._running:
            return
        self._running.discard(execution)
        self._slots.free(execution.definition.executor)
        self._close(execution, ending)

    def _tell_start(self, execution: Execution) -> None:
        claim = execution.claim
        waited = execution.started_at - claim.due_at
        self._events.emit(JobStarted(claim.id, claim.task, claim.queue, claim.attempt, waited))


def _is_current(execution: Execution) -> bool:
    """Whether it is the execution's own task that is running now."""
    try:
        return asyncio.current_task() is execution.task
    except RuntimeError:
        return False


def _call_in_thread(execution: Execution, call: Callable[[], Any]) -> Any:
    """Call a task in this thread; an async one gets an event loop of its own."""
    execution.thread = threading.get_ident()
    value = call()
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def _interrupted(execution: Execution) -> Ending:
    """How an execution ended that was told to stop."""
    match execution.reason:
        case Reason.CANCEL:
            return Cancelled()
        case Reason.TIMEOUT:
            return _timed_out(execution)
        case _:
            return Stopped()


def _timed_out(execution: Execution) -> TimedOut:
    limit = execution.claim.options.timeout
    seconds = limit.total_seconds() if limit is not None else 0
    return TimedOut(Failure("TimeoutError", f"ran longer than its time limit of {seconds:g} s"))
