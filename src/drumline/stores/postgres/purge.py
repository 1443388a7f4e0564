"""purge: forget what has outlived its retention, a slice at a time, but not what protects a tick from firing twice.

It also folds what the steps have appended to the counts: somebody calls it every minute.
"""

from __future__ import annotations

from collections.abc import Sequence

from drumline.model.instant import millis
from drumline.model.query import HISTOGRAM_MILLIS, Keep
from drumline.model.schedule import start_epoch
from drumline.stores.files import read_statements
from drumline.stores.postgres.ending import lock_schedules
from drumline.stores.postgres.step import Step
from drumline.stores.statements import Operation, Statement

__all__ = ["fold", "forget", "purge"]

_SQL = read_statements(__package__, "purge.sql")
_TOKEN_LIFE = 60_000


def purge(step: Step, keep: Keep, limit: int) -> Operation[int]:
    ((count,),) = yield Statement(_SQL["forget_old_jobs"], {"limit": limit})
    room: int = limit - count
    room -= yield from _purge_ticks(step, keep, room)
    ages = {
        "forget_audit": millis(keep.audit),
        "forget_series": millis(keep.series),
        "forget_replicas": millis(keep.replicas),
        "forget_keys": 0,
    }
    for name, age in ages.items():
        if room > 0:
            rows = yield Statement(_SQL[name], {"oldest": step.now - age, "limit": room})
            room -= len(rows)
    yield Statement(_SQL["forget_tokens"], {"oldest": step.now - _TOKEN_LIFE})
    yield Statement(_SQL["forget_watches"], {"oldest": step.now})
    return limit - room


def fold(namespace: str) -> Operation[None]:
    """Add what was appended to the counts, unless somebody else does it just now."""
    ((is_ours,),) = yield Statement(_SQL["lock_flow"], {"what": f"{namespace} flow"})
    if is_ours:
        yield Statement(_SQL["fold"], {"last": len(HISTOGRAM_MILLIS)})


def forget(ids: Sequence[str]) -> Operation[int]:
    """Forget ended jobs; how many there were."""
    ((count,),) = yield Statement(_SQL["forget_jobs"], {"ids": list(ids)})
    forgotten: int = count
    return forgotten


def _purge_ticks(step: Step, keep: Keep, limit: int) -> Operation[int]:
    room = limit
    schedules = yield Statement(_SQL["find_ledgers"])
    for (schedule,) in schedules:
        if room <= 0:
            break
        # Nobody fires between what is forgotten here and what is remembered of it.
        yield from lock_schedules([schedule])
        which = {"schedule": schedule, "newest": keep.newest_ticks, "oldest": step.now - millis(keep.ticks)}
        rows = yield Statement(_SQL["forget_old_ticks"], {**which, "limit": room})
        if rows:
            start = max(start_epoch(replica, mark) for replica, mark, _ in rows)
            mark = {"schedule": schedule, "to": max(row[2] for row in rows), "start": start}
            yield Statement(_SQL["remember_purge"], mark)
            room -= len(rows)
    return limit - room
