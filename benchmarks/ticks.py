"""How long a fleet takes to fire many schedules that are due at one instant, by the clock on the wall.

    python -m benchmarks.ticks [--schedules 10000] [--replicas 3] [--rounds 3]

Each replica is a real `drumline run` on one SQLite file. They fire the ticks, each once, and run the jobs too.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import psutil

from drumline import Drumline
from drumline.model.schedule import Decision

PROGRAM = """
import os
from datetime import datetime
from drumline import Drumline

drum = Drumline()

@drum.task
async def beat() -> None: ...

start = datetime.fromisoformat(os.environ["BENCH_INSTANT"])
for number in range(int(os.environ["BENCH_SCHEDULES"])):
    drum.schedule(every="1d", start=start, name=f"s{number}")(beat)
"""
# The replicas need a while to start and to declare.
LEAD = 15.0
PER_SCHEDULE = 0.002
PATIENCE = 120.0


class Found(NamedTuple):
    """Seconds after the instant: the last row by its own time, all of them seen by another process, all jobs done.

    And the seconds of the processor that the replicas had used until all were seen, for jobs too.
    """

    recorded: float
    seen: float
    cpu: float
    done: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ticks", description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rounds = [measure(given.schedules, given.replicas) for _ in range(given.rounds)]
    print(f"{given.schedules:,} schedules due at one instant, {given.replicas} replicas, one SQLite file,", end=" ")
    print(f"{os.cpu_count()} cores: seconds after the instant, median of {given.rounds} [least..most]")
    for name in Found._fields:
        values = [getattr(found, name) for found in rounds]
        print(f"  {name:10}{statistics.median(values):6.2f} [{min(values):.2f}..{max(values):.2f}]")


def measure(schedules: int, replicas: int) -> Found:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        place = Path(folder)
        (place / "band.py").write_text(PROGRAM)
        instant = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=LEAD + PER_SCHEDULE * schedules)
        url = f"sqlite:///{place / 'bench.db'}"
        environment = {
            **os.environ,
            "DRUMLINE_STORE__URL": url,
            "BENCH_INSTANT": instant.isoformat(),
            "BENCH_SCHEDULES": str(schedules),
        }
        command = [sys.executable, "-c", "from drumline.cli import main; main()", "run", "band:drum"]
        with (place / "replicas.log").open("wb") as log:
            fleet = [
                subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log) for _ in range(replicas)
            ]
            try:
                return watch(Drumline(url), instant, schedules, [psutil.Process(replica.pid) for replica in fleet])
            finally:
                for replica in fleet:
                    replica.terminate()
                for replica in fleet:
                    replica.wait()


def watch(drum: Drumline, instant: datetime, schedules: int, fleet: Sequence[psutil.Process]) -> Found:
    until(lambda: len(drum.sync.workers()) == len(fleet), "the replicas have started")
    until(lambda: count_schedules(drum) == schedules, "the schedules are declared")
    assert datetime.now(UTC) < instant, "the replicas were not ready in time: the lead is too short for this machine"
    time.sleep((instant - datetime.now(UTC)).total_seconds())
    before = cpu(fleet)
    until(lambda: count(drum) == schedules, "every tick has its job")
    seen, spent = (datetime.now(UTC) - instant).total_seconds(), cpu(fleet) - before
    until(lambda: drum.sync.counts().done == schedules, "every job is done")
    done = (datetime.now(UTC) - instant).total_seconds()
    rows = [row for row in drum.sync.schedules.ticks() if row.decision is Decision.FIRED]
    assert len(rows) == len({row.schedule for row in rows}) == schedules, "a tick stands in the ledger twice"
    assert {row.instant for row in rows} == {instant}
    return Found(max((row.recorded_at - instant).total_seconds() for row in rows), seen, spent, done)


def cpu(fleet: Sequence[psutil.Process]) -> float:
    """The processor's seconds that the replicas have used."""
    return sum(sum(replica.cpu_times()[:2]) for replica in fleet)


def count_schedules(drum: Drumline) -> int:
    drum.sync.schedules.refresh()
    return len(drum.schedules)


def count(drum: Drumline) -> int:
    """The jobs there are, whatever their state."""
    counts = drum.sync.counts()
    return counts.unfinished + counts.done + counts.dead + counts.cancelled


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.02)


if __name__ == "__main__":
    main()
