"""jobs, counts, series, ticks, workers, logs and audit, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from drumline.errors import BadOption
from drumline.model.instant import to_millis
from drumline.model.job import Job, JobState, LogLine
from drumline.model.query import AuditRow, Count, JobFilter, Page, SeriesPoint
from drumline.model.replica import Replica, ReplicaState
from drumline.model.schedule import Tick
from drumline.stores.memory.state import Member, Record, State, Total

__all__ = ["audit", "counts", "jobs", "logs", "series", "ticks", "workers"]

T = TypeVar("T")


def jobs(state: State, now: datetime, where: JobFilter, after: str | None, limit: int) -> Page[Job]:
    if where.ids is not None:
        asked = [state.jobs[job_id] for job_id in where.ids if job_id in state.jobs]
        return Page([record.as_job(now) for record in asked if _matches(record, where, now)])
    found = (record for record in state.jobs.values() if _matches(record, where, now))
    page = _page(found, lambda record: (to_millis(record.created_at), record.id), after, limit)
    return Page([record.as_job(now) for record in page.items], page.next)


def counts(state: State, now: datetime) -> list[Count]:
    tallies: dict[tuple[str, str], dict[str, int]] = {place: {} for place in state.totals}
    oldest: dict[tuple[str, str], datetime] = {}
    for record in state.jobs.values():
        place = (record.options.queue, record.task)
        tally = tallies.setdefault(place, {})
        shown = JobState.RUNNING if record.state is JobState.RUNNING else record.reads_as(now)
        tally[shown.value] = tally.get(shown.value, 0) + 1
        if shown is JobState.READY:
            oldest[place] = min(record.due_at, oldest.get(place, record.due_at))
    rows = []
    for (queue, task), tally in sorted(tallies.items()):
        total = state.totals.get((queue, task), Total())
        known = {"total_done": total.done, "total_failures": total.failures}
        since = oldest.get((queue, task))
        rows.append(Count(queue=queue, task=task, last_error=total.last_error, oldest_ready=since, **tally, **known))
    return rows


def series(state: State, start: datetime, end: datetime) -> list[SeriesPoint]:
    return [point for place, point in sorted(state.series.items()) if start <= place[0] < end]


def ticks(state: State, schedule: str | None, after: str | None, limit: int) -> Page[Tick]:
    found = (tick for tick in state.ticks.values() if schedule is None or tick.schedule == schedule)

    def order(tick: Tick) -> tuple[int, str]:
        return to_millis(tick.recorded_at), f"{to_millis(tick.instant):015d} {tick.schedule} {tick.replica} {tick.mark}"

    return _page(found, order, after, limit)


def workers(state: State, now: datetime) -> list[Replica]:
    seen: dict[str, int] = {}
    found = []
    for member in sorted(state.members.values(), key=lambda member: (member.started_at, member.info.id)):
        shown = member.info.name
        if member.is_alive(now):
            seen[shown] = seen.get(shown, 0) + 1
            if seen[shown] > 1:
                shown = f"{shown}#{seen[shown]}"
        found.append(_replica(state, now, member, shown))
    return found


def logs(state: State, job_id: str, after: int, limit: int) -> list[LogLine]:
    return list(state.logs.get(job_id, {}).values())[after : after + limit]


def audit(state: State, after: str | None, limit: int) -> Page[AuditRow]:
    return _page(state.audit.values(), lambda row: (to_millis(row.at), row.id), after, limit)


def _page(items: Iterable[T], order: Callable[[T], tuple[int, str]], after: str | None, limit: int) -> Page[T]:
    """The `limit` newest items behind the cursor, which is the order of the last item of the page before."""
    rows = sorted(items, key=order, reverse=True)
    if after is not None:
        moment, _, rest = after.partition(" ")
        if not (moment.isascii() and moment.isdecimal()):
            raise BadOption("after", "the `next` of an earlier page", after)
        rows = [row for row in rows if order(row) < (int(moment), rest)]
    page = rows[:limit]
    more = len(rows) > limit
    return Page(page, "{} {}".format(*order(page[-1])) if more else None)


def _matches(record: Record, where: JobFilter, now: datetime) -> bool:
    return (
        _is_in(record, where.states, now)
        and _fits(where.task, record.task)
        and _fits(where.queue, record.options.queue)
        and _fits(where.key, record.key.name if record.key else None)
        and _fits(where.schedule, record.schedule)
        and _fits(where.source, record.source)
        and _fits(where.origin, record.origin)
        and all(name in record.meta and _is_same(value, record.meta[name]) for name, value in where.meta.items())
        and (where.tag is None or where.tag in record.tags)
        and (where.created_from is None or record.created_at >= where.created_from)
        and (where.created_to is None or record.created_at < where.created_to)
        and (where.error is None or where.error in (record.as_job(now).last_error or ""))
    )


def _fits(wanted: Any, actual: Any) -> bool:
    return wanted is None or wanted == actual


def _is_same(wanted: Any, actual: Any) -> bool:
    """As JSON tells them apart: 1 is not true."""
    return type(wanted) is type(actual) and wanted == actual


def _is_in(record: Record, states: frozenset[JobState], now: datetime) -> bool:
    return (
        not states
        or (record.state is JobState.RUNNING and JobState.RUNNING in states)
        or record.reads_as(now) in states
    )


def _replica(state: State, now: datetime, member: Member, shown: str) -> Replica:
    return Replica(
        info=member.info,
        shown=shown,
        state=member.info.state if member.is_alive(now) else ReplicaState.LOST,
        started_at=member.started_at,
        seen_at=member.seen_at,
        running=tuple(sorted(record.id for record in state.running.values() if record.replica == member.info.id)),
    )
