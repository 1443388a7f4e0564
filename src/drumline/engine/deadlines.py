"""Time limits: one watcher for all executions, instead of a timer for each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from drumline.clock import Clock
from drumline.engine.execution import Execution, Executions, Reason

__all__ = ["Deadlines"]

# How often the watcher looks while anything has a limit.
LOOK_EVERY = 0.05


class Deadlines:
    """Interrupts what runs past its time limit, and gives up on what has not ended when the grace is over too."""

    def __init__(
        self, executions: Executions, clock: Clock, *, grace: timedelta, give_up: Callable[[Execution], None]
    ) -> None:
        self._executions = executions
        self._clock = clock
        self._grace = grace.total_seconds()
        self._give_up = give_up

    async def step(self) -> float | None:
        pauses = [pause for execution in self._executions if (pause := self._look(execution)) is not None]
        return min(pauses, default=None)

    def _look(self, execution: Execution) -> float | None:
        """See to one execution; say when it has to be looked at again."""
        if execution.deadline is None:
            return None
        over = self._clock.monotonic() - execution.deadline
        if execution.reason is None:
            if over < 0:
                return LOOK_EVERY
            execution.interrupt(Reason.TIMEOUT)
        if execution.reason is not Reason.TIMEOUT:
            return None
        if over < self._grace:
            return max(self._grace - over, LOOK_EVERY)
        self._give_up(execution)
        return None
