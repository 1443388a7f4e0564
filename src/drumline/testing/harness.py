"""The harness: the program's own Drumline on a fresh memory store, with time that a test moves by hand.

with testing.harness(drum) as harness:              async with testing.harness(drum) as harness:
    greet.enqueue_sync(name="Ada")                      await greet.enqueue(name="Ada")
    harness.run_until_idle()                            await harness.run_until_idle()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from drumline.app import Drumline
from drumline.client import Client
from drumline.clock import ManualClock
from drumline.engine.worker import WorkerOptions
from drumline.errors import DrumlineError
from drumline.events import Event, JobClosed
from drumline.model.instant import Duration, parse_duration
from drumline.model.job import ENDED
from drumline.model.query import JobFilter
from drumline.testing.clock import HarnessClock
from drumline.testing.seen import Inspection, SeenJob
from drumline.testing.steps import Steps
from drumline.testing.store import HarnessStore

__all__ = ["AsyncHarness", "Harness", "app", "harness", "lend"]

P = ParamSpec("P")
T = TypeVar("T")
H = TypeVar("H", bound="_Parts")

PATIENCE = "10s"
_OF_THE_LIFESPAN: Any = object()


def app(**options: Any) -> Drumline:
    """A Drumline in memory, whose clock stands still: for tests of tasks that belong to no program."""
    return Drumline("memory://", clock=ManualClock(), **options)


def harness(
    drum: Drumline,
    *,
    now: datetime | str | None = None,
    patience: Duration = PATIENCE,
    state: Any = _OF_THE_LIFESPAN,
) -> Opening:
    """The harness of a test: `with testing.harness(drum) as harness`, or `async with` in an async test.

    `now`: the instant at which it begins, else the present. `patience`: how long, in real time, a job may take.
    `state`: what jobs get as `ctx.state`; the app's lifespan is then not opened.
    """
    return Opening(drum, HarnessClock(now), parse_duration(patience, "patience").total_seconds(), state)


@contextmanager
def lend(drum: Drumline) -> Iterator[AsyncHarness]:
    """A harness for an async test whose event loop does not run yet, or no longer: for fixtures that are not async.

    What still runs at its end, and the app's lifespan, are closed together with the test's loop.
    """
    with harness(drum).swap(AsyncHarness) as lent:
        yield lent


class _Parts(Inspection):
    """What both colours share: the swapped Drumline, the jobs that ended, and the steps, made on the first turn."""

    def __init__(
        self, drum: Drumline, store: HarnessStore, clock: HarnessClock, client: Client, patience: float, state: Any
    ) -> None:
        super().__init__(drum, store, clock, client)
        self._harness_clock = clock
        self._patience = patience
        self._state = state
        self._steps: Steps | None = None
        self._closed: list[str] = []

    def hear(self, event: Event) -> None:
        """Note, in their order, the jobs of which an attempt has ended."""
        if isinstance(event, JobClosed):
            self._closed.append(event.job_id)

    async def _open(self) -> Steps:
        if self._steps is None:
            worker = await self._drum.worker(WorkerOptions(name="harness", children=0))
            self._steps = Steps(self._drum, self._store, self._harness_clock, worker, self._patience)
            lifespan = self._drum.lifespan if self._state is _OF_THE_LIFESPAN else None
            await self._steps.open(lifespan, None if self._state is _OF_THE_LIFESPAN else self._state)
        return self._steps

    async def _close(self) -> None:
        if self._steps is not None:
            await self._steps.close()

    async def _start(self) -> list[SeenJob]:
        await (await self._open()).begin()
        return [job for job in self.jobs if job.info.replica is not None]

    async def _run_until_idle(self) -> list[SeenJob]:
        self._closed.clear()
        await (await self._open()).run_until_idle()
        return self._ended()

    async def _advance(self, by: Duration) -> list[SeenJob]:
        span = parse_duration(by, "by")
        self._closed.clear()
        await (await self._open()).advance(span)
        return self._ended()

    def _ended(self) -> list[SeenJob]:
        """The jobs that ended in the turn just taken, in that order."""
        if not self._closed:
            return []
        # By its last attempt: one that was retried comes where it ended.
        last = reversed(dict.fromkeys(reversed(self._closed)))
        return [job for job in self._find_all(JobFilter(ids=tuple(last))) if job.state in ENDED]


class Harness(_Parts):
    """A harness for tests that are not async: it has an event loop of its own."""

    def run_until_idle(self) -> list[SeenJob]:
        """Run every job that is ready, one after the other, and what comes of them; the jobs that ended."""
        return self._run(self._run_until_idle)

    def advance(self, by: Duration) -> list[SeenJob]:
        """Move time, and run what is ready and what becomes due on the way, each at its time; the jobs that ended."""
        return self._run(self._advance, by)

    def start(self) -> list[SeenJob]:
        """Begin every job that is ready without waiting for its end, so that time can pass while it runs."""
        return self._run(self._start)

    def open(self, stack: ExitStack) -> None:
        """Make the event loop and open the app's lifespan; the stack closes both."""
        # A factory of our own keeps the runner from touching the thread's event loop, which belongs to the test.
        self._runner = stack.enter_context(asyncio.Runner(loop_factory=asyncio.new_event_loop))
        stack.callback(self._run, self._close)
        self._run(self._open)

    def _run(self, turn: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        _refuse_running_loop()
        return self._runner.run(turn(*args, **kwargs))


class AsyncHarness(_Parts):
    """A harness for async tests: jobs run on the test's own event loop."""

    async def run_until_idle(self) -> list[SeenJob]:
        """Run every job that is ready, one after the other, and what comes of them; the jobs that ended."""
        return await self._run_until_idle()

    async def advance(self, by: Duration) -> list[SeenJob]:
        """Move time, and run what is ready and what becomes due on the way, each at its time; the jobs that ended."""
        return await self._advance(by)

    async def start(self) -> list[SeenJob]:
        """Begin every job that is ready without waiting for its end, so that time can pass while it runs."""
        return await self._start()

    async def open(self, stack: AsyncExitStack) -> None:
        """Open the app's lifespan; the stack closes it."""
        stack.push_async_callback(self._close)
        await self._open()


class Opening:
    """A harness about to be opened, once, in either colour."""

    def __init__(self, drum: Drumline, clock: HarnessClock, patience: float, state: Any) -> None:
        self._drum = drum
        self._clock = clock
        self._patience = patience
        self._state = state
        self._stack = ExitStack()
        self._async_stack = AsyncExitStack()

    @contextmanager
    def swap(self, kind: type[H]) -> Iterator[H]:
        """Let a fresh memory store and the manual clock take the place of the program's own."""
        store = HarnessStore(self._clock)
        with self._drum.standing_in(store, self._clock) as client:
            opened = kind(self._drum, store, self._clock, client, self._patience, self._state)
            unsubscribe = self._drum.events.subscribe(opened.hear)
            try:
                yield opened
            finally:
                unsubscribe()

    def __enter__(self) -> Harness:
        _refuse_running_loop()
        with ExitStack() as stack:
            opened = stack.enter_context(self.swap(Harness))
            opened.open(stack)
            self._stack = stack.pop_all()
        return opened

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    async def __aenter__(self) -> AsyncHarness:
        async with AsyncExitStack() as stack:
            opened = stack.enter_context(self.swap(AsyncHarness))
            await opened.open(stack)
            self._async_stack = stack.pop_all()
        return opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._async_stack.__aexit__(kind, error, trace)


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise DrumlineError("this code is async: use `async with testing.harness(drum)`, and await what the harness does")
