"""Connections to the server: how one is opened, and what the driver's exceptions mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from drumline.clock import fresh_id
from drumline.errors import BadSettings, SchemaMismatch, StoreError, StoreUnreachable, StoreUnusable
from drumline.model.mask import mask_url
from drumline.model.schema import Pending
from drumline.stores.files import (
    Migration,
    MigrationStatements,
    check_known,
    check_schema,
    facts_of,
    find_missing,
    find_served,
    migrate,
    read_migrations,
    read_statements,
)
from drumline.stores.postgres.patience import PatientConnection
from drumline.stores.statements import run

__all__ = [
    "Bound",
    "Connection",
    "Place",
    "is_outdated",
    "is_pooled",
    "is_repeatable",
    "is_unprepared",
    "translate",
    "translated",
]

Connection = psycopg.Connection[tuple[Any, ...]]

# How long to wait for the server to answer a new connection, and for somebody else's lock, in seconds.
CONNECT_PATIENCE = 10
LOCK_PATIENCE = 10
DDL_PATIENCE = 2
_NAMESPACE = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,40}")
_SQL = read_statements(__package__, "connect.sql")
_MIGRATIONS = read_migrations(__package__)
_MIGRATION_STATEMENTS = MigrationStatements(_SQL["prepare"], _SQL["applied"], _SQL["record"], _SQL["serves"])

# Found by the server's own detector, or by our own look: the step was undone, and may be taken anew at once.
_REPEATABLE = frozenset(("40001", "40P01"))
# What was prepared on one connection is not on the one that answers, or another's stands there.
_UNPREPARED = frozenset(("26000", "42P05"))
_PARAMETER = re.compile(r"%\((\w+)\)s")
# By psycopg's count: a statement is prepared where that is asked for.
_NEVER_BY_ITSELF = 2**31
# The server is there, but cannot do it now: it starts, stops, is a standby, or somebody holds a lock.
_AWAY = frozenset(("25006", "25P03", "55P03", "57014", "57P01", "57P02", "57P03", "57P05", "53300", "53200", "53400"))
_FOREIGN_SCHEMA = frozenset(("3F000", "42P01", "42703", "42883"))
_ADVICE = {
    "28": "the server refuses this user: look at user, password and pg_hba.conf",
    "3D000": "there is no such database: create it, or mend the URL",
    "42501": "this user lacks a right: let it create a schema in the database, or create the schema for it",
    "53100": "the server's disk is full: make room; nothing that was stored is lost",
}
# What libpq says of a connection that could not be made comes as text only.
_REFUSED = re.compile(
    r"authentication failed|no pg_hba.conf entry|(?:role|database) \"[^\"]*\" does not exist|no password supplied"
    r"|invalid (?:connection option|port|URI)|SSL"
)


def _check_address(url: str) -> None:
    """Refuse a URL that no server could make good; this touches no network."""
    try:
        ports = str(conninfo_to_dict(url).get("port") or "").split(",")
    except psycopg.Error as error:
        raise _misunderstood(url, str(error).strip()) from error
    if not all(port.isdecimal() for port in ports if port):
        raise _misunderstood(url, "the port is not a number")


def _misunderstood(url: str, why: str) -> BadSettings:
    return BadSettings(f"store URL {mask_url(url)!r}: expected postgresql://user@host:5432/database ({why})")


class Place:
    """Where the store is, and how to connect to it."""

    def __init__(
        self, url: str, namespace: str, listen_url: str | None = None, hot: frozenset[str] = frozenset()
    ) -> None:
        """`hot` are the statements that are worth preparing, where the server itself is at the other end."""
        if not _NAMESPACE.fullmatch(namespace):
            raise BadSettings(
                f"namespace {namespace!r}: expected 1 to 41 letters, digits or any of _ . : -, not a digit first"
            )
        for address in (url, listen_url):
            if address is not None:
                _check_address(address)
        self.namespace = namespace
        self.shown = mask_url(url)
        self.url = url
        self._listen_url = listen_url or url
        self._schema = '"' + namespace + '"'
        self._hot = hot
        # Whether a pooler stands between; None: nobody has looked.
        self._is_pooled: bool | None = None
        # Each store binds a few dozen texts, and always the same ones.
        self.bind = lru_cache(maxsize=None)(self._bind)
        self.number = lru_cache(maxsize=None)(self._number)

    def connect(self) -> Connection:
        """A connection in autocommit mode: one statement is one step."""
        connection = self._connect(self.url, PatientConnection)
        with translated(self.shown):
            if self._is_pooled is None:
                self._is_pooled = is_pooled(connection)
            if not self._is_pooled:
                connection.execute(_SQL["settle_session"])
                connection.prepare_threshold = _NEVER_BY_ITSELF
        return connection

    def is_prepared(self, sql: str) -> bool:
        """Whether the server shall keep how it runs this statement."""
        return sql in self._hot and not self._is_pooled

    def distrust(self) -> None:
        """What was prepared is not there: somebody hands over connections on the way, and did not say so."""
        self._is_pooled = True

    def connect_listener(self) -> Connection:
        """A connection on which messages arrive."""
        return self._connect(self._listen_url, PatientConnection)

    def _connect(self, url: str, kind: type[Connection]) -> Connection:
        with translated(mask_url(url)):
            return kind.connect(
                url,
                autocommit=True,
                # Plans that were made while a table was small would stay: only those are prepared that read what they
                # need and no more, whatever was known of the table when they were made.
                prepare_threshold=None,
                **_defaults(url),
            )

    def check(self, connection: Connection) -> None:
        """Refuse a schema that is not of this version."""
        with translated(self.shown):
            applied, serves = self._read_applied(connection)
            check_schema(applied, _MIGRATIONS, self._where, serves)

    def migrate(self) -> None:
        """Bring the schema to this version."""
        # An index on a large table takes its time.
        connection = self._connect(self.url, psycopg.Connection)
        try:
            with translated(self.shown):
                # Mostly there is nothing to do, and then nobody has to be waited for.
                if self._find_missing(connection):
                    with connection.transaction():
                        self._migrate(connection)
        finally:
            connection.close()

    def find_pending(self) -> list[Pending]:
        """The migrations that the schema has not seen, each with what does it by hand."""
        connection = self.connect()
        try:
            with translated(self.shown):
                missing = self._find_missing(connection)
                return [Pending(one.version, one.name, self._script(connection, one)) for one in missing]
        finally:
            connection.close()

    def _find_missing(self, connection: Connection) -> list[Migration]:
        applied, serves = self._read_applied(connection)
        check_known(applied, _MIGRATIONS, self._where, serves)
        return find_missing(applied, _MIGRATIONS)

    def _script(self, connection: Connection, migration: Migration) -> str:
        """What `migrate` does for one migration; the first one's makes the namespace."""
        first = migration is _MIGRATIONS[0]
        before = [_SQL["create_schema"], _SQL["prepare"]] if first else []
        quote = psycopg.ClientCursor(connection).mogrify
        after = [quote(self.bind(_SQL["record"]).encode(), facts_of(migration))]
        if first:
            after.append(quote(self.bind(_SQL["name_store"]).encode(), {"id": fresh_id()}))
        parts = [*(self.bind(sql) + ";" for sql in before), self.bind(migration.text).strip()]
        return "\n\n".join([*parts, *(sql + ";" for sql in after)])

    def _migrate(self, connection: Connection) -> None:
        cursor = Bound(connection, self)
        connection.execute(f"set local lock_timeout = '{LOCK_PATIENCE}s'")
        connection.execute("set local client_min_messages = warning")
        cursor.execute(_SQL["lock_migrations"], {"what": f"drumline {self.namespace} migrate"})
        # Whoever waits for a table makes all others wait behind it: the fleet stands still for no longer than this.
        connection.execute(f"set local lock_timeout = '{DDL_PATIENCE}s'")
        cursor.execute(_SQL["find_schema"], {"name": self.namespace})
        ((is_there,),) = cursor.fetchall()
        if not is_there:
            cursor.execute(_SQL["create_schema"], {})
        run(cursor, migrate(_MIGRATIONS, _MIGRATION_STATEMENTS, self._where, {}))
        cursor.execute(_SQL["name_store"], {"id": fresh_id()})

    @property
    def _where(self) -> str:
        return f"{self.shown}, namespace {self.namespace}"

    def _read_applied(self, connection: Connection) -> tuple[dict[int, str], int | None]:
        """The migrations that the schema has seen, by version, with their checksums; and which version it serves."""
        cursor = Bound(connection, self)
        cursor.execute(_SQL["find_migrations"], {"table": f"{self._schema}.migration"})
        ((has_list,),) = cursor.fetchall()
        if not has_list:
            return {}, None
        cursor.execute(_SQL["applied"], {})
        applied: dict[int, str] = dict(cursor.fetchall())
        return applied, run(cursor, find_served(applied, _MIGRATIONS, _MIGRATION_STATEMENTS))

    @property
    def channel(self) -> str:
        """The channel on which the fleet tells of news."""
        return f"drumline {self.namespace}"

    def _bind(self, sql: str) -> str:
        # Neither can hold a quote: the namespace was looked at.
        return sql.replace("{schema}", self._schema).replace("{channel}", f"'{self.channel}'")

    def _number(self, sql: str) -> tuple[bytes, tuple[str, ...]]:
        """The statement with its parameters as the server counts them, and their names in that order."""
        bound = self.bind(sql)
        names = tuple(dict.fromkeys(_PARAMETER.findall(bound)))
        return _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", bound).encode(), names


