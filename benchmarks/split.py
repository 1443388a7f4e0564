"""What a second worker process adds to a drain, and who uses the processors meanwhile.

    python -m benchmarks.split [--store postgres] [--jobs 60000] [--rounds 3]

Each worker is a real `drumline worker` on a private server. All wait at a paused queue until the last job is enqueued.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from drumline import Drumline
from tests.support import postgres, valkey

PROGRAM = """
from drumline import Drumline

drum = Drumline()

@drum.task
async def beat(n: int) -> None: ...
"""
STORES = ("sqlite", "postgres", "redis")
WORKERS = (1, 2)
BULK = 1000
PATIENCE = 60.0


class Found(NamedTuple):
    """Jobs a second; and of the processors, how many were busy with the workers, and with all else."""

    rate: float
    workers: float
    others: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.split", description=__doc__)
    parser.add_argument("--store", choices=STORES, action="append")
    parser.add_argument("--jobs", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    cores = psutil.cpu_count() or 1
    print("| store | workers | jobs/s | processors: workers | all else | free |\n|---|---|---|---|---|---|", flush=True)
    for store in given.store or STORES:
        rounds = [[measure(store, given.jobs, count) for count in WORKERS] for _ in range(given.rounds)]
        for count, found in zip(WORKERS, zip(*rounds, strict=True), strict=True):
            rate, workers, others = (statistics.median(values) for values in zip(*found, strict=True))
            free = cores - workers - others
            print(f"| {store} | {count} | {rate:,.0f} | {workers:.2f} | {others:.2f} | {free:.2f} |", flush=True)
        ratio = statistics.median(two.rate / one.rate for one, two in rounds)
        print(f"{store}: two workers ÷ one: {ratio:.2f} (median of {given.rounds} pairs)\n", flush=True)


def measure(store: str, jobs: int, count: int) -> Found:
    """One drain by so many workers, on an empty store."""
    with tempfile.TemporaryDirectory() as folder, empty_store(store, folder) as url:
        Path(folder, "split_app.py").write_text(PROGRAM)
        return asyncio.run(drain(url, folder, jobs, count))


async def drain(url: str, folder: str, jobs: int, count: int) -> Found:
    drum = Drumline(url)

    @drum.task
    async def beat(n: int) -> None: ...

    async with drum:
        await drum.queues.pause("default")
        with working(url, folder, count) as workers:
            await until_all_here(drum, workers)
            for first in range(0, jobs, BULK):
                await drum.enqueue_many([beat.call(n=n) for n in range(first, min(first + BULK, jobs))])
            return await drain_all(drum, workers, jobs)


async def drain_all(drum: Drumline, workers: Sequence[psutil.Process], jobs: int) -> Found:
    began, busy, own = time.perf_counter(), busy_seconds(), sum(map(seconds_of, workers))
    await drum.queues.resume("default")
    while (await drum.counts()).unfinished:  # noqa: ASYNC110 - only the store knows
        await asyncio.sleep(0.01)
    took = time.perf_counter() - began
    own = sum(map(seconds_of, workers)) - own
    return Found(jobs / took, own / took, (busy_seconds() - busy - own) / took)


async def until_all_here(drum: Drumline, workers: Sequence[psutil.Process]) -> None:
    end = time.monotonic() + PATIENCE
    while len(await drum.workers()) < len(workers):
        if time.monotonic() > end:
            raise TimeoutError(f"not all workers are there after {PATIENCE:.0f} s")
        await asyncio.sleep(0.1)


@contextmanager
def working(url: str, folder: str, count: int) -> Iterator[Sequence[psutil.Process]]:
    """So many worker processes, until the block ends."""
    command = [str(Path(sys.executable).with_name("drumline")), "worker", "split_app:drum", "--concurrency", "100"]
    variables = {**os.environ, "DRUMLINE_STORE__URL": url, "PYTHONPATH": folder}
    with ExitStack() as stack:
        workers = []
        for _ in range(count):
            worker = psutil.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(worker.wait)
            stack.callback(worker.terminate)
            workers.append(worker)
        yield workers


@contextmanager
def empty_store(store: str, folder: str) -> Iterator[str]:
    match store:
        case "postgres":
            with postgres.new_server("16", settings=("shared_buffers=256MB",)) as server:
                yield server.url
        case "redis":
            with valkey.new_server("--save", "", "--appendonly", "yes", "--appendfsync", "everysec") as server:
                yield server.url
        case _:
            yield f"sqlite:///{folder}/bench.db"


def seconds_of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def busy_seconds() -> float:
    """What all processors together have worked since the machine started."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait)


if __name__ == "__main__":
    main()
