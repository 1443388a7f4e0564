"""SAQ on psycopg."""

from typing import Any

import uvloop
from saq import Worker
from saq.queue.postgres import PostgresQueue

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, ask_postgres
from benchmarks.peers.starts import note


async def beat(_: Any, *, n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    has_bulk = False
    _queue: Any

    async def open(self) -> None:
        self._queue = _new_queue()
        await self._queue.connect()

    async def close(self) -> None:
        await self._queue.disconnect()

    async def enqueue(self, number: int) -> None:
        await self._queue.enqueue("beat", n=number)

    async def count_unfinished(self) -> int:
        return ask_postgres("select count(*) from saq_jobs where status in ('new', 'queued', 'active')")

    def work(self) -> None:
        uvloop.run(_work())


async def _work() -> None:
    worker = Worker(_new_queue(), functions=[("beat", beat)], concurrency=100)
    await worker.queue.connect()
    await worker.start()


def _new_queue() -> Any:
    return PostgresQueue(url=URL, min_size=4, max_size=20)
