"""A supervised loop: do once, sleep as long as the step says, again. An error never ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from drumline.clock import Clock
from drumline.events import Events, LoopFailed
from drumline.model.options import Backoff
from drumline.policy.retry import wait_after

__all__ = ["Loop", "Step"]

# One turn of a loop: does its work and says how many seconds to sleep; None sleeps until woken.
Step = Callable[[], Awaitable[float | None]]

_AGAIN = Backoff(initial=timedelta(milliseconds=100), factor=2, cap=timedelta(seconds=5))

logger = logging.getLogger("drumline.engine")


class Loop:
    """One named loop."""

    def __init__(self, name: str, step: Step, *, clock: Clock, events: Events) -> None:
        self.name = name
        self.failures = 0
        self._step = step
        self._clock = clock
        self._events = events
        self._wake = asyncio.Event()
        self._stopped = asyncio.Event()

    def wake(self) -> None:
        """Take the next turn at once."""
        self._wake.set()

    def stop(self) -> None:
        """Take no further turn; the present one ends by itself."""
        self._stopped.set()
        self._wake.set()

    async def run(self) -> None:
        """Take turns until stopped."""
        failed = 0
        while not self._stopped.is_set():
            # Before the step, so that a wake-up during it leads to another turn.
            self._wake.clear()
            try:
                pause = await self._step()
                failed = 0
            except Exception as error:  # noqa: BLE001 - said aloud, and tried again
                failed += 1
                pause = self._complain(error, failed)
            if pause is None or pause > 0:
                await self._clock.wait(self._wake, pause)
            else:
                # A store that answers without waiting would otherwise keep the event loop to itself.
                await asyncio.sleep(0)

    def _complain(self, error: Exception, failed: int) -> float:
        self.failures += 1
        again_in = wait_after(_AGAIN, failed, self.name).total_seconds()
        # The first in full; a store that stays away would otherwise fill the log with one traceback a second.
        logger.error("%s: %s; again in %.1f s", self.name, error, again_in, exc_info=error if failed == 1 else None)
        self._events.emit(LoopFailed(self.name, f"{type(error).__name__}: {error}", again_in))
        return again_in
