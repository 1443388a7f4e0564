"""Statements and migrations in their own files, and the runner that brings a schema up to date."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from drumline.errors import SchemaMismatch
from drumline.stores.statements import Operation, Statement

__all__ = [
    "Migration",
    "MigrationStatements",
    "check_known",
    "check_schema",
    "facts_of",
    "find_missing",
    "find_served",
    "migrate",
    "read_migrations",
    "read_statements",
    "split",
]

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
# The body of a function stands between two pairs of dollars.
_STATEMENT = re.compile(r"((?:\$\$.*?\$\$|.)*?)(?:;[ \t]*(?:--[^\n]*)?(?:\n|\Z)|\Z)", re.DOTALL)
_MIGRATION = re.compile(r"(\d{4})_(\w+)\.sql")
_SERVES = re.compile(r"^-- serves: (\d+)$", re.MULTILINE)


class Migration(NamedTuple):
    """One numbered step of the schema."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def serves(self) -> int:
        """The oldest version whose code goes on with this schema: its own, unless a line says `-- serves: …`."""
        found = _SERVES.search(self.text)
        return self.version if found is None else int(found[1])


class MigrationStatements(NamedTuple):
    """How a store keeps the list of its migrations."""

    # Makes the table of applied migrations, if there is none.
    prepare: str
    # Answers version and checksum of each.
    applied: str
    # Takes :version, :name, :checksum, :serves and :at.
    record: str
    # Answers the oldest version that all migrations after :version serve; empty where none serves an older one.
    serves: str = ""


def read_statements(package: str, *names: str) -> Mapping[str, str]:
    """The named statements of these files: each begins with a line `-- name: …`."""
    found: dict[str, str] = {}
    for name in names:
        text = files(package).joinpath(name).read_text(encoding="utf-8")
        parts = _NAME.split(text)[1:]
        for title, body in zip(parts[::2], parts[1::2], strict=True):
            if title in found:
                raise ValueError(f"{package}: two statements are named {title}")
            found[title] = body.strip().removesuffix(";")
    return found


def read_migrations(package: str) -> list[Migration]:
    """The migrations of a store, in their order."""
    found = []
    for item in files(package).joinpath("migrations").iterdir():
        match = _MIGRATION.fullmatch(item.name)
        if match:
            found.append(Migration(int(match[1]), match[2], item.read_text(encoding="utf-8")))
    return sorted(found)


def check_schema(applied: Mapping[int, str], known: Sequence[Migration], where: str, serves: int | None = None) -> None:
    """Refuse a schema that these migrations did not make, or made only in part; `serves` as `find_served` tells it."""
    check_known(applied, known, where, serves)
    newest, ours = max(applied, default=0), known[-1].version
    if newest < ours:
        state = f"has schema version {newest}" if newest else "holds no Drumline tables"
        raise SchemaMismatch(f"{where} {state}, and this Drumline needs {ours}: run `drumline migrate`")


def migrate(
    known: Sequence[Migration], statements: MigrationStatements, where: str, extra: Mapping[str, Any]
) -> Operation[None]:
    """Apply what is missing, inside the transaction of the caller, who holds the lock."""
    yield Statement(statements.prepare)
    rows = yield Statement(statements.applied)
    applied: dict[int, str] = dict(rows)
    check_known(applied, known, where, (yield from find_served(applied, known, statements)))
    for migration in find_missing(applied, known):
        for sql in split(migration.text):
            yield Statement(sql)
        yield Statement(statements.record, {**facts_of(migration), **extra})


def find_missing(applied: Mapping[int, str], known: Sequence[Migration]) -> list[Migration]:
    """The migrations that the schema has not seen."""
    return [migration for migration in known if migration.version not in applied]


def facts_of(migration: Migration) -> dict[str, Any]:
    """What the list of migrations keeps of one."""
    return {
        "version": migration.version,
        "name": migration.name,
        "checksum": migration.checksum,
        "serves": migration.serves,
    }


def find_served(
    applied: Mapping[int, str], known: Sequence[Migration], statements: MigrationStatements
) -> Operation[int | None]:
    """The oldest version that a newer schema serves; None where it is not newer, or does not tell."""
    ours = known[-1].version
    if not statements.serves or max(applied, default=0) <= ours:
        return None
    ((oldest,),) = yield Statement(statements.serves, {"version": ours})
    served: int = oldest
    return served


def check_known(applied: Mapping[int, str], known: Sequence[Migration], where: str, serves: int | None = None) -> None:
    """Refuse a newer schema that does not serve this code, and one that another build has made."""
    newest, ours = max(applied, default=0), known[-1].version
    if newest > ours and (serves is None or serves > ours):
        raise SchemaMismatch(
            f"{where} has schema version {newest}, but this Drumline knows only {ours}: upgrade Drumline"
        )
    for migration in known:
        if applied.get(migration.version, migration.checksum) != migration.checksum:
            raise SchemaMismatch(
                f"{where}: migration {migration.version} ({migration.name}) differs from the one that made it:"
                " another build of Drumline wrote it, use that one"
            )


def split(text: str) -> Iterator[str]:
    """The statements of a migration: each ends with a semicolon at the end of a line, outside a function's body."""
    for part in _STATEMENT.findall(text):
        if part.strip():
            yield part.strip()
