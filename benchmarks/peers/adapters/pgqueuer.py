"""PgQueuer on asyncpg."""

import json
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, ask_postgres
from benchmarks.peers.starts import note

BATCH = int(os.environ.get("DRUMLINE_BENCH_BATCH", "1000"))


class Adapter(adapter.Adapter):
    _connection: Any
    _queries: Any

    async def lay_out(self) -> None:
        connection = await asyncpg.connect(URL)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    async def open(self) -> None:
        self._connection = await asyncpg.connect(URL)
        self._queries = Queries(AsyncpgDriver(self._connection))

    async def close(self) -> None:
        await self._connection.close()

    async def enqueue(self, number: int) -> None:
        await self._queries.enqueue("beat", _payload(number))

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        names, priorities = ["beat"] * len(numbers), [0] * len(numbers)
        await self._queries.enqueue(names, [_payload(number) for number in numbers], priorities)

    async def count_unfinished(self) -> int:
        return ask_postgres("select count(*) from pgqueuer")

    def work(self) -> None:
        uvloop.run(_work())


async def _work() -> None:
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(URL)))

    @queuer.entrypoint("beat")
    async def beat(job: Any) -> None:
        note(json.loads(job.payload)["n"])

    await queuer.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=5))


def _payload(number: int) -> bytes:
    return json.dumps({"n": number}).encode()
