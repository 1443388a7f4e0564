"""Jobs a second, of so many jobs: enqueued without a worker in each way that the system has, then drained by one."""

import asyncio
import itertools
import time
from collections.abc import Coroutine, Iterator
from typing import Any

from benchmarks.peers.adapter import Adapter
from benchmarks.peers.enqueueing import by_callers, in_best_way, one_by_one
from benchmarks.peers.place import settle_store
from benchmarks.peers.starts import read_counts, read_time
from benchmarks.peers.worker import cpu_seconds, running, wait_until


async def measure(adapter: Adapter, jobs: int) -> dict[str, float]:
    """The drain is from the first job's first line until the store holds nothing unfinished; each job counts once."""
    await adapter.lay_out()
    await adapter.open()
    found = await enqueue_all(adapter, jobs)
    settle_store()
    with running(adapter.worker_command) as worker:
        await wait_until(worker, lambda: any(read_counts(0, jobs)), "a job has started")
        before = cpu_seconds(worker)
        await wait_until(worker, lambda: 0 not in read_counts(0, jobs), "every job has started")
        while await adapter.count_unfinished():  # noqa: ASYNC110 - only the store knows
            await asyncio.sleep(0.003)
        ended = time.time()
        spent = cpu_seconds(worker) - before
        # A job that is given out again would show itself now.
        await asyncio.sleep(0.5)
    await adapter.close()
    found["drain"] = jobs / (ended - min(read_time(number) for number in range(jobs)))
    found["drain, CPU"] = spent / jobs * 1e6
    found["extra runs"] = sum(read_counts(0, jobs)) - jobs
    return found


async def enqueue_all(adapter: Adapter, jobs: int) -> dict[str, float]:
    """The jobs from 0 up: some one by one, some by many callers at once, the rest in bulk or in the best other way."""
    numbers = iter(range(jobs))
    few = take(numbers, min(1000, jobs // 4))
    found = {"one by one": len(few) / await _time(one_by_one(adapter, few))}
    if adapter.is_async:
        some = take(numbers, min(5000, jobs // 4))
        found["100 callers"] = len(some) / await _time(by_callers(adapter, some))
    rest = list(numbers)
    seconds = await _time(in_best_way(adapter, rest))
    if adapter.has_bulk:
        found["bulk"] = len(rest) / seconds
    return found


def take(numbers: Iterator[int], count: int) -> list[int]:
    return list(itertools.islice(numbers, count))


async def _time(work: Coroutine[Any, Any, None]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began
