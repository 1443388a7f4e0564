"""declare, withdraw, schedules and fire, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec

from drumline.model.instant import to_millis
from drumline.model.job import JobState
from drumline.model.query import By
from drumline.model.schedule import (
    OVERLAPPED,
    Decision,
    Fired,
    FiredAnswer,
    Firing,
    Overlap,
    Rule,
    Schedule,
    ScheduleStatus,
    Tick,
    start_epoch,
)
from drumline.stores.base import topic
from drumline.stores.memory.produce import add
from drumline.stores.memory.state import Plan, Record, State

__all__ = ["declare", "fire", "schedules", "tell_change", "tell_ledger", "tell_pause", "withdraw"]


def declare(state: State, now: datetime, declared: Sequence[Schedule], by: By) -> list[bool]:
    return [_declare_one(state, now, schedule, by) for schedule in declared]


def withdraw(state: State, now: datetime, names: Sequence[str], by: By) -> list[bool]:
    return [_withdraw_one(state, now, name, by) for name in names]


def schedules(state: State, now: datetime, names: Sequence[str]) -> list[ScheduleStatus]:
    declared = {name for member in state.members.values() if member.is_alive(now) for name in member.info.schedules}
    wanted = [name for name in sorted(names or state.plans) if name in state.plans]
    running = Counter(record.schedule for record in state.running.values())
    return [_status(state.plans[name], running[name], declared=name in declared) for name in wanted]


def fire(state: State, now: datetime, firings: Sequence[Firing], by: str) -> list[Fired]:
    return [_fire_one(state, now, firing, by) for firing in firings]


def tell_ledger(
    state: State,
    now: datetime,
    firing: Firing,
    by: str,
    decision: Decision,
    job_id: str | None = None,
    rule: Rule | None = None,
) -> None:
    """Write the ledger's row of this firing."""
    place = (firing.schedule, firing.replica, firing.mark)
    state.ticks[place] = Tick(
        schedule=firing.schedule,
        mark=firing.mark,
        replica=firing.replica,
        instant=firing.instant,
        decision=decision,
        reason=OVERLAPPED if decision is Decision.OVERLAP else firing.reason,
        by=by,
        recorded_at=now,
        job_id=job_id,
        until=firing.until,
        count=firing.count,
        rule=rule,
    )
    if job_id is not None:
        state.tick_of[job_id] = place


def _declare_one(state: State, now: datetime, schedule: Schedule, by: By) -> bool:
    plan = state.plans.get(schedule.name)
    if plan is None:
        plan = Plan(schedule=schedule, declared_at=now, begun_at=now, last_tick=now)
        if schedule.paused:
            plan.paused_at, plan.paused_by = now, by
        state.plans[schedule.name] = plan
        return _start_from_now(state, now, plan, by, "declared")
    if plan.schedule.in_code and not schedule.in_code:
        return False
    before, plan.schedule = plan.schedule, msgspec.structs.replace(schedule, paused=plan.schedule.paused)
    if before.rule != schedule.rule:
        tell_pause(state, now, plan, before.rule, by)
        return _start_from_now(state, now, plan, by, "rule changed")
    if plan.orphaned_at is not None:
        tell_pause(state, now, plan, before.rule, by)
        return _start_from_now(state, now, plan, by, "no longer orphaned")
    if before == plan.schedule:
        return False
    tell_change(state, plan)
    return True


def _start_from_now(state: State, now: datetime, plan: Plan, by: By, reason: str) -> bool:
    plan.begun_at = plan.last_tick = now
    plan.orphaned_at = None
    _tell_row_of_change(state, now, plan, by, reason, plan.schedule.rule)
    return True


def _withdraw_one(state: State, now: datetime, name: str, by: By) -> bool:
    plan = state.plans.get(name)
    if plan is None or plan.schedule.in_code:
        return False
    tell_pause(state, now, plan, plan.schedule.rule, by)
    _tell_row_of_change(state, now, plan, by, "withdrawn", None)
    del state.plans[name]
    return True


def _tell_row_of_change(state: State, now: datetime, plan: Plan, by: By, reason: str, rule: Rule | None) -> None:
    tell_change(state, plan)
    row = Firing(
        schedule=plan.schedule.name,
        mark=f"changed:{plan.version}",
        instant=now,
        decision=Decision.CHANGED,
        reason=reason,
        count=0,
    )
    tell_ledger(state, now, row, by.who, Decision.CHANGED, rule=rule)


def tell_pause(state: State, now: datetime, plan: Plan, rule: Rule, by: By) -> None:
    """Tell the ledger, if the schedule is paused, since when the rule has been silent: a pause under each has a row."""
    if plan.paused_at is None:
        return
    since = max(plan.paused_at, plan.begun_at)
    row = Firing(
        schedule=plan.schedule.name,
        mark=f"paused:{to_millis(since)}",
        instant=since,
        decision=Decision.PAUSED,
        reason=plan.paused_by.why if plan.paused_by else "",
        until=now,
        count=0,
    )
    tell_ledger(state, now, row, by.who, Decision.PAUSED, rule=rule)


def tell_change(state: State, plan: Plan | None = None) -> None:
    """Let the fleet know that the schedule, or a pause, has changed."""
    state.version += 1
    state.news.add(topic.CHANGES)
    if plan is not None:
        plan.version = state.version


