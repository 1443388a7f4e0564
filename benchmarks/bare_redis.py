"""The bare Lua loop: the least that an acknowledged queue on Redis can do, with nothing around it.

Jobs are members of a sorted set with their arguments in a hash; a script claims a batch into an in-flight set, another
forgets what has ended. No history, attempts, leases, keys, counts or hints.
"""

import asyncio
import json
import time
from typing import Any

from redis.asyncio import Redis

BATCH = 100
# KEYS: ready, args, in flight
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


async def measure(url: str, jobs: int) -> dict[str, float]:
    """Jobs a second: enqueued in bulk, by 100 callers at once, one by one; and drained."""
    client = Redis.from_url(url)
    await client.flushall()
    keys = ("{bare}:ready", "{bare}:args", "{bare}:flight")
    enqueue, claim, finish = (client.register_script(text) for text in (ENQUEUE, CLAIM, FINISH))
    rates = {}

    def item(number: int) -> list[Any]:
        return [time.time_ns() // 1_000_000, f"{number:032x}", json.dumps({"n": number})]

    began = time.perf_counter()
    for place in range(0, jobs, 1_000):
        given = [part for number in range(place, place + 1_000) for part in item(number)]
        await enqueue(keys=keys, args=given)
    rates["bulk"] = jobs / (time.perf_counter() - began)

    async def call(first: int, count: int) -> None:
        for number in range(first, first + count):
            await enqueue(keys=keys, args=item(number))

    began = time.perf_counter()
    await asyncio.gather(*(call(jobs + 100 * caller, 100) for caller in range(100)))
    rates["100 callers"] = 10_000 / (time.perf_counter() - began)
    began = time.perf_counter()
    await call(jobs + 10_000, 1000)
    rates["one by one"] = 1000 / (time.perf_counter() - began)

    total, ended = jobs + 11_000, 0

    async def run(args: bytes) -> None:
        nonlocal ended
        json.loads(args)
        ended += 1

    async def work() -> None:
        while found := await claim(keys=keys, args=[BATCH, time.time_ns() // 1_000_000 + 30_000]):
            ids, bodies = found
            await asyncio.gather(*(run(body) for body in bodies))
            await finish(keys=keys, args=ids)

    began, cpu = time.perf_counter(), time.process_time()
    # Three batches are under way at once, as in the engine.
    await asyncio.gather(*(work() for _ in range(3)))
    rates["drain"] = total / (time.perf_counter() - began)
    rates["drain, CPU µs"] = (time.process_time() - cpu) / total * 1e6
    assert ended == total
    await client.aclose()
    return rates
