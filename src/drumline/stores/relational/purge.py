"""purge, but for jobs: forget what has outlived its time, but not what protects a tick from firing twice."""

from __future__ import annotations

from drumline.model.instant import millis
from drumline.model.query import Keep
from drumline.model.schedule import start_epoch
from drumline.stores.relational.ways import S, Ways
from drumline.stores.statements import Operation, Statement

__all__ = ["purge_records"]

# In one slice: each is locked until its end, and cannot fire.
_MOST_LEDGERS = 20


def purge_records(ways: Ways[S], step: S, keep: Keep, limit: int) -> Operation[int]:
    """Forget a slice of what was recorded beside jobs; how many rows."""
    room = limit
    room -= yield from _purge_ticks(ways, step, keep, room)
    ages = {
        "forget_audit": millis(keep.audit),
        "forget_series": millis(keep.series),
        "forget_replicas": millis(keep.replicas),
        "forget_keys": 0,
    }
    for name, age in ages.items():
        if room > 0:
            rows = yield Statement(ways.sql[name], {"oldest": step.now - age, "limit": room})
            room -= len(rows)
    return limit - room


def _purge_ticks(ways: Ways[S], step: S, keep: Keep, limit: int) -> Operation[int]:
    room = limit
    which = {"newest": keep.newest_ticks, "oldest": step.now - millis(keep.ticks)}
    schedules = yield Statement(ways.sql["find_ledgers"], {**which, "limit": _MOST_LEDGERS})
    for (schedule,) in schedules:
        if room <= 0:
            break
        # Nobody fires between what is forgotten here and what is remembered of it.
        yield from ways.lock_schedules([schedule])
        rows = yield Statement(ways.sql["forget_old_ticks"], {**which, "schedule": schedule, "limit": room})
        if rows:
            start = max(start_epoch(replica, mark) for replica, mark, _ in rows)
            mark = {"schedule": schedule, "to": max(row[2] for row in rows), "start": start}
            yield Statement(ways.sql["remember_purge"], mark)
            room -= len(rows)
    return limit - room
