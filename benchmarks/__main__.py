"""`make bench`: each system in a process of its own, in turn, so often; medians, and ratios to the bare engine."""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from benchmarks import bare_redis, bare_sqlite, ours
from drumline.stores.sqlite.connect import Synchronous
from tests.support.valkey import new_server

MEASURES = ("one by one", "100 callers", "bulk", "drain", "drain, CPU µs")
# What is measured on each store: ourselves, and beside it the least that a queue there can do.
SYSTEMS = {
    "sqlite": ("drumline", "bare, with history", "bare, no history"),
    "redis": ("drumline", "bare, no history"),
}
# How soon a commit is on disk.
MODES = {"sqlite": ("full", "normal"), "redis": ("everysec",)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", choices=tuple(SYSTEMS), action="append")
    parser.add_argument("--mode", choices=("full", "normal", "always", "everysec", "no"), action="append")
    parser.add_argument("--one", nargs=3, metavar=("STORE", "SYSTEM", "MODE"), help=argparse.SUPPRESS)
    parser.add_argument("--parts", action="store_true", help="what each job costs on SQLite, by part")
    given = parser.parse_args()
    if given.one:
        store, system, mode = given.one
        print(json.dumps(measure(store, system, mode, given.jobs)))
        return
    if given.parts:
        show_parts(given.mode or ["full"], given.jobs)
        return
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores, uvloop")
    for store in given.store or SYSTEMS:
        for mode in given.mode or MODES[store]:
            found = run_rounds(store, mode, given.jobs, given.rounds)
            show(f"{store}, {mode}, {given.jobs:,} jobs, concurrency 100, jobs/s, median of {given.rounds}", found)


def show_parts(kinds: Sequence[Synchronous], jobs: int) -> None:
    from benchmarks import parts

    for synchronous in kinds:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
            parts.show(Path(folder) / "bench.db", synchronous, jobs)


def measure(store: str, system: str, mode: str, jobs: int) -> dict[str, float]:
    if store == "redis":
        return _measure_redis(system, mode, jobs)
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        path = Path(folder) / "bench.db"
        if system == "drumline":
            os.environ["DRUMLINE_STORE__SYNCHRONOUS"] = mode
            return uvloop.run(ours.measure(f"sqlite:///{path}", jobs))
        return uvloop.run(bare_sqlite.measure(path, mode, jobs, history=system == "bare, with history"))


def _measure_redis(system: str, mode: str, jobs: int) -> dict[str, float]:
    """On a server of its own, which keeps an append-only file."""
    kept = ("--appendonly", "no") if mode == "no" else ("--appendonly", "yes", "--appendfsync", mode)
    with new_server("--save", "", *kept) as server:
        return uvloop.run((ours if system == "drumline" else bare_redis).measure(server.url, jobs))


def run_rounds(store: str, mode: str, jobs: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    """One process for each system and round; the systems take turns, so that a slow minute meets all of them."""
    found: dict[str, list[dict[str, float]]] = {system: [] for system in SYSTEMS[store]}
    for _ in range(rounds):
        for system in SYSTEMS[store]:
            command = [sys.executable, "-m", "benchmarks", "--jobs", str(jobs), "--one", store, system, mode]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found[system].append(json.loads(done.stdout))
    return found


def show(title: str, found: dict[str, list[dict[str, float]]]) -> None:
    print(f"\n{title}")
    print(f"{'':22}" + "".join(f"{measure:>26}" for measure in MEASURES))
    for system, rounds in found.items():
        cells = [_cell([one[measure] for one in rounds]) for measure in MEASURES]
        print(f"{system:22}" + "".join(f"{cell:>26}" for cell in cells))
    ours, *others = found
    for other in others:
        pairs = zip(found[ours], found[other], strict=True)
        ratios = [{measure: our[measure] / bare[measure] for measure in MEASURES} for our, bare in pairs]
        cells = [f"{statistics.median(one[measure] for one in ratios):.2f}" for measure in MEASURES]
        print(f"{'÷ ' + other:22}" + "".join(f"{cell:>26}" for cell in cells))
    ratio = statistics.median(one["100 callers"] / one["one by one"] for one in found[ours])
    print(f"100 callers ÷ one by one: {ratio:.1f}")


def _cell(rates: list[float]) -> str:
    return f"{statistics.median(rates):,.0f} [{min(rates):,.0f}..{max(rates):,.0f}]"


if __name__ == "__main__":
    main()
