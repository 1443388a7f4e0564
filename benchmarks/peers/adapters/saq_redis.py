"""SAQ on redis-py."""

from typing import Any

import uvloop
from saq import Queue, Worker

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, redis
from benchmarks.peers.starts import note


async def beat(_: Any, *, n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    has_bulk = False
    _queue: Any

    async def open(self) -> None:
        self._queue = Queue.from_url(URL)
        await self._queue.connect()

    async def close(self) -> None:
        await self._queue.disconnect()

    async def enqueue(self, number: int) -> None:
        await self._queue.enqueue("beat", n=number)

    async def count_unfinished(self) -> int:
        return int(redis().zcard("saq:default:incomplete"))

    def work(self) -> None:
        uvloop.run(_work())


async def _work() -> None:
    worker = Worker(Queue.from_url(URL), functions=[("beat", beat)], concurrency=100)
    await worker.queue.connect()
    await worker.start()
