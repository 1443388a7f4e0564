"""streaq on coredis."""

from collections.abc import Sequence
from typing import Any

from streaq import Worker

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, redis
from benchmarks.peers.starts import note

worker = Worker(redis_url=URL, concurrency=100, anyio_kwargs={"use_uvloop": True})


@worker.task(name="beat", ttl=0, silent=True)
async def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    async def open(self) -> None:
        await worker.__aenter__()

    async def close(self) -> None:
        await worker.__aexit__(None, None, None)

    async def enqueue(self, number: int) -> None:
        await beat.enqueue(number)

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        await worker.enqueue_many([beat.enqueue(number) for number in numbers])

    async def count_unfinished(self) -> int:
        keys = redis().keys("streaq:default:*")
        return sum(_length(key) for key in keys if "stream" in key or "queue" in key)

    def work(self) -> None:
        worker.run_sync()


def _length(key: str) -> int:
    client: Any = redis()
    match client.type(key):
        case "stream":
            return int(client.xlen(key))
        case "zset":
            return int(client.zcard(key))
        case _:
            return 0
