"""Queues as people look at them: how deep, how old, how soon empty, and whether anybody serves them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from drumline.model.options import PRIVATE
from drumline.model.query import By, Count, SeriesPoint
from drumline.model.replica import Replica
from drumline.policy.serving import find_unserved, live_workers, serves

__all__ = ["PACE_OVER", "Depth", "measure_depths"]

# The pace of a queue is that of its last few minutes.
PACE_OVER = timedelta(minutes=5)


class Depth(msgspec.Struct, frozen=True, kw_only=True):
    """One queue."""

    name: str
    ready: int
    delayed: int
    running: int
    dead: int
    # Since when the oldest ready job is due.
    oldest: datetime | None
    # Attempts ended a minute, of late.
    pace: float
    paused: By | None
    # Why no job of it, or of some task in it, can begin; empty if all can.
    unserved: str
    # How many live workers take jobs from it.
    served_by: int

    @property
    def clears_in(self) -> timedelta | None:
        """When the ready jobs have begun, at the pace of late; None where that cannot be told."""
        if not self.ready or self.pace <= 0 or self.paused or self.unserved:
            return None
        return timedelta(minutes=self.ready / self.pace)

    @property
    def never_clears(self) -> bool:
        return bool(self.ready and (self.paused or self.unserved))


def measure_depths(
    counts: Sequence[Count],
    workers: Sequence[Replica],
    paused: Mapping[str, By],
    recent: Iterable[SeriesPoint],
) -> list[Depth]:
    """Every queue that has or had jobs, is paused or is served, by name. `recent`: the points of the last minutes."""
    live = live_workers(workers)
    served = {queue for worker in live for queue in worker.info.queues}
    names = {count.queue for count in counts} | paused.keys() | served
    ended: dict[str, int] = {}
    for point in recent:
        ended[point.queue] = ended.get(point.queue, 0) + point.done + point.failed + point.cancelled
    minutes = PACE_OVER / timedelta(minutes=1)
    return [
        _measure(
            name, [row for row in counts if row.queue == name], live, paused.get(name), ended.get(name, 0) / minutes
        )
        for name in sorted(names)
        if not name.startswith(PRIVATE)
    ]


def _measure(name: str, rows: Sequence[Count], live: Sequence[Replica], paused: By | None, pace: float) -> Depth:
    return Depth(
        name=name,
        ready=sum(row.ready for row in rows),
        delayed=sum(row.delayed for row in rows),
        running=sum(row.running for row in rows),
        dead=sum(row.dead for row in rows),
        oldest=min((row.oldest_ready for row in rows if row.oldest_ready), default=None),
        pace=pace,
        paused=paused,
        unserved=find_unserved(name, rows, live),
        served_by=sum(serves(worker, name) for worker in live),
    )
