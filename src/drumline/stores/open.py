"""From a URL to a store, importing its driver only when it is needed."""

from __future__ import annotations

from typing import Literal
from urllib.parse import unquote, urlsplit

from drumline.clock import Clock
from drumline.errors import BadSettings
from drumline.model.mask import mask_url
from drumline.stores.base import Store

__all__ = ["open_store", "sqlite_path"]

_EXPECTED = (
    "expected postgresql://user@host/database, redis://host:6379/0, "
    "sqlite:///file.db (sqlite:////absolute/file.db) or memory://"
)
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
    parts = urlsplit(url)
    if parts.scheme == "memory":
        from drumline.stores.memory import MemoryStore

        return MemoryStore(clock)
    if parts.scheme == "sqlite":
        from drumline.stores.sqlite import SqliteStore

        path = sqlite_path(url)
        return SqliteStore(path, clock=clock, synchronous=synchronous, allow_network_fs=allow_network_fs)
    if parts.scheme.partition("+")[0] in _REDIS:
        return _open_redis(url, namespace, confirm)
    if parts.scheme in ("postgresql", "postgres"):
        return _open_postgres(url, namespace, listen_url, synchronous)
    raise BadSettings(f"store URL {mask_url(url)!r}: {_EXPECTED}")


def _open_redis(url: str, namespace: str, confirm: Literal["server", "disk", "replica"]) -> Store:
    try:
        from drumline.stores.redis import RedisStore
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("redis", "hiredis"):
            raise
        raise BadSettings(
            f"store URL {mask_url(url)!r}: the driver for Redis is missing: pip install 'drumline[redis]'"
        ) from error
    return RedisStore(url, namespace=namespace, confirm=confirm)


def _open_postgres(url: str, namespace: str, listen_url: str | None, synchronous: Literal["full", "normal"]) -> Store:
    try:
        from drumline.stores.postgres import PostgresStore
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != "psycopg":
            raise
        raise BadSettings(
            f"store URL {mask_url(url)!r}: the driver for Postgres is missing: pip install 'drumline[postgres]'"
        ) from error
    return PostgresStore(url, namespace=namespace, listen_url=listen_url, synchronous=synchronous)


def sqlite_path(url: str) -> str:
    """What follows the three slashes: a path relative to the working directory, or, after a fourth, from the root."""
    parts = urlsplit(url)
    if parts.netloc or not parts.path.strip("/") or parts.query or parts.fragment:
        raise BadSettings(f"store URL {mask_url(url)!r}: {_EXPECTED}")
    return unquote(parts.path[1:])
