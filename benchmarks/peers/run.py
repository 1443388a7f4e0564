"""Drumline, the bare loops and the peers of one store through one harness, in turn."""

import json
import os
import platform
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never

from benchmarks.peers.environments import interpreter
from benchmarks.peers.place import FOLDER_NAME, URL_NAME
from benchmarks.peers.systems import Part, Store, System
from tests.support import postgres, valkey

POSTGRES = "16"
TITLES = {
    "sqlite": f"SQLite {sqlite3.sqlite_version}",
    "postgres": f"Postgres {POSTGRES} (fsync and synchronous_commit on)",
    "redis": "Valkey (appendonly, fsync every second)",
}
_DEADLINE = 400.0

# So many single jobs, seconds at rest, and schedules.
_SAMPLES = 200
_SECONDS = 20
_SCHEDULES = 1000


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: rounds, jobs of a load, jobs that wait, and which parts."""

    jobs: int
    rounds: int
    most_waiting: int
    parts: Set[Part]


def compare(store: Store, systems: Sequence[System], plan: Plan) -> dict[str, Any]:
    """Every system once in each round, so that a slow minute meets all of them. One that fails is left out."""
    began = datetime.now(UTC)
    found: dict[str, list[dict[str, float]]] = {}
    facts: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for number in range(plan.rounds):
        for system in systems:
            if system.name in left_out:
                continue
            try:
                figures, versions = measure(system, plan)
            except Failure as failure:
                if system.kind == "ours":
                    raise
                left_out[system.name] = str(failure)
                found.pop(system.name, None)
                print(f"{store}: {system.name} is left out: {failure}", flush=True)
                continue
            found.setdefault(system.name, []).append(figures)
            facts[system.name] = {
                "versions": versions,
                "settings": system.settings,
                "keeps": system.keeps,
                "kind": system.kind,
                "beside": system.beside,
                "jobs": min(plan.jobs, system.most_jobs),
            }
            place = f"{store}: round {number + 1} of {plan.rounds}"
            print(f"{place}: {system.name}: {figures['drain']:,.0f} jobs/s", flush=True)
    return {
        "store": store,
        "title": TITLES[store],
        "date": f"{began:%Y-%m-%d %H:%M} UTC",
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, uvloop",
        "command": f'make bench ARGS="{shlex.join(sys.argv[1:])}"',
        "rounds": plan.rounds,
        "systems": {name: fact for name, fact in facts.items() if name in found},
        "left_out": left_out,
        "found": found,
    }


class Failure(Exception):
    """A system could not be installed or measured; the message is one line that says why."""


def measure(system: System, plan: Plan) -> tuple[dict[str, float], dict[str, str]]:
    """What one round finds of a system, and the versions of its packages."""
    try:
        python = interpreter(system)
    except subprocess.CalledProcessError as error:
        raise Failure(f"not installed: {_last_line(error.stderr)}") from error
    found: dict[str, float] = {}
    versions: dict[str, str] = {}
    extra = 0.0
    for part in (part for part in system.parts if part in plan.parts):
        figures, versions = _drive(system, python, part, find_amount(part, system, plan, found))
        extra += figures.get("extra runs", 0.0)
        found.update(figures)
    if extra and system.environment is None:
        raise Failure(f"{extra:.0f} jobs ran more than once")
    return {**found, "extra runs": extra}, versions


def find_amount(part: Part, system: System, plan: Plan, found: Mapping[str, float]) -> int:
    """Of what the part counts; the load at which half of a worker is busy is known from what was found before."""
    match part:
        case "load":
            return min(plan.jobs, system.most_jobs)
        case "idle":
            return _SAMPLES
        case "half":
            return max(1, round(found["drain"] / 2))
        case "rest":
            return _SECONDS
        case "schedules":
            return _SCHEDULES
        case "waiting":
            return plan.most_waiting
    assert_never(part)


def _drive(system: System, python: str, part: Part, amount: int) -> tuple[dict[str, float], dict[str, str]]:
    """One part of the measures, in a process of its own on an empty store of its own."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder, _empty_store(system, folder) as url:
        module = f"benchmarks.peers.adapters.{system.adapter}"
        command = [python, "-m", "benchmarks.peers.drive", part, module, str(amount), *system.packages]
        variables = {**os.environ, **system.variables, URL_NAME: url, FOLDER_NAME: folder}
        with (Path(folder) / "drive.log").open("wb") as log:
            # A session of its own, so that nothing of it outlives the measure.
            driver = subprocess.Popen(command, env=variables, stdout=log, stderr=log, start_new_session=True)
        try:
            code = driver.wait(_DEADLINE)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{part}: not within {_DEADLINE:.0f} s") from error
        finally:
            _end_session(driver)
        if code != 0:
            raise Failure(f"{part}: {_last_line((Path(folder) / 'drive.log').read_text())}")
        answer = json.loads((Path(folder) / "found.json").read_text())
    return answer["found"], answer["versions"]


@contextmanager
def _empty_store(system: System, folder: str) -> Iterator[str]:
    match system.store:
        case "sqlite":
            yield f"sqlite:///{folder}/bench.db"
        case "postgres":
            with postgres.new_server(POSTGRES, settings=("shared_buffers=256MB",)) as server:
                yield server.url
        case "redis":
            with valkey.new_server("--save", "", "--appendonly", "yes", "--appendfsync", "everysec") as server:
                yield server.url


def _end_session(driver: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(driver.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    driver.wait()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("WARNING", "["))]
    return lines[-1] if lines else "it said nothing"
