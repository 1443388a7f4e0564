"""Why a job waits, in one sentence for a person. The first reason that holds is the one that is told:

it waits for another job ......... an earlier one of its schedule must end first
it is not due yet ................ delayed, snoozed, given back, or between two attempts
its queue is paused
it is unclaimable ................ no live worker knows its task and serves its queue
all slots are busy
it is simply its turn soon
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from drumline.model.job import WAITING, Job, JobState
from drumline.model.query import By
from drumline.model.replica import Replica
from drumline.model.view import instant_text, span_text
from drumline.policy.serving import live_workers, serves

__all__ = ["why_waiting"]


def why_waiting(job: Job, workers: Sequence[Replica], paused: Mapping[str, By], now: datetime) -> str:
    """The reason, as one sentence; an empty text for a job that does not wait. `paused` holds queues."""
    if job.state not in WAITING:
        return ""
    if job.waits_for is not None:
        return f"waits for job {job.waits_for} to end"
    # The store has said that it is due: the clock was read a little before.
    if job.state is JobState.READY:
        now = max(now, job.due_at)
    if job.due_at > now:
        return f"{_why_later(job)} {instant_text(job.due_at)}, in {_rounded(job.due_at - now)}"
    if job.queue in paused:
        return _why_paused(job.queue, paused[job.queue])
    return _why_not_taken(job, workers, _rounded(now - job.due_at))


def _why_later(job: Job) -> str:
    last = job.attempts[-1] if job.attempts else None
    if last is not None and last.ended == "snoozed":
        return "snoozed by its task until"
    if last is not None and last.ended == "released" and last.error is not None:
        return f"given back by {last.replica} ({last.error.message}), for others to take at"
    if job.attempt > 0:
        return f"attempt {job.attempt + 1} of {job.max_attempts} is due at"
    return "due at"


def _why_paused(queue: str, by: By) -> str:
    return f"queue {queue} is paused by {by.who}" + (f": {by.why}" if by.why else "")


def _why_not_taken(job: Job, workers: Sequence[Replica], waited: str) -> str:
    live = live_workers(workers)
    able = [worker for worker in live if job.task in worker.info.tasks]
    serving = [worker for worker in able if serves(worker, job.queue)]
    if not live:
        return f"unclaimable for {waited}: no worker is alive"
    if not able:
        return f"unclaimable for {waited}: no live worker knows task {job.task}"
    if not serving:
        return f"unclaimable for {waited}: no live worker that knows task {job.task} serves queue {job.queue}"
    slots = sum(worker.info.slots for worker in serving)
    if all(len(worker.running) >= worker.info.slots for worker in serving):
        return f"due for {waited}: all slots are busy, {slots} in {len(serving)} live workers"
    return f"due for {waited}: it is taken in its turn, after jobs of higher priority or an earlier due time"


def _rounded(span: timedelta) -> str:
    """Whole seconds say enough, but for a short time."""
    whole = timedelta(seconds=round(span.total_seconds()))
    return span_text(whole if whole > timedelta(seconds=1) else span)
