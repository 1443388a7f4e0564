"""enqueue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drumline.errors import BadOption, KeyTaken
from drumline.model.act import Act
from drumline.model.job import Enqueued, JobState, NewJob
from drumline.stores.base import MOST_JOBS
from drumline.stores.redis.calls import Call, Operation
from drumline.stores.redis.pack import act_item, job_item, pack, unpack_id

__all__ = ["enqueue"]

_MADE = {b"r": JobState.READY, b"d": JobState.DELAYED}


def enqueue(jobs: Sequence[NewJob], act: Act | None) -> Operation[list[Enqueued]]:
    if len(jobs) > MOST_JOBS:
        raise BadOption("jobs", f"at most {MOST_JOBS:,} in one call", len(jobs), "enqueue")
    if not jobs:
        return []
    items: list[Any] | dict[Any, Any] = [job_item(job) for job in jobs]
    if act is not None:
        # As a script reads it, a list that has a name in it too.
        items = {**dict(enumerate(items, 1)), "act": act_item(act, [job.id for job in jobs])}
    answer = yield Call("enqueue", group=pack(items), size=len(jobs))
    if answer == 1:
        return [Enqueued(job.id, JobState.READY) for job in jobs]
    if isinstance(answer[0], int):
        place, holder = answer
        job = jobs[place - 1]
        assert job.key is not None
        raise KeyTaken(job.task, job.key.name, unpack_id(holder))
    return [_read_answer(job, one) for job, one in zip(jobs, answer, strict=True)]


def _read_answer(job: NewJob, answer: Any) -> Enqueued:
    if isinstance(answer, bytes):
        return Enqueued(job.id, _MADE[answer])
    standing, state, replaced = answer
    return Enqueued(unpack_id(standing), JobState(state.decode()), created=False, replaced=bool(replaced))
