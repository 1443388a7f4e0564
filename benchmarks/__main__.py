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
from pathlib import Path

import uvloop

SYSTEMS = ("drumline", "bare, with history", "bare, no history")
MEASURES = ("one by one", "100 callers", "bulk", "drain")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--synchronous", choices=("full", "normal"), action="append")
    parser.add_argument("--one", nargs=2, metavar=("SYSTEM", "SYNCHRONOUS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        system, synchronous = given.one
        print(json.dumps(measure(system, synchronous, given.jobs)))
        return
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores, uvloop")
    for synchronous in given.synchronous or ("full", "normal"):
        show(synchronous, run_rounds(synchronous, given.jobs, given.rounds), given.jobs, given.rounds)


def measure(system: str, synchronous: str, jobs: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        path = Path(folder) / "bench.db"
        if system == "drumline":
            os.environ["DRUMLINE_STORE__SYNCHRONOUS"] = synchronous
            from benchmarks import ours_sqlite

            return uvloop.run(ours_sqlite.measure(path, jobs))
        from benchmarks import bare_sqlite

        return uvloop.run(bare_sqlite.measure(path, synchronous, jobs, history=system == "bare, with history"))


def run_rounds(synchronous: str, jobs: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    """One process for each system and round; the systems take turns, so that a slow minute meets all of them."""
    found: dict[str, list[dict[str, float]]] = {system: [] for system in SYSTEMS}
    for _ in range(rounds):
        for system in SYSTEMS:
            command = [sys.executable, "-m", "benchmarks", "--jobs", str(jobs), "--one", system, synchronous]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[system].append(json.loads(done.stdout))
    return found


def show(synchronous: str, found: dict[str, list[dict[str, float]]], jobs: int, rounds: int) -> None:
    print(f"\nSQLite file, synchronous={synchronous}, {jobs:,} jobs, concurrency 100, jobs/s, median of {rounds}")
    print(f"{'':22}" + "".join(f"{measure:>26}" for measure in MEASURES))
    for system in SYSTEMS:
        cells = [_cell([one[measure] for one in found[system]]) for measure in MEASURES]
        print(f"{system:22}" + "".join(f"{cell:>26}" for cell in cells))
    for other in SYSTEMS[1:]:
        pairs = zip(found[SYSTEMS[0]], found[other], strict=True)
        ratios = [{measure: ours[measure] / bare[measure] for measure in MEASURES} for ours, bare in pairs]
        cells = [f"{statistics.median(one[measure] for one in ratios):.2f}" for measure in MEASURES]
        print(f"{'÷ ' + other:22}" + "".join(f"{cell:>26}" for cell in cells))
    rates = found[SYSTEMS[0]]
    ratio = statistics.median(one["100 callers"] / one["one by one"] for one in rates)
    print(f"100 callers ÷ one by one: {ratio:.1f}")


def _cell(rates: list[float]) -> str:
    return f"{statistics.median(rates):,.0f} [{min(rates):,.0f}..{max(rates):,.0f}]"


if __name__ == "__main__":
    main()
