"""How late the jobs of so many schedules start, which are due one after another, ten milliseconds apart. Ours only.

One `drumline run` declares them, fires the ticks and runs the jobs; the program that it is given is this module.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.peers.adapter import Adapter
from benchmarks.peers.place import URL
from benchmarks.peers.probes import summarise
from benchmarks.peers.starts import note, read_counts, read_time
from benchmarks.peers.worker import running, wait_until
from drumline import Drumline

FIRST_NAME = "DRUMLINE_BENCH_FIRST"
COUNT_NAME = "DRUMLINE_BENCH_SCHEDULES"
# The replica needs a while to start and to declare.
LEAD = timedelta(seconds=15)
APART = timedelta(milliseconds=10)

drum = Drumline(URL)


@drum.task
async def beat(n: int) -> None:
    note(n)


def declare(first: datetime, count: int) -> None:
    for number in range(count):
        start = first + number * APART
        drum.schedule(every="1d", start=start, name=f"s{number}", args={"n": number})(beat)


if FIRST_NAME in os.environ:
    declare(datetime.fromisoformat(os.environ[FIRST_NAME]), int(os.environ[COUNT_NAME]))


async def measure(adapter: Adapter, count: int) -> dict[str, float]:
    await adapter.lay_out()
    first = datetime.now(UTC).replace(microsecond=0) + LEAD
    os.environ.update({FIRST_NAME: first.isoformat(), COUNT_NAME: str(count)})
    command = [str(Path(sys.executable).with_name("drumline")), "run", f"{__name__}:drum", "--concurrency", "100"]
    with running(command) as replica:
        await _see_all(count, first)
        await wait_until(replica, lambda: 0 not in read_counts(0, count), "every schedule has fired")
    dues = ((first + number * APART).timestamp() for number in range(count))
    late = [(read_time(number) - due) * 1000 for number, due in enumerate(dues)]
    return {**summarise("schedules", late), "extra runs": sum(read_counts(0, count)) - count}


async def _see_all(count: int, before: datetime) -> None:
    """Return when all stand in the store."""
    async with drum:
        while len(await drum.schedules.refresh()) < count:
            assert datetime.now(UTC) < before, "the lead is too short for this machine: the replica was not ready"
            await asyncio.sleep(0.1)
