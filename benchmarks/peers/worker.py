"""The processes beside the one that measures: start them, watch them, and leave none behind."""

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psutil

from benchmarks.peers.place import FOLDER

LOG = FOLDER / "worker.log"
_DEADLINE = 150.0


@contextmanager
def running(command: Sequence[str] | None) -> Iterator[psutil.Process]:
    """Whatever the command starts, until the block ends; without one, this process, in which jobs run then."""
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
