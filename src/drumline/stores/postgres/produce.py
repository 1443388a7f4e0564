"""How jobs are made here, their keys taken, and waiting jobs replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drumline.model.instant import millis
from drumline.model.job import JobState, Key, NewJob
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.postgres.rows import job_row, waiting_state
from drumline.stores.postgres.step import Step
from drumline.stores.relational.ways import Again, Holders
from drumline.stores.rows import json_text, window_letter
from drumline.stores.statements import Operation, Statement

__all__ = ["add", "replace", "take_keys"]

_SQL = read_statements(__package__, "produce.sql")

Place = tuple[str, str]


def add(step: Step, jobs: Sequence[NewJob], waits_for: str | None = None) -> Operation[dict[str, JobState]]:
    """Make those of the jobs whose ids are new; with `waits_for`, blocked until that job has ended."""
    given = json_text([job_row(job, waits_for) for job in jobs])
    rows = yield Statement(_SQL["add_jobs"], {"jobs": given, "is_quick": step.is_quick, "message": step.message})
    for queue in {job.options.queue for job in jobs}:
        step.hint(topic.queue(queue))
    step.is_told = bool(rows) and rows[0][2]
    return {job_id: waiting_state(letter) for job_id, letter, _ in rows}


def take_keys(_: Step, jobs: Sequence[NewJob]) -> Operation[Holders]:
    """Take the free ones of the jobs' keys; who holds the others."""
    wanted: dict[Place, dict[str, object]] = {}
    # Of two jobs with one id, the second is none; and of two with one key, the first has it.
    for job in {job.id: job for job in reversed(jobs)}.values():
        if job.key is not None:
            wanted[job.task, job.key.name] = _key_row(job, job.key)
    rows = json_text(list(wanted.values()))
    yield Statement(_SQL["drop_spent_keys"], {"keys": rows})
    taken = yield Statement(_SQL["take_keys"], {"keys": rows})
    others = wanted.keys() - set(taken)
    if not others:
        return {}
    found = yield Statement(_SQL["find_holders"], {"keys": _places(others)})
    holders = {(task, key): holder for task, key, holder in found}
    if others - holders.keys():
        # It was freed between the two looks.
        raise Again
    return holders


def replace(step: Step, holder: str, job: NewJob) -> Operation[JobState]:
    """Let a waiting job take over what another one asks for; how it reads then."""
    rows = yield Statement(_SQL["find_replaced"], {"id": holder})
    if not rows:
        # It has begun, or ended, since we looked.
        raise Again
    ((queue, before),) = rows
    row = job_row(job)
    given = {"id": holder, "job": json_text(row), "now": step.now}
    ((after, created),) = yield Statement(_SQL["replace_job"], given)
    step.move(queue, job.task, before, None)
    step.move(row.queue, job.task, None, after)
    step.hint(topic.queue(row.queue))
    yield Statement(_SQL["drop_tags"], {"id": holder})
    if row.tags:
        yield Statement(_SQL["add_tags"], {"id": holder, "created": created, "tags": row.tags})
    return waiting_state(after)


def _places(places: Iterable[Place]) -> str:
    return json_text([{"task": task, "key": key} for task, key in places])


def _key_row(job: NewJob, key: Key) -> dict[str, object]:
    span = None if key.span is None else millis(key.span)
    return {"task": job.task, "key": key.name, "job": job.id, "key_window": window_letter(key.window), "span": span}
