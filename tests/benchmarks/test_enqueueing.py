import asyncio
from collections.abc import Sequence

import pytest

from benchmarks.peers.adapter import Adapter
from benchmarks.peers.enqueueing import in_best_way
from benchmarks.peers.measures.load import enqueue_all


class Noting(Adapter):
    """Accepts every job, and notes each call."""

    def __init__(self, *, is_async: bool, has_bulk: bool) -> None:
        self.is_async = is_async
        self.has_bulk = has_bulk
        self.calls: list[list[int]] = []

    async def enqueue(self, number: int) -> None:
        self.calls.append([number])

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        self.calls.append(list(numbers))

    async def count_unfinished(self) -> int:
        return 0


WAYS = [(True, True), (True, False), (False, False)]


@pytest.mark.parametrize(("is_async", "has_bulk"), WAYS)
def test_every_job_is_enqueued_once(is_async, has_bulk):
    adapter = Noting(is_async=is_async, has_bulk=has_bulk)
    asyncio.run(enqueue_all(adapter, 5000))
    assert sorted(number for call in adapter.calls for number in call) == list(range(5000))


@pytest.mark.parametrize(("is_async", "has_bulk"), WAYS)
def test_only_ways_that_a_system_has_are_measured(is_async, has_bulk):
    found = asyncio.run(enqueue_all(Noting(is_async=is_async, has_bulk=has_bulk), 400))
    assert ("100 callers" in found, "bulk" in found) == (is_async, has_bulk)


def test_the_best_way_is_a_thousand_at_a_time_where_there_is_a_call_for_many():
    adapter = Noting(is_async=True, has_bulk=True)
    asyncio.run(in_best_way(adapter, range(2500)))
    assert [len(call) for call in adapter.calls] == [1000, 1000, 500]
