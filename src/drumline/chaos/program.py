"""The program that a chaos fleet runs: jobs that are quick, slow, in threads, failing and hopeless, and schedules.

Every task tells the ledger when it begins and how it ends, and returns the fence under which it ran.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from drumline import Context, Drumline
from drumline.chaos.ledger import Ledger, What
from drumline.policy.options import TaskOptions
from drumline.task import Task

__all__ = ["LEASE", "SCHEDULES", "Tasks", "declare"]

LEASE = timedelta(seconds=2)
SCHEDULES = tuple(f"beat-{number}" for number in range(1, 6))
# However often its worker is killed, a job that can be done is done in the end.
_MANY = 1000
_BACKOFF = timedelta(milliseconds=10)
# Longer than any run: the checker has to see every job.
_RETENTION = timedelta(days=1)
# A fleet that was wholly away still owes its ticks.
_GRACE = timedelta(hours=1)


class Tasks(NamedTuple):
    """What a run enqueues."""

    quick: Task[[], Any, int]
    # These take so many seconds: on the event loop, and in a thread.
    slow: Task[[float], Any, int]
    grinding: Task[[float], Any, int]
    # Fails so many times, and then does not.
    stumbling: Task[[int], Any, int]
    # Fails always, and may try twice.
    hopeless: Task[[], Any, int]


class Stumbled(Exception):
    """What a task raises that is meant to fail."""


def declare(drum: Drumline, ledger: Ledger, lease: timedelta = LEASE) -> Tasks:
    """Declare the tasks and schedules in this app."""
    usual: TaskOptions = {"lease": lease, "backoff": _BACKOFF, "retention": _RETENTION, "max_attempts": _MANY}
    twice: TaskOptions = {**usual, "max_attempts": 2}

    @drum.task(**usual)
    async def quick(ctx: Context) -> int:
        with _told(ledger, ctx):
            return ctx.fence

    @drum.task(**usual)
    async def slow(ctx: Context, seconds: float) -> int:
        with _told(ledger, ctx):
            ctx.log("this will take a while", seconds=seconds)
            await asyncio.sleep(seconds)
            return ctx.fence

    @drum.task(**usual)
    def grinding(ctx: Context, seconds: float) -> int:
        with _told(ledger, ctx):
            # Not time.sleep, which fails where a test has made the clock wrong.
            threading.Event().wait(seconds)
            return ctx.fence

    @drum.task(**usual)
    async def stumbling(ctx: Context, times: int) -> int:
        with _told(ledger, ctx):
            if ctx.attempt <= times:
                raise Stumbled("not yet")
            return ctx.fence

    @drum.task(**twice)
    async def hopeless(ctx: Context) -> int:
        with _told(ledger, ctx):
            raise Stumbled("never")

    _declare_schedules(drum, ledger, usual)
    return Tasks(quick, slow, grinding, stumbling, hopeless)


def _declare_schedules(drum: Drumline, ledger: Ledger, options: TaskOptions) -> None:
    @drum.task(**options)
    async def beat(ctx: Context) -> int:
        with _told(ledger, ctx):
            return ctx.fence

    for name in SCHEDULES:
        drum.schedule(name=name, every="1s", misfire="all", misfire_grace=_GRACE)(beat)


@contextmanager
def _told(ledger: Ledger, context: Context) -> Iterator[None]:
    """Tell the ledger of an execution."""
    ledger.write(What.BEGAN, context)
    try:
        yield
    except Stumbled:
        ledger.write(What.RAISED, context)
        raise
    except BaseException:
        ledger.write(What.LEFT, context)
        raise
    ledger.write(What.RETURNED, context)
