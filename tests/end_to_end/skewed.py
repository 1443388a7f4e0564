"""The program of the replicas whose clocks are wrong. Each run tells the time as it sees it."""

import asyncio
import sys
import time

from drumline import Context, Drumline
from tests.end_to_end.band import note

drum = Drumline()


# A machine that stands still for a while makes no tick late; ten minutes would.
@drum.schedule(every="1s", misfire="all", misfire_grace="1m", lease="6s")
async def pulse(ctx: Context) -> None:
    note("pulse", ctx.tick, time.time())


@drum.task(lease="6s", max_attempts=5)
async def hold(seconds: float) -> None:
    """Run for longer than the lease."""
    await asyncio.sleep(seconds)


@drum.task
async def strike() -> None: ...


if __name__ == "__main__":
    # Enqueue, by a clock that is wrong, a job that is due in so many seconds.
    print(strike.using(delay=float(sys.argv[1])).enqueue_sync().id)
