"""Chancy on psycopg, with the executor for coroutines."""

import logging
from collections.abc import Sequence

import uvloop
from chancy import Chancy, Queue, Worker, job

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, ask_postgres
from benchmarks.peers.starts import note

# Its own logger prints lines for every batch of jobs.
_quiet = logging.getLogger("quiet")
_quiet.setLevel(logging.WARNING)
app = Chancy(URL, log=_quiet)


@job(queue="default")
async def beat(*, n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    async def lay_out(self) -> None:
        async with Chancy(URL, log=_quiet) as chancy:
            await chancy.migrate()
            executor = Chancy.Executor.Async
            queue = Queue("default", concurrency=100, executor=executor, eager_polling=True, polling_interval=1)
            await chancy.declare(queue)

    async def open(self) -> None:
        await app.__aenter__()

    async def close(self) -> None:
        await app.__aexit__(None, None, None)

    async def enqueue(self, number: int) -> None:
        await app.push(beat.job.with_kwargs(n=number))

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        async for _ in app.push_many([beat.job.with_kwargs(n=number) for number in numbers]):
            pass

    async def count_unfinished(self) -> int:
        return ask_postgres("select count(*) from chancy_jobs where state not in ('succeeded', 'failed')")

    def work(self) -> None:
        uvloop.run(_work())


async def _work() -> None:
    async with app, Worker(app) as worker:
        await worker.wait_for_shutdown()
