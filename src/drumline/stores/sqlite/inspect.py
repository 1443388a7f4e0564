"""What the library and the place of a file say of its durability; the file is only read, and may not be there yet."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from drumline.stores.sqlite.connect import OLDEST_VERSION, Place, is_affected_by_wal_reset, translated
from drumline.stores.sqlite.mounts import find_network_mount, read_mounts

__all__ = ["inspect"]


def inspect(place: Place) -> dict[str, str]:
    """The facts, by the names that `policy.durability` knows."""
    mount = find_network_mount(place.path.parent.resolve() / place.path.name, read_mounts())
    facts = {
        "version": ".".join(map(str, sqlite3.sqlite_version_info)),
        "version_is": _judge(sqlite3.sqlite_version_info),
        "store.synchronous": place.synchronous,
        "store.allow_network_fs": "yes" if place.allows_network_fs else "no",
        "network_file_system": "" if mount is None else f"{mount[0]} ({mount[1]})",
    }
    # What is shared over a network is not even opened.
    if mount is None and place.path.is_file():
        facts["journal_mode"] = _read_journal_mode(place)
    return facts


def _judge(version: tuple[int, ...]) -> str:
    if version < OLDEST_VERSION:
        return "too old"
    return "affected" if is_affected_by_wal_reset(version) else "good"


def _read_journal_mode(place: Place) -> str:
    address = f"{place.path.as_uri()}?mode=ro"
    with translated(place.path), closing(sqlite3.connect(address, uri=True)) as connection:
        ((mode,),) = connection.execute("pragma journal_mode").fetchall()
    return str(mode)
