"""Slots: how many tasks may run at once, in all and by executor. The limits can be changed while tasks run."""

from __future__ import annotations

from typing import assert_never

import msgspec

from drumline.policy.options import Executor

__all__ = ["Limits", "Slots"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The most tasks at once: in all, and of them in threads and in child processes."""

    concurrency: int
    threads: int
    # None: there are no children, and tasks that ask for one run in threads.
    children: int | None = None


class Slots:
    """Counts what runs. Beyond limits that were lowered it goes on; nothing more has room until enough has ended."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._busy = dict.fromkeys(Executor, 0)

    def room(self, executor: Executor) -> int:
        """How many more tasks of this executor can start at once; below 0 while too many run."""
        limits, busy = self.limits, self._busy
        free = limits.concurrency - sum(busy.values())
        match executor:
            case Executor.COROUTINE:
                return free
            case Executor.PROCESS if limits.children is not None:
                return min(free, limits.children - busy[Executor.PROCESS])
            case Executor.THREAD | Executor.PROCESS:
                homeless = 0 if limits.children is not None else busy[Executor.PROCESS]
                return min(free, limits.threads - busy[Executor.THREAD] - homeless)
            case _:
                assert_never(executor)

    def take(self, executor: Executor) -> None:
        self._busy[executor] += 1

    def free(self, executor: Executor) -> None:
        self._busy[executor] -= 1
