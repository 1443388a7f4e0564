"""Time limits: one watcher for all executions, instead of a timer for each."""

from __future__ import annotations

from drumline.clock import Clock
from drumline.engine.execution import Executions, Reason

__all__ = ["Deadlines"]

# How often the watcher looks while anything has a limit.
LOOK_EVERY = 0.05


class Deadlines:
    """Interrupts what runs past its time limit."""

    def __init__(self, executions: Executions, clock: Clock) -> None:
        self._executions = executions
        self._clock = clock

    async def step(self) -> float | None:
        limited = False
        now = self._clock.monotonic()
        for execution in self._executions:
            if execution.deadline is None or execution.reason is not None:
                continue
            if execution.deadline <= now:
                execution.interrupt(Reason.TIMEOUT)
            else:
                limited = True
        return LOOK_EVERY if limited else None
