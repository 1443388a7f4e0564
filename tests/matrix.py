"""`make matrix`: the suite on other servers than those that `make test` starts.

A server that is not there is told of in one line; where DRUMLINE_TEST_REQUIRE is `all`, as in CI, it is a failure.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REQUIRE = "DRUMLINE_TEST_REQUIRE"
FLEETS = ("crash", "dead_letters", "executors", "fork", "schedules", "stop", "values", "waiting")
SUITE = (
    "tests/conformance",
    "--ignore=tests/conformance/test_broken_stores.py",
    *(f"tests/end_to_end/test_{name}.py" for name in FLEETS),
)


@dataclass(frozen=True)
class Server:
    """Another server, and the tests to run on it."""

    name: str
    environment: Mapping[str, str]
    # A program that has to be there, and how to get it.
    program: str | None = None
    remedy: str = ""
    tests: Sequence[str] = SUITE


SERVERS = (
    Server(
        "Postgres 18",
        {"DRUMLINE_TEST_STORES": "postgres", "DRUMLINE_TEST_POSTGRES_VERSION": "18"},
        tests=(*SUITE, "tests/stores/test_postgres_plans.py"),
    ),
    Server(
        "Postgres 15 of this system",
        {"DRUMLINE_TEST_STORES": "postgres", "DRUMLINE_TEST_POSTGRES_VERSION": "15"},
        program="/usr/lib/postgresql/15/bin/postgres",
        remedy="apt-get install postgresql-15",
        tests=(*SUITE, "tests/stores/test_postgres_plans.py", "tests/stores/test_postgres_function.py"),
    ),
    Server(
        "Postgres 16 through pgbouncer in transaction mode",
        {"DRUMLINE_TEST_STORES": "postgres", "DRUMLINE_TEST_POSTGRES_POOLED": "1"},
        program="pgbouncer",
        remedy="apt-get install pgbouncer",
    ),
    Server(
        "Redis of this system",
        {"DRUMLINE_TEST_STORES": "redis", "DRUMLINE_TEST_REDIS_PROGRAM": "redis-server"},
        program="redis-server",
        remedy="apt-get install redis-server",
        tests=(*SUITE, "tests/stores/test_redis_lost_answers.py", "tests/stores/test_redis_faults.py"),
    ),
    Server(
        "a cluster of three Valkey masters with a replica each",
        {"DRUMLINE_TEST_STORES": "redis", "DRUMLINE_TEST_REDIS_CLUSTER": "1"},
    ),
)


def main(options: Sequence[str]) -> int:
    return max([_run(server, options) for server in SERVERS], default=0)


def _run(server: Server, options: Sequence[str]) -> int:
    # Debian keeps some servers where only root's path leads.
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))
    if server.program is not None and shutil.which(server.program, path=path) is None:
        print(f"matrix: {server.name}: not there ({server.remedy})", flush=True)
        return 1 if os.environ.get(REQUIRE) == "all" else 0
    print(f"matrix: {server.name}", flush=True)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-m", "not prove", *server.tests]
    return subprocess.run([*command, *options], env={**os.environ, **server.environment}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
