"""Drumline on any store; its worker is the command that a user runs."""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers import adapter
from benchmarks.peers.place import URL
from benchmarks.peers.starts import note
from drumline import Drumline

drum = Drumline(URL)


@drum.task
async def beat(n: int) -> None:
    note(n)


class Adapter(adapter.Adapter):
    @property
    def worker_command(self) -> list[str]:
        command = str(Path(sys.executable).with_name("drumline"))
        return [command, "worker", f"{__name__}:drum", "--concurrency", "100"]

    async def open(self) -> None:
        await drum.__aenter__()

    async def close(self) -> None:
        await drum.__aexit__(None, None, None)

    async def enqueue(self, number: int) -> None:
        await beat.enqueue(n=number)

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        await drum.enqueue_many([beat.call(n=number) for number in numbers])

    async def count_unfinished(self) -> int:
        return (await drum.counts()).unfinished
