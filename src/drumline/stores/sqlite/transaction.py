"""The caller's own transaction: find the driver's connection behind it, and run an operation on it."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from drumline.errors import StoreUnusable
from drumline.stores.files import read_statements
from drumline.stores.sqlite.connect import translated
from drumline.stores.statements import Operation, Statement, run

__all__ = ["find_store_id", "run_inside"]

T = TypeVar("T")

_SQL = read_statements(__package__, "transaction.sql")
# A session leads to its connection, that to the pool's proxy, and that to the driver's connection.
_DEEPEST = 5


def find_store_id() -> Operation[str]:
    """The id by which a store is known."""
    ((store_id,),) = yield Statement(_SQL["find_store_id"])
    return str(store_id)


def run_inside(tx: object, path: Path, store_id: str, operation: Operation[T]) -> T:
    """Run the operation as a part of the caller's transaction: it becomes real when the caller commits."""
    connection = _find_connection(tx)
    with translated(path), _plain_rows(connection) as cursor:
        _refuse_other_store(cursor, path, store_id)
        _begin(cursor)
        cursor.execute("savepoint drumline")
        try:
            answer = run(cursor, operation)
        except BaseException:
            # Some errors undo the whole transaction, and the savepoint with it.
            if connection.in_transaction:
                cursor.execute("rollback to drumline")
                cursor.execute("release drumline")
            raise
        cursor.execute("release drumline")
        return answer


def _find_connection(tx: object) -> sqlite3.Connection:
    found: Any = tx
    for _ in range(_DEEPEST):
        if isinstance(found, sqlite3.Connection):
            return found
        inner = getattr(found, "driver_connection", None) or getattr(found, "connection", None)
        found = inner() if inspect.ismethod(inner) else inner
        if inspect.iscoroutine(found):
            found.close()
            break
    raise StoreUnusable(
        "transaction= must be a sqlite3 connection to the store's own file, or an SQLAlchemy session or connection"
        f" (not an async one) that has one, got {type(tx).__module__}.{type(tx).__qualname__}"
    )


@contextmanager
def _plain_rows(connection: sqlite3.Connection) -> Iterator[sqlite3.Cursor]:
    """A cursor that gives plain rows, whatever the caller has set up for its own."""
    text_factory = connection.text_factory
    cursor = connection.cursor(sqlite3.Cursor)
    cursor.row_factory = None
    connection.text_factory = str
    try:
        yield cursor
    finally:
        connection.text_factory = text_factory
        cursor.close()


def _refuse_other_store(cursor: sqlite3.Cursor, path: Path, store_id: str) -> None:
    files: list[str] = [file for _, name, file in cursor.execute("pragma database_list").fetchall() if name == "main"]
    shown = files[0] if files and files[0] else "a database in memory"
    # The same id alone could be a copy's.
    is_ours = bool(files and files[0]) and path.exists() and path.samefile(files[0])
    if not is_ours or run(cursor, find_store_id()) != store_id:
        raise StoreUnusable(
            f"the transaction is on {shown}, and the store is {path}: use a connection to the store's own file, or"
            " enqueue without transaction="
        )


def _begin(cursor: sqlite3.Cursor) -> None:
    connection = cursor.connection
    if connection.in_transaction:
        return
    # From Python 3.12 on there are two ways to say it.
    if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
        raise StoreUnusable(
            "the connection is in autocommit mode and no transaction is open on it: begin one before you enqueue, or"
            " enqueue without transaction="
        )
    # At once, so that what is read below is still so when it is written.
    cursor.execute("begin immediate")
