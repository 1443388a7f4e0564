"""The same work in every executor. The store comes from the environment."""

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from drumline import Context, Drumline, Task, current
from tests.end_to_end.band import note


@asynccontextmanager
async def open_state() -> AsyncIterator[dict[str, Any]]:
    note("open", os.getpid())
    yield {"pid": os.getpid()}
    note("close", os.getpid())


drum = Drumline(lifespan=open_state)


def stay(ctx: Context, name: str, gate: str) -> dict[str, Any]:
    """Say something, and wait for the gate or for somebody who asks to stop."""
    note(name, os.getpid())
    ctx.log(f"{name} has begun", pid=os.getpid())
    ctx.progress_sync(0.5, "half way")
    try:
        while not (Path(gate).exists() or ctx.cancelled):
            time.sleep(0.01)
    finally:
        note("left", name)
    return {"same": current().job_id == ctx.job_id, "own": ctx.state["pid"] == os.getpid(), "attempt": ctx.attempt}


async def stay_on_loop(ctx: Context, name: str, gate: str) -> dict[str, Any]:
    note(name, os.getpid())
    ctx.log(f"{name} has begun", pid=os.getpid())
    await ctx.progress(0.5, "half way")
    try:
        while not (Path(gate).exists() or ctx.cancelled):
            await asyncio.sleep(0.01)
    finally:
        note("left", name)
    return {"same": current().job_id == ctx.job_id, "own": ctx.state["pid"] == os.getpid(), "attempt": ctx.attempt}


# By name: each executor, with a plain function and with an async one.
KINDS: dict[str, Task[[str, str], Any, Any]] = {
    "coroutine": drum.task(name="coroutine")(stay_on_loop),
    "thread": drum.task(name="thread")(stay),
    "async_thread": drum.task(name="async_thread", executor="thread")(stay_on_loop),
}
process = drum.task(name="process", executor="process")(stay)
async_process = drum.task(name="async_process", executor="process")(stay_on_loop)
KINDS |= {"process": process, "async_process": async_process}


@drum.task(executor="process", max_attempts=1)
def die(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segfault":
        ctypes.string_at(0)
    os._exit(3)


@drum.task(executor="process", max_attempts=1, timeout="300ms")
def overrun() -> None:
    note("overrun", os.getpid())
    time.sleep(600)


@drum.task(executor="process")
def square(n: int) -> int:
    return n * n
