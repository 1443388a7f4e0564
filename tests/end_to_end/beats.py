"""The program of the tests of schedules: three that fire every second and take longer and longer, and a slow one."""

import asyncio
import os
from collections.abc import Awaitable, Callable

from drumline import Context, Drumline
from tests.end_to_end.band import note

drum = Drumline()


def beat(name: str, every: str, seconds: float) -> Callable[[Context], Awaitable[None]]:
    # All that was missed is fired, so that a machine that stands still for a while cannot hide a lost tick.
    @drum.schedule(every=every, name=name, lease="5s", backoff="10ms", misfire="all")
    @drum.task(name=name, lease="5s", backoff="10ms")
    async def play(ctx: Context) -> None:
        assert ctx.tick is not None
        note("start", name, int(ctx.tick.timestamp()), ctx.attempt, os.getpid())
        await asyncio.sleep(seconds)

    return play


beat("quick", "1s", 0)
beat("middle", "1s", 0.3)
beat("slow", "1s", 1.5)
beat("tenth", "10s", 0)
