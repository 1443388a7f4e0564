"""fire: record each tick at most once, with its job or with the reason there is none."""

from __future__ import annotations

from collections.abc import Sequence

from drumline.model.instant import to_millis
from drumline.model.schedule import Decision, Fired, FiredAnswer, Firing, Overlap, start_epoch
from drumline.stores.base import topic
from drumline.stores.relational.produce import find_standing
from drumline.stores.relational.schedule import Plan, find_plan, tell_change, tell_ledger
from drumline.stores.relational.ways import Again, S, Ways
from drumline.stores.statements import Operation, Row, Statement, in_turn

__all__ = ["ask_to_stop", "fire"]


def fire(ways: Ways[S], step: S, firings: Sequence[Firing], by: str) -> Operation[list[Fired]]:
    yield from ways.lock_schedules(firing.schedule for firing in firings)
    return (yield from in_turn(_fire_one(ways, step, firing, by) for firing in firings))


def ask_to_stop(ways: Ways[S], step: S, job_id: str) -> Operation[bool]:
    """Ask whoever runs the job to cancel it, and say whether somebody does."""
    rows = yield Statement(ways.sql["ask_to_stop"], {"id": job_id})
    for (replica,) in rows:
        step.hint(topic.cancel(replica))
    return bool(rows)


def _fire_one(ways: Ways[S], step: S, firing: Firing, by: str) -> Operation[Fired]:
    plan = yield from find_plan(ways, firing.schedule)
    if plan is None:
        return Fired(FiredAnswer.UNKNOWN)
    if plan.paused is not None and firing.is_tick:
        return Fired(FiredAnswer.PAUSED)
    if firing.version is not None and firing.version != plan.version:
        return Fired(FiredAnswer.STALE)
    if firing.decision is Decision.TRIGGER:
        return (yield from _fire_job(ways, step, firing, plan))
    if to_millis(firing.until or firing.instant) > step.now:
        return Fired(FiredAnswer.EARLY)
    place = {"schedule": firing.schedule, "replica": firing.replica, "mark": firing.mark}
    rows = yield Statement(ways.sql["find_tick"], place)
    if _is_decided(plan, firing, rows):
        # Of many instants only the first is known to be decided.
        if firing.until is None:
            yield from _pass_over(ways, firing)
        return Fired(FiredAnswer.DUPLICATE, rows[0][0] if rows else None)
    fired = Fired(FiredAnswer.RECORDED)
    if firing.makes_job:
        fired = yield from _fire_job(ways, step, firing, plan)
    yield from tell_ledger(ways, step, firing, by, firing.recorded_as(fired.answer), fired.job_id)
    yield from _move_on(ways, step, firing, fired, by)
    return fired


def _is_decided(plan: Plan, firing: Firing, rows: Sequence[Row]) -> bool:
    if firing.decision is Decision.BACKFILL and rows and rows[0][0] is None:
        return False
    is_behind = firing.follows_last_tick and to_millis(firing.instant) <= plan.last_tick
    return bool(rows) or is_behind or _is_purged(plan, firing)


def _is_purged(plan: Plan, firing: Firing) -> bool:
    """Whether the tick may have stood in the ledger before that was purged."""
    if plan.purged_to is None or plan.purged_start is None:
        return False
    return (
        to_millis(firing.instant) <= plan.purged_to
        or 0 <= start_epoch(firing.replica, firing.mark) <= plan.purged_start
    )


def _pass_over(ways: Ways[S], firing: Firing) -> Operation[None]:
    """Count the instants of this firing as decided."""
    if firing.moves_on:
        yield Statement(ways.sql["move_on"], {"name": firing.schedule, "to": to_millis(firing.until or firing.instant)})


def _move_on(ways: Ways[S], step: S, firing: Firing, fired: Fired, by: str) -> Operation[None]:
    name = firing.schedule
    yield from _pass_over(ways, firing)
    if firing.decision is Decision.ORPHANED:
        yield Statement(ways.sql["tell_orphaned"], {"name": name, "now": step.now})
        yield from tell_change(ways, step, name)
    if fired.answer is FiredAnswer.FIRED and firing.decision is Decision.FIRED:
        yield Statement(ways.sql["tell_fired"], {"name": name, "now": step.now, "mark": firing.mark, "by": by})


def _fire_job(ways: Ways[S], step: S, firing: Firing, plan: Plan) -> Operation[Fired]:
    """Make the firing's job as the overlap policy allows."""
    job = firing.job
    if job is None:
        raise ValueError(f"the firing {firing.mark} of schedule {firing.schedule} has no job")
    if job.id in (yield from find_standing(ways, step, [job.id])):
        return Fired(FiredAnswer.FIRED, job.id)
    waits_for: str | None = None
    if plan.schedule.overlap is not Overlap.ALLOW:
        earlier = yield from _find_earlier(ways, firing)
        if firing.decision is Decision.BACKFILL:
            waits_for = _last_of(earlier)
        elif earlier and _is_skipped(plan.schedule.overlap, earlier):
            return Fired(FiredAnswer.OVERLAP)
        elif plan.schedule.overlap is Overlap.CANCEL_RUNNING:
            waits_for = yield from _cancel(ways, step, earlier)
        elif earlier:
            waits_for = earlier[-1][0]
    yield from ways.add(step, [job], waits_for)
    return Fired(FiredAnswer.FIRED, job.id)


def _find_earlier(ways: Ways[S], firing: Firing) -> Operation[list[Row]]:
    """The unfinished jobs that stand in the firing's way: a replica's own tick meets only jobs of its own queue."""
    rows = yield Statement(ways.sql["find_unfinished"], {"schedule": firing.schedule})
    queue = firing.job.options.queue if firing.replica and firing.job is not None else None
    return [row for row in rows if queue is None or row[1] == queue]


def _is_skipped(overlap: Overlap, earlier: Sequence[Row]) -> bool:
    is_one_waiting = any(row[2] is not None for row in earlier)
    return overlap is Overlap.SKIP or (overlap is Overlap.QUEUE_ONE and is_one_waiting)


def _last_of(earlier: Sequence[Row]) -> str | None:
    """The job that runs after all the others: nobody waits for it yet."""
    waited_for = {row[2] for row in earlier}
    return next((job_id for job_id, *_ in reversed(earlier) if job_id not in waited_for), None)


def _cancel(ways: Ways[S], step: S, earlier: Sequence[Row]) -> Operation[str | None]:
    """End what waits, ask what runs to stop; the newest that runs is what the new job waits for."""
    running: str | None = None
    for job_id, _, _, options in earlier:
        if (yield from ways.cancel_waiting(step, job_id, options)):
            continue
        if not (yield from ask_to_stop(ways, step, job_id)):
            # It was given back since we looked.
            raise Again
        running = job_id
    return running
