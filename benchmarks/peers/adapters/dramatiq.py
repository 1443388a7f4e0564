"""Dramatiq on redis-py: threads, and a job that is a plain function."""

import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, redis
from benchmarks.peers.starts import note

dramatiq.set_broker(RedisBroker(url=URL))


@dramatiq.actor(actor_name="beat")
def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    is_async = False
    has_bulk = False

    @property
    def worker_command(self) -> list[str]:
        return [sys.executable, "-m", "dramatiq", __name__, "--processes", "1", "--threads", "8"]

    async def enqueue(self, number: int) -> None:
        beat.send(number)

    async def count_unfinished(self) -> int:
        return int(redis().hlen("dramatiq:default.msgs"))
