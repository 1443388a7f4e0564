"""How soon a worker starts single jobs while another process enqueues so many a second, in the system's best way."""

import asyncio
import sys
import time

from benchmarks.peers.adapter import Adapter
from benchmarks.peers.enqueueing import BULK, in_best_way
from benchmarks.peers.probes import FIRST, count_extra_runs, probe, summarise, warm_up
from benchmarks.peers.starts import read_counts
from benchmarks.peers.worker import running, wait_until

SAMPLES = 200
_INTERVAL = 0.01


async def measure(adapter: Adapter, rate: int) -> dict[str, float]:
    """With the rate at which the worker really started jobs of the stream meanwhile."""
    await adapter.lay_out()
    await adapter.open()
    command = [sys.executable, "-m", "benchmarks.peers.drive", "stream", type(adapter).__module__, str(rate)]
    with running(adapter.worker_command) as worker:
        await warm_up(adapter, worker)
        with running(command) as stream:
            await wait_until(stream, lambda: any(read_counts(0, BULK)), "the stream has begun")
            await asyncio.sleep(1)
            began, before = time.perf_counter(), count_started()
            waits = await probe(adapter, worker, SAMPLES)
            started, passed = count_started() - before, time.perf_counter() - began
    await adapter.close()
    return {
        "stream": started / passed,
        **summarise("half load", waits),
        "extra runs": count_extra_runs(SAMPLES),
    }


def count_started() -> int:
    return FIRST - read_counts(0, FIRST).count(0)


async def stream(adapter: Adapter, rate: int) -> None:
    """Enqueue so many a second, a little at a time, until the slots are used up or somebody ends it."""
    await adapter.open()
    began, sent = time.perf_counter(), 0
    while sent < FIRST:
        due = min(int((time.perf_counter() - began) * rate), sent + BULK, FIRST)
        await in_best_way(adapter, range(sent, due))
        sent = due
        await asyncio.sleep(_INTERVAL)
