"""fastapi-taskflow: jobs live in the memory of the process that enqueues, which runs them; SQLite gets snapshots."""

import logging
from typing import Any

from fastapi_taskflow import ManagedBackgroundTasks, TaskManager

from benchmarks.peers import adapter
from benchmarks.peers.place import URL
from benchmarks.peers.starts import note

logging.disable(logging.WARNING)
tasks = TaskManager(snapshot_db=URL.removeprefix("sqlite:///"), snapshot_interval=1.0)


@tasks.task(retries=0, eager=True)
async def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    is_async = False
    has_bulk = False
    _background: Any

    @property
    def worker_command(self) -> None:
        return None

    async def open(self) -> None:
        await tasks.startup()
        self._background = ManagedBackgroundTasks(tasks)

    async def close(self) -> None:
        await tasks.shutdown()

    async def enqueue(self, number: int) -> None:
        self._background.add_task(beat, n=number)

    async def count_unfinished(self) -> int:
        return sum(1 for task in tasks.store.list() if task.end_time is None)
