"""taskiq with the stream broker of taskiq-redis, the one that acknowledges."""

import uvloop
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, redis
from benchmarks.peers.starts import note

broker = RedisStreamBroker(url=URL, xread_count=100)


@broker.task(task_name="beat")
async def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    has_bulk = False

    async def open(self) -> None:
        await broker.startup()

    async def close(self) -> None:
        await broker.shutdown()

    async def enqueue(self, number: int) -> None:
        await beat.kiq(number)

    async def count_unfinished(self) -> int:
        groups = redis().xinfo_groups("taskiq")
        return sum((group["pending"] or 0) + (group["lag"] or 0) for group in groups)

    def work(self) -> None:
        uvloop.run(_work())


async def _work() -> None:
    broker.is_worker_process = True
    await broker.startup()
    await run_receiver_task(broker, max_async_tasks=100)
