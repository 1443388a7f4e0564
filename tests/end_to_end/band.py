"""The program that the workers of these tests run. Its store comes from the environment."""

import asyncio
import os
import time
from pathlib import Path

from drumline import Context, Drumline

drum = Drumline()


def note(*words: object) -> None:
    """Add a line to the ledger: what really happened, whatever the store says."""
    with Path(os.environ["DRUMLINE_TEST_LEDGER"]).open("ab", buffering=0) as ledger:
        ledger.write((" ".join(map(str, words)) + "\n").encode())


@drum.task(lease="1s", backoff="10ms", max_attempts=30)
async def play(ctx: Context, beat: int, seconds: float = 0) -> int:
    note("start", beat, ctx.attempt, os.getpid())
    await asyncio.sleep(seconds)
    return beat


@drum.task(lease="2s")
async def freeze(seconds: float) -> None:
    """Hold up the whole event loop."""
    note("freeze")
    time.sleep(seconds)


@drum.task(lease="2s")
async def burn(seconds: float) -> None:
    """Use the processor in pure Python, and give nobody else a turn but by force."""
    note("burn")
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        count += 1


@drum.task(lease="1s")
async def hold(ctx: Context, gate: str) -> str:
    """The first attempt waits until the gate is there; any later one is through at once."""
    note("hold", ctx.attempt, os.getpid())
    while ctx.attempt == 1 and not Path(gate).exists():
        await asyncio.sleep(0.01)
        ctx.log("still waiting")
    return f"attempt {ctx.attempt}"


@drum.task
async def linger(seconds: float) -> None:
    """Run for long, but leave when asked."""
    note("linger", os.getpid())
    try:
        await asyncio.sleep(seconds)
    finally:
        note("left", os.getpid())


@drum.task
def sit(seconds: float) -> None:
    """A thread that does not look up."""
    note("sit", os.getpid())
    time.sleep(seconds)


@drum.task(max_attempts=3, lease="1s", backoff="10ms")
async def poison(ctx: Context) -> None:
    """Kill the worker that runs this."""
    note("poison", ctx.attempt)
    os._exit(1)


@drum.task(max_attempts=2, backoff="1ms", tags=["bill"])
async def charge(ctx: Context, order: int, gate: str) -> int:
    """Fails until the gate is there."""
    note("charge", order, ctx.attempt)
    ctx.log("charging", order=order)
    if not Path(gate).exists():
        raise ConnectionError("the provider is away")
    return order