def _status(plan: Plan, running: int, *, declared: bool) -> ScheduleStatus:
    return ScheduleStatus(
        schedule=plan.schedule,
        version=plan.version,
        declared_at=plan.declared_at,
        begun_at=plan.begun_at,
        last_tick=plan.last_tick,
        last_fired_at=plan.last_fired_at,
        last_mark=plan.last_mark,
        leader=plan.leader,
        paused_at=plan.paused_at,
        paused_by=plan.paused_by.who if plan.paused_by else None,
        paused_why=plan.paused_by.why if plan.paused_by else None,
        orphaned=plan.schedule.in_code and not declared,
        orphaned_at=plan.orphaned_at,
        running=running,
        total_runs=plan.total_runs,
        total_failures=plan.total_failures,
    )


def _fire_one(state: State, now: datetime, firing: Firing, by: str) -> Fired:
    plan = state.plans.get(firing.schedule)
    if plan is None:
        return Fired(FiredAnswer.UNKNOWN)
    if plan.paused_at is not None and firing.is_tick:
        return Fired(FiredAnswer.PAUSED)
    if firing.version is not None and firing.version != plan.version:
        return Fired(FiredAnswer.STALE)
    if firing.decision is Decision.TRIGGER:
        return _fire_job(state, now, firing, plan)
    if (firing.until or firing.instant) > now:
        return Fired(FiredAnswer.EARLY)
    standing = state.ticks.get((firing.schedule, firing.replica, firing.mark))
    if _is_decided(state, plan, firing, standing):
        # Of many instants only the first is known to be decided.
        if firing.until is None:
            _pass_over(plan, firing)
        return Fired(FiredAnswer.DUPLICATE, standing.job_id if standing is not None else None)
    fired = Fired(FiredAnswer.RECORDED)
    if firing.makes_job:
        fired = _fire_job(state, now, firing, plan)
    tell_ledger(state, now, firing, by, firing.recorded_as(fired.answer), fired.job_id)
    _move_on(state, now, plan, firing, fired, by)
    return fired


def _is_decided(state: State, plan: Plan, firing: Firing, standing: Tick | None) -> bool:
    if firing.decision is Decision.BACKFILL and standing is not None and standing.job_id is None:
        return False
    is_behind = firing.follows_last_tick and firing.instant <= plan.last_tick
    return standing is not None or is_behind or _is_purged(state, firing)


def _is_purged(state: State, firing: Firing) -> bool:
    """Whether the tick may have stood in the ledger before that was purged."""
    purged = state.purged.get(firing.schedule)
    if purged is None:
        return False
    return firing.instant <= purged.to or 0 <= start_epoch(firing.replica, firing.mark) <= purged.start


def _pass_over(plan: Plan, firing: Firing) -> None:
    """Count the instants of this firing as decided."""
    if firing.moves_on:
        plan.last_tick = max(plan.last_tick, firing.until or firing.instant)


def _move_on(state: State, now: datetime, plan: Plan, firing: Firing, fired: Fired, by: str) -> None:
    _pass_over(plan, firing)
    if firing.decision is Decision.ORPHANED:
        plan.orphaned_at = now
        tell_change(state, plan)
    if fired.answer is FiredAnswer.FIRED and firing.decision is Decision.FIRED:
        plan.last_fired_at, plan.last_mark, plan.leader = now, firing.mark, by


def _fire_job(state: State, now: datetime, firing: Firing, plan: Plan) -> Fired:
    """Make the firing's job as the overlap policy allows."""
    job = firing.job
    assert job is not None
    if job.id in state.jobs:
        return Fired(FiredAnswer.FIRED, job.id)
    overlap = plan.schedule.overlap
    # Looked for only where it matters: ten thousand schedules may be due together.
    unfinished = [] if overlap is Overlap.ALLOW else _unfinished(state, firing.schedule)
    earlier = [record for record in unfinished if _meets(firing, record)]
    overlap = overlap if earlier else Overlap.ALLOW
    waits_for: str | None = None
    if overlap is not Overlap.ALLOW and firing.decision is Decision.BACKFILL:
        waits_for = _last_of(earlier)
    elif overlap is Overlap.SKIP:
        return Fired(FiredAnswer.OVERLAP)
    elif overlap is Overlap.QUEUE_ONE:
        if any(record.waits_for is not None for record in earlier):
            return Fired(FiredAnswer.OVERLAP)
        waits_for = earlier[-1].id
    elif overlap is Overlap.CANCEL_RUNNING:
        waits_for = _cancel(state, now, earlier)
    add(state, now, job, waits_for)
    return Fired(FiredAnswer.FIRED, job.id)


def _unfinished(state: State, schedule: str) -> list[Record]:
    found = [r for group in (state.waiting, state.running) for r in group.values() if r.schedule == schedule]
    return sorted(found, key=lambda record: (record.created_at, record.id))


def _meets(firing: Firing, record: Record) -> bool:
    """Whether the job stands in this firing's way: a replica's own tick meets only jobs of its own queue."""
    return not firing.replica or (firing.job is not None and record.options.queue == firing.job.options.queue)


def _last_of(earlier: list[Record]) -> str:
    """The job that runs after all the others: nobody waits for it yet."""
    waited_for = {record.waits_for for record in earlier}
    return next(record.id for record in reversed(earlier) if record.id not in waited_for)


def _cancel(state: State, now: datetime, earlier: list[Record]) -> str | None:
    """End what waits, ask what runs to stop; the newest that runs is what the new job waits for."""
    running: str | None = None
    for record in earlier:
        if record.is_waiting:
            state.end(record, JobState.CANCELLED, now)
        else:
            record.cancelling = True
            state.news.add(topic.cancel(record.replica or ""))
            running = record.id
    return running
