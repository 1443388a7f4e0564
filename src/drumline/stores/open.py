"""From a URL to a store, importing its driver only when it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

from drumline.clock import Clock
from drumline.errors import BadSettings
from drumline.model.mask import mask_url
from drumline.stores.base import Store

__all__ = ["check_url", "open_store", "sqlite_path"]

_EXPECTED = (
    "expected postgresql://user@host/database, redis://host:6379/0, "
    "sqlite:///file.db (sqlite:////absolute/file.db) or memory://"
)
_POSTGRES = ("postgresql", "postgres")
_REDIS = ("redis", "rediss", "unix")


def open_store(
    url: str,
    *,
    namespace: str = "drumline",
    listen_url: str | None = None,
    clock: Clock | None = None,
    synchronous: Literal["full", "normal"] = "full",
    allow_network_fs: bool = False,
    confirm: Literal["server", "disk", "replica"] = "server",
) -> Store:
    """The store that the URL names. Nothing is touched before the first operation."""
    kind = check_url(url)
    if kind == "memory":
        from drumline.stores.memory import MemoryStore

        return MemoryStore(clock)
    if kind == "sqlite":
        from drumline.stores.sqlite import SqliteStore

        path = sqlite_path(url)
        return SqliteStore(path, clock=clock, synchronous=synchronous, allow_network_fs=allow_network_fs)
    if kind in _REDIS:
        return _open_redis(url, namespace, confirm)
    return _open_postgres(url, namespace, listen_url, synchronous)


def check_url(url: object) -> str:
    """Which kind of store the URL names; BadSettings if none. Whether it can be reached is not asked."""
    if not isinstance(url, str):
        raise BadSettings(f"store URL must be a text: {_EXPECTED}, got {type(url).__name__}")
    scheme = _split(url).scheme
    kind = scheme.partition("+")[0]
    if kind in _REDIS:
        return kind
    if scheme not in ("memory", "sqlite", *_POSTGRES):
        raise BadSettings(f"store URL {mask_url(url)!r}: {_EXPECTED}")
    if scheme == "sqlite":
        sqlite_path(url)
    return scheme


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise BadSettings(f"store URL {mask_url(url)!r}: {_EXPECTED} ({error})") from error


def _open_redis(url: str, namespace: str, confirm: Literal["server", "disk", "replica"]) -> Store:
    with _driver(url, "Redis", "redis", ("redis", "hiredis")):
        from drumline.stores.redis import RedisStore
    return RedisStore(url, namespace=namespace, confirm=confirm)


def _open_postgres(url: str, namespace: str, listen_url: str | None, synchronous: Literal["full", "normal"]) -> Store:
    with _driver(url, "Postgres", "postgres", ("psycopg", "psycopg_binary", "psycopg_pool")):
        from drumline.stores.postgres import PostgresStore
    return PostgresStore(url, namespace=namespace, listen_url=listen_url, synchronous=synchronous)


@contextmanager
def _driver(url: str, server: str, extra: str, packages: tuple[str, ...]) -> Iterator[None]:
    """Around the import of a store: if its driver is missing, or lacks a library of its own, say how to get it."""
    try:
        yield
    except ImportError as error:
        # A driver that does not find a library of the system names no module.
        if error.name is not None and error.name.partition(".")[0] not in packages:
            raise
        raise BadSettings(
            f"store URL {mask_url(url)!r}: the driver for {server} is missing: pip install 'drumline[{extra}]'"
        ) from error


def sqlite_path(url: str) -> str:
    """What follows the three slashes: a path relative to the working directory, or, after a fourth, from the root."""
    parts = urlsplit(url)
    if parts.netloc or not parts.path.strip("/") or parts.query or parts.fragment:
        raise BadSettings(f"store URL {mask_url(url)!r}: {_EXPECTED}")
    return unquote(parts.path[1:])
