"""purge: forget what has outlived its retention, a slice at a time, but not what protects a tick from firing twice."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from drumline.model.instant import millis
from drumline.model.query import Keep
from drumline.model.schedule import start_epoch
from drumline.stores.files import read_statements
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Row, Statement

__all__ = ["forget", "purge"]

_SQL = read_statements(__package__, "purge.sql")
_HINT_LIFE = 24 * 3600 * 1000
_tags = msgspec.json.Decoder(tuple[str, ...])


def purge(step: Step, keep: Keep, limit: int) -> Operation[int]:
    room = limit
    rows = yield Statement(_SQL["find_old_jobs"], {"now": step.now, "limit": room})
    yield from forget(step, rows)
    room -= len(rows)
    room -= yield from _purge_ticks(step, keep, room)
    ages = {
        "forget_audit": millis(keep.audit),
        "forget_series": millis(keep.series),
        "forget_replicas": millis(keep.replicas),
        "forget_keys": 0,
    }
    for name, age in ages.items():
        if room > 0:
            room -= yield Many(_SQL[name], [{"oldest": step.now - age, "limit": room}])
    yield Statement(_SQL["forget_hints"], {"oldest": step.now - _HINT_LIFE})
    return limit - room


def forget(step: Step, jobs: Sequence[Row]) -> Operation[None]:
    """Forget ended jobs, given as rows of `find_old_jobs`."""
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


def _purge_ticks(step: Step, keep: Keep, limit: int) -> Operation[int]:
    room = limit
    schedules = yield Statement(_SQL["find_ledgers"])
    for (schedule,) in schedules:
        if room <= 0:
            break
        which = {"schedule": schedule, "newest": keep.newest_ticks, "oldest": step.now - millis(keep.ticks)}
        rows = yield Statement(_SQL["find_old_ticks"], {**which, "limit": room})
        if rows:
            places = [{"schedule": name, "replica": replica, "mark": mark} for name, replica, mark, _ in rows]
            yield Many(_SQL["forget_tick"], places)
            start = max(start_epoch(replica, mark) for _, replica, mark, _ in rows)
            mark = {"schedule": schedule, "to": max(row[3] for row in rows), "start": start}
            yield Statement(_SQL["remember_purge"], mark)
            room -= len(rows)
    return limit - room
