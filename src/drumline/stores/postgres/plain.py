"""enqueue, where no job has a key: one statement, unless one of them stands already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drumline.model.job import Enqueued, JobState, NewJob
from drumline.stores.postgres.produce import add
from drumline.stores.postgres.step import Step
from drumline.stores.postgres.ways import WAYS
from drumline.stores.relational.produce import check_number, find_standing
from drumline.stores.relational.ways import Again
from drumline.stores.statements import Operation

__all__ = ["enqueue_plain", "has_keys"]


def has_keys(jobs: Iterable[NewJob]) -> bool:
    return any(job.key is not None for job in jobs)


def enqueue_plain(step: Step, jobs: Sequence[NewJob]) -> Operation[list[Enqueued]]:
    check_number(jobs)
    made: dict[str, JobState] = (yield from add(step, jobs)) if jobs else {}
    if len(made) == len(jobs):
        return [Enqueued(job.id, made[job.id]) for job in jobs]
    states = yield from find_standing(WAYS, step, [job.id for job in jobs if job.id not in made])
    return _answer(jobs, made, states)


def _answer(jobs: Sequence[NewJob], made: dict[str, JobState], states: dict[str, JobState]) -> list[Enqueued]:
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
