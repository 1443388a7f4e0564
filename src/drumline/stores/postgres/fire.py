"""fire: record each tick at most once, with its job or with the reason there is none."""

from __future__ import annotations

from collections.abc import Sequence

from drumline.model.instant import to_millis
from drumline.model.schedule import Decision, Fired, FiredAnswer, Firing, Overlap
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.postgres.again import Again
from drumline.stores.postgres.ending import cancel_waiting, lock_schedules
from drumline.stores.postgres.produce import add, find_standing
from drumline.stores.postgres.schedule import SQL, Plan, find_plan, tell_ledger
from drumline.stores.postgres.step import Step
from drumline.stores.rows import start_epoch
from drumline.stores.statements import Operation, Row, Statement, in_turn

__all__ = ["ask_to_stop", "fire"]

_SQL = read_statements(__package__, "operate.sql")
_ABOUT_TICKS = (Decision.FIRED, Decision.MISSED, Decision.OVERLAP)


def fire(step: Step, firings: Sequence[Firing], by: str) -> Operation[list[Fired]]:
    yield from lock_schedules(firing.schedule for firing in firings)
    return (yield from in_turn(_fire_one(step, firing, by) for firing in firings))


def ask_to_stop(step: Step, job_id: str) -> Operation[bool]:
    """Ask whoever runs the job to cancel it, and say whether somebody does."""
    rows = yield Statement(_SQL["ask_to_stop"], {"id": job_id})
    for (replica,) in rows:
        step.hint(topic.cancel(replica))
    return bool(rows)


def _fire_one(step: Step, firing: Firing, by: str) -> Operation[Fired]:
    plan = yield from find_plan(firing.schedule)
    if plan is None:
        return Fired(FiredAnswer.UNKNOWN)
    if plan.paused is not None and firing.decision in _ABOUT_TICKS:
        return Fired(FiredAnswer.PAUSED)
    if firing.decision is Decision.TRIGGER:
        return (yield from _fire_job(step, firing, plan))
    place = {"schedule": firing.schedule, "replica": firing.replica, "mark": firing.mark}
    rows = yield Statement(SQL["find_tick"], place)
    if rows:
        return Fired(FiredAnswer.DUPLICATE, rows[0][0])
    if _is_purged(plan, firing):
        return Fired(FiredAnswer.DUPLICATE)
    fired = Fired(FiredAnswer.RECORDED)
    if firing.decision is Decision.FIRED:
        fired = yield from _fire_job(step, firing, plan)
    decision = Decision.OVERLAP if fired.answer is FiredAnswer.OVERLAP else firing.decision
    yield from tell_ledger(step, firing, by, decision, fired.job_id)
    yield from _move_on(step, firing, fired, by)
    return fired


def _is_purged(plan: Plan, firing: Firing) -> bool:
    """Whether the tick may have stood in the ledger before that was purged."""
    if plan.purged_to is None or plan.purged_start is None:
        return False
    return (
        to_millis(firing.instant) <= plan.purged_to
        or 0 <= start_epoch(firing.replica, firing.mark) <= plan.purged_start
    )


def _move_on(step: Step, firing: Firing, fired: Fired, by: str) -> Operation[None]:
    name = firing.schedule
    # A start-up tick is no instant of the rule: it must not pass over those that are still due.
    if firing.decision in _ABOUT_TICKS and firing.mark == str(to_millis(firing.instant)):
        yield Statement(SQL["move_on"], {"name": name, "to": to_millis(firing.until or firing.instant)})
    if firing.decision is Decision.ORPHANED:
        yield Statement(SQL["tell_orphaned"], {"name": name, "now": step.now})
    if fired.answer is FiredAnswer.FIRED:
        yield Statement(SQL["tell_fired"], {"name": name, "now": step.now, "mark": firing.mark, "by": by})


def _fire_job(step: Step, firing: Firing, plan: Plan) -> Operation[Fired]:
    """Make the firing's job as the overlap policy allows."""
    job = firing.job
    if job is None:
        raise ValueError(f"the firing {firing.mark} of schedule {firing.schedule} has no job")
    if job.id in (yield from find_standing([job.id])):
        return Fired(FiredAnswer.FIRED, job.id)
    waits_for: str | None = None
    if plan.schedule.overlap is not Overlap.ALLOW:
        earlier = yield from _find_earlier(firing)
        if earlier and _is_skipped(plan.schedule.overlap, earlier):
            return Fired(FiredAnswer.OVERLAP)
        if plan.schedule.overlap is Overlap.CANCEL_RUNNING:
            waits_for = yield from _cancel(step, earlier)
        elif earlier:
            waits_for = earlier[-1][0]
    yield from add(step, [job], waits_for)
    return Fired(FiredAnswer.FIRED, job.id)


def _find_earlier(firing: Firing) -> Operation[list[Row]]:
    """The unfinished jobs that stand in the firing's way: a replica's own tick meets only jobs of its own queue."""
    rows = yield Statement(SQL["find_unfinished"], {"schedule": firing.schedule})
    queue = firing.job.options.queue if firing.replica and firing.job is not None else None
    return [row for row in rows if queue is None or row[1] == queue]


def _is_skipped(overlap: Overlap, earlier: Sequence[Row]) -> bool:
    is_one_waiting = any(row[3] is not None for row in earlier)
    return overlap is Overlap.SKIP or (overlap is Overlap.QUEUE_ONE and is_one_waiting)


def _cancel(step: Step, earlier: Sequence[Row]) -> Operation[str | None]:
    """End what waits, ask what runs to stop; the newest that runs is what the new job waits for."""
    running: str | None = None
    for job_id, _, _, _, _, options in earlier:
        if (yield from cancel_waiting(step, {job_id: options})):
            continue
        if not (yield from ask_to_stop(step, job_id)):
            # It was given back since we looked.
            raise Again
        running = job_id
    return running
