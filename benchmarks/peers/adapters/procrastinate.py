"""Procrastinate on psycopg."""

from collections.abc import Sequence

import procrastinate
import uvloop

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, ask_postgres
from benchmarks.peers.starts import note

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL, max_size=20))


@app.task(name="beat")
async def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    async def lay_out(self) -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        await app.open_async()

    async def close(self) -> None:
        await app.close_async()

    async def enqueue(self, number: int) -> None:
        await beat.defer_async(n=number)

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        await beat.batch_defer_async(*({"n": number} for number in numbers))

    async def count_unfinished(self) -> int:
        return ask_postgres("select count(*) from procrastinate_jobs where status in ('todo', 'doing')")

    def work(self) -> None:
        uvloop.run(_work())


async def _work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=100)
