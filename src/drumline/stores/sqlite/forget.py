"""How ended jobs are forgotten: with their log, and without a trace in tags and counts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from drumline.stores.files import read_statements
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Row, Statement

__all__ = ["forget", "forget_old"]

_SQL = read_statements(__package__, "forget.sql")
_tags = msgspec.json.Decoder(tuple[str, ...])


def forget(step: Step, job_id: str) -> Operation[bool]:
    """Forget an ended job, and say whether there was one."""
    rows = yield Statement(_SQL["find_old_job"], {"id": job_id})
    yield from _forget(step, rows)
    return bool(rows)


def forget_old(step: Step, limit: int) -> Operation[int]:
    """Forget a slice of the jobs that have outlived their retention; how many."""
    rows = yield Statement(_SQL["find_old_jobs"], {"now": step.now, "limit": limit})
    yield from _forget(step, rows)
    return len(rows)


def _forget(step: Step, jobs: Sequence[Row]) -> Operation[None]:
    if not jobs:
        return
    ids = [{"id": job_id} for job_id, *_ in jobs]
    yield Many(_SQL["forget_job"], ids)
    yield Many(_SQL["forget_lines"], ids)
    tags = [
        {"tag": tag, "created": created, "job": job_id}
        for job_id, _, _, _, created, text in jobs
        if text
        for tag in _tags.decode(text)
    ]
    if tags:
        yield Many(_SQL["forget_tag"], tags)
    for _, queue, task, state, _, _ in jobs:
        step.move(queue, task, state, None)
