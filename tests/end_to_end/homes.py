"""Where a fleet's store may live: on a file, or on a server."""

import fcntl
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Protocol

from drumline.clock import fresh_id
from tests.support.makers import is_chosen
from tests.support.postgres import direct, new_address
from tests.support.valkey import shared_url


class Home(Protocol):
    """A store that nobody has used."""

    url: str
    namespace: str
    # So many threads, each with its connection, may read at once in one process, beyond the first.
    side_by_side: int

    @property
    def settings(self) -> dict[str, str]:
        """The variables that lead a program to it."""

    def is_at_rest(self) -> bool:
        """Whether nobody is in the midst of a write that would hold up others."""

    def check(self) -> None:
        """Fail if what is stored is damaged."""


class _Settings:
    url: str
    namespace: str

    @property
    def settings(self) -> dict[str, str]:
        return {"DRUMLINE_STORE__URL": self.url, "DRUMLINE_STORE__NAMESPACE": self.namespace}


class SqliteHome(_Settings):
    """A file."""

    namespace = "drumline"
    side_by_side = 0

    def __init__(self, folder: Path) -> None:
        self._file = folder / "band.db"
        self.url = f"sqlite:///{self._file}"

    def is_at_rest(self) -> bool:
        lock = Path(f"{self._file}-lock")
        with lock.open("rb") as held, closing(sqlite3.connect(self._file, timeout=0)) as connection:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                connection.execute("begin immediate")
            except (BlockingIOError, sqlite3.OperationalError):
                return False
            return True

    def check(self) -> None:
        with closing(sqlite3.connect(self._file)) as connection:
            assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


class PostgresHome(_Settings):
    """A schema on the server that all tests share."""

    side_by_side = 8

    def __init__(self, folder: Path) -> None:
        self.url, _, self.namespace = new_address().partition(" ")

    @property
    def settings(self) -> dict[str, str]:
        """A fleet behind a pooler hears of what is new past it."""
        beside = {} if direct(self.url) == self.url else {"DRUMLINE_STORE__LISTEN_URL": direct(self.url)}
        return {**super().settings, **beside}

    def is_at_rest(self) -> bool:
        # Nobody waits for a row that another holds: what is locked is passed over.
        return True

    def check(self) -> None:
        """The server sees to that."""


class RedisHome(_Settings):
    """A namespace on the server that all tests share, or on another."""

    side_by_side = 0

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.url, self.namespace = url or shared_url(), f"t{fresh_id()}"

    def is_at_rest(self) -> bool:
        # A script is one step of the server, whatever its caller does meanwhile.
        return True

    def check(self) -> None:
        """The server sees to that."""


class ServerHome(PostgresHome):
    """The same, on a server of the test's own."""

    def __init__(self, url: str) -> None:
        self.url, self.namespace = url, "drumline"


HOMES: dict[str, Callable[[Path], Home]] = {"sqlite": SqliteHome, "postgres": PostgresHome, "redis": RedisHome}


def chosen_homes() -> list[str]:
    """The kinds that fleets live on: all of them, or those that the environment names."""
    return [kind for kind in HOMES if is_chosen(kind)]
