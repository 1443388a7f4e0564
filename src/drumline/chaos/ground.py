"""The ground of a run: a namespace that holds nothing before, and nothing after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from drumline.errors import BadSettings, StoreUnreachable
from drumline.model.mask import mask_url
from drumline.stores.open import sqlite_path

if TYPE_CHECKING:
    import psycopg
    import redis

__all__ = ["Ground", "find_ground"]


class Ground:
    """Where a run takes place, as one kind of store has it."""

    # The URL, which means the same from every folder, and the namespace.
    url: str
    namespace: str

    def find_content(self) -> str | None:
        """What is there already; None if nothing is."""
        raise NotImplementedError

    def clean(self) -> None:
        """Remove all of it. Only for ground that was found empty."""
        raise NotImplementedError


class FileGround(Ground):
    """A file that is not there yet."""

    def __init__(self, url: str, namespace: str) -> None:
        self._path = Path(sqlite_path(url)).absolute()
        self.url, self.namespace = f"sqlite:///{self._path}", namespace

    def find_content(self) -> str | None:
        return f"the file {self._path} exists" if self._path.exists() else None

    def clean(self) -> None:
        for ending in ("", "-wal", "-shm", "-lock"):
            Path(f"{self._path}{ending}").unlink(missing_ok=True)


class SchemaGround(Ground):
    """A schema that is not there yet, on Postgres."""

    def __init__(self, url: str, namespace: str) -> None:
        self.url, self.namespace = url, namespace

    def find_content(self) -> str | None:
        with self._connect() as connection:
            found = connection.execute("select 1 from pg_namespace where nspname = %s", (self.namespace,)).fetchone()
        return None if found is None else f"the schema {self.namespace} exists"

    def clean(self) -> None:
        from psycopg.sql import SQL, Identifier

        with self._connect() as connection:
            connection.execute(SQL("drop schema if exists {} cascade").format(Identifier(self.namespace)))

    def _connect(self) -> psycopg.Connection:
        import psycopg

        try:
            return psycopg.connect(self.url, autocommit=True, connect_timeout=10)
        except psycopg.OperationalError as error:
            raise StoreUnreachable(f"{mask_url(self.url)}: {error}") from error


class KeysGround(Ground):
    """A prefix that no key has yet, on one Redis server."""

    def __init__(self, url: str, namespace: str) -> None:
        self.url, self.namespace = url, namespace

    def find_content(self) -> str | None:
        with self._connect() as client:
            found = next(iter(client.scan_iter(self._pattern, count=1000)), None)
        return None if found is None else f"there are keys that begin with {{{self.namespace}}}"

    def clean(self) -> None:
        with self._connect() as client:
            for key in client.scan_iter(self._pattern, count=1000):
                client.unlink(key)

    @property
    def _pattern(self) -> str:
        return f"{{{self.namespace}}}*"

    def _connect(self) -> redis.Redis:
        import redis

        client = redis.Redis.from_url(self.url, socket_timeout=10)
        try:
            client.ping()
        except redis.RedisError as error:
            raise StoreUnreachable(f"{mask_url(self.url)}: {error}") from error
        return client


def find_ground(url: str, namespace: str) -> Ground:
    """The ground that the URL names; BadSettings if no run can take place there, or if it is not empty."""
    kinds = {"sqlite": FileGround, "postgresql": SchemaGround, "postgres": SchemaGround}
    of_redis = dict.fromkeys(("redis", "rediss", "unix"), KeysGround)
    kind = {**kinds, **of_redis}.get(urlsplit(url).scheme)
    if kind is None:
        raise BadSettings(f"store URL {mask_url(url)!r}: chaos needs a SQLite file, a Postgres or one Redis server")
    ground: Ground = kind(url, namespace)
    content = ground.find_content()
    if content is not None:
        raise BadSettings(f"chaos runs only where nothing is, for it removes all of it at its end: {content}")
    return ground
