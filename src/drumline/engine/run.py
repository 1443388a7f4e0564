"""Running: a claim in, its task called, how it ended out."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from drumline.clock import Clock
from drumline.engine.execution import Execution, Executions, Reason
from drumline.engine.failure import failure, raised
from drumline.engine.threads import DaemonPool
from drumline.events import Events, JobStarted
from drumline.middleware import AroundRun, wrap_run
from drumline.model.claim import Claim
from drumline.model.context import Context, active
from drumline.model.job import Failure
from drumline.model.result import encode_result
from drumline.policy.options import Executor
from drumline.policy.task import TaskDefinition
from drumline.policy.verdict import Cancelled, Ending, Misfit, Returned, Stopped, TimedOut

__all__ = ["Runner", "context_of"]


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
    ) -> None:
        self.state: Any = None
        self._registry = registry
        self._executions = executions
        self._slots = {Executor.COROUTINE: concurrency, Executor.THREAD: min(threads, concurrency)}
        self._concurrency = concurrency
        self._busy = dict.fromkeys(self._slots, 0)
        self._pool = DaemonPool(threads)
        self._clock = clock
        self._events = events
        self._on_start = on_start
        self._close = close
        self._on_words = on_words
        self._around = around
        self._running: set[Execution] = set()

    @property
    def running(self) -> int:
        """How many tasks have been called and have not ended."""
        return len(self._running)

    def room(self, executor: Executor) -> int:
        """How many more claims of this executor can start at once."""
        free = self._concurrency - sum(self._busy.values())
        return min(free, self._slots[executor] - self._busy[executor])

    def start(self, claim: Claim, received: float) -> None:
        """Call the claim's task. `received` is the monotonic time at which the claim came."""
        execution = Execution(claim, self._registry[claim.task], self._clock, received, self._on_words)
        self._executions.add(execution)
        self._running.add(execution)
        self._busy[execution.definition.executor] += 1
        execution.task = asyncio.get_running_loop().create_task(self._run(execution))

    def release(self) -> None:
        """Give every job that still runs back; coroutines have had their chance, threads are left to themselves."""
        for execution in list(self._running):
            self._end(execution, Stopped())

    def shut(self) -> None:
        self._pool.close()

    async def _run(self, execution: Execution) -> None:
        execution.begin()
        self._on_start(execution)
        if self._events:
            self._tell_start(execution)
        try:
            # It may have been told to stop before it began.
            ending = _interrupted(execution) or await self._call(execution)
        except GeneratorExit:
            # The event loop itself is being torn down: this is no end of the job.
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit in a task belongs to its job, and must not end the worker
            ending = _interrupted(execution) or raised(execution.definition, error)
        self._end(execution, ending)

    async def _call(self, execution: Execution) -> Ending:
        definition = execution.definition
        try:
            args, kwargs = definition.codec.decode(execution.claim.args)
        except Exception as misfit:  # noqa: BLE001 - a model's own code may fail in any way on a shape it does not know
            return Misfit(failure(misfit))
        context = context_of(execution, self.state)
        active.set(context)
        call = partial(definition.function, *((context,) if definition.takes_context else ()), *args, **kwargs)
        run = (
            call
            if definition.executor is Executor.COROUTINE
            else partial(self._pool.run, partial(_call_in_thread, call))
        )
        value = await wrap_run(self._around, context, run)()
        # A thread that was told to stop, and came to an end, did stop.
        if execution.reason in (Reason.CANCEL, Reason.TIMEOUT):
            return _interrupted(execution) or Cancelled()
        return Returned(*encode_result(value))

    def _end(self, execution: Execution, ending: Ending) -> None:
        if execution not in self._running:
            return
        self._running.discard(execution)
        self._busy[execution.definition.executor] -= 1
        self._close(execution, ending)

    def _tell_start(self, execution: Execution) -> None:
        claim = execution.claim
        waited = execution.started_at - claim.due_at
        self._events.emit(JobStarted(claim.id, claim.task, claim.queue, claim.attempt, waited))


def context_of(execution: Execution, state: Any) -> Context:
    """What the task of this execution may know; `state` is what the app's lifespan yielded."""
    claim = execution.claim
    return Context(
        job_id=claim.id,
        task=claim.task,
        queue=claim.queue,
        attempt=claim.attempt,
        max_attempts=claim.options.max_attempts,
        fence=claim.fence,
        tags=claim.tags,
        meta=claim.meta,
        source=claim.source,
        schedule=claim.schedule,
        tick=claim.tick,
        state=state,
        sink=execution,
    )


def _call_in_thread(call: Callable[[], Any]) -> Any:
    """Call a task in this thread; an async one gets an event loop of its own."""
    value = call()
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def _interrupted(execution: Execution) -> Ending | None:
    """How an execution ended that was told to stop; None if it was not."""
    match execution.reason:
        case Reason.CANCEL:
            return Cancelled()
        case Reason.STOP | Reason.LOST:
            return Stopped()
        case Reason.TIMEOUT:
            limit = execution.claim.options.timeout
            seconds = limit.total_seconds() if limit is not None else 0
            return TimedOut(Failure("TimeoutError", f"ran longer than its time limit of {seconds:g} s"))
        case None:
            return None
