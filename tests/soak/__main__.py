"""`make soak`: a steady load on each store, and what it takes, minute by minute.

STORE=sqlite,postgres,redis   MINUTES=10 on each   RATE=100 jobs a second
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil

from drumline import Drumline
from tests.soak.judge import judge
from tests.soak.measure import NAMESPACE, SLACKS, YARDS, Yard, measure_workers

ROOT = Path(__file__).parents[2]
WORKERS = 2
SAMPLE_EVERY = 5.0
BATCH = 20
# Jobs are kept for a minute, and purged once a minute: in a shorter run the thirds cannot be compared.
SHORTEST = 480.0

tell = partial(print, flush=True)


def main() -> int:
    stores = (os.environ.get("STORE") or ",".join(YARDS)).split(",")
    seconds = 60 * float(os.environ.get("MINUTES") or 10)
    rate = float(os.environ.get("RATE") or 100)
    verdicts = [soak(store.strip(), seconds, rate) for store in stores]
    return 0 if all(verdicts) else 1


def soak(store: str, seconds: float, rate: float) -> bool:
    """Say how each measure went, and whether all are flat."""
    tell(f"{store}: {WORKERS} workers, {rate:g} jobs a second for {seconds:g} s, each kept for a minute")
    with tempfile.TemporaryDirectory(prefix="drumline-soak-") as name, YARDS[store](Path(name)) as yard:
        trends = judge(run(Path(name), yard, seconds, rate), SLACKS)
    tell(f"  {'highest value':<24}{'second third':>16}{'last third':>16}")
    for trend in trends:
        tell(trend)
    if seconds < SHORTEST:
        tell(f"  (a store forgets once a minute: a run of less than {SHORTEST:g} s is still warming up)")
    is_flat = all(trend.is_flat for trend in trends)
    tell(f"verdict: {'nothing grows' if is_flat else 'SOMETHING GROWS'}")
    return is_flat


def run(folder: Path, yard: Yard, seconds: float, rate: float) -> list[dict[str, float]]:
    samples: list[dict[str, float]] = []
    drum = Drumline(yard.url, namespace=NAMESPACE)
    hum, drone = drum.stub("hum", retention="1m", max_attempts=3, backoff="10ms"), drum.stub("drone", retention="1m")
    drum.sync.counts()
    with start_workers(folder, yard) as workers:
        began = time.monotonic()
        for batch in range(int(seconds * rate / BATCH)):
            numbers = range(batch * BATCH, (batch + 1) * BATCH)
            drum.enqueue_many_sync([(drone if number % 4 == 0 else hum).call(number=number) for number in numbers])
            if time.monotonic() - began >= len(samples) * SAMPLE_EVERY:
                samples.append(take_sample(drum, yard, workers))
                if len(samples) % 12 == 1:
                    tell(f"{time.monotonic() - began:7.1f} s  {show(samples[-1])}")
            time.sleep(max(began + (batch + 1) * BATCH / rate - time.monotonic(), 0))
    return samples


def take_sample(drum: Drumline, yard: Yard, workers: list[psutil.Process]) -> dict[str, float]:
    counts = drum.sync.counts()
    own = {"jobs kept": counts.total.done, "waiting": counts.unfinished}
    return {**measure_workers(workers), **yard.measure(), **own}


def show(sample: Mapping[str, float]) -> str:
    return "   ".join(f"{name} {value:,.1f}" for name, value in sample.items())


@contextmanager
def start_workers(folder: Path, yard: Yard) -> Iterator[list[psutil.Process]]:
    settings = {"DRUMLINE_STORE__URL": yard.url, "DRUMLINE_STORE__NAMESPACE": NAMESPACE, "PYTHONPATH": str(ROOT)}
    with (folder / "log").open("wb") as log:
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.soak.worker"], env=os.environ | settings, stdout=log, stderr=log
            )
            for _ in range(WORKERS)
        ]
        try:
            yield [psutil.Process(process.pid) for process in started]
        finally:
            for process in started:
                process.terminate()
            codes = [process.wait(40) for process in started]
    assert codes == [0] * WORKERS, (folder / "log").read_text()


if __name__ == "__main__":
    sys.exit(main())
