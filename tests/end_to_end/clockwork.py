"""A program with a schedule of every second, for servers that come and go. Its store comes from the environment."""

from drumline import Context, Drumline
from tests.end_to_end.band import note

drum = Drumline()


@drum.task(lease="2s", backoff="50ms", max_attempts=50)
async def strike(ctx: Context, number: int) -> int:
    note("strike", number, ctx.attempt)
    return number


@drum.schedule(every="1s", misfire="all", lease="2s", backoff="50ms", max_attempts=50)
async def tick(ctx: Context) -> None:
    note("tick", ctx.tick, ctx.attempt)
