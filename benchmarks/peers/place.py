"""Where a measurement takes place. The worker of each system imports its adapter anew, so the environment tells it."""

import os
from functools import cache
from pathlib import Path
from typing import Any

URL_NAME = "DRUMLINE_BENCH_URL"
FOLDER_NAME = "DRUMLINE_BENCH_FOLDER"

URL = os.environ.get(URL_NAME, "")
FOLDER = Path(os.environ.get(FOLDER_NAME, "."))


def ask_postgres(statement: str) -> int:
    """The one number that a statement answers, on a connection of the harness."""
    row = _postgres().execute(statement).fetchone()
    return int(row[0])


def analyze_postgres() -> None:
    """Let the planner know the tables as they are, so that no drain depends on when autovacuum comes by."""
    _postgres().execute("vacuum analyze")


@cache
def _postgres() -> Any:
    import psycopg

    return psycopg.connect(URL, autocommit=True)


@cache
def redis() -> Any:
    """A blocking client of the harness."""
    from redis import Redis

    return Redis.from_url(URL, decode_responses=True)
