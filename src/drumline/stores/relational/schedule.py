"""declare, withdraw and schedules, and the ledger's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from drumline.model.instant import from_millis
from drumline.model.query import By
from drumline.model.schedule import Decision, Firing, Rule, Schedule, ScheduleStatus
from drumline.stores.base import topic
from drumline.stores.relational.members import find_members
from drumline.stores.relational.volley import tick_row
from drumline.stores.relational.ways import Again, S, Ways
from drumline.stores.rows import instant_or_none, json_text
from drumline.stores.statements import Operation, Row, Statement, in_turn

__all__ = ["Plan", "declare", "find_plan", "schedules", "tell_change", "tell_pause", "withdraw"]

_spec = msgspec.json.Decoder(Schedule)
_by = msgspec.json.Decoder(By)


class Plan(NamedTuple):
    """A schedule, as far as steps have to know it; instants in milliseconds."""

    schedule: Schedule
    version: int
    paused: int | None
    paused_by: By | None
    orphaned: int | None
    begun: int


def declare(ways: Ways[S], step: S, declared: Sequence[Schedule], by: By) -> Operation[list[bool]]:
    yield from ways.lock_schedules(schedule.name for schedule in declared)
    return (yield from in_turn(_declare_one(ways, step, schedule, by) for schedule in declared))


def withdraw(ways: Ways[S], step: S, names: Sequence[str], by: By) -> Operation[list[bool]]:
    yield from ways.lock_schedules(names)
    return (yield from in_turn(_withdraw_one(ways, step, name, by) for name in names))


def schedules(ways: Ways[S], step: S, names: Sequence[str]) -> Operation[list[ScheduleStatus]]:
    members = yield from find_members(ways)
    declared = {name for member in members if member.is_alive(step.now) for name in member.info.schedules}
    running = dict((yield Statement(ways.sql["count_running"])))
    rows = yield Statement(ways.sql["find_schedules"], {"names": json_text(names) if names else None})
    return [_status(row, declared, running.get(row[0], 0)) for row in rows]


def find_plan(ways: Ways[S], name: str) -> Operation[Plan | None]:
    rows = yield Statement(ways.sql["find_schedule"], {"name": name})
    if not rows:
        return None
    ((spec, version, paused, paused_by, orphaned, begun),) = rows
    by = None if paused_by is None else _by.decode(paused_by)
    return Plan(_spec.decode(spec), version, paused, by, orphaned, begun)


def _tell_ledger(ways: Ways[S], step: S, firing: Firing, by: str, rule: Rule | None = None) -> Operation[None]:
    """Write the ledger's row of this firing, which tells of the schedule itself."""
    row = tick_row(firing, step.now, by, firing.decision, rule=rule)
    yield Statement(ways.sql["keep_ticks"], {"rows": json_text([row])})


def tell_pause(ways: Ways[S], step: S, plan: Plan, by: By) -> Operation[None]:
    """Tell the ledger, if the schedule is paused, since when its rule has been silent: a pause under each has a row."""
    if plan.paused is None:
        return
    since = max(plan.paused, plan.begun)
    row = Firing(
        schedule=plan.schedule.name,
        mark=f"paused:{since}",
        instant=from_millis(since),
        decision=Decision.PAUSED,
        reason=plan.paused_by.why if plan.paused_by is not None else "",
        until=from_millis(step.now),
        count=0,
    )
    yield from _tell_ledger(ways, step, row, by.who, plan.schedule.rule)


def tell_change(ways: Ways[S], step: S, name: str | None = None) -> Operation[int]:
    """Let the fleet know that the schedule, or a pause, has changed; the version that holds now."""
    version: int
    ((version,),) = yield Statement(ways.sql["change_version"])
    if name is not None:
        yield Statement(ways.sql["set_version"], {"name": name, "version": version})
    step.hint(topic.CHANGES)
    return version


def _declare_one(ways: Ways[S], step: S, schedule: Schedule, by: By) -> Operation[bool]:
    plan = yield from find_plan(ways, schedule.name)
    if plan is None:
        paused = (step.now, json_text(by)) if schedule.paused else (None, None)
        row = {"name": schedule.name, "spec": json_text(schedule), "now": step.now}
        added = yield Statement(ways.sql["add_schedule"], {**row, "paused": paused[0], "paused_by": paused[1]})
        if not added:
            # Somebody else has declared it since we looked.
            raise Again
        return (yield from _start_from_now(ways, step, schedule, by, "declared"))
    before = plan.schedule
    if before.in_code and not schedule.in_code:
        return False
    # Through its text and back, as the one before went.
    spec = json_text(msgspec.structs.replace(schedule, paused=before.paused))
    after = _spec.decode(spec)
    if after != before:
        yield Statement(ways.sql["change_schedule"], {"name": schedule.name, "spec": spec})
    if before.rule != after.rule:
        yield from tell_pause(ways, step, plan, by)
        return (yield from _start_from_now(ways, step, after, by, "rule changed"))
    if plan.orphaned is not None:
        yield from tell_pause(ways, step, plan, by)
        return (yield from _start_from_now(ways, step, after, by, "no longer orphaned"))
    if after != before:
        yield from tell_change(ways, step, schedule.name)
    return after != before


def _withdraw_one(ways: Ways[S], step: S, name: str, by: By) -> Operation[bool]:
    plan = yield from find_plan(ways, name)
    if plan is None or plan.schedule.in_code:
        return False
    yield from tell_pause(ways, step, plan, by)
    yield from _tell_row_of_change(ways, step, name, by, "withdrawn", None)
    yield Statement(ways.sql["drop_schedule"], {"name": name})
    return True


def _start_from_now(ways: Ways[S], step: S, schedule: Schedule, by: By, reason: str) -> Operation[bool]:
    yield Statement(ways.sql["restart_schedule"], {"name": schedule.name, "now": step.now})
    yield from _tell_row_of_change(ways, step, schedule.name, by, reason, schedule.rule)
    return True


def _tell_row_of_change(ways: Ways[S], step: S, name: str, by: By, reason: str, rule: Rule | None) -> Operation[None]:
    version = yield from tell_change(ways, step, name)
    row = Firing(
        schedule=name,
        mark=f"changed:{version}",
        instant=from_millis(step.now),
        decision=Decision.CHANGED,
        reason=reason,
        count=0,
    )
    yield from _tell_ledger(ways, step, row, by.who, rule)


def _status(row: Row, declared: set[str], running: int) -> ScheduleStatus:
    name, spec, version, declared_at, begun_at, last_tick, last_fired, *rest = row
    last_mark, leader, paused, paused_by, orphaned, runs, failures = rest
    schedule = _spec.decode(spec)
    by = None if paused_by is None else _by.decode(paused_by)
    return ScheduleStatus(
        schedule=schedule,
        version=version,
        declared_at=from_millis(declared_at),
        begun_at=from_millis(begun_at),
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
