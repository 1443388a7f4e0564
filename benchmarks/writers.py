"""`make bench-writers`: what hints cost 32 writers on a durable Postgres: commits a second with and without, in pairs.

Each writer has a connection of its own, and writes a row and a job in one transaction, again and again. Somebody
listens all the time. For comparison, the same with a hint inside each transaction: commits that notify take turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
import threading
from contextlib import ExitStack
from unittest.mock import patch

import psycopg

from drumline.clock import SystemClock, fresh_id
from drumline.model.job import NewJob
from drumline.stores.postgres import PostgresStore
from drumline.stores.postgres.wakeups import Hints
from tests.support.postgres import new_server

PROCESSES, THREADS = 4, 8
KINDS = ("with hints", "without", "inside the transaction")
_timer = SystemClock()


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-writers", description=__doc__)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--version", default="16")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "URL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        kind, url = given.one
        print(write(kind, url, given.seconds))
        return
    print(
        f"Postgres {given.version}, durable, {os.cpu_count()} cores, {PROCESSES * THREADS} writers in {PROCESSES}"
        f" processes, {given.seconds:g} s each, commits/s",
        flush=True,
    )
    with new_server(given.version, settings=()) as server:
        show(run_pairs(server.url, given.pairs, given.seconds))


def run_pairs(url: str, pairs: int, seconds: float) -> list[dict[str, float]]:
    store = PostgresStore(url)
    store.migrate().run()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table orders (id uuid primary key)")
        connection.execute('listen "drumline drumline"')
        rounds: list[dict[str, float]] = []
        for number in range(pairs):
            # In turn forwards and backwards, so that no kind always comes first.
            kinds = KINDS if number % 2 == 0 else tuple(reversed(KINDS))
            rounds.append({kind: run_writers(kind, url, seconds) / seconds for kind in kinds})
            print(f"  {number + 1}: " + ", ".join(f"{kind} {rounds[-1][kind]:,.0f}" for kind in KINDS), flush=True)
    store.close().run()
    return rounds


def run_writers(kind: str, url: str, seconds: float) -> int:
    """How many transactions all the processes have committed."""
    command = [sys.executable, "-m", "benchmarks.writers", "--seconds", str(seconds), "--one", kind, url]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    return sum(int(writer.communicate()[0]) for writer in writers)


def write(kind: str, url: str, seconds: float) -> int:
    """How many transactions this process has committed."""
    store = PostgresStore(url)
    counts = [0] * THREADS
    gate = threading.Barrier(THREADS)

    def run(place: int) -> None:
        with psycopg.connect(url) as own:
            store.enqueue([_job()], tx=own).run()
            own.commit()
            gate.wait()
            end = _timer.monotonic() + seconds
            while _timer.monotonic() < end:
                job = _job()
                own.execute("insert into orders values (%s)", (job.id,))
                store.enqueue([job], tx=own).run()
                if kind == "inside the transaction":
                    own.execute("select pg_notify('drumline drumline', %s)", (job.id,))
                own.commit()
                counts[place] += 1

    with ExitStack() as stack:
        if kind != "with hints":
            for name in ("tell", "tell_later"):
                stack.enter_context(patch.object(Hints, name))
        threads = [threading.Thread(target=run, args=(place,)) for place in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    store.close().run()
    return sum(counts)


def _job() -> NewJob:
    return NewJob(id=fresh_id(), task="work", args=b'{"n":1}')


def show(rounds: list[dict[str, float]]) -> None:
    for kind in KINDS:
        rates = [one[kind] for one in rounds]
        print(f"{kind:24}{statistics.median(rates):>10,.0f} [{min(rates):,.0f}..{max(rates):,.0f}]")
    for kind in (KINDS[0], KINDS[2]):
        ratio = statistics.median(one[kind] / one["without"] for one in rounds)
        print(f"{kind} ÷ without: {ratio:.3f} (median of {len(rounds)} pairs)")


if __name__ == "__main__":
    main()
