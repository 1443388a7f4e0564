"""Time and fresh ids: the only module that reads the system's clocks.

A `Clock` is handed to whatever needs one, so that a test can hold time still and move it by hand.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    from uuid_utils import uuid7

__all__ = ["Clock", "ManualClock", "SystemClock", "fresh_id", "pause"]


class Clock(Protocol):
    """Where time comes from, and how to wait for it."""

    def now(self) -> datetime:
        """The present instant, in UTC, cut to a whole millisecond."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything."""

    async def wait(self, event: asyncio.Event, timeout: float | None) -> bool:
        """Wait until the event is set (True), at most `timeout` seconds (False)."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        micros = time.time_ns() // 1000
        return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000 // 1000 * 1000)

    def monotonic(self) -> float:
        return time.monotonic()

    async def wait(self, event: asyncio.Event, timeout: float | None) -> bool:
        if event.is_set():
            return True
        try:
            async with asyncio.timeout(None if timeout is None else max(timeout, 0)):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True


class ManualClock:
    """A clock that stands still until it is advanced. Waiters wake in the order of their deadlines."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = timedelta()
        self._order = itertools.count()
        self._sleepers: list[tuple[timedelta, int, asyncio.Future[None]]] = []
        # Stores read the clock from their own threads.
        self._lock = threading.Lock()

    def now(self) -> datetime:
        instant = self._start + self._elapsed
        return instant.replace(microsecond=instant.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        return self._elapsed.total_seconds()

    @property
    def elapsed(self) -> timedelta:
        """How far time was moved since the start."""
        return self._elapsed

    async def wait(self, event: asyncio.Event, timeout: float | None) -> bool:
        if timeout is None:
            return await self.wait_until(event, None)
        # Rounded down to nothing, a wait for the last bit of a float would never let anybody else take a turn.
        span = timedelta(seconds=timeout) or (timedelta.resolution if timeout > 0 else timedelta())
        return await self.wait_until(event, self._elapsed + span)

    async def wait_until(self, event: asyncio.Event, deadline: timedelta | None) -> bool:
        """Wait until the event is set (True), at most until so much time has elapsed (False)."""
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            if event.is_set() or (deadline is not None and deadline <= self._elapsed):
                return event.is_set()
            if deadline is not None:
                heapq.heappush(self._sleepers, (deadline, next(self._order), sleeper))
        asked = asyncio.ensure_future(event.wait())
        try:
            waiting: set[asyncio.Future[Any]] = {asked, sleeper}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return event.is_set()
        finally:
            asked.cancel()
            sleeper.cancel()

    def advance(self, by: timedelta | float) -> None:
        """Move time forward at once and wake every waiter whose deadline has come."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        with self._lock:
            self._elapsed += step
            while self._sleepers and self._sleepers[0][0] <= self._elapsed:
                _wake(heapq.heappop(self._sleepers)[2])

    def set(self, instant: datetime) -> None:
        """Make `instant` the present, also backwards; monotonic time and waiters are not touched."""
        self._start = instant - self._elapsed


def _wake(sleeper: asyncio.Future[None]) -> None:
    """Let a waiter go on; one that waits on another thread's event loop is woken there."""
    loop = sleeper.get_loop()
    try:
        is_here = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_here = False
    if is_here:
        _settle(sleeper)
    elif not loop.is_closed():
        loop.call_soon_threadsafe(_settle, sleeper)


def _settle(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def fresh_id() -> str:
    """A new UUIDv7: unique, and in the order of making within this process."""
    return str(uuid7())


def pause(seconds: float) -> None:
    """Block this thread. For background threads that have no event loop to wait on."""
    time.sleep(seconds)
