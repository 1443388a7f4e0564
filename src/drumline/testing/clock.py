"""The clock of a harness: a manual one that knows who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from drumline.clock import ManualClock, SystemClock
from drumline.model.context import current
from drumline.model.instant import parse_instant

__all__ = ["HarnessClock"]


class _Wait:
    """One call of `wait` that has not returned."""

    def __init__(self, event: asyncio.Event, deadline: timedelta | None) -> None:
        # Of the job in which it happens; empty outside a job.
        self.job_id = current().job_id
        self.loop = asyncio.get_running_loop()
        self.event = event
        self.deadline = deadline

    def is_over(self, elapsed: timedelta) -> bool:
        """Whether it is about to return."""
        return self.event.is_set() or (self.deadline is not None and self.deadline <= elapsed)


class HarnessClock(ManualClock):
    """A manual clock, begun at the present unless another instant is given. Waited for from any thread."""

    def __init__(self, now: datetime | str | None = None) -> None:
        super().__init__(SystemClock().now() if now is None else parse_instant(now, "now"))
        # Called when somebody begins to wait.
        self.on_wait: Callable[[], None] = lambda: None
        self._waits: dict[_Wait, None] = {}

    async def wait_until(self, event: asyncio.Event, deadline: timedelta | None) -> bool:
        wait = _Wait(event, deadline)
        self._waits[wait] = None
        self.on_wait()
        try:
            return await super().wait_until(event, deadline)
        finally:
            del self._waits[wait]

    @property
    def parked(self) -> frozenset[str]:
        """The jobs that can only go on when time is moved, or when something else happens."""
        return frozenset(wait.job_id for wait in self._waiting() if not wait.is_over(self.elapsed))

    @property
    def next_wake(self) -> timedelta | None:
        """How far ahead the first waiter gives up."""
        waits = (wait for wait in self._waiting() if not wait.is_over(self.elapsed))
        return min((wait.deadline - self.elapsed for wait in waits if wait.deadline is not None), default=None)

    async def echo(self) -> None:
        """Let every event loop on which somebody waits do first what it was asked to do before."""
        for loop in {asyncio.get_running_loop(), *(wait.loop for wait in self._waiting())}:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))

    async def let_go(self) -> None:
        """Let everybody who has waited long enough go on."""
        await self.echo()
        while any(wait.is_over(self.elapsed) for wait in self._waiting()):
            await self.echo()

    def _waiting(self) -> list[_Wait]:
        # A loop that has ended, or stands still, takes those who wait on it along.
        return [wait for wait in list(self._waits) if wait.loop.is_running()]
