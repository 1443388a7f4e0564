"""enqueue: jobs, all or none, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drumline.errors import BadOption, KeyTaken
from drumline.model.instant import millis
from drumline.model.job import WAITING, Conflict, Enqueued, JobState, Key, NewJob
from drumline.stores.base import MOST_JOBS, topic
from drumline.stores.files import read_statements
from drumline.stores.postgres.again import Again
from drumline.stores.postgres.rows import JobRow, job_row, waiting_state
from drumline.stores.postgres.step import Step
from drumline.stores.rows import json_text, reads_as, window_letter
from drumline.stores.statements import Operation, Statement

__all__ = ["add", "enqueue", "enqueue_plain", "find_standing", "has_keys", "hold_key", "is_held_by_another"]

_SQL = read_statements(__package__, "produce.sql")

Place = tuple[str, str]


def has_keys(jobs: Iterable[NewJob]) -> bool:
    return any(job.key is not None for job in jobs)


def enqueue_plain(step: Step, jobs: Sequence[NewJob]) -> Operation[list[Enqueued]]:
    """Make jobs none of which has a key: one statement, where none of them stands already."""
    _check_number(jobs)
    made = yield from add(step, jobs)
    if len(made) == len(jobs):
        return [Enqueued(job.id, made[job.id]) for job in jobs]
    states = yield from find_standing([job.id for job in jobs if job.id not in made])
    return _answer_plain(jobs, made, states)


def enqueue(step: Step, jobs: Sequence[NewJob]) -> Operation[list[Enqueued]]:
    """Make jobs some of which have keys."""
    _check_number(jobs)
    states = yield from find_standing([job.id for job in jobs])
    holders = yield from _take_keys(jobs, states)
    new, held = _sort_out(jobs, set(states), holders)
    made = yield from add(step, new)
    if len(made) < len(new):
        # Somebody else has made one of them since we looked.
        raise Again
    if not held and len(new) == len(jobs):
        return [Enqueued(job_id, state) for job_id, state in made.items()]
    states |= yield from find_standing([holder for holder in held.values() if holder not in made])
    return (yield from _answer(step, jobs, states, made, held))


def add(step: Step, jobs: Sequence[NewJob], waits_for: str | None = None) -> Operation[dict[str, JobState]]:
    """Make those of the jobs whose ids are new; with `waits_for`, blocked until that job has ended."""
    if not jobs:
        return {}
    rows = yield Statement(_SQL["add_jobs"], {"jobs": json_text([job_row(job, waits_for) for job in jobs])})
    for queue in {job.options.queue for job in jobs}:
        step.hint(topic.queue(queue))
    return {job_id: waiting_state(letter) for job_id, letter in rows}


def find_standing(ids: Sequence[str]) -> Operation[dict[str, JobState]]:
    """How those of the ids stand that stand for a job."""
    if not ids:
        return {}
    rows = yield Statement(_SQL["find_standing"], {"ids": json_text(ids)})
    return {job_id: reads_as(state, due, now, cancelling=flag) for job_id, state, due, flag, now in rows}


def is_held_by_another(task: str, key: str, job_id: str) -> Operation[bool]:
    yield Statement(_SQL["drop_spent_keys"], {"keys": _places([(task, key)])})
    rows = yield Statement(_SQL["find_holders"], {"keys": _places([(task, key)])})
    return any(holder != job_id for _, _, holder in rows)


def hold_key(task: str, key: str, job_id: str, window: str, until: int | None) -> Operation[None]:
    """Let an older job hold its key again."""
    row = {"task": task, "key": key, "job": job_id, "key_window": window, "until": until}
    yield Statement(_SQL["hold_key"], row)


def _check_number(jobs: Sequence[NewJob]) -> None:
    if len(jobs) > MOST_JOBS:
        raise BadOption("jobs", f"at most {MOST_JOBS:,} in one call", len(jobs), "enqueue")


def _answer_plain(jobs: Sequence[NewJob], made: dict[str, JobState], states: dict[str, JobState]) -> list[Enqueued]:
    answers: list[Enqueued] = []
    for job in jobs:
        state = made.pop(job.id, None)
        if state is not None:
            # A second one of the same id finds the first.
            states[job.id] = state
            answers.append(Enqueued(job.id, state))
        elif job.id in states:
            answers.append(Enqueued(job.id, states[job.id], created=False))
        else:
            # Forgotten between two looks.
            raise Again
    return answers


def _take_keys(jobs: Sequence[NewJob], states: dict[str, JobState]) -> Operation[dict[Place, str]]:
    """Take the keys of the jobs that do not stand yet, where they are free; who holds the others."""
    wanted: dict[Place, NewJob] = {}
    # Of two jobs with one id, the second is none.
    for job in {job.id: job for job in reversed(jobs)}.values():
        if job.key is not None and job.id not in states:
            wanted[job.task, job.key.name] = job
    if not wanted:
        return {}
    rows = json_text([_key_row(job, job.key) for job in wanted.values() if job.key is not None])
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


def _places(places: Iterable[Place]) -> str:
    return json_text([{"task": task, "key": key} for task, key in places])


def _key_row(job: NewJob, key: Key) -> dict[str, object]:
    span = None if key.span is None else millis(key.span)
    return {"task": job.task, "key": key.name, "job": job.id, "key_window": window_letter(key.window), "span": span}


def _sort_out(
    jobs: Sequence[NewJob], standing: set[str], holders: dict[Place, str]
) -> tuple[list[NewJob], dict[int, str]]:
    """Which jobs are new, and by place in the batch, which are kept out by the holder of their key."""
    new: list[NewJob] = []
    held: dict[int, str] = {}
    for place, job in enumerate(jobs):
        if job.id in standing:
            continue
        if job.key is not None:
            # It may be the job itself, which was forgotten before its time with the key was over.
            holder = holders.get((job.task, job.key.name))
            if holder is not None:
                if job.key.on_conflict is Conflict.RAISE:
                    raise KeyTaken(job.task, job.key.name, holder)
                held[place] = holder
                continue
            holders[job.task, job.key.name] = job.id
        standing.add(job.id)
        new.append(job)
    return new, held


def _answer(
    step: Step, jobs: Sequence[NewJob], states: dict[str, JobState], made: dict[str, JobState], held: dict[int, str]
) -> Operation[list[Enqueued]]:
    """Answer in the order of the batch, and do the replacements on the way."""
    answers: list[Enqueued] = []
    for place, job in enumerate(jobs):
        if place in held:
            answers.append((yield from _give_way(step, held[place], job, states)))
        elif job.id in states:
            answers.append(Enqueued(job.id, states[job.id], created=False))
        else:
            states[job.id] = made[job.id]
            answers.append(Enqueued(job.id, made[job.id]))
    return answers


def _give_way(step: Step, holder: str, job: NewJob, states: dict[str, JobState]) -> Operation[Enqueued]:
    """The holder of the job's key stands for it; a waiting one takes over what the job asks for, if it asks so."""
    if holder not in states:
        # Its retention was shorter than the time for which it holds the key.
        return Enqueued(holder, JobState.DONE, created=False)
    if job.key is None or job.key.on_conflict is not Conflict.REPLACE or states[holder] not in WAITING:
        return Enqueued(holder, states[holder], created=False)
    rows = yield Statement(_SQL["find_replaced"], {"id": holder})
    if not rows:
        # It has begun, or ended, since we looked.
        raise Again
    ((queue, before),) = rows
    row = job_row(job)
    after, created = yield from _replace(step, holder, row)
    step.move(queue, job.task, before, None)
    step.move(row.queue, job.task, None, after)
    step.hint(topic.queue(row.queue))
    yield Statement(_SQL["drop_tags"], {"id": holder})
    if row.tags:
        yield Statement(_SQL["add_tags"], {"id": holder, "created": created, "tags": row.tags})
    states[holder] = waiting_state(after)
    return Enqueued(holder, states[holder], created=False, replaced=True)


def _replace(step: Step, holder: str, row: JobRow) -> Operation[tuple[str, int]]:
    ((after, created),) = yield Statement(_SQL["replace_job"], {"id": holder, "job": json_text(row), "now": step.now})
    return after, created
