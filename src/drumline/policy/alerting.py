"""What of the fleet a person should look at now: late schedules and unserved queues, by the subject of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from drumline.events import Alert, QueueRecovered, QueueUnserved, ScheduleLate, ScheduleRecovered
from drumline.model.instant import to_millis
from drumline.model.options import PRIVATE
from drumline.model.query import By, Count
from drumline.model.replica import Replica, ReplicaState
from drumline.model.schedule import ScheduleStatus
from drumline.policy.lateness import late_by
from drumline.policy.serving import find_unserved, live_workers

__all__ = ["find_late", "find_lookout", "find_unserved_queues", "recovered"]

# A deploy replaces the workers of a queue within less.
UNSERVED_AFTER = timedelta(seconds=30)


def find_lookout(replicas: Iterable[Replica]) -> str | None:
    """Which replica looks, for the whole fleet: of those that run, the one that has run for longest."""
    running = [replica for replica in replicas if replica.state is ReplicaState.RUNNING]
    first = min(running, key=lambda replica: (replica.started_at, replica.info.id), default=None)
    return None if first is None else first.info.id


def find_late(statuses: Iterable[ScheduleStatus], now: datetime) -> Iterator[ScheduleLate]:
    """The schedules that should have fired."""
    for status in statuses:
        late = late_by(status, now)
        if late is not None:
            name, due = status.schedule.name, now - late
            yield ScheduleLate(f"late:{name}:{to_millis(due)}", name, due)


def find_unserved_queues(
    counts: Iterable[Count], replicas: Sequence[Replica], paused: Mapping[str, By], now: datetime
) -> Iterator[QueueUnserved]:
    """The queues whose ready jobs cannot begin, for longer than a deploy takes."""
    live = live_workers(replicas)
    for queue, rows in groupby(sorted(counts, key=lambda row: row.queue), key=lambda row: row.queue):
        ready = [row for row in rows if row.ready]
        since = min((row.oldest_ready for row in ready if row.oldest_ready is not None), default=now)
        if queue in paused or queue.startswith(PRIVATE) or now - since < UNSERVED_AFTER:
            continue
        if why := find_unserved(queue, ready, live):
            yield QueueUnserved(f"unserved:{queue}:{to_millis(since)}", queue, since, why)


def recovered(alert: Alert) -> Alert:
    """What to tell when an alert is over."""
    match alert:
        case ScheduleLate():
            return ScheduleRecovered(alert.id, alert.schedule)
        case QueueUnserved():
            return QueueRecovered(alert.id, alert.queue)
        case _:
            raise TypeError(f"{type(alert).__name__} does not pass by itself")
