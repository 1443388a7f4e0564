"""pgwerk on psycopg."""

from collections.abc import Sequence

import uvloop
from pgwerk import AsyncWorker, EnqueueParams, Werk

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, ask_postgres
from benchmarks.peers.starts import note

app = Werk(URL)


async def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    async def open(self) -> None:
        await app.connect()

    async def close(self) -> None:
        await app.disconnect()

    async def enqueue(self, number: int) -> None:
        await app.enqueue(beat, n=number)

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        await app.enqueue_many([EnqueueParams(func=beat, kwargs={"n": number}) for number in numbers])

    async def count_unfinished(self) -> int:
        ended = "('complete', 'failed', 'aborted')"
        return ask_postgres(f"select count(*) from pgwerk._pgwerk_jobs where status not in {ended}")

    def work(self) -> None:
        uvloop.run(_work())


async def _work() -> None:
    await app.connect()
    await AsyncWorker(app=app, queues=["default"], concurrency=100).run()
