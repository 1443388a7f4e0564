"""enqueue: jobs, all or none, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from drumline.errors import BadOption, KeyTaken
from drumline.model.instant import millis
from drumline.model.job import WAITING, Conflict, Enqueued, JobState, Key, NewJob
from drumline.stores.base import MOST_JOBS, topic
from drumline.stores.files import read_statements
from drumline.stores.rows import due_of, job_params, json_text, reads_as, window_letter
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Statement

__all__ = ["add", "enqueue", "find_standing", "hold_key", "is_held_by_another", "tag_rows"]

_SQL = read_statements(__package__, "produce.sql")
_tags = msgspec.json.Decoder(tuple[str, ...])


def enqueue(step: Step, jobs: Sequence[NewJob]) -> Operation[list[Enqueued]]:
    if len(jobs) > MOST_JOBS:
        raise BadOption("jobs", f"at most {MOST_JOBS:,} in one call", len(jobs), "enqueue")
    states = yield from find_standing(step, [job.id for job in jobs])
    holders = yield from _find_holders(step, [job for job in jobs if job.id not in states])
    new, held = _sort_out(jobs, set(states), holders)
    yield from add(step, new)
    made = {job.id: reads_as("r", due_of(job.start, step.now), step.now) for job in new}
    if not held and len(new) == len(jobs):
        return [Enqueued(job_id, state) for job_id, state in made.items()]
    states |= yield from find_standing(step, [holder for holder in held.values() if holder not in made])
    return (yield from _answer(step, jobs, states, made, held))


def find_standing(step: Step, ids: Sequence[str]) -> Operation[dict[str, JobState]]:
    """How those of the ids stand that stand for a job."""
    rows = yield Statement(_SQL["find_standing"], {"ids": json_text(ids)})
    return {job_id: reads_as(state, due, step.now, cancelling=bool(flag)) for job_id, state, due, flag in rows}


def add(step: Step, jobs: Sequence[NewJob], waits_for: str | None = None) -> Operation[None]:
    """Make the jobs, whose ids are new; with `waits_for`, blocked until that job has ended."""
    if not jobs:
        return
    rows = [job_params(job, step.now) for job in jobs]
    if waits_for is not None:
        rows = [{**row, "state": "b", "waits_for": waits_for} for row in rows]
    yield Many(_SQL["add_job"], rows)
    for row in rows:
        step.move(row["queue"], row["task"], None, row["state"])
        step.hint(topic.queue(row["queue"]))
    tags = [row for job in jobs if job.tags for row in tag_rows(job.id, step.now, job.tags)]
    if tags:
        yield Many(_SQL["add_tag"], tags)
    keys = [_key_row(step, job.task, job.key, job.id) for job in jobs if job.key is not None]
    if keys:
        yield Many(_SQL["take_key"], keys)


def tag_rows(job_id: str, created: int, tags: Sequence[str]) -> list[dict[str, Any]]:
    return [{"tag": tag, "created": created, "job": job_id} for tag in tags]


def is_held_by_another(step: Step, task: str, key: str, job_id: str) -> Operation[bool]:
    rows = yield Statement(_SQL["find_holders"], {"places": json_text([(task, key)]), "now": step.now})
    return any(holder != job_id for _, _, holder in rows)


def hold_key(task: str, key: str, job_id: str, window: str, until: int | None) -> Operation[None]:
    """Let an older job hold its key again."""
    yield Statement(_SQL["take_key"], {"task": task, "key": key, "job": job_id, "window": window, "until": until})


def _key_row(step: Step, task: str, key: Key, job_id: str) -> dict[str, Any]:
    until = None if key.span is None else step.now + millis(key.span)
    return {"task": task, "key": key.name, "job": job_id, "window": window_letter(key.window), "until": until}


def _find_holders(step: Step, jobs: Sequence[NewJob]) -> Operation[dict[tuple[str, str], str]]:
    places = [(job.task, job.key.name) for job in jobs if job.key is not None]
    if not places:
        return {}
    rows = yield Statement(_SQL["find_holders"], {"places": json_text(places), "now": step.now})
    return {(task, key): holder for task, key, holder in rows}


def _sort_out(
    jobs: Sequence[NewJob], standing: set[str], holders: dict[tuple[str, str], str]
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
    ((queue, state, created, tags),) = rows
    row = job_params(job, step.now)
    yield Statement(_SQL["replace_job"], {**row, "id": holder})
    if tags:
        yield Many(_SQL["drop_tag"], tag_rows(holder, created, _tags.decode(tags)))
    if job.tags:
        yield Many(_SQL["add_tag"], tag_rows(holder, created, job.tags))
    after = "b" if state == "b" else row["state"]
    step.move(queue, job.task, state, None)
    step.move(row["queue"], job.task, None, after)
    step.hint(topic.queue(row["queue"]))
    states[holder] = reads_as(after, row["due"], step.now)
    return Enqueued(holder, states[holder], created=False, replaced=True)
