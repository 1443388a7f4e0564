"""Celery on Redis: its pool without child processes, and a job that is a plain function."""

import sys

from celery import Celery

from benchmarks.peers import adapter
from benchmarks.peers.place import URL, redis
from benchmarks.peers.starts import note

app = Celery("bench", broker=URL)
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=100,
)


@app.task(name="beat")
def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    is_async = False
    has_bulk = False

    @property
    def worker_command(self) -> list[str]:
        quiet = ["--loglevel", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        return [sys.executable, "-m", "celery", "--app", __name__, "worker", "--pool", "solo", *quiet]

    async def enqueue(self, number: int) -> None:
        beat.delay(number)

    async def count_unfinished(self) -> int:
        return int(redis().llen("celery") + redis().hlen("unacked"))
