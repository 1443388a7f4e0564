"""Where a measurement takes place. The worker of each system imports its adapter anew, so the environment tells it."""

import os
import time
from functools import cache
from pathlib import Path
from typing import Any

URL_NAME = "DRUMLINE_BENCH_URL"
FOLDER_NAME = "DRUMLINE_BENCH_FOLDER"

URL = os.environ.get(URL_NAME, "")
FOLDER = Path(os.environ.get(FOLDER_NAME, "."))
_REWRITING = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")


def ask_postgres(statement: str) -> int:
    """The one number that a statement answers, on a connection of the harness."""
    row = _postgres().execute(statement).fetchone()
    return int(row[0])


def settle_store() -> None:
    """Let the server end what enqueues have given it to do, so that no figure depends on when it comes to that.

    On Postgres the planner learns the tables as they are; on Redis a rewrite of the append-only file ends.
    """
    if URL.startswith("postgresql"):
        _postgres().execute("vacuum analyze")
    if URL.startswith("redis"):
        while any(redis().info("persistence")[fact] for fact in _REWRITING):
            time.sleep(0.1)


@cache
def _postgres() -> Any:
    import psycopg

    return psycopg.connect(URL, autocommit=True)


@cache
def redis() -> Any:
    """A blocking client of the harness."""
    from redis import Redis

    return Redis.from_url(URL, decode_responses=True)
