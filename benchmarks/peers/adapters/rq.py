"""RQ with the worker that does not fork for each job; a job is a plain function."""

from collections.abc import Sequence
from typing import Any

from redis import Redis
from rq import Queue, SimpleWorker

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, redis
from benchmarks.peers.starts import note

BEAT = f"{__name__}.beat"


def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    is_async = False
    _queue: Any

    async def open(self) -> None:
        self._queue = Queue(connection=Redis.from_url(URL))

    async def enqueue(self, number: int) -> None:
        self._queue.enqueue(BEAT, number, result_ttl=0)

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        self._queue.enqueue_many([Queue.prepare_data(BEAT, (number,), result_ttl=0) for number in numbers])

    async def count_unfinished(self) -> int:
        return int(redis().llen("rq:queue:default") + redis().zcard("rq:wip:default"))

    def work(self) -> None:
        connection = Redis.from_url(URL)
        SimpleWorker([Queue(connection=connection)], connection=connection).work(logging_level="WARNING")
