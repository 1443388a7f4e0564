"""Statements and migrations in their own files, and the runner that brings a schema up to date."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from drumline.errors import SchemaMismatch
from drumline.stores.statements import Operation, Statement

__all__ = ["Migration", "MigrationStatements", "check_schema", "migrate", "read_migrations", "read_statements"]

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
# The body of a function stands between two pairs of dollars.
_STATEMENT = re.compile(r"((?:\$\$.*?\$\$|.)*?)(?:;[ \t]*(?:--[^\n]*)?(?:\n|\Z)|\Z)", re.DOTALL)
_MIGRATION = re.compile(r"(\d{4})_(\w+)\.sql")


class Migration(NamedTuple):
    """One numbered step of the schema."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


class MigrationStatements(NamedTuple):
    """How a store keeps the list of its migrations."""

    # Makes the table of applied migrations, if there is none.
    prepare: str
    # Answers version and checksum of each.
    applied: str
    # Takes :version, :name, :checksum and :at.
    record: str


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


def check_schema(applied: Mapping[int, str], known: Sequence[Migration], where: str) -> None:
    """Refuse a schema that these migrations did not make, or made only in part."""
    _check_known(applied, known, where)
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
    _check_known(applied, known, where)
    for migration in known:
        if migration.version in applied:
            continue
        for sql in _split(migration.text):
            yield Statement(sql)
        facts = {"version": migration.version, "name": migration.name, "checksum": migration.checksum}
        yield Statement(statements.record, {**facts, **extra})


def _check_known(applied: Mapping[int, str], known: Sequence[Migration], where: str) -> None:
    newest, ours = max(applied, default=0), known[-1].version
    if newest > ours:
        raise SchemaMismatch(
            f"{where} has schema version {newest}, but this Drumline knows only {ours}: upgrade Drumline"
        )
    for migration in known:
        if applied.get(migration.version, migration.checksum) != migration.checksum:
            raise SchemaMismatch(
                f"{where}: migration {migration.version} ({migration.name}) differs from the one that made it:"
                " another build of Drumline wrote it, use that one"
            )


def _split(text: str) -> Iterator[str]:
    """The statements of a migration: each ends with a semicolon at the end of a line, outside a function's body."""
    for part in _STATEMENT.findall(text):
        if part.strip():
            yield part.strip()
