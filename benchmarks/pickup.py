"""How soon another process starts a job, and what a worker costs while there is nothing to do.

    python -m benchmarks.pickup

A worker runs in a process of its own on a SQLite file; this process enqueues, one job at a time, and waits in between.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from drumline import Drumline

JOBS = 300
IDLE_SECONDS = 20

PROGRAM = """
import os, time
from pathlib import Path
from drumline import Drumline

drum = Drumline()

@drum.task
async def beat(n: int) -> None:
    with Path("starts.txt").open("a") as starts:
        starts.write(f"{n} {time.time_ns()}\\n")
"""


def main() -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        place = Path(folder)
        (place / "band.py").write_text(PROGRAM)
        url = f"sqlite:///{place / 'bench.db'}"
        command = [sys.executable, "-c", "from drumline.cli import main; main()", "run", "band:drum"]
        log = (place / "worker.log").open("wb")
        worker = subprocess.Popen(
            command, cwd=place, env={**os.environ, "DRUMLINE_STORE__URL": url}, stdout=log, stderr=log
        )
        try:
            measure(Drumline(url), place / "starts.txt", worker.pid)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait()


def measure(drum: Drumline, starts: Path, worker: int) -> None:
    beat = drum.stub("beat")
    sent: dict[int, int] = {}
    for number in range(JOBS):
        handle = beat.enqueue_sync(n=number)
        # From the moment at which the enqueue was durable.
        sent[number] = time.time_ns()
        drum.sync.jobs.wait([handle], timeout="10s")
    lines = (line.split() for line in starts.read_text().splitlines())
    waits = sorted((int(at) - sent[int(number)]) / 1e6 for number, at in lines)
    assert len(waits) == JOBS
    print(f"pick-up by another process, {JOBS} jobs: p50 {statistics.median(waits):.1f} ms,", end=" ")
    print(f"p99 {waits[int(JOBS * 0.99)]:.1f} ms, longest {waits[-1]:.1f} ms")
    process = psutil.Process(worker)
    before, began = _cpu(process), time.perf_counter()
    time.sleep(IDLE_SECONDS)
    share = (_cpu(process) - before) / (time.perf_counter() - began)
    print(f"idle worker over {IDLE_SECONDS} s: {100 * share:.2f} % of one core")


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


if __name__ == "__main__":
    main()
