"""Claiming ahead: as many more jobs as slots will fall free until the answer comes, so that slots do not wait for the
store. Where tasks take long that is none, and every job is left to whoever can start it at once.
"""

from __future__ import annotations

from collections import deque

from drumline.clock import Clock
from drumline.engine.execution import Execution

__all__ = ["Ahead"]

# How long what is claimed ahead may wait before others get it: then the guess was wrong.
LONGEST_WAIT = 0.25
# A job costs a store less in a large claim than in a small one: where a claim takes less than this for each job of a
# batch, it is as large as if it took so long.
LEAST_FOR_JOB = 0.000_04
# A rate at which slots fell free fades within so many seconds: a moment in which all of them waited for the store tells
# nothing of the tasks.
FADES = 0.1


class Ahead:
    """What one executor has claimed and cannot start yet, and how much that may be."""

    def __init__(self, clock: Clock, batch: int) -> None:
        """At most two batches are claimed ahead: one that waits for slots, and one that is on its way."""
        self.waiting: deque[Execution] = deque()
        # How many to claim beyond the room there is.
        self.most = 0
        self._batch = batch
        self._clock = clock
        self._ended = 0
        self._rate = 0.0
        self._since = clock.monotonic()

    def end(self) -> None:
        """A slot has fallen free."""
        self._ended += 1

    def answered(self, asked: float) -> None:
        """A claim that was asked for then has been answered now."""
        now = self._clock.monotonic()
        elapsed, took = now - self._since, now - asked
        fading = self._rate * max(1 - elapsed / FADES, 0)
        self._rate = max(self._ended / elapsed, fading) if elapsed > 0 else fading
        # Twice, so that the slots are busy while the next claim is on its way.
        took = max(took, LEAST_FOR_JOB * self._batch)
        self.most = min(int(2 * took * self._rate), 2 * self._batch)
        self._ended, self._since = 0, now

    def missing(self, room: int) -> int:
        """How many to claim, where so many slots are free; few are not worth a call while no slot is idle."""
        idle = room - len(self.waiting)
        missing = idle + self.most
        return missing if idle > 0 or 0 < self.most <= 2 * missing else 0

    def until_stale(self) -> float | None:
        """The seconds until what waits should be given back; None where nothing waits."""
        return self.waiting[0].received + LONGEST_WAIT - self._clock.monotonic() if self.waiting else None

    def take_beyond(self, most: int) -> list[Execution]:
        """What waits beyond so many, the newest first, to be given back."""
        return [self.waiting.pop() for _ in range(len(self.waiting) - most)]

    def take_interrupted(self) -> list[Execution]:
        """What waits and was told to stop: it needs no slot to end."""
        taken = [execution for execution in self.waiting if execution.reason is not None]
        for execution in taken:
            self.waiting.remove(execution)
        return taken
