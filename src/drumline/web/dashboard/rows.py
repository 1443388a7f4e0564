"""A job as one line of a table: stored facts, without their secrets, cut to what a line can hold."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from drumline.model.job import ENDED, Job, JobState, Source
from drumline.model.sealed import read_body
from drumline.web.dashboard.wording import cut
from drumline.web.show import redactor_of

if TYPE_CHECKING:
    from drumline.app import Drumline

__all__ = ["JobRow", "make_row"]

_LONGEST_ARGS = 90
_LONGEST_ERROR = 140


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One job."""

    id: str
    task: str
    queue: str
    state: str
    source: str
    attempt: int
    max_attempts: int
    args: str
    error: str
    progress: float | None
    message: str
    tags: tuple[str, ...]
    schedule: str | None
    replica: str | None
    # What the state is about: due, begun or ended then.
    at: datetime
    created_at: datetime
    took: timedelta | None
    waited: timedelta | None

    @property
    def is_scheduled(self) -> bool:
        return self.source == Source.SCHEDULED


def make_row(drum: Drumline, job: Job) -> JobRow:
    redact = redactor_of(drum, job)
    args = redact.args(read_body(job.args))
    error = redact.text(job.last_error or "").partition("\n")[0]
    return JobRow(
        id=job.id,
        task=job.task,
        queue=job.queue,
        state=job.state.value,
        source=job.source.value,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        args=_show_args(args),
        error=cut(error, _LONGEST_ERROR) if job.state is not JobState.DONE else "",
        progress=None if job.progress is None else job.progress.value,
        message="" if job.progress is None else redact.text(job.progress.message),
        tags=tuple(map(redact.text, job.tags)),
        schedule=job.schedule,
        replica=job.replica,
        at=_at(job),
        created_at=job.created_at,
        took=_took(job),
        waited=_waited(job),
    )


def _show_args(args: object) -> str:
    """`order=7 item="snare drum"`, as far as there is room."""
    if not isinstance(args, dict):
        return cut(_compact(args), _LONGEST_ARGS)
    return cut(" ".join(f"{name}={_compact(value)}" for name, value in args.items()), _LONGEST_ARGS)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _at(job: Job) -> datetime:
    if job.state in ENDED:
        return job.finished_at or job.created_at
    return job.claimed_at or job.due_at


def _took(job: Job) -> timedelta | None:
    """How long its last attempt ran."""
    if job.state not in ENDED or not job.attempts:
        return None
    return job.attempts[-1].ended_at - job.attempts[-1].started_at


def _waited(job: Job) -> timedelta | None:
    """From when it was due to when it began, of a job that was begun once."""
    if len(job.attempts) == 1 and job.state in ENDED:
        return job.attempts[0].started_at - job.due_at
    if not job.attempts and job.claimed_at is not None:
        return job.claimed_at - job.due_at
    return None
