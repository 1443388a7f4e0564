"""The fleet at a glance: jobs by state, queue and task, the pace of the last hour, schedules, replicas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from drumline.model.options import PRIVATE
from drumline.model.query import Count, Counts, SeriesPoint, Tally
from drumline.model.replica import Replica, ReplicaState
from drumline.model.schedule import ScheduleStatus
from drumline.policy.lateness import late_by
from drumline.policy.minutes import merge, quantile

__all__ = ["LAST_HOUR", "Fleet", "Line", "Pace", "ScheduleNumbers", "Stats", "last_hour", "sum_up"]

LAST_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of the store."""

    counts: Sequence[Count]
    # The points of the last hour.
    points: Sequence[SeriesPoint]
    schedules: Sequence[ScheduleStatus]
    replicas: Sequence[Replica]
    # Names of queues.
    paused: Collection[str]
    now: datetime


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts ended within the last hour; spans in seconds, None where nothing ended."""

    done: int
    failed: int
    cancelled: int
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One queue or task."""

    name: str
    tally: Tally
    pace: Pace
    # Since when the one that has been ready for longest is due.
    oldest_ready: datetime | None
    is_paused: bool = False


class ScheduleNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """How many schedules there are, and how many do not fire as they should."""

    total: int
    paused: int
    orphaned: int
    late: int


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. Private queues are in the sums and in the tasks, and no lines of their own."""

    jobs: Tally
    pace: Pace
    queues: list[Line]
    tasks: list[Line]
    schedules: ScheduleNumbers
    # Replicas by state.
    replicas: dict[str, int]
    # Of the replicas that run: how many jobs they may run at once.
    slots: int
    start: datetime
    end: datetime


def last_hour(now: datetime) -> tuple[datetime, datetime]:
    """The whole minutes of the last hour, with the one that has begun."""
    end = now.replace(second=0, microsecond=0) + _MINUTE
    return end - LAST_HOUR, end


def sum_up(fleet: Fleet) -> Stats:
    """The numbers of what was read."""
    counts = Counts(list(fleet.counts))
    queues = {count.queue for count in counts} | set(fleet.paused)
    running = [replica for replica in fleet.replicas if replica.state is ReplicaState.RUNNING]
    start, end = last_hour(fleet.now)
    return Stats(
        jobs=counts.total,
        pace=_pace(fleet.points),
        queues=[_line(fleet, name, _queue_of) for name in sorted(queues) if not name.startswith(PRIVATE)],
        tasks=[_line(fleet, name, _task_of) for name in sorted({count.task for count in counts})],
        schedules=_count_schedules(fleet.schedules, fleet.now),
        replicas={
            state.value: sum(replica.state is state for replica in fleet.replicas)
            for state in ReplicaState
            if state is not ReplicaState.GONE
        },
        slots=sum(replica.info.slots for replica in running),
        start=start,
        end=end,
    )


def _queue_of(row: Count | SeriesPoint) -> str:
    return row.queue


def _task_of(row: Count | SeriesPoint) -> str:
    return row.task


def _line(fleet: Fleet, name: str, name_of: Callable[[Count | SeriesPoint], str]) -> Line:
    rows = [count for count in fleet.counts if name_of(count) == name]
    return Line(
        name=name,
        tally=Counts(rows).total,
        pace=_pace([point for point in fleet.points if name_of(point) == name]),
        oldest_ready=min((row.oldest_ready for row in rows if row.oldest_ready), default=None),
        is_paused=name_of is _queue_of and name in fleet.paused,
    )


def _pace(points: Sequence[SeriesPoint]) -> Pace:
    wait, run = merge(point.wait for point in points), merge(point.run for point in points)
    return Pace(
        done=sum(point.done for point in points),
        failed=sum(point.failed for point in points),
        cancelled=sum(point.cancelled for point in points),
        wait_p50=_seconds(quantile(wait, 0.5)),
        wait_p95=_seconds(quantile(wait, 0.95)),
        run_p50=_seconds(quantile(run, 0.5)),
        run_p95=_seconds(quantile(run, 0.95)),
    )


def _seconds(millis: float | None) -> float | None:
    # A bucket is not finer than a millisecond.
    return None if millis is None else round(millis / 1000, 3)


def _count_schedules(statuses: Iterable[ScheduleStatus], now: datetime) -> ScheduleNumbers:
    known = list(statuses)
    return ScheduleNumbers(
        total=len(known),
        paused=sum(status.paused_at is not None for status in known),
        orphaned=sum(status.orphaned for status in known),
        late=sum(late_by(status, now) is not None for status in known),
    )
