"""arq on redis-py."""

from typing import Any

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, redis
from benchmarks.peers.starts import note

SETTINGS = RedisSettings.from_dsn(URL)


async def beat(_: Any, n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    has_bulk = False
    _pool: Any

    async def open(self) -> None:
        self._pool = await create_pool(SETTINGS)

    async def close(self) -> None:
        await self._pool.aclose()

    async def enqueue(self, number: int) -> None:
        await self._pool.enqueue_job("beat", number)

    async def count_unfinished(self) -> int:
        return int(redis().zcard("arq:queue"))

    def work(self) -> None:
        uvloop.run(_work())


async def _work() -> None:
    functions = [func(beat, name="beat")]
    worker = Worker(functions, redis_settings=SETTINGS, max_jobs=100, poll_delay=0.01, keep_result=0)
    await worker.main()
