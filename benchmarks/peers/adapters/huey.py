"""Huey on Redis or SQLite: threads, a job that is a plain function, and no acknowledgement: what is taken is gone."""

import os
from typing import Any

from huey import RedisHuey, SqliteHuey

from benchmarks.peers import adapter
from benchmarks.peers.place import URL
from benchmarks.peers.starts import note

FILE = URL.removeprefix("sqlite:///")
HAS_FILE = URL != FILE
# Whether SQLite waits for the disk; by its default it does not.
FSYNC = "fsync" in os.environ.get("DRUMLINE_BENCH_HUEY", "")


def _new_huey() -> Any:
    if HAS_FILE:
        return SqliteHuey("bench", filename=FILE, results=False, fsync=FSYNC)
    return RedisHuey("bench", url=URL, results=False)


huey = _new_huey()


@huey.task(name="beat")
def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    is_async = False
    has_bulk = False

    async def enqueue(self, number: int) -> None:
        beat(number)

    async def count_unfinished(self) -> int:
        return int(huey.pending_count())

    def work(self) -> None:
        # On Redis it blocks until a job comes. A file has to be looked at, and threads would only meet at its lock.
        looks = {"workers": 1, "initial_delay": 0.01, "max_delay": 0.05} if HAS_FILE else {"workers": 4}
        huey.create_consumer(worker_type="thread", periodic=False, **looks).run()
