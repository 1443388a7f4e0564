"""Measure one system, under the interpreter of its own environment.

    python -m benchmarks.peers.drive idle|load ADAPTER JOBS     writes found.json into the folder of the measurement
    python -m benchmarks.peers.drive work ADAPTER               runs one worker

`idle` starts a worker that has nothing to do, looks at its memory, and gives it single jobs. `load` enqueues without a
worker, in each way that the system has, then starts one and times it from the first job's first line until the store
holds nothing unfinished.
"""

import asyncio
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any

import psutil
import uvloop

from benchmarks.peers.adapter import Adapter
from benchmarks.peers.place import FOLDER, URL, analyze_postgres
from benchmarks.peers.starts import SLOTS, read_counts, read_time

LOG = FOLDER / "worker.log"
SAMPLES = 200
CALLERS = 100
BULK = 1000
_DEADLINE = 150.0
_PROBE = SLOTS - 1


def main(part: str, module: str, *rest: str) -> None:
    adapter: Adapter = import_module(module).Adapter()
    if part == "work":
        adapter.work()
        return
    jobs, *packages = rest
    measure = measure_idle(adapter) if part == "idle" else measure_load(adapter, int(jobs))
    found = uvloop.run(measure)
    versions = {package: version(package) for package in packages}
    (FOLDER / "found.json").write_text(json.dumps({"found": found, "versions": versions}))


async def measure_idle(adapter: Adapter) -> dict[str, float]:
    """How soon a worker with nothing to do starts a job, from the call of enqueue; and the memory that it takes."""
    await adapter.lay_out()
    await adapter.open()
    sent = []
    with running_worker(adapter) as worker:
        await adapter.enqueue(_PROBE)
        await wait_until(worker, lambda: read_counts(_PROBE, SLOTS) != b"\0", "the worker has run its first job")
        await asyncio.sleep(1)
        memory = sum(process.memory_info().rss for process in family(worker))
        gaps = random.Random(0)
        for number in range(SAMPLES):
            sent.append(time.time())
            await adapter.enqueue(number)
            await asyncio.sleep(gaps.uniform(0.02, 0.03))
        await wait_until(worker, lambda: 0 not in read_counts(0, SAMPLES), "every single job has started")
    await adapter.close()
    waits = sorted((read_time(number) - at) * 1000 for number, at in enumerate(sent))
    return {
        "pick-up p50": statistics.median(waits),
        "pick-up p99": waits[int(SAMPLES * 0.99)],
        "memory": memory / 2**20,
        "extra runs": sum(read_counts(0, SAMPLES)) - SAMPLES,
    }


async def measure_load(adapter: Adapter, jobs: int) -> dict[str, float]:
    """Jobs a second: enqueued in each way; drained by one worker, each counted once and known to the store as ended."""
    await adapter.lay_out()
    await adapter.open()
    found = await enqueue_all(adapter, jobs)
    if URL.startswith("postgresql"):
        analyze_postgres()
    with running_worker(adapter) as worker:
        await wait_until(worker, lambda: any(read_counts(0, jobs)), "a job has started")
        before = cpu_seconds(worker)
        await wait_until(worker, lambda: 0 not in read_counts(0, jobs), "every job has started")
        while await adapter.count_unfinished():  # noqa: ASYNC110 - only the store knows
            await asyncio.sleep(0.003)
        ended = time.time()
        spent = cpu_seconds(worker) - before
        # A job that is given out again would show itself now.
        await asyncio.sleep(0.5)
    await adapter.close()
    found["drain"] = jobs / (ended - min(read_time(number) for number in range(jobs)))
    found["drain, CPU"] = spent / jobs * 1e6
    found["extra runs"] = sum(read_counts(0, jobs)) - jobs
    return found


async def enqueue_all(adapter: Adapter, jobs: int) -> dict[str, float]:
    """The jobs from 0 up: some one by one, some by many callers at once, the rest in bulk or in the best other way."""
    numbers = iter(range(jobs))
    found = {"one by one": await _rate(_one_by_one(adapter, take(numbers, min(1000, jobs // 4))))}
    if adapter.is_async:
        found["100 callers"] = await _rate(_by_callers(adapter, take(numbers, min(5000, jobs // 4))))
    rest = list(numbers)
    if adapter.has_bulk:
        found["bulk"] = await _rate(_in_bulk(adapter, rest))
    else:
        await (_by_callers if adapter.is_async else _one_by_one)(adapter, rest)
    return found


def take(numbers: Iterator[int], count: int) -> list[int]:
    return list(itertools.islice(numbers, count))


async def _one_by_one(adapter: Adapter, numbers: Sequence[int]) -> int:
    for number in numbers:
        await adapter.enqueue(number)
    return len(numbers)


async def _by_callers(adapter: Adapter, numbers: Sequence[int]) -> int:
    await asyncio.gather(*(_one_by_one(adapter, numbers[caller::CALLERS]) for caller in range(CALLERS)))
    return len(numbers)


async def _in_bulk(adapter: Adapter, numbers: Sequence[int]) -> int:
    for first in range(0, len(numbers), BULK):
        await adapter.enqueue_many(numbers[first : first + BULK])
    return len(numbers)


async def _rate(work: Coroutine[Any, Any, int]) -> float:
    began = time.perf_counter()
    done = await work
    return done / (time.perf_counter() - began)


@contextmanager
def running_worker(adapter: Adapter) -> Iterator[psutil.Process]:
    """One worker, until the block ends; where jobs run in the process that enqueues, that process."""
    command = adapter.worker_command
    if command is None:
        yield psutil.Process()
        return
    with LOG.open("ab") as log:
        worker = psutil.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield worker
    finally:
        members = family(worker) if worker.poll() is None else []
        for member in members[:1]:
            member.terminate()
        _, alive = psutil.wait_procs(members, timeout=5)
        for member in alive:
            member.kill()


def family(worker: psutil.Process) -> list[psutil.Process]:
    return [worker, *worker.children(recursive=True)]


def cpu_seconds(worker: psutil.Process) -> float:
    times = [process.cpu_times() for process in family(worker)]
    return sum(one.user + one.system for one in times)


async def wait_until(worker: psutil.Process, condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _DEADLINE
    while not condition():
        if isinstance(worker, psutil.Popen) and worker.poll() is not None:
            raise RuntimeError(f"the worker ended by itself: {LOG.read_text().strip().splitlines()[-1:]}")
        if time.monotonic() > end:
            raise TimeoutError(f"not within {_DEADLINE:.0f} s: {what}")
        await asyncio.sleep(0.005)


if __name__ == "__main__":
    main(*sys.argv[1:])
