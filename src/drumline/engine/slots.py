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

    def most(self, executor: Executor) -> int | None:
        """The limit that this executor has of its own; None where only the limit in all counts."""
        match executor:
            case Executor.COROUTINE:
                return None
            case Executor.PROCESS if self.children is not None:
                return self.children
            case Executor.THREAD | Executor.PROCESS:
                return self.threads
            case _:
                assert_never(executor)


class Slots:
    """Counts what runs. Beyond limits that were lowered it goes on; nothing more has room until enough has ended."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._busy = dict.fromkeys(Executor, 0)

    def room(self, executor: Executor) -> int:
        """How many more tasks of this executor can start at once; below 0 while too many run."""
        limits, busy = self.limits, self._busy
        free = limits.concurrency - sum(busy.values())
        most = limits.most(executor)
        if most is None:
            return free
        # Without children both kinds share the threads.
        mates = (executor,) if limits.children is not None else (Executor.THREAD, Executor.PROCESS)
        return min(free, most - sum(busy[mate] for mate in mates))

    def take(self, executor: Executor) -> None:
        self._busy[executor] += 1

    def free(self, executor: Executor) -> None:
        self._busy[executor] -= 1
