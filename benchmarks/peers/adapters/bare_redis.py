"""The bare Lua loop: the least that an acknowledged queue on Redis can do, with nothing around it.

Jobs are members of a sorted set with their arguments in a hash; a script claims a batch into an in-flight set, another
forgets what has ended. Enqueues share a call whenever one is under way. No history, attempts, leases, keys, counts or
hints.
"""

import asyncio
import json
import signal
import time
from collections.abc import Sequence
from typing import Any

import uvloop
from redis.asyncio import Redis

from benchmarks.peers import adapter
from benchmarks.peers.grouping import Grouping
from benchmarks.peers.place import URL, redis
from benchmarks.peers.starts import note

BATCH = 100
LEASE_MS = 30_000
READY, ARGS, FLIGHT = KEYS = ("{bare}:ready", "{bare}:args", "{bare}:flight")
ENQUEUE = """
for i = 1, #ARGV, 3 do
  redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i + 2])
end
"""
CLAIM = """
local found = redis.call('ZPOPMIN', KEYS[1], ARGV[1])
if #found == 0 then return {} end
local ids, flight = {}, {}
for i = 1, #found, 2 do
  ids[#ids + 1] = found[i]
  flight[#flight + 1] = ARGV[2]
  flight[#flight + 1] = found[i]
end
redis.call('ZADD', KEYS[3], unpack(flight))
return { ids, redis.call('HMGET', KEYS[2], unpack(ids)) }
"""
FINISH = """
redis.call('ZREM', KEYS[3], unpack(ARGV))
redis.call('HDEL', KEYS[2], unpack(ARGV))
"""


class Adapter(adapter.Adapter):
    _client: Redis
    _enqueue: Any
    _grouping: Grouping

    async def open(self) -> None:
        self._client = Redis.from_url(URL)
        self._enqueue = self._client.register_script(ENQUEUE)
        self._grouping = Grouping(self.enqueue_many)

    async def close(self) -> None:
        await self._client.aclose()

    async def enqueue(self, number: int) -> None:
        await self._grouping.add(number)

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        await self._enqueue(keys=KEYS, args=[part for number in numbers for part in _item(number)])

    async def count_unfinished(self) -> int:
        return int(redis().zcard(READY) + redis().zcard(FLIGHT))

    def work(self) -> None:
        uvloop.run(_drain())
        signal.pause()


async def _drain() -> None:
    """Three batches are under way at once, as in the engine, until there is none."""
    client = Redis.from_url(URL)
    claim, finish = client.register_script(CLAIM), client.register_script(FINISH)

    async def work() -> None:
        while found := await claim(keys=KEYS, args=[BATCH, _now() + LEASE_MS]):
            ids, bodies = found
            await asyncio.gather(*(_run(body) for body in bodies))
            await finish(keys=KEYS, args=ids)

    await asyncio.gather(*(work() for _ in range(3)))
    await client.aclose()


async def _run(args: bytes) -> None:
    note(json.loads(args)["n"])


def _item(number: int) -> tuple[int, str, str]:
    return _now(), f"{number:032x}", json.dumps({"n": number})


def _now() -> int:
    return time.time_ns() // 1_000_000
