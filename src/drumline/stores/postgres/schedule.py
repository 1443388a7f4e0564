"""declare, withdraw and schedules, and the ledger's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from drumline.model.instant import from_millis, to_millis
from drumline.model.query import By
from drumline.model.schedule import Decision, Firing, Schedule, ScheduleStatus
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.postgres.again import Again
from drumline.stores.postgres.beat import find_members
from drumline.stores.postgres.ending import lock_schedules
from drumline.stores.postgres.step import Step
from drumline.stores.rows import instant_or_none, json_text
from drumline.stores.statements import Operation, Row, Statement, in_turn

__all__ = ["SQL", "Plan", "declare", "find_plan", "schedules", "tell_change", "tell_ledger", "withdraw"]

SQL = read_statements(__package__, "schedule.sql")
_spec = msgspec.json.Decoder(Schedule)
_by = msgspec.json.Decoder(By)


class Plan(NamedTuple):
    """A schedule, as far as steps have to know it; instants in milliseconds."""

    schedule: Schedule
    paused: int | None
    paused_by: By | None
    orphaned: int | None
    last_tick: int
    purged_to: int | None
    purged_start: int | None


def declare(step: Step, declared: Sequence[Schedule], by: By) -> Operation[list[bool]]:
    yield from lock_schedules(schedule.name for schedule in declared)
    return (yield from in_turn(_declare_one(step, schedule, by) for schedule in declared))


def withdraw(step: Step, names: Sequence[str]) -> Operation[list[bool]]:
    yield from lock_schedules(names)
    return (yield from in_turn(_withdraw_one(step, name) for name in names))


def schedules(step: Step, names: Sequence[str]) -> Operation[list[ScheduleStatus]]:
    members = yield from find_members()
    declared = {name for member in members if member.is_alive(step.now) for name in member.info.schedules}
    running = dict((yield Statement(SQL["count_running"])))
    rows = yield Statement(SQL["find_schedules"])
    known = {row[0]: _status(row, declared, running.get(row[0], 0)) for row in rows}
    return [status for name, status in known.items() if not names or name in names]


def find_plan(name: str) -> Operation[Plan | None]:
    rows = yield Statement(SQL["find_schedule"], {"name": name})
    if not rows:
        return None
    ((spec, paused, paused_by, *rest),) = rows
    by = None if paused_by is None else _by.decode(paused_by)
    return Plan(_spec.decode(spec), paused, by, *rest)


def tell_ledger(step: Step, firing: Firing, by: str, decision: Decision, job_id: str | None) -> Operation[None]:
    """Write the ledger's row of this firing."""
    row = {
        "schedule": firing.schedule,
        "replica": firing.replica,
        "mark": firing.mark,
        "instant": to_millis(firing.instant),
        "decision": decision.value,
        "reason": firing.reason,
        "by": by,
        "now": step.now,
        "job": job_id,
        "until": None if firing.until is None else to_millis(firing.until),
        "count": firing.count,
    }
    yield Statement(SQL["keep_tick"], row)


def tell_change(step: Step) -> Operation[None]:
    """Let the fleet know that schedules or pauses have changed."""
    yield Statement(SQL["change_version"])
    step.hint(topic.CHANGES)


def _declare_one(step: Step, schedule: Schedule, by: By) -> Operation[bool]:
    plan = yield from find_plan(schedule.name)
    if plan is None:
        paused = (step.now, json_text(by)) if schedule.paused else (None, None)
        row = {"name": schedule.name, "spec": json_text(schedule), "now": step.now}
        added = yield Statement(SQL["add_schedule"], {**row, "paused": paused[0], "paused_by": paused[1]})
        if not added:
            # Somebody else has declared it since we looked.
            raise Again
        return (yield from _start_from_now(step, schedule.name, by, "declared"))
    before = plan.schedule
    if before.in_code and not schedule.in_code:
        return False
    # Through its text and back, as the one before went.
    spec = json_text(msgspec.structs.replace(schedule, paused=before.paused))
    after = _spec.decode(spec)
    if after != before:
        yield Statement(SQL["change_schedule"], {"name": schedule.name, "spec": spec})
    if before.rule != after.rule:
        return (yield from _start_from_now(step, schedule.name, by, "rule changed"))
    if plan.orphaned is not None:
        return (yield from _start_from_now(step, schedule.name, by, "no longer orphaned"))
    if after != before:
        yield from tell_change(step)
    return after != before


def _withdraw_one(step: Step, name: str) -> Operation[bool]:
    plan = yield from find_plan(name)
    if plan is None or plan.schedule.in_code:
        return False
    yield Statement(SQL["drop_schedule"], {"name": name})
    yield from tell_change(step)
    return True


def _start_from_now(step: Step, name: str, by: By, reason: str) -> Operation[bool]:
    yield Statement(SQL["restart_schedule"], {"name": name, "now": step.now})
    row = Firing(
        schedule=name,
        mark=f"changed:{step.now}",
        instant=from_millis(step.now),
        decision=Decision.CHANGED,
        reason=reason,
        count=0,
    )
    yield from tell_ledger(step, row, by.who, Decision.CHANGED, None)
    yield from tell_change(step)
    return True


def _status(row: Row, declared: set[str], running: int) -> ScheduleStatus:
    name, spec, declared_at, last_tick, last_fired, last_mark, leader, paused, paused_by, orphaned, runs, failures = row
    schedule = _spec.decode(spec)
    by = None if paused_by is None else _by.decode(paused_by)
    return ScheduleStatus(
        schedule=schedule,
        declared_at=from_millis(declared_at),
        last_tick=from_millis(last_tick),
        last_fired_at=instant_or_none(last_fired),
        last_mark=last_mark,
        leader=leader,
        paused_at=instant_or_none(paused),
        paused_by=by.who if by is not None else None,
        paused_why=by.why if by is not None else None,
        orphaned=schedule.in_code and name not in declared,
        orphaned_at=instant_or_none(orphaned),
        running=running,
        total_runs=runs,
        total_failures=failures,
    )
