"""`make bench-postgres`: Drumline on a private Postgres with durable settings, beside the bare engine; medians."""

import argparse
import json
import os
import statistics
import subprocess
import sys

import uvloop

from tests.support.postgres import new_server

SYSTEMS = ("drumline", "bare")
MEASURES = ("one by one", "100 callers", "bulk", "drain")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-postgres", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--version", default="16")
    parser.add_argument("--one", nargs=2, metavar=("SYSTEM", "URL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        system, url = given.one
        print(json.dumps(measure(system, url, given.jobs)))
        return
    print(f"Postgres {given.version}, durable, {os.cpu_count()} cores, {given.jobs:,} jobs, concurrency 100, jobs/s")
    show(run_rounds(given.version, given.jobs, given.rounds))


def measure(system: str, url: str, jobs: int) -> dict[str, float]:
    if system == "bare":
        from benchmarks import bare_postgres

        return uvloop.run(bare_postgres.measure(url, jobs))
    from benchmarks import ours

    return uvloop.run(ours.measure(url, jobs))


def run_rounds(version: str, jobs: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    """A new server for each system and round; the systems take turns, so that a slow minute meets all of them."""
    found: dict[str, list[dict[str, float]]] = {system: [] for system in SYSTEMS}
    for _ in range(rounds):
        for system in SYSTEMS:
            with new_server(version, settings=()) as server:
                command = [
                    sys.executable,
                    "-m",
                    "benchmarks.postgres",
                    "--jobs",
                    str(jobs),
                    "--one",
                    system,
                    server.url,
                ]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                found[system].append(json.loads(done.stdout))
    return found


def show(found: dict[str, list[dict[str, float]]]) -> None:
    print(f"{'':12}" + "".join(f"{measure:>26}" for measure in MEASURES))
    for system in SYSTEMS:
        cells = [_cell([one[measure] for one in found[system]]) for measure in MEASURES]
        print(f"{system:12}" + "".join(f"{cell:>26}" for cell in cells))
    pairs = list(zip(found["drumline"], found["bare"], strict=True))
    ratios = [statistics.median(ours[measure] / bare[measure] for ours, bare in pairs) for measure in MEASURES]
    print(f"{'÷ bare':12}" + "".join(f"{ratio:>26.2f}" for ratio in ratios))
    grouped = statistics.median(one["100 callers"] / one["one by one"] for one in found["drumline"])
    print(f"100 callers ÷ one by one: {grouped:.1f}")


def _cell(rates: list[float]) -> str:
    return f"{statistics.median(rates):,.0f} [{min(rates):,.0f}..{max(rates):,.0f}]"


if __name__ == "__main__":
    main()
