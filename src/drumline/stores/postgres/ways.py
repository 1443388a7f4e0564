"""This store's statements and ways, for the operations that it shares with others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drumline.model.job import Job
from drumline.stores.files import read_statements
from drumline.stores.postgres.ending import cancel_waiting, lock_action, lock_jobs, lock_schedules
from drumline.stores.postgres.produce import add, replace, take_keys
from drumline.stores.postgres.rows import from_text, to_text
from drumline.stores.postgres.step import Step
from drumline.stores.relational.ways import Ways
from drumline.stores.rows import as_job
from drumline.stores.statements import Operation, Row, Statement

__all__ = ["WAYS"]

_SQL = read_statements(
    __package__, "beat.sql", "listing.sql", "operate.sql", "produce.sql", "purge.sql", "read.sql", "schedule.sql"
)
_ARGS, _RESULT = 6, 25


def _revive(row: Mapping[str, Any]) -> Operation[None]:
    yield Statement(_SQL["revive"], row)


def _forget(_: Step, job_id: str) -> Operation[bool]:
    ((count,),) = yield Statement(_SQL["forget_job"], {"id": job_id})
    return bool(count)


def _read_job(row: Row) -> Job:
    args, result = from_text(row[_ARGS]), row[_RESULT]
    texts = (*row[:_ARGS], args, *row[_ARGS + 1 : _RESULT], None if result is None else from_text(result))
    return as_job((*texts, *row[_RESULT + 1 : -1]), row[-1])


WAYS = Ways[Step](
    sql=_SQL,
    lock_schedules=lock_schedules,
    lock_jobs=lock_jobs,
    lock_action=lock_action,
    add=add,
    take_keys=take_keys,
    replace=replace,
    cancel_waiting=cancel_waiting,
    revive=_revive,
    forget=_forget,
    write_args=to_text,
    read_job=_read_job,
)
