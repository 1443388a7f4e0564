"""What the server says of its durability, who stands between, and who keeps it from clearing up."""

from __future__ import annotations

from drumline.stores.files import read_statements
from drumline.stores.postgres.connect import Connection, Place, is_pooled, translated

__all__ = ["inspect"]

_SQL = read_statements(__package__, "inspect.sql")


def inspect(place: Place) -> dict[str, str]:
    """The facts, by the names that `policy.durability` knows."""
    connection = place.connect()
    try:
        with translated(place.shown):
            facts: dict[str, str] = dict(connection.execute(_SQL["settings"].encode()).fetchall())
            long = connection.execute(_SQL["long_transaction"].encode()).fetchall()
            pooler = is_pooled(connection)
    finally:
        connection.close()
    return {
        **facts,
        "long_transaction": "" if not long else f"process {long[0][0]} of {long[0][1]}, since {long[0][2]}",
        "pooler": "yes" if pooler else "no",
        "listener": _find_listener(place, place.connect_listener()),
    }


def _find_listener(place: Place, connection: Connection) -> str:
    try:
        with translated(place.shown):
            return "pooler" if is_pooled(connection) else "server"
    finally:
        connection.close()
