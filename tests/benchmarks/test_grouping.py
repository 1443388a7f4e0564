import asyncio
from collections.abc import Sequence

from benchmarks.peers.grouping import Grouping


def test_what_comes_while_a_write_is_under_way_is_written_together():
    async def enqueue() -> list[list[int]]:
        written: list[list[int]] = []
        under_way, may_end = asyncio.Event(), asyncio.Event()

        async def write(numbers: Sequence[int]) -> None:
            under_way.set()
            await may_end.wait()
            written.append(list(numbers))

        grouping = Grouping(write)
        async with asyncio.TaskGroup() as callers:
            callers.create_task(grouping.add(0))
            await under_way.wait()
            later = [callers.create_task(grouping.add(number)) for number in (1, 2, 3)]
            await asyncio.sleep(0)
            assert not any(caller.done() for caller in later)
            may_end.set()
        return written

    assert asyncio.run(enqueue()) == [[0], [1, 2, 3]]
