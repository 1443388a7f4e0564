"""What a caller may give as its transaction, and how to speak on it.

A session of SQLAlchemy leads to its connection, that to the pool's proxy, and that to the driver's connection; so does
a connection of Django. What is found in the end belongs to psycopg, psycopg2 or asyncpg.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import psycopg

from drumline.errors import StoreUnusable
from drumline.stores.statements import Row

__all__ = ["AsyncSpeaker", "Speaker", "find_async_speaker", "find_speaker", "on_commit"]

_PARAMETER = re.compile(r"%\((\w+)\)s")
_EXPECTED = (
    "transaction= must be a connection to the store's own database: of psycopg, psycopg2, asyncpg, SQLAlchemy (Session,"
    " Connection, AsyncSession, AsyncConnection) or Django"
)
_AUTOCOMMIT = (
    "no transaction is open on the connection, which is in autocommit mode: begin one before you enqueue, or enqueue"
    " without transaction="
)


class Speaker(Protocol):
    """A connection of the caller's, blocking."""

    def say(self, sql: str, params: dict[str, Any]) -> list[Row]:
        """Run one statement in the caller's transaction."""


class AsyncSpeaker(Protocol):
    """A connection of the caller's, on its event loop."""

    async def say(self, sql: str, params: dict[str, Any]) -> list[Row]:
        """Run one statement in the caller's transaction."""


class PsycopgSpeaker:
    """A blocking connection of psycopg."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def say(self, sql: str, params: dict[str, Any]) -> list[Row]:
        # Plain rows, whatever the caller has set up for its own.
        with self._connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute(sql.encode(), params)
            return cursor.fetchall() if cursor.description is not None else []


class Psycopg2Speaker:
    """A connection of psycopg2."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def say(self, sql: str, params: dict[str, Any]) -> list[Row]:
        try:
            with self._connection.cursor(cursor_factory=sys.modules["psycopg2.extensions"].cursor) as cursor:
                cursor.execute(sql, params)
                return list(cursor.fetchall()) if cursor.description is not None else []
        except sys.modules["psycopg2"].Error as error:
            raise _as_psycopg(error, error.pgcode) from error


class AsyncCursorSpeaker:
    """An async connection of psycopg."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def say(self, sql: str, params: dict[str, Any]) -> list[Row]:
        async with self._connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            await cursor.execute(sql.encode(), params)
            return await cursor.fetchall() if cursor.description is not None else []


class AsyncpgSpeaker:
    """A connection of asyncpg, which numbers its parameters."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def say(self, sql: str, params: dict[str, Any]) -> list[Row]:
        text, names = _numbered(sql)
        try:
            rows = await self._connection.fetch(text, *(params[name] for name in names))
        except sys.modules["asyncpg"].PostgresError as error:
            raise _as_psycopg(error, error.sqlstate) from error
        return [tuple(row) for row in rows]


class BlockingSpeaker:
    """A blocking connection, used from an event loop: it blocks there as all that the caller does with it."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    async def say(self, sql: str, params: dict[str, Any]) -> list[Row]:
        return self._speaker.say(sql, params)


def find_speaker(tx: Any) -> Speaker:
    """The driver's connection behind what a blocking caller gave."""
    if _is_a(tx, "sqlalchemy.ext.asyncio", "AsyncSession", "AsyncConnection"):
        raise StoreUnusable("the transaction is of an event loop: await the enqueue there")
    if _is_a(tx, "sqlalchemy.orm", "Session", "scoped_session"):
        return find_speaker(tx.connection())
    if _is_a(tx, "sqlalchemy.engine", "Connection"):
        # SQLAlchemy begins its transaction with the first statement.
        tx.exec_driver_sql("select 1")
        return find_speaker(tx.connection.driver_connection)
    if _is_django(tx):
        tx.ensure_connection()
        return find_speaker(tx.connection)
    if isinstance(tx, psycopg.Connection):
        if tx.autocommit and tx.info.transaction_status is psycopg.pq.TransactionStatus.IDLE:
            raise StoreUnusable(_AUTOCOMMIT)
        return PsycopgSpeaker(tx)
    if _is_a(tx, "psycopg2.extensions", "connection"):
        if tx.autocommit:
            raise StoreUnusable(_AUTOCOMMIT)
        return Psycopg2Speaker(tx)
    if isinstance(tx, psycopg.AsyncConnection) or _is_asyncpg(tx):
        raise StoreUnusable("the transaction is of an event loop: await the enqueue there")
    raise StoreUnusable(f"{_EXPECTED}; got {type(tx).__module__}.{type(tx).__qualname__}")


async def find_async_speaker(tx: Any) -> AsyncSpeaker:
    """The driver's connection behind what an awaiting caller gave."""
    if _is_a(tx, "sqlalchemy.ext.asyncio", "AsyncSession", "async_scoped_session"):
        return await find_async_speaker(await tx.connection())
    if _is_a(tx, "sqlalchemy.ext.asyncio", "AsyncConnection"):
        # SQLAlchemy begins its transaction with the first statement.
        await tx.exec_driver_sql("select 1")
        return await find_async_speaker((await tx.get_raw_connection()).driver_connection)
    if isinstance(tx, psycopg.AsyncConnection):
        if tx.autocommit and tx.info.transaction_status is psycopg.pq.TransactionStatus.IDLE:
            raise StoreUnusable(_AUTOCOMMIT)
        return AsyncCursorSpeaker(tx)
    if _is_asyncpg(tx):
        if not tx.is_in_transaction():
            raise StoreUnusable(_AUTOCOMMIT)
        return AsyncpgSpeaker(tx)
    return BlockingSpeaker(find_speaker(tx))


def on_commit(tx: Any, tell: Callable[[], None]) -> bool:
    """Call `tell` after the caller's commit, where that can be known, and say whether it can."""
    if _is_django(tx):
        if not tx.in_atomic_block:
            return False
        sys.modules["django.db.transaction"].on_commit(tell, using=tx.alias)
        return True
    target = getattr(tx, "sync_session", None) or getattr(tx, "sync_connection", None) or tx
    for module, name, event_name in (
        ("sqlalchemy.orm", "Session", "after_commit"),
        ("sqlalchemy.engine", "Connection", "commit"),
    ):
        if _is_a(target, module, name):
            from sqlalchemy import event

            # Once only: what is heard of too early, because of a savepoint, the poll finds.
            event.listen(target, event_name, lambda _: tell(), once=True)
            return True
    return False


def _is_a(tx: Any, module: str, *names: str) -> bool:
    """Whether it is of one of these classes; without an import, for what nobody has imported it cannot be."""
    found = sys.modules.get(module)
    return found is not None and isinstance(tx, tuple(getattr(found, name) for name in names if hasattr(found, name)))


def _is_django(tx: Any) -> bool:
    return _is_a(tx, "django.db.backends.base.base", "BaseDatabaseWrapper") or _is_a(
        tx, "django.utils.connection", "ConnectionProxy"
    )


def _is_asyncpg(tx: Any) -> bool:
    return _is_a(tx, "asyncpg", "Connection") or _is_a(tx, "asyncpg.pool", "PoolConnectionProxy")


@lru_cache(maxsize=64)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """The statement with numbered parameters, and their names in order."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    return _PARAMETER.sub(number, sql), tuple(names)


def _as_psycopg(error: Exception, state: str | None) -> psycopg.Error:
    """The same error as psycopg would say it, so that it is translated in one place."""
    try:
        kind = psycopg.errors.lookup(state or "")
    except KeyError:
        kind = psycopg.OperationalError
    return kind(str(error))
