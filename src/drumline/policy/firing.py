"""From what was decided to what a store is asked to record: a firing, with its job where there is one.

A tick's job has an id that every replica works out alike from the schedule and the instant, so that even two records
of one tick could not make two jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b
from uuid import UUID

import msgspec

from drumline.model.instant import to_millis
from drumline.model.job import NewJob, Source
from drumline.model.schedule import Coordination, Decision, Firing, Schedule, ScheduleStatus
from drumline.policy.due import Ruling, jittered

__all__ = [
    "BACKFILLED",
    "backfill_firing",
    "orphan_firing",
    "private_queue",
    "start_firing",
    "tick_firings",
    "trigger_firing",
]

# The reason of a row that somebody asked for.
BACKFILLED = "backfilled"

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62
_RANDOM_BITS = (0xFFF << 64) | ((1 << 62) - 1)


def private_queue(replica: str) -> str:
    """Where a replica's own ticks wait: nobody else serves it."""
    return f"@{replica}"


def tick_firings(status: ScheduleStatus, rulings: tuple[Ruling, ...], replica: str) -> Iterator[Firing]:
    """What to record of the rulings, on behalf of this replica."""
    schedule = status.schedule
    owner = replica if schedule.coordination is Coordination.PER_REPLICA else ""
    for ruling in rulings:
        mark = str(to_millis(ruling.instant))
        is_fired = ruling.decision is Decision.FIRED
        yield Firing(
            schedule=schedule.name,
            mark=mark if ruling.until is None else f"{mark}+",
            instant=ruling.instant,
            decision=ruling.decision,
            reason=ruling.reason,
            replica=owner,
            job=_tick_job(schedule, mark, ruling.instant, owner) if is_fired else None,
            until=ruling.until,
            count=ruling.count,
            version=status.version,
        )


def start_firing(schedule: Schedule, epoch: int, instant: datetime, replica: str) -> Firing:
    """The tick of a fleet's start, or of the start of this replica's life."""
    owner = replica if schedule.coordination is Coordination.PER_REPLICA else ""
    mark = "start:life" if owner else f"start:{epoch}"
    return Firing(
        schedule=schedule.name,
        mark=mark,
        instant=instant,
        reason="start of the replica" if owner else "start of the fleet",
        replica=owner,
        job=_tick_job(schedule, mark, instant, owner),
    )


def trigger_firing(schedule: Schedule, instant: datetime, job_id: str, replica: str = "") -> Firing:
    """A run that a person asks for now, with the schedule's own arguments and options."""
    job = msgspec.structs.replace(
        _tick_job(schedule, job_id, instant, replica), id=job_id, source=Source.MANUAL, start=None, tick=None
    )
    return Firing(
        schedule=schedule.name, mark=job_id, instant=instant, decision=Decision.TRIGGER, replica=replica, job=job
    )


def backfill_firing(schedule: Schedule, instant: datetime) -> Firing:
    """An instant that has passed, to be fired unless it was."""
    mark = str(to_millis(instant))
    return Firing(
        schedule=schedule.name,
        mark=mark,
        instant=instant,
        decision=Decision.BACKFILL,
        reason=BACKFILLED,
        job=_tick_job(schedule, mark, instant, ""),
    )


def orphan_firing(status: ScheduleStatus) -> Firing:
    """The row that tells that nobody declares the schedule any more, since its last tick."""
    return Firing(
        schedule=status.schedule.name,
        mark=f"orphaned:{status.version}",
        instant=status.last_tick,
        decision=Decision.ORPHANED,
        reason="no live replica declares it",
        count=0,
        version=status.version,
    )


def _tick_job(schedule: Schedule, mark: str, instant: datetime, owner: str) -> NewJob:
    options = schedule.options
    if owner:
        options = msgspec.structs.replace(options, queue=private_queue(owner))
    due_at = jittered(schedule, instant)
    return NewJob(
        id=_job_id(f"{schedule.name}/{mark}/{owner}", instant),
        task=schedule.task,
        args=schedule.args,
        options=options,
        start=None if due_at == instant else due_at,
        tags=schedule.tags,
        meta=schedule.meta,
        source=Source.SCHEDULED,
        origin=f"schedule {schedule.name}",
        schedule=schedule.name,
        tick=instant,
    )


def _job_id(tick: str, instant: datetime) -> str:
    """A UUIDv7 of the instant whose random part is the tick's hash."""
    digest = int.from_bytes(blake2b(tick.encode(), digest_size=16).digest()) & _RANDOM_BITS
    return str(UUID(int=max(to_millis(instant), 0) << 80 | _VERSION_7 | _VARIANT | digest))
