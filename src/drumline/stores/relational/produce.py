"""enqueue: jobs, all or none, once."""

from __future__ import annotations

from collections.abc import Sequence

from drumline.errors import BadOption, KeyTaken
from drumline.model.job import WAITING, Conflict, Enqueued, JobState, NewJob
from drumline.stores.base import MOST_JOBS
from drumline.stores.relational.ways import Again, Holders, S, Ways
from drumline.stores.rows import json_text, reads_as
from drumline.stores.statements import Operation, Statement

__all__ = ["check_number", "enqueue", "find_standing", "hold_again"]


def enqueue(ways: Ways[S], step: S, jobs: Sequence[NewJob]) -> Operation[list[Enqueued]]:
    check_number(jobs)
    states = yield from find_standing(ways, step, [job.id for job in jobs])
    absent = [job for job in jobs if job.id not in states]
    has_keys = any(job.key is not None for job in absent)
    holders: Holders = (yield from ways.take_keys(step, absent)) if has_keys else {}
    new, held = _sort_out(jobs, set(states), holders)
    made: dict[str, JobState] = (yield from ways.add(step, new, None)) if new else {}
    if len(made) < len(new):
        # Somebody else has made one of them since we looked.
        raise Again
    if not held and len(new) == len(jobs):
        return [Enqueued(job.id, made[job.id]) for job in jobs]
    states |= yield from find_standing(ways, step, [holder for holder in held.values() if holder not in made])
    return (yield from _answer(ways, step, jobs, states, made, held))


def check_number(jobs: Sequence[NewJob]) -> None:
    if len(jobs) > MOST_JOBS:
        raise BadOption("jobs", f"at most {MOST_JOBS:,} in one call", len(jobs), "enqueue")


def find_standing(ways: Ways[S], step: S, ids: Sequence[str]) -> Operation[dict[str, JobState]]:
    """How those of the ids stand that stand for a job."""
    if not ids:
        return {}
    rows = yield Statement(ways.sql["find_standing"], {"ids": json_text(ids), "now": step.now})
    return {job_id: reads_as(state, due, now, cancelling=bool(flag)) for job_id, state, due, flag, now in rows}


def hold_again(
    ways: Ways[S], step: S, task: str, key: str, job_id: str, window: str, until: int | None
) -> Operation[bool]:
    """Let an older job hold its key again, and say whether it does: another may have it."""
    row = {"task": task, "key": key, "job": job_id, "key_window": window, "until": until, "now": step.now}
    return bool((yield Statement(ways.sql["hold_again"], row)))


def _sort_out(jobs: Sequence[NewJob], standing: set[str], holders: Holders) -> tuple[list[NewJob], dict[int, str]]:
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
    ways: Ways[S],
    step: S,
    jobs: Sequence[NewJob],
    states: dict[str, JobState],
    made: dict[str, JobState],
    held: dict[int, str],
) -> Operation[list[Enqueued]]:
    """Answer in the order of the batch, and do the replacements on the way."""
    answers: list[Enqueued] = []
    for place, job in enumerate(jobs):
        if place in held:
            answers.append((yield from _give_way(ways, step, held[place], job, states)))
        elif job.id in states:
            answers.append(Enqueued(job.id, states[job.id], created=False))
        else:
            states[job.id] = made[job.id]
            answers.append(Enqueued(job.id, made[job.id]))
    return answers


def _give_way(ways: Ways[S], step: S, holder: str, job: NewJob, states: dict[str, JobState]) -> Operation[Enqueued]:
    """The holder of the job's key stands for it; a waiting one takes over what the job asks for, if it asks so."""
    if holder not in states:
        # Its retention was shorter than the time for which it holds the key.
        return Enqueued(holder, JobState.DONE, created=False)
    if job.key is None or job.key.on_conflict is not Conflict.REPLACE or states[holder] not in WAITING:
        return Enqueued(holder, states[holder], created=False)
    states[holder] = yield from ways.replace(step, holder, job)
    return Enqueued(holder, states[holder], created=False, replaced=True)
