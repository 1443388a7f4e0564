"""Single jobs, each enqueued when the one before has long been answered, and how soon a worker started each."""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence

import psutil

from benchmarks.peers.adapter import Adapter
from benchmarks.peers.starts import SLOTS, read_counts, read_time
from benchmarks.peers.worker import wait_until

# Probes take the last slots, from the front of which others count up.
MOST = 1000
FIRST = SLOTS - MOST


async def warm_up(adapter: Adapter, worker: psutil.Process) -> None:
    """Return when the worker has run a first job, and a second has passed."""
    await adapter.enqueue(SLOTS - 1)
    await wait_until(worker, lambda: read_counts(SLOTS - 1, SLOTS) != b"\0", "the worker has run its first job")
    await asyncio.sleep(1)


async def probe(adapter: Adapter, worker: psutil.Process, count: int) -> list[float]:
    """Milliseconds from the call of enqueue to the first line of each of so many jobs."""
    sent, gaps = [], random.Random(0)
    for number in range(FIRST, FIRST + count):
        sent.append(time.time())
        await adapter.enqueue(number)
        await asyncio.sleep(gaps.uniform(0.02, 0.03))
    await wait_until(worker, lambda: 0 not in read_counts(FIRST, FIRST + count), "every single job has started")
    return [(read_time(number) - at) * 1000 for number, at in enumerate(sent, FIRST)]


def count_extra_runs(count: int) -> int:
    """How many runs of so many probes were not the first."""
    return sum(read_counts(FIRST, FIRST + count)) - count


def summarise(name: str, waits: Sequence[float]) -> dict[str, float]:
    """The measures of this name: the middle, and what one in a hundred exceeds."""
    return {f"{name} p50": statistics.median(waits), f"{name} p99": sorted(waits)[int(len(waits) * 0.99)]}
