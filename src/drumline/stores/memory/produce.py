"""enqueue, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from drumline.errors import BadOption, KeyTaken
from drumline.model.job import Conflict, Enqueued, JobState, NewJob
from drumline.stores.base import MOST_JOBS, topic
from drumline.stores.memory.state import Record, State, due_at

__all__ = ["add", "enqueue"]


def enqueue(state: State, now: datetime, jobs: Sequence[NewJob]) -> list[Enqueued]:
    if len(jobs) > MOST_JOBS:
        raise BadOption("jobs", f"at most {MOST_JOBS:,} in one call", len(jobs), "enqueue")
    _refuse_taken_keys(state, now, jobs)
    return [_enqueue_one(state, now, job) for job in jobs]


def add(state: State, now: datetime, job: NewJob, waits_for: str | None = None) -> Record:
    """Make the job."""
    record = Record(
        id=job.id,
        task=job.task,
        args=job.args,
        options=job.options,
        created_at=now,
        due_at=due_at(job.start, now),
        key=job.key,
        tags=job.tags,
        meta=job.meta,
        source=job.source,
        origin=job.origin,
        schedule=job.schedule,
        tick=job.tick,
        waits_for=waits_for,
    )
    state.jobs[job.id] = state.waiting[job.id] = record
    if waits_for is not None:
        state.followers.setdefault(waits_for, []).append(record)
    state.take_key(record)
    state.news.add(topic.queue(job.options.queue))
    return record


def _refuse_taken_keys(state: State, now: datetime, jobs: Sequence[NewJob]) -> None:
    """Raise before anything is made, so that none of the batch is."""
    new_ids: set[str] = set()
    taken: dict[tuple[str, str], str] = {}
    for job in jobs:
        if job.id in state.jobs or job.id in new_ids or job.key is None:
            continue
        place = (job.task, job.key.name)
        holder = state.held_key(*place, now)
        holder_id = holder.job_id if holder is not None else taken.get(place)
        if holder_id is None:
            taken[place] = job.id
            new_ids.add(job.id)
        elif job.key.on_conflict is Conflict.RAISE:
            raise KeyTaken(job.task, job.key.name, holder_id)


def _enqueue_one(state: State, now: datetime, job: NewJob) -> Enqueued:
    standing = state.jobs.get(job.id)
    if standing is not None:
        return Enqueued(standing.id, standing.reads_as(now), created=False)
    holder = state.held_key(job.task, job.key.name, now) if job.key else None
    if holder is None:
        return Enqueued(job.id, add(state, now, job).reads_as(now))
    record = state.jobs.get(holder.job_id)
    if record is None:
        # Its retention was shorter than the time for which it holds the key.
        return Enqueued(holder.job_id, JobState.DONE, created=False)
    assert job.key is not None
    if job.key.on_conflict is not Conflict.REPLACE or not record.is_waiting:
        return Enqueued(record.id, record.reads_as(now), created=False)
    record.args, record.options, record.tags, record.meta = job.args, job.options, job.tags, job.meta
    state.wait(record, due_at(job.start, now))
    return Enqueued(record.id, record.reads_as(now), created=False, replaced=True)
