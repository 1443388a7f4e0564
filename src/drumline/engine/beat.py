"""The heartbeat: keeps claims alive from its own thread, so that user code that blocks the event loop loses none."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta

from drumline.clock import Clock
from drumline.engine.execution import Executions
from drumline.failpoint import failpoint
from drumline.model.replica import Beat, ReplicaInfo
from drumline.stores.base import Store

__all__ = ["Heart"]

logger = logging.getLogger("drumline.engine")

LONGEST_INTERVAL = timedelta(seconds=10)
# After a beat that failed.
AGAIN = 0.2
# While the store's hints do not arrive, only the answer to a beat tells what to cancel.
WITHOUT_HINTS = 1.0
# A beat that comes so many seconds after its time leaves a gap.
LATE = 1.0
# How long to wait for the last beat, when it is time to stop.
PATIENCE = 5.0


class Heart:
    """Beats every third of the shortest lease it knows of, and at least every second while no hints arrive.

    It tells the event loop what it said and learnt, and when.
    """

    def __init__(
        self,
        store: Store,
        executions: Executions,
        *,
        describe: Callable[[timedelta], ReplicaInfo],
        leases: Iterable[timedelta],
        clock: Clock,
        is_hearing: Callable[[], bool],
        on_answer: Callable[[ReplicaInfo, Beat, float], None],
    ) -> None:
        self._store = store
        self._executions = executions
        self._describe = describe
        # Of the leases that are known, and a third of it.
        self._shortest = min([3 * LONGEST_INTERVAL, *leases])
        self._interval = self._shortest / 3
        self._clock = clock
        self._is_hearing = is_hearing
        self._on_answer = on_answer
        self._loop = asyncio.get_running_loop()
        # The first beat of those that came without a gap, and when the next one is due.
        self._first = float("inf")
        self._due = float("-inf")
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="drumline-heart", daemon=True)

    @property
    def steady_since(self) -> float:
        """Since when beats have come without a gap: a store or process that was away must not look like a dead fleet.

        While the next one is overdue, nobody knows.
        """
        return float("inf") if self._clock.monotonic() > self._due + LATE else self._first

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Beat no more; a beat that is under way ends by itself."""
        self._stopped = True
        self._wake.set()

    async def wait_stopped(self) -> None:
        """Wait for the beat under way, but not for ever: the store may be out of reach."""
        await asyncio.to_thread(self._thread.join, PATIENCE)

    def beat_now(self) -> None:
        self._wake.set()

    def know_lease(self, lease: timedelta) -> None:
        """A claim with this lease is held: beat often enough for it from now on."""
        if lease < self._shortest:
            self._shortest, self._interval = lease, lease / 3
            self._wake.set()

    def step(self) -> float:
        """Beat once; say how many seconds to wait."""
        held = [execution.ref for execution in self._executions]
        info = self._describe(self._interval)
        failpoint("beat.before")
        answer = self._store.beat(info, held).run()
        failpoint("beat.answered")
        now = self._clock.monotonic()
        interval = self._interval.total_seconds()
        if now > self._due + LATE:
            self._first = now
        self._due = now + interval
        self._loop.call_soon_threadsafe(self._on_answer, info, answer, now)
        return interval

    def _run(self) -> None:
        failing = False
        # Without its event loop nobody works on the claims any more: they shall expire.
        while not (self._stopped or self._loop.is_closed()):
            self._wake.clear()
            try:
                pause = self.step()
                failing = False
            except Exception:
                pause = AGAIN
                self._due = float("-inf")
                if not failing and not self._stopped:
                    logger.exception("heartbeat failed; trying again")
                failing = True
            self._rest(pause)

    def _rest(self, seconds: float) -> None:
        """Wait so long, unless somebody wakes it, or hints do not arrive."""
        while seconds > 0 and not self._wake.wait(min(seconds, WITHOUT_HINTS)):
            if not self._is_hearing():
                return
            seconds -= WITHOUT_HINTS
