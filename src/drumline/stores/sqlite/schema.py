"""What the schema of a file lacks, found without a change to the file."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from drumline.clock import fresh_id
from drumline.model.schema import Pending
from drumline.stores.files import (
    Migration,
    check_known,
    facts_of,
    find_missing,
    read_migrations,
    read_statements,
)
from drumline.stores.sqlite.connect import translated

__all__ = ["find_pending"]

_SQL = read_statements(__package__, "connect.sql")
_MIGRATIONS = read_migrations(__package__)
_PARAMETER = re.compile(r":(\w+)")
_NOW = "cast(strftime('%s', 'now') as integer) * 1000"


def find_pending(path: Path) -> list[Pending]:
    """The migrations that the file has not seen, each with what does it by hand."""
    applied = _read_applied(path) if path.exists() else {}
    check_known(applied, _MIGRATIONS, str(path))
    return [Pending(one.version, one.name, _script(one)) for one in find_missing(applied, _MIGRATIONS)]


def _read_applied(path: Path) -> dict[int, str]:
    with translated(path), closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        has_list = connection.execute(_SQL["has_migrations"]).fetchall()
        return dict(connection.execute(_SQL["applied"]).fetchall()) if has_list else {}


def _script(migration: Migration) -> str:
    is_first = migration is _MIGRATIONS[0]
    before = [_SQL["prepare"]] if is_first else []
    facts = {name: _quote(value) for name, value in facts_of(migration).items()}
    after = [_filled(_SQL["record"], {**facts, "at": _NOW})]
    if is_first:
        after.append(_filled(_SQL["name_store"], {"id": _quote(fresh_id())}))
    return "\n\n".join([*(sql + ";" for sql in before), migration.text.strip(), *(sql + ";" for sql in after)])


def _filled(sql: str, values: Mapping[str, str]) -> str:
    return _PARAMETER.sub(lambda match: values[match[1]], sql)


def _quote(value: Any) -> str:
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
