"""Servers of a run's own, which it may kill; and clocks that are wrong."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import psycopg
from redis import Redis

from drumline.chaos.ground import Ground, find_ground
from drumline.chaos.run import Host, Surroundings
from tests.support import postgres, valkey
from tests.support.skew import skewed

NAMESPACE = "chaos"
ROOT = Path(__file__).parents[2]
# Every answer is on disk before it is given.
DURABLE = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


class PostgresHost:
    def __init__(self, server: postgres.Server) -> None:
        self.server = server

    def restart(self) -> None:
        self.server.kill()
        self.server.start()

    def disconnect(self) -> None:
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where backend_type = 'client backend' and pid <> pg_backend_pid()"
            )


class ValkeyHost:
    def __init__(self, server: valkey.Valkey) -> None:
        self.server = server

    def restart(self) -> None:
        self.server.kill()
        self.server.start()

    def disconnect(self) -> None:
        with Redis.from_url(self.server.url) as client:
            for kind in ("normal", "pubsub"):
                client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


class Scene(NamedTuple):
    """Where a run takes place, and what it can do there."""

    ground: Ground
    around: Surroundings


def surroundings(host: Host) -> Surroundings:
    """All that can be done on a server of one's own."""
    variables = {"PYTHONPATH": str(ROOT)}
    return Surroundings(host=host, skewed=wrong_clock, module="tests.chaos.worker", variables=variables)


def wrong_clock(seconds: float) -> Mapping[str, str]:
    return skewed(timedelta(seconds=seconds))


@contextmanager
def sqlite_scene(folder: Path) -> Iterator[Scene]:
    # All who use a file share the machine's clock, and there is no server.
    yield Scene(find_ground(f"sqlite:///{folder / 'chaos.db'}", NAMESPACE), Surroundings())


@contextmanager
def postgres_scene(folder: Path) -> Iterator[Scene]:
    with postgres.new_server() as server:
        yield Scene(find_ground(server.url, NAMESPACE), surroundings(PostgresHost(server)))


@contextmanager
def redis_scene(folder: Path) -> Iterator[Scene]:
    with valkey.new_server(*DURABLE) as server:
        yield Scene(find_ground(server.url, NAMESPACE), surroundings(ValkeyHost(server)))


SCENES = {"sqlite": sqlite_scene, "postgres": postgres_scene, "redis": redis_scene}
