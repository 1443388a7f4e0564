"""The ways to enqueue many jobs."""

import asyncio
from collections.abc import Sequence

from benchmarks.peers.adapter import Adapter

CALLERS = 100
BULK = 1000


async def one_by_one(adapter: Adapter, numbers: Sequence[int]) -> None:
    for number in numbers:
        await adapter.enqueue(number)


async def by_callers(adapter: Adapter, numbers: Sequence[int]) -> None:
    """So many callers at once, each of which awaits its own."""
    await asyncio.gather(*(one_by_one(adapter, numbers[caller::CALLERS]) for caller in range(CALLERS)))


async def in_bulk(adapter: Adapter, numbers: Sequence[int]) -> None:
    for first in range(0, len(numbers), BULK):
        await adapter.enqueue_many(numbers[first : first + BULK])


async def in_best_way(adapter: Adapter, numbers: Sequence[int]) -> None:
    """By the quickest of these that the system has."""
    if adapter.has_bulk:
        await in_bulk(adapter, numbers)
    elif adapter.is_async:
        await by_callers(adapter, numbers)
    else:
        await one_by_one(adapter, numbers)
