"""A worker of a soak: jobs that are kept for a minute, and a schedule of every second."""

from drumline import Context, Drumline
from drumline.engine.alone import run_alone

drum = Drumline()


@drum.task(retention="1m", max_attempts=3, backoff="10ms")
async def hum(ctx: Context, number: int) -> int:
    ctx.log("humming", number=number)
    if number % 20 == 0 and ctx.attempt == 1:
        raise ValueError("out of tune")
    return number


@drum.task(retention="1m")
def drone(number: int) -> int:
    return number


@drum.schedule(every="1s", retention="1m")
async def tick() -> None: ...


if __name__ == "__main__":
    run_alone(drum.run(concurrency=20))
