"""This store's statements and ways, for the operations that it shares with others.

Nobody else writes during a step: there is nothing to lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drumline.model.job import Job
from drumline.stores.files import read_statements
from drumline.stores.relational.ways import Ways
from drumline.stores.rows import as_job
from drumline.stores.sqlite.ending import cancel_waiting
from drumline.stores.sqlite.forget import forget
from drumline.stores.sqlite.produce import add, find_holders, replace
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Operation, Row, Statement

__all__ = ["WAYS"]

_SQL = read_statements(
    __package__, "beat.sql", "listing.sql", "operate.sql", "produce.sql", "purge.sql", "read.sql", "schedule.sql"
)


def _lock(_: str | Iterable[str]) -> Operation[None]:
    yield from ()


def _revive(row: Mapping[str, Any]) -> Operation[None]:
    yield Statement(_SQL["revive"], row)
    yield Statement(_SQL["drop_ended"], row)


def _read_job(row: Row) -> Job:
    return as_job(row[:-1], row[-1])


WAYS = Ways[Step](
    sql=_SQL,
    lock_schedules=_lock,
    lock_jobs=_lock,
    lock_action=_lock,
    add=add,
    take_keys=find_holders,
    replace=replace,
    cancel_waiting=cancel_waiting,
    revive=_revive,
    forget=forget,
    write_args=bytes,
    read_job=_read_job,
)
