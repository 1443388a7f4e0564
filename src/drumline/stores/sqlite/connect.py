"""Connections to the file: how one is opened, what is refused, and what the driver's exceptions mean."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

from drumline.clock import fresh_id
from drumline.errors import SchemaMismatch, StoreError, StoreUnreachable, StoreUnusable
from drumline.stores.files import MigrationStatements, check_schema, migrate, read_migrations, read_statements
from drumline.stores.sqlite.mounts import find_network_mount, read_mounts
from drumline.stores.sqlite.mutex import WriteMutex
from drumline.stores.statements import run

__all__ = ["OLDEST_VERSION", "PATIENCE", "Place", "Synchronous", "is_affected_by_wal_reset", "translated"]

# When a commit is on disk: before it is answered (full), or a little later (normal: a power cut may take the newest
# commits with it).
Synchronous = Literal["full", "normal"]

# How long to wait for somebody else's write, in seconds.
PATIENCE = 10.0
OLDEST_VERSION = (3, 35, 0)
# When the log holds so many pages, the writer's commit writes them back.
_LOG_PAGES = 2000
_LARGEST_KEPT_LOG = 64 * 1024 * 1024

logger = logging.getLogger("drumline.sqlite")
_SQL = read_statements(__package__, "connect.sql")
_MIGRATIONS = read_migrations(__package__)
_MIGRATION_STATEMENTS = MigrationStatements(_SQL["prepare"], _SQL["applied"], _SQL["record"])

_AWAY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full: make room; nothing that was stored is lost",
    sqlite3.SQLITE_READONLY: "it cannot be written to: give this user the right to write the file and its folder",
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore it from a backup, or move it away to begin anew",
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database: mend the path, or move the file away",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: look at the path and at the rights of the file and its folder",
    sqlite3.SQLITE_PERM: "access was refused: look at the rights of the file and its folder",
    sqlite3.SQLITE_IOERR: "the disk reports an error: look at the disk and its file system",
}


class Place:
    """Where the database is, and how to connect to it."""

    def __init__(self, path: Path, synchronous: Synchronous, *, allow_network_fs: bool) -> None:
        self.path = path
        self.mutex = WriteMutex(path, PATIENCE)
        self.synchronous = synchronous
        self.allows_network_fs = allow_network_fs

    def connect_writer(self) -> sqlite3.Connection:
        """A connection that writes; only under the mutex."""
        with self._opened() as connection, self.mutex.held():
            self._prepare(connection)
            check_schema(_read_applied(connection), _MIGRATIONS, str(self.path))
        return connection

    def connect_reader(self) -> sqlite3.Connection:
        """A connection that only reads, and never writes back the log."""
        with self._opened() as connection:
            connection.execute("pragma wal_autocheckpoint = 0")
            connection.execute("pragma query_only = 1")
            check_schema(_read_applied(connection), _MIGRATIONS, str(self.path))
        return connection

    def identify(self) -> tuple[int, int] | None:
        """Which file is at the path now."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def close(self, connection: sqlite3.Connection) -> None:
        """Close under the mutex: the last connection of all writes back the log."""
        try:
            with self.mutex.held():
                connection.close()
        except StoreError:
            # The file is gone, or somebody else holds the mutex for long; a connection that stays open helps nobody.
            connection.close()

    def migrate(self, now: int) -> None:
        """Make the file, if there is none, and bring its schema to this version."""
        self._create()
        with self._opened() as connection:
            # Mostly there is nothing to do, and then nobody has to be waited for.
            if _read_applied(connection) != {known.version: known.checksum for known in _MIGRATIONS}:
                with self.mutex.held():
                    self._migrate(connection, now)
        self.close(connection)

    def _migrate(self, connection: sqlite3.Connection, now: int) -> None:
        self._prepare(connection)
        connection.execute("begin immediate")
        try:
            cursor = connection.cursor()
            run(cursor, migrate(_MIGRATIONS, _MIGRATION_STATEMENTS, str(self.path), {"at": now}))
            cursor.execute(_SQL["name_store"], {"id": fresh_id()})
        except BaseException:
            connection.rollback()
            raise
        connection.commit()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A new connection, closed again if what follows fails."""
        connection = self._connect()
        try:
            with translated(self.path):
                yield connection
        except BaseException:
            self.close(connection)
            raise

    def _create(self) -> None:
        self._refuse_bad_place()
        try:
            # By ourselves, for SQLite would make it readable for everybody; what SQLite adds beside it follows suit.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise StoreUnusable(f"{self.path}: the database cannot be made here ({error.strerror})") from error

    def _connect(self) -> sqlite3.Connection:
        _check_version(sqlite3.sqlite_version_info)
        self._refuse_bad_place()
        if not self.path.exists():
            raise StoreUnusable(f"{self.path}: there is no such database: mend the path, or run `drumline migrate`")
        for place in (self.path, self.path.parent):
            if not os.access(place, os.W_OK):
                raise StoreUnusable(
                    f"{place}: this user may not write here, and a store needs to write the file and its folder:"
                    " mend the rights, or name another path"
                )
        with translated(self.path):
            return sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",
                uri=True,
                timeout=PATIENCE,
                isolation_level=None,
                # Closed by whoever forks; otherwise each stays in its thread.
                check_same_thread=False,
                cached_statements=256,
            )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        ((mode,),) = connection.execute("pragma journal_mode = wal").fetchall()
        if mode != "wal":
            raise StoreUnusable(
                f"{self.path}: SQLite cannot keep a write-ahead log here, only journal mode {mode}: use a local disk"
            )
        connection.execute(_SYNCHRONOUS[self.synchronous])
        connection.execute(f"pragma wal_autocheckpoint = {_LOG_PAGES:d}")
        connection.execute(f"pragma journal_size_limit = {_LARGEST_KEPT_LOG:d}")
        connection.execute("pragma cache_size = -16000")
        connection.execute("pragma temp_store = memory")

    def _refuse_bad_place(self) -> None:
        try:
            self._refuse_wrong_kinds()
        except OSError as error:
            raise StoreUnusable(
                f"{self.path}: this user may not look here ({error.strerror}): mend the rights, or name another path"
            ) from error

    def _refuse_wrong_kinds(self) -> None:
        folder = self.path.parent
        if not folder.is_dir():
            raise StoreUnusable(f"{self.path}: there is no folder {folder}: make it, or mend the path")
        if self.path.is_dir():
            raise StoreUnusable(f"{self.path}: this is a folder, and a store is a file: mend the path")
        mount = None if self.allows_network_fs else find_network_mount(folder.resolve() / self.path.name, read_mounts())
        if mount is not None:
            raise StoreUnusable(
                f"{self.path}: {mount[0]} is a network file system ({mount[1]}), on which SQLite's locks do not hold:"
                " use a local disk, or a server for a fleet of more than one host"
            )


_SYNCHRONOUS = {
    "full": "pragma synchronous = full",
    "normal": "pragma synchronous = normal",
}


def _read_applied(connection: sqlite3.Connection) -> dict[int, str]:
    """The migrations that the file has seen, by version, with their checksums."""
    has_list = connection.execute(_SQL["has_migrations"]).fetchall()
    return dict(connection.execute(_SQL["applied"]).fetchall()) if has_list else {}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the driver's exceptions into the store's."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error


def translate(error: sqlite3.Error, path: Path) -> StoreError:
    """What the driver's exception means for a store."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _AWAY:
        return StoreUnreachable(f"{path}: another program has been writing for {PATIENCE:g} s: try again ({error})")
    if code in _ADVICE:
        return StoreUnusable(f"{path}: {_ADVICE[code]} ({error})")
    if "no such table: drumline_" in str(error) or "no such column" in str(error):
        return SchemaMismatch(f"{path}: the schema is not this version's: run `drumline migrate` ({error})")
    return StoreError(f"{path}: {error}")


def is_affected_by_wal_reset(version: tuple[int, ...]) -> bool:
    """Whether this SQLite may lose a commit when two connections commit and write back the log at once."""
    if (3, 44, 6) <= version < (3, 45) or (3, 50, 7) <= version < (3, 51):
        return False
    return (3, 7, 0) <= version < (3, 51, 3)


@cache
def _check_version(version: tuple[int, ...]) -> None:
    """Refuse a library that is too old; say once of one that has a known fault how the fault is met."""
    shown = ".".join(map(str, version))
    if version < OLDEST_VERSION:
        raise StoreUnusable(f"SQLite {shown} is too old: Drumline needs 3.35 or newer, use a newer Python")
    if is_affected_by_wal_reset(version):
        logger.info(
            "SQLite %s can lose a commit when two programs write at once; Drumline's processes take turns by a lock"
            " file, which protects them; programs of your own that write to the same file need SQLite 3.51.3",
            shown,
        )
