"""The ledger as people read it: a line for each tick, those of one per_replica instant together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from drumline.client import Client
from drumline.model.replica import Replica, ReplicaState, Role
from drumline.model.schedule import Decision, ScheduleStatus, Tick
from drumline.model.view import instant_text, seconds, span_text, tick_json
from drumline.policy.held import FOREVER, Span, count_instants, count_paused, is_instant, read_history, silence
from drumline.schedules import Schedules

__all__ = ["Entry", "read_entries"]

# Rows beyond those shown, in which replicas are looked for that should have had a tick.
LOOK_BACK = 500
# A replica that has only begun need not have seen the schedule yet.
SETTLING = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger."""

    # One, or of a per_replica schedule those of one instant.
    rows: tuple[Tick, ...]
    # How many replicas should have one.
    replicas: int | None = None
    # Of a row that tells of a pause or an orphaning: its time, and how many instants that had, if it is known.
    span: Span | None = None
    count: int | None = None

    def as_json(self) -> list[dict[str, Any]]:
        """The rows as they are stored, and what can be worked out of each."""
        return [{**tick_json(row), **self._worked_out(row)} for row in self.rows]

    def cells(self) -> tuple[object, ...]:
        """What a person wants to know, in the order of the table's columns."""
        row = self.rows[0]
        late = max(map(_lateness, self.rows), default=None, key=lambda span: span or timedelta())
        run_times = [row.run_time for row in self.rows if row.run_time is not None]
        return (
            instant_text(row.instant),
            row.schedule,
            ", ".join(dict.fromkeys(row.decision.value for row in self.rows)),
            row.by if self.replicas is None else f"{len(self.rows)} of {self.replicas} replicas",
            "" if late is None else span_text(late),
            span_text(max(run_times)) if run_times else "",
            ", ".join(dict.fromkeys(row.outcome for row in self.rows if row.outcome is not None)),
            (row.job_id or "") if self.replicas is None else "",
            "; ".join(part for part in (self._extent(), *dict.fromkeys(row.reason for row in self.rows)) if part),
        )

    def _worked_out(self, row: Tick) -> dict[str, Any]:
        late = _lateness(row)
        more: dict[str, Any] = {"lateness": None if late is None else seconds(late)}
        if self.replicas is not None:
            more["replicas"] = {"recorded": len(self.rows), "expected": self.replicas}
        if self.span is not None:
            is_open = self.span.until == FOREVER
            more["until"] = None if is_open else instant_text(self.span.until)
            # Of what goes on the number grows, and is no stored fact.
            more["count"] = None if is_open else self.count
        return more

    def _extent(self) -> str:
        """From when to when, and how many instants, where that is more than one."""
        row = self.rows[0]
        if self.span is not None:
            to = "now" if self.span.until == FOREVER else instant_text(self.span.until)
            number = "an unknown number of" if self.count is None else str(self.count)
            return f"from {instant_text(self.span.after)} to {to}, {number} instants"
        return "" if row.until is None else f"to {instant_text(row.until)}, {row.count} instants"


async def read_entries(client: Client, schedules: Schedules, name: str | None, limit: int) -> list[Entry]:
    """The newest entries, of one schedule or of all."""
    groups: dict[tuple[str, ...], list[Tick]] = {}
    left = LOOK_BACK
    async for row in schedules.ticks(name):
        groups.setdefault(_key(row), []).append(row)
        left -= len(groups) > limit
        if not left:
            break
    store = await client.store()
    shown = [*groups.values()][:limit]
    statuses = {status.schedule.name: status for status in await store.schedules()}
    fleet = _Fleet(statuses, await store.workers(), [row for group in groups.values() for row in group])
    told = {rows[0].schedule for rows in shown if rows[0].decision is Decision.ORPHANED}
    books = {schedule: [row async for row in schedules.ticks(schedule)] for schedule in told}
    now = await store.now()
    return [_enter(tuple(rows), fleet, books.get(rows[0].schedule, ()), statuses, now) for rows in shown]


def _enter(
    rows: tuple[Tick, ...],
    fleet: _Fleet,
    book: Sequence[Tick],
    statuses: Mapping[str, ScheduleStatus],
    now: datetime,
) -> Entry:
    first = rows[0]
    if _is_own(first):
        return Entry(rows, replicas=fleet.count(rows))
    if first.decision is Decision.PAUSED and first.until is not None:
        return Entry(rows, span=Span(first.instant, first.until), count=count_paused(first))
    span = silence(first, [row for row in book if row.decision is Decision.CHANGED])
    if span is None:
        return Entry(rows)
    return Entry(rows, span=span, count=count_instants(read_history(book, statuses.get(first.schedule)), span, now))


class _Fleet:
    """Who should have ticks of a per_replica schedule."""

    def __init__(
        self, statuses: Mapping[str, ScheduleStatus], replicas: Iterable[Replica], rows: Iterable[Tick]
    ) -> None:
        self._tasks = {name: status.schedule.task for name, status in statuses.items()}
        alive = (ReplicaState.RUNNING, ReplicaState.DRAINING)
        self._alive = [one for one in replicas if one.state in alive and one.info.role is not Role.SCHEDULER]
        # Of each schedule and replica, the first instant and the last.
        self._lives: dict[tuple[str, str], tuple[datetime, datetime]] = {}
        for row in filter(_is_own, rows):
            place = row.schedule, row.replica
            first, last = self._lives.get(place, (row.instant, row.instant))
            self._lives[place] = min(first, row.instant), max(last, row.until or row.instant)

    def count(self, rows: Sequence[Tick]) -> int:
        """Those who have it, those who have one before and one after it, and those who ran then and still do."""
        schedule, instant = rows[0].schedule, rows[0].instant
        task = self._tasks.get(schedule)
        through = {
            replica
            for (name, replica), (first, last) in self._lives.items()
            if name == schedule and first <= instant <= last
        }
        running = {one.info.id for one in self._alive if task in one.info.tasks and one.started_at + SETTLING < instant}
        return len({row.replica for row in rows} | through | running)


def _key(row: Tick) -> tuple[str, ...]:
    return (row.schedule, row.mark) if _is_own(row) else (row.schedule, row.mark, row.replica)


def _is_own(row: Tick) -> bool:
    """Whether other replicas have a tick of the same instant."""
    return bool(row.replica) and is_instant(row)


def _lateness(row: Tick) -> timedelta | None:
    """How long after the instant it was decided; a start is never late, and many instants have no one lateness."""
    return row.recorded_at - row.instant if is_instant(row) and row.until is None else None
