"""Drumline on any store: one process, concurrency 100, a coroutine that does nothing."""

import asyncio
import time

from drumline import Drumline
from drumline.engine.alone import settle_heap


async def measure(url: str, jobs: int) -> dict[str, float]:
    """Jobs a second: enqueued in bulk, by 100 callers at once, one by one; and drained. Each job runs once."""
    drum = Drumline(url)
    runs = bytearray(jobs + 11_000)

    @drum.task
    async def beat(n: int) -> None:
        runs[n] += 1

    rates = {}
    async with drum:
        began = time.perf_counter()
        for place in range(0, jobs, 10_000):
            await drum.enqueue_many([beat.call(n=number) for number in range(place, min(place + 10_000, jobs))])
        rates["bulk"] = jobs / (time.perf_counter() - began)

        async def call(first: int, count: int) -> None:
            for number in range(first, first + count):
                await beat.enqueue(n=number)

        began = time.perf_counter()
        await asyncio.gather(*(call(jobs + 100 * caller, 100) for caller in range(100)))
        rates["100 callers"] = 10_000 / (time.perf_counter() - began)
        began = time.perf_counter()
        await call(jobs + 10_000, 1000)
        rates["one by one"] = 1000 / (time.perf_counter() - began)

        # As `drumline worker` does in a process of its own.
        settle_heap()
        began, cpu = time.perf_counter(), time.process_time()
        await drum.run(drain=True)
        rates["drain"] = len(runs) / (time.perf_counter() - began)
        rates["drain, CPU µs"] = (time.process_time() - cpu) / len(runs) * 1e6
        counts = await drum.counts()
    assert set(runs) == {1}, "a job ran twice, or not at all"
    assert counts.done == len(runs)
    return rates
