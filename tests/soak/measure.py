"""What may grow: memory and handles of the workers, connections to the server, and what the store takes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import psycopg
from redis import Redis

from tests.chaos.hosts import DURABLE
from tests.support import postgres, valkey

NAMESPACE = "soak"
MEGABYTE = 1 << 20
# Differences that mean nothing: by name of the measure.
SLACKS = {
    "workers, MB": 6.0,
    "handles": 6.0,
    "connections": 2.0,
    "tables, MB": 1.0,
    "indexes, MB": 1.0,
    "file, MB": 1.0,
    "server, MB": 1.0,
}
_SIZES = """
select coalesce(sum(pg_table_size(c.oid)), 0)::bigint, coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %s and c.relkind = 'r'
"""
_CONNECTIONS = "select count(*) from pg_stat_activity where backend_type = 'client backend'"


class Yard(NamedTuple):
    """A store of the soak's own, and how to measure it."""

    url: str
    measure: Callable[[], dict[str, float]]


@contextmanager
def sqlite_yard(folder: Path) -> Iterator[Yard]:
    file = folder / "soak.db"

    def measure() -> dict[str, float]:
        parts = (Path(f"{file}{ending}") for ending in ("", "-wal"))
        return {"file, MB": sum(part.stat().st_size for part in parts if part.exists()) / MEGABYTE}

    yield Yard(f"sqlite:///{file}", measure)


@contextmanager
def postgres_yard(folder: Path) -> Iterator[Yard]:
    with postgres.new_server() as server, psycopg.connect(server.url, autocommit=True) as connection:

        def measure() -> dict[str, float]:
            tables, indexes = connection.execute(_SIZES, (NAMESPACE,)).fetchone() or (0, 0)
            (count,) = connection.execute(_CONNECTIONS).fetchone() or (0,)
            return {"tables, MB": tables / MEGABYTE, "indexes, MB": indexes / MEGABYTE, "connections": count}

        yield Yard(server.url, measure)


@contextmanager
def redis_yard(folder: Path) -> Iterator[Yard]:
    with valkey.new_server(*DURABLE) as server, Redis.from_url(server.url) as client:

        def measure() -> dict[str, float]:
            memory, clients = client.info("memory"), client.info("clients")
            return {"server, MB": memory["used_memory"] / MEGABYTE, "connections": clients["connected_clients"]}

        yield Yard(server.url, measure)


YARDS = {"sqlite": sqlite_yard, "postgres": postgres_yard, "redis": redis_yard}


def measure_workers(workers: Sequence[psutil.Process]) -> dict[str, float]:
    return {
        "workers, MB": sum(worker.memory_info().rss for worker in workers) / MEGABYTE,
        "handles": sum(worker.num_fds() for worker in workers),
    }
