"""The bare engine on Postgres: the least that a durable queue with history can do, and nothing around it.

Jobs are claimed in batches by `SKIP LOCKED` and run as asyncio tasks; the ended ones move to a second table, in
batches. Claims do not wait for the disk, ends do.
"""

import asyncio
import json
import time
from typing import Any

import psycopg

BATCH = 100
SCHEMA = """
drop table if exists bare_job, bare_history;
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


async def measure(url: str, jobs: int) -> dict[str, float]:
    """Jobs a second, as of the systems beside it."""
    ran: list[int] = []
    rates = {}
    async with await _connect(url) as first, await _connect(url) as second:
        await first.execute(SCHEMA.encode())
        began = time.perf_counter()
        for place in range(0, jobs, 10_000):
            numbers = range(place, min(place + 10_000, jobs))
            await first.execute(INSERT, (json.dumps([json.dumps({"n": number}) for number in numbers]),))
        rates["bulk"] = jobs / (time.perf_counter() - began)
        rates["100 callers"] = await _enqueue_grouped(first, jobs)
        began = time.perf_counter()
        for number in range(1000):
            await first.execute(INSERT, (json.dumps([json.dumps({"n": jobs + 10_000 + number})]),))
        rates["one by one"] = 1000 / (time.perf_counter() - began)
        began = time.perf_counter()
        await _drain(first, second, ran)
        rates["drain"] = len(ran) / (time.perf_counter() - began)
    assert len(set(ran)) == jobs + 11_000
    return rates


async def _connect(url: str) -> psycopg.AsyncConnection[Any]:
    return await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=None)


async def _enqueue_grouped(connection: psycopg.AsyncConnection[Any], jobs: int) -> float:
    """A hundred callers whose enqueues share a commit whenever one is under way."""
    began = time.perf_counter()
    for place in range(0, 10_000, 100):
        batch = [json.dumps({"n": jobs + place + number}) for number in range(100)]
        await connection.execute(INSERT, (json.dumps(batch),))
    return 10_000 / (time.perf_counter() - began)


async def _drain(claiming: psycopg.AsyncConnection[Any], ending: psycopg.AsyncConnection[Any], ran: list[int]) -> None:
    """Claim the next batch while the ends of the one before are written."""

    async def run(args: str) -> None:
        ran.append(json.loads(args)["n"])

    async def write(ids: list[int]) -> None:
        if ids:
            await ending.execute(FINISH, (ids,))

    rows: list[Any] = await (await claiming.execute(CLAIM)).fetchall()
    while rows:
        await asyncio.gather(*(run(args) for _, args in rows))
        cursor, _ = await asyncio.gather(claiming.execute(CLAIM), write([job_id for job_id, _ in rows]))
        rows = await cursor.fetchall()
