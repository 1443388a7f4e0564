"""fire: record each tick at most once, with its job or with the reason there is none."""

from __future__ import annotations

from collections.abc import Sequence

from drumline.model.schedule import Decision, Fired, FiredAnswer, Firing, Overlap
from drumline.stores.base import topic
from drumline.stores.relational.produce import find_standing
from drumline.stores.relational.schedule import tell_change
from drumline.stores.relational.volley import Volley
from drumline.stores.relational.ways import Again, S, Ways
from drumline.stores.rows import json_text
from drumline.stores.statements import Operation, Row, Statement, in_turn

__all__ = ["ask_to_stop", "fire"]


def fire(ways: Ways[S], step: S, firings: Sequence[Firing], by: str) -> Operation[list[Fired]]:
    yield from ways.lock_schedules(firing.schedule for firing in firings)
    volley = yield from _read(ways, step, firings, by)
    answers = yield from in_turn(_fire_one(ways, step, volley, firing) for firing in firings)
    yield from _write(ways, step, volley)
    return answers


def ask_to_stop(ways: Ways[S], step: S, job_id: str) -> Operation[bool]:
    """Ask whoever runs the job to cancel it, and say whether somebody does."""
    rows = yield Statement(ways.sql["ask_to_stop"], {"id": job_id})
    for (replica,) in rows:
        step.hint(topic.cancel(replica))
    return bool(rows)


def _read(ways: Ways[S], step: S, firings: Sequence[Firing], by: str) -> Operation[Volley]:
    """What the store holds about the firings."""
    volley = Volley(step.now, by, firings)
    plans = yield Statement(ways.sql["find_plans"], {"names": json_text(volley.names)})
    ticks = yield Statement(ways.sql["find_ticks"], {"places": json_text(volley.places)})
    volley.know(plans, ticks, (yield from find_standing(ways, step, volley.ids)))
    return volley


def _write(ways: Ways[S], step: S, volley: Volley) -> Operation[None]:
    """Write what was decided so far."""
    yield from ways.add(step, volley.jobs, None)
    if volley.rows:
        yield Statement(ways.sql["keep_ticks"], {"rows": json_text([*volley.rows.values()])})
    if volley.moves:
        yield Statement(ways.sql["move_on"], {"moves": json_text([*volley.moves.values()])})
    volley.clear()


def _fire_one(ways: Ways[S], step: S, volley: Volley, firing: Firing) -> Operation[Fired]:
    refused = volley.refuse(firing)
    if refused is not None:
        return refused
    fired = Fired(FiredAnswer.RECORDED)
    if firing.makes_job:
        fired = yield from _fire_job(ways, step, volley, firing)
    if firing.decision is Decision.TRIGGER:
        return fired
    volley.record(firing, fired)
    if firing.decision is Decision.ORPHANED:
        yield Statement(ways.sql["tell_orphaned"], {"name": firing.schedule, "now": step.now})
        volley.change(firing, (yield from tell_change(ways, step, firing.schedule)))
    return fired


def _fire_job(ways: Ways[S], step: S, volley: Volley, firing: Firing) -> Operation[Fired]:
    """Make the firing's job as the overlap policy allows."""
    job = firing.job
    if job is None:
        raise ValueError(f"the firing {firing.mark} of schedule {firing.schedule} has no job")
    if volley.has_job(job):
        return Fired(FiredAnswer.FIRED, job.id)
    overlap = volley.overlap_of(firing)
    if overlap is Overlap.ALLOW:
        volley.jobs.append(job)
        return Fired(FiredAnswer.FIRED, job.id)
    # Jobs of this call are among those that are looked for.
    yield from _write(ways, step, volley)
    earlier = yield from _find_earlier(ways, firing)
    waits_for: str | None = None
    if firing.decision is Decision.BACKFILL:
        waits_for = _last_of(earlier)
    elif earlier and _is_skipped(overlap, earlier):
        return Fired(FiredAnswer.OVERLAP)
    elif overlap is Overlap.CANCEL_RUNNING:
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
