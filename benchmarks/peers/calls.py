"""How often a store that serves nobody else is called: transactions on Postgres, commands on Redis."""

import asyncio
from urllib.parse import urlsplit

from benchmarks.peers.place import URL

# A backend of Postgres tells what it has counted after so many seconds without work, at the latest.
SETTLING = 11.0
_COUNT = "select xact_commit + xact_rollback from pg_stat_database where datname = %s"


async def count_calls(seconds: float) -> int | None:
    """Within so many seconds from now, once the store is in step; None where the store is a file."""
    await asyncio.sleep(SETTLING)
    match urlsplit(URL).scheme:
        case "postgresql":
            return await _count_transactions(seconds)
        case "redis":
            return await _count_commands(seconds)
        case _:
            await asyncio.sleep(seconds)
            return None


async def _count_transactions(seconds: float) -> int:
    import psycopg

    parts = urlsplit(URL)
    # From another database, so that the question itself does not count.
    with psycopg.connect(parts._replace(path="/template1").geturl(), autocommit=True) as connection:
        counts = []
        for pause in (seconds, 0):
            (row,) = connection.execute(_COUNT, (parts.path.removeprefix("/"),)).fetchall()
            counts.append(int(row[0]))
            await asyncio.sleep(pause)
    return counts[1] - counts[0]


async def _count_commands(seconds: float) -> int:
    """What clients send; what a script calls inside the server is no command of its own."""
    from redis.asyncio import Redis

    count = 0
    async with Redis.from_url(URL, socket_timeout=None) as client, client.monitor() as monitor:
        try:
            async with asyncio.timeout(seconds):
                async for command in monitor.listen():
                    count += command["client_type"] != "lua"
        except TimeoutError:
            return count
    raise ConnectionError("the server has stopped telling what it is sent")
