"""Tasks that run in child processes: a child finds them here by name, so they cannot stand inside a test."""

import asyncio
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drumline import Context, Drumline, GiveUp, Retry, Snooze, current
from drumline.model import result

LEDGER = "DRUMLINE_TEST_LEDGER"
LIFESPAN = "DRUMLINE_TEST_LIFESPAN"


def note(*words: object) -> None:
    """Add a line to the ledger, if the test keeps one."""
    if LEDGER in os.environ:
        with Path(os.environ[LEDGER]).open("ab", buffering=0) as ledger:
            ledger.write((" ".join(map(str, words)) + "\n").encode())


def wait_for(gate: str) -> None:
    while not Path(gate).exists():
        time.sleep(0.005)


@asynccontextmanager
async def lifespan() -> AsyncIterator[dict[str, Any]]:
    note("open", os.getpid())
    how = os.environ.get(LIFESPAN, "")
    if how and Path(how).exists():
        raise ConnectionError("no database")
    if how == "hang":
        await asyncio.Event().wait()
    yield {"pid": os.getpid(), "loop": id(asyncio.get_running_loop())}
    note("close", os.getpid())


drum = Drumline("memory://", lifespan=lifespan)


@drum.task(executor="process")
def plain(n: int) -> tuple[int, int]:
    return n, os.getpid()


@drum.task(executor="process")
async def on_loop(ctx: Context, n: int) -> list[Any]:
    await asyncio.sleep(0)
    return [n, ctx.state["loop"] == id(asyncio.get_running_loop()), current() is ctx]


@drum.task(executor="process")
def own_loop() -> int:
    """A plain function that makes an event loop for itself."""

    async def inner() -> int:
        return 7

    return asyncio.run(inner())


@drum.task(executor="process", tags=["a"])
def know(ctx: Context) -> dict[str, Any]:
    return {
        "ids": [ctx.job_id, current().job_id],
        "task": ctx.task,
        "queue": ctx.queue,
        "attempts": [ctx.attempt, ctx.max_attempts],
        "fence": ctx.fence,
        "meta": ctx.meta,
        "tags": list(ctx.tags),
        "state": ctx.state["pid"] == os.getpid(),
        "main": threading.current_thread() is threading.main_thread(),
    }


@drum.task(executor="process")
def state_pid(ctx: Context) -> int:
    pid: int = ctx.state["pid"]
    return pid


class Unprintable(Exception):
    """An error that can be neither printed nor pickled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        super().__init__(lambda: None)

    def __str__(self) -> str:
        raise ValueError("not even this")


@drum.task(executor="process", give_up_on=KeyError)
def fail(how: str) -> None:
    errors: dict[str, BaseException] = {
        "plain": ValueError("boom"),
        "unprintable": Unprintable(),
        "exit": SystemExit(4),
        "interrupt": KeyboardInterrupt(),
        "stop": StopIteration(),
        "cancel": asyncio.CancelledError(),
        "listed": KeyError("gone"),
        "give up": GiveUp("no use"),
        "retry": Retry(after=5),
        "retry at": Retry(after=datetime(2030, 1, 1, tzinfo=UTC)),
        "snooze": Snooze(timedelta(minutes=1)),
    }
    raise errors[how]


@drum.task(executor="process")
async def fail_on_loop(how: str) -> None:
    raise {"plain": ValueError("boom"), "exit": SystemExit(4), "cancel": asyncio.CancelledError()}[how]


@drum.task(executor="process", max_attempts=1)
def die(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "fork":
        # The forked process lives on and has everything open that its parent had.
        if os.fork() == 0:
            time.sleep(60)
        os._exit(5)
    os._exit(int(how))


@drum.task(executor="process")
def wait(gate: str) -> str:
    note("wait", os.getpid())
    wait_for(gate)
    return "through"


@drum.task(executor="process")
async def wait_on_loop(gate: str) -> str:
    note("wait", os.getpid())
    while not Path(gate).exists():
        await asyncio.sleep(0.005)
    return "through"


@drum.task(executor="process")
def start_others(gate: str) -> None:
    """Start a program, wait for it, and leave only when the gate is there."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    note("others", os.getpid(), program.pid)
    wait_for(gate)


@drum.task(executor="process")
def speak(ctx: Context, gate: str) -> str:
    ctx.log("one", rows=1, odd=object)
    ctx.progress_sync(0.5, "half")
    ctx.user_error("sorry")
    wait_for(gate)
    for number in range(20):
        ctx.log(f"more {number}", level="warning")
    return "said"


@drum.task(executor="process")
def look(ctx: Context, flag: str) -> str:
    """Work until told otherwise."""
    note("look", os.getpid())
    while getattr(ctx, flag) is (flag == "held"):
        time.sleep(0.005)
    return f"saw {flag}"


@drum.task(executor="process")
def leave_thread(ctx: Context, gate: str) -> None:
    """End, but leave a thread behind that says something later."""

    def later() -> None:
        wait_for(gate)
        ctx.log("too late")
        note("late", os.getpid())

    threading.Thread(target=later).start()


@drum.task(executor="process")
def fork_and_speak(ctx: Context) -> str:
    """Let a forked process speak through the same context."""
    child = multiprocessing.get_context("fork").Process(target=ctx.log, args=("from the fork " * 1000,))
    child.start()
    for _ in range(50):
        ctx.log("from the task " * 1000)
    child.join()
    return "whole"


@drum.task(executor="process")
def echo(data: bytes) -> bytes:
    # The limit is the store's; the border itself has none.
    result.RESULT_LIMIT = 100 * 1024 * 1024
    return data


@drum.task(executor="process")
def odd() -> object:
    return object


@drum.task(executor="process")
def count(n: int) -> int:
    return n


def written_here() -> str:
    return "here"


renamed = drum.task(executor="process", name="renamed", aliases=["older"])(written_here)