class Bound:
    """A cursor of our own for statements that name the namespace as {schema}; hot ones are prepared.

    The driver would look for parameters in a long statement at every call, and describe every column of every answer:
    each takes as long as half the work of a claim.
    """

    def __init__(self, connection: Connection, place: Place) -> None:
        self._cursor = psycopg.RawCursor(connection)
        self._place = place
        self.fetchall = self._cursor.fetchall

    @property
    def description(self) -> Any:
        """Something where there are rows to fetch, else None."""
        result = self._cursor.pgresult
        return None if result is None or not result.nfields else result

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def execute(self, sql: str, params: Any) -> Any:
        text, names = self._place.number(sql)
        return self._cursor.execute(
            text, [params[name] for name in names] or None, prepare=self._place.is_prepared(sql)
        )

    def executemany(self, sql: str, rows: Any) -> Any:
        text, names = self._place.number(sql)
        return self._cursor.executemany(text, [[row[name] for name in names] for row in rows])


def _defaults(url: str) -> dict[str, Any]:
    """What a connection is opened with, unless the URL says otherwise."""
    given = urlsplit(url).query
    wanted = {
        "application_name": "drumline",
        "connect_timeout": CONNECT_PATIENCE,
        # A server that vanished without a word is missed within fifteen seconds.
        "keepalives_idle": 5,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
    }
    return {name: value for name, value in wanted.items() if f"{name}=" not in given}


