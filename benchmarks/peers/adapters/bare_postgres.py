"""The bare engine on Postgres: the least that a durable queue with history can do, and nothing around it.

Jobs are claimed in batches by `SKIP LOCKED` and run as asyncio tasks; the ended ones move to a second table, in
batches. Claims do not wait for the disk, ends do. Enqueues share a commit whenever one is under way.
"""

import asyncio
import json
import signal
from collections.abc import Sequence
from typing import Any

import psycopg
import uvloop

from benchmarks.peers import adapter
from benchmarks.peers.grouping import Grouping
from benchmarks.peers.place import URL, ask_postgres
from benchmarks.peers.starts import note

SCHEMA = """
create table bare_job (id bigint generated always as identity primary key, state integer not null default 0,
  queue text not null default 'default', priority integer not null default 0, due bigint not null default 0,
  attempt integer not null default 0, lease bigint, args text not null) with (fillfactor = 70);
create index bare_ready on bare_job (queue, priority, due, id) where state = 0;
create table bare_history (id bigint primary key, queue text not null, attempt integer not null,
  finished timestamptz not null, args text not null, line text not null);
"""
INSERT = "insert into bare_job (args) select json_array_elements_text(%s::json)"
CLAIM = """
with quiet as materialized (select set_config('synchronous_commit', 'off', true)),
picked as materialized (
  select id from bare_job where state = 0 and queue = 'default' and due <= 0
  order by queue, priority, due, id limit 100 for update skip locked)
update bare_job set state = 1, attempt = attempt + 1, lease = 0
from quiet where id = any (array(select id from picked)) returning id, args
"""
FINISH = """
with gone as (delete from bare_job where id = any (%s) returning *)
insert into bare_history select id, queue, attempt, now(), args, '{"ended": "done"}' from gone
"""


class Adapter(adapter.Adapter):
    _connection: psycopg.AsyncConnection[Any]
    _grouping: Grouping

    async def lay_out(self) -> None:
        async with await _connect() as connection:
            await connection.execute(SCHEMA.encode())

    async def open(self) -> None:
        self._connection = await _connect()
        self._grouping = Grouping(self.enqueue_many)

    async def close(self) -> None:
        await self._connection.close()

    async def enqueue(self, number: int) -> None:
        await self._grouping.add(number)

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        await self._connection.execute(INSERT, (json.dumps([_payload(number) for number in numbers]),))

    async def count_unfinished(self) -> int:
        return ask_postgres("select count(*) from bare_job")

    def work(self) -> None:
        uvloop.run(_drain())
        signal.pause()


async def _drain() -> None:
    """Claim the next batch while the ends of the one before are written, until there is none."""
    async with await _connect() as claiming, await _connect() as ending:
        rows = await _claim(claiming)
        while rows:
            await asyncio.gather(*(_run(args) for _, args in rows))
            ids = [job_id for job_id, _ in rows]
            rows, _ = await asyncio.gather(_claim(claiming), ending.execute(FINISH, (ids,)))


async def _claim(connection: psycopg.AsyncConnection[Any]) -> list[Any]:
    return await (await connection.execute(CLAIM)).fetchall()


async def _run(args: str) -> None:
    note(json.loads(args)["n"])


async def _connect() -> psycopg.AsyncConnection[Any]:
    return await psycopg.AsyncConnection.connect(URL, autocommit=True, prepare_threshold=None)


def _payload(number: int) -> str:
    return json.dumps({"n": number})
