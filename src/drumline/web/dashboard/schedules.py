"""Schedules as people look at them: when, how it went, when next, by whom, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from drumline.errors import BadOption
from drumline.model.redact import Redactor
from drumline.model.replica import Replica, ReplicaState, Role
from drumline.model.schedule import Coordination, ScheduleStatus
from drumline.policy.lateness import late_by
from drumline.policy.rule import note, times
from drumline.policy.zone import zone
from drumline.web.dashboard.rules import say_schedule
from drumline.web.dashboard.strips import Strip
from drumline.web.dashboard.wording import relative, wall

__all__ = ["NextRun", "ScheduleRow", "coverage_of", "make_schedule_row", "next_runs", "passed_over"]

# A change of the clocks that lies further ahead is no news yet.
NOTES_AHEAD = timedelta(days=14)
_RUNS_LOOKED_AT = 20


class NextRun(msgspec.Struct, frozen=True, kw_only=True):
    """One instant ahead, on the wall of the schedule's zone."""

    at: datetime
    wall: str
    # The zone's own short name, where it is not UTC.
    zone: str
    note: str | None


class ScheduleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule."""

    status: ScheduleStatus
    words: str
    next_at: datetime | None
    next_wall: str
    late: timedelta | None
    # What a reader should know beside the rule: paused, orphaned, a change of the clocks.
    note: str
    fired_by: str
    strip: Strip | None = None

    @property
    def name(self) -> str:
        return self.status.schedule.name

    @property
    def is_paused(self) -> bool:
        return self.status.paused_at is not None

    def with_strip(self, strip: Strip) -> ScheduleRow:
        return msgspec.structs.replace(self, strip=strip)


def make_schedule_row(status: ScheduleStatus, workers: Sequence[Replica], now: datetime) -> ScheduleRow:
    runs = next_runs(status, now, _RUNS_LOOKED_AT)
    first = runs[0] if runs else None
    return ScheduleRow(
        status=status,
        words=say_schedule(status.schedule),
        next_at=None if first is None else first.at,
        next_wall="" if first is None else " ".join(part for part in (first.wall, first.zone) if part),
        late=late_by(status, now),
        note=_note(status, runs, now),
        fired_by=_fired_by(status, workers),
    )


def passed_over(status: ScheduleStatus, now: datetime, number: int) -> list[datetime]:
    """The newest instants that came while it was paused, oldest first."""
    if status.paused_at is None:
        return []
    try:
        return times(status.schedule.rule).newest(status.paused_at, now, number)
    except BadOption:
        return []


def next_runs(status: ScheduleStatus, now: datetime, number: int) -> list[NextRun]:
    """The next instants by the store's clock; none while it is paused or orphaned."""
    if status.paused_at is not None or status.orphaned:
        return []
    rule = status.schedule.rule
    try:
        yields, there = times(rule), zone(rule.timezone)
    except BadOption:
        return []
    found: list[NextRun] = []
    at: datetime | None = max(now, status.last_tick)
    while at is not None and len(found) < number:
        at = yields.after(at)
        if at is None:
            break
        # An interval counts real time, so no wall says more of it than another.
        local = UTC if rule.every is not None else there
        short = "" if local is UTC or rule.timezone == "UTC" else at.astimezone(there).tzname() or ""
        found.append(NextRun(at=at, wall=wall(at, now, local), zone=short, note=note(rule, at)))
    return found


def coverage_of(status: ScheduleStatus, workers: Sequence[Replica]) -> tuple[int, int]:
    """Of the live replicas that run users' code, how many declare the schedule, and how many there are."""
    roles = (Role.COMBINED, Role.WORKER, Role.WEB)
    live = [worker for worker in workers if worker.state is ReplicaState.RUNNING and worker.info.role in roles]
    name = status.schedule.name
    covered = len(live) if not status.schedule.in_code else sum(name in worker.info.schedules for worker in live)
    return covered, len(live)


def _fired_by(status: ScheduleStatus, workers: Sequence[Replica]) -> str:
    if status.schedule.coordination is Coordination.PER_REPLICA:
        covered, live = coverage_of(status, workers)
        return f"{covered} of {live}"
    leader = status.leader
    return "" if leader is None else leader.rpartition(":")[0] or leader


def _note(status: ScheduleStatus, runs: Sequence[NextRun], now: datetime) -> str:
    if status.paused_at is not None:
        who = f" by {status.paused_by}" if status.paused_by else ""
        why = f": {Redactor().text(status.paused_why)}" if status.paused_why else ""
        return f"Paused {relative(status.paused_at, now)}{who}{why}"
    if status.orphaned:
        return "No live replica declares it: it does not fire"
    changed = next((run for run in runs if run.note is not None and run.at - now <= NOTES_AHEAD), None)
    return "" if changed is None else f"{changed.at:%-d %b}: {changed.wall}: {changed.note}"