def is_pooled(connection: Connection) -> bool:
    """Whether a pooler stands between: then the process that answers is not the one that was introduced."""
    ((pid,),) = connection.execute("select pg_backend_pid()").fetchall()
    return bool(pid != connection.info.backend_pid)


def is_unprepared(error: BaseException) -> bool:
    """Whether a prepared statement was not there, or was somebody else's."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _UNPREPARED


def is_outdated(error: BaseException) -> bool:
    """Whether a prepared statement was made for a schema that has changed since."""
    return isinstance(error, psycopg.errors.FeatureNotSupported) and "cached plan" in str(error)


def is_repeatable(error: BaseException) -> bool:
    """Whether the step was undone only because of a neighbour, and may be taken anew at once."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _REPEATABLE


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn the driver's exceptions into the store's."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, where) from error


def translate(error: Exception, where: str) -> StoreError:
    """What the driver's exception means for a store."""
    state = getattr(error, "sqlstate", None) or ""
    said = str(error).strip()
    for code, advice in _ADVICE.items():
        if state.startswith(code):
            return StoreUnusable(f"{where}: {advice} ({said})")
    if state in _FOREIGN_SCHEMA:
        return SchemaMismatch(f"{where}: the schema is not this version's: run `drumline migrate` ({said})")
    if state in _AWAY or state in _REPEATABLE or state.startswith("08"):
        return StoreUnreachable(f"{where}: the server cannot do this now: try again ({said})")
    if not state and _REFUSED.search(said):
        return StoreUnusable(f"{where}: the server refuses the connection: look at the URL ({said})")
    if not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnreachable(f"{where}: the server is out of reach: try again ({said})")
    return StoreError(f"{where}: {said}")
