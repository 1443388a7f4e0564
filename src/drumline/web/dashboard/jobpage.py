"""The page of one job: what it was asked to do, how far it is, what it said, and what happened in each attempt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drumline.model.job import ENDED, WAITING, Attempt, Job, JobState, LogLine
from drumline.model.query import JobFilter
from drumline.model.redact import Redactor
from drumline.policy.waiting import why_waiting
from drumline.web.answers import Refusal
from drumline.web.api.reading import read_id
from drumline.web.dashboard.frame import page
from drumline.web.dashboard.wording import span
from drumline.web.show import redactor_of, show_job
from drumline.web.site import Ask

__all__ = ["AttemptRow", "Step", "show_job_page", "tell_left", "timeline"]

# Of very many log lines the page shows the last ones.
MOST_LINES = 400
_BAD = ("failed", "timeout", "lost")
_KINDS = {"done": "done", "cancelled": "cancelled", "released": "delayed", "snoozed": "delayed"}


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt; `ended` is empty while it runs."""

    number: int
    kind: str
    ended: str
    replica: str
    started_at: datetime
    took: timedelta
    error: str
    traceback: str
    then: str


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log."""

    at: datetime
    level: str
    message: str
    fields: str
    attempt: int


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the job's way through its states."""

    kind: str
    label: str
    at: datetime
    # How long after the step before.
    after: timedelta | None


@page("jobs", "pages/job.html")
async def show_job_page(ask: Ask) -> dict[str, Any]:
    glance = ask.web.glance
    found = await glance.jobs(JobFilter(ids=(read_id(ask),)), limit=1)
    if not found.items:
        raise Refusal(404, "No such job is stored: the id is wrong, or its retention is over.")
    job = found.items[0]
    now = await glance.now()
    redact = redactor_of(ask.web.drum, job)
    shown = show_job(ask.web.drum, job)
    lines = await glance.logs(job.id)
    waits = why_waiting(job, await glance.workers(), await glance.paused_queues(), now)
    return {
        "job": job,
        "shown": shown,
        "args": _pretty(shown["args"]),
        "result": "" if job.result is None else _pretty(shown["result"]),
        "meta": _pretty(shown["meta"]) if job.meta else "",
        "waits": redact.text(waits),
        "left": tell_left(job, now),
        "lines": [_line(redact, line) for line in lines[-MOST_LINES:]],
        "lines_left_out": max(len(lines) - MOST_LINES, 0),
        "attempts": _attempts(job, redact, now),
        "steps": timeline(job),
        "message": "" if job.progress is None else redact.text(job.progress.message),
        "is_ended": job.state in ENDED,
        "is_waiting": job.state in WAITING,
        "options": _options(job),
    }


def tell_left(job: Job, now: datetime) -> str:
    """`62 % · about 40 s left`, as far as it can be told."""
    if job.progress is None:
        return ""
    told = f"{100 * job.progress.value:.0f} %"
    is_moving = job.claimed_at is not None and 0.02 <= job.progress.value < 1
    if job.state is not JobState.RUNNING or not is_moving or job.claimed_at is None:
        return told
    ran = now - job.claimed_at
    left = ran * ((1 - job.progress.value) / job.progress.value)
    return f"{told} · about {span(left)} left" if left >= timedelta(seconds=1) else told


def timeline(job: Job) -> list[Step]:
    """The states it went through, oldest first, as far as its history tells."""
    points: list[tuple[str, str, datetime]] = [("ready", "enqueued", job.created_at)]
    for attempt in job.attempts:
        points.append(("running", f"attempt {attempt.number} began", attempt.started_at))
        kind = "dead" if attempt.ended in _BAD else _KINDS.get(attempt.ended, "ready")
        points.append((kind, attempt.ended, attempt.ended_at))
    if job.claimed_at is not None:
        points.append(("running", f"attempt {job.attempt} began", job.claimed_at))
    if job.finished_at is not None and job.state in ENDED:
        points.append((job.state.value, job.state.value, job.finished_at))
    elif job.state in WAITING and job.due_at > job.created_at:
        points.append(("delayed", "due", job.due_at))
    points = _without_echo(points)
    befores = [None, *(at for _, _, at in points[:-1])]
    return [
        Step(kind=kind, label=label, at=at, after=None if before is None else max(at - before, timedelta()))
        for (kind, label, at), before in zip(points, befores, strict=True)
    ]


def _without_echo(points: list[tuple[str, str, datetime]]) -> list[tuple[str, str, datetime]]:
    """The end of the last attempt and the end of the job are one point, told once."""
    kept: list[tuple[str, str, datetime]] = []
    for kind, label, at in points:
        if kept and kept[-1][1] == label:
            kept.pop()
        elif kept and kept[-1][1] in _BAD and kind == "dead":
            _, before, at = kept.pop()
            label = f"{before}, dead"
        kept.append((kind, label, at))
    return kept


def _attempts(job: Job, redact: Redactor, now: datetime) -> list[AttemptRow]:
    """Newest first; the one that runs stands on top."""
    rows = [_attempt(job, place, redact) for place in range(len(job.attempts))]
    if job.claimed_at is not None:
        words = f"attempt {job.attempt} of {job.max_attempts}"
        if job.state is JobState.CANCELLING:
            words += ", asked to stop"
        rows.append(
            AttemptRow(
                number=job.attempt,
                kind="running",
                ended="",
                replica=job.replica or "",
                started_at=job.claimed_at,
                took=now - job.claimed_at,
                error="",
                traceback="",
                then=words,
            )
        )
    return rows[::-1]


def _attempt(job: Job, place: int, redact: Redactor) -> AttemptRow:
    attempt = job.attempts[place]
    error = attempt.error
    return AttemptRow(
        number=attempt.number,
        kind="dead" if attempt.ended in _BAD else _KINDS.get(attempt.ended, "ready"),
        ended=attempt.ended,
        replica=attempt.replica,
        started_at=attempt.started_at,
        took=attempt.ended_at - attempt.started_at,
        error="" if error is None else redact.text(f"{error.type}: {error.message}"),
        traceback="" if error is None else redact.text(error.traceback),
        then=_then(job, place, attempt),
    )


def _then(job: Job, place: int, attempt: Attempt) -> str:
    """What followed."""
    following = job.attempts[place + 1] if place + 1 < len(job.attempts) else None
    begun = following.started_at if following is not None else job.claimed_at
    if begun is not None:
        return f"began again after {span(begun - attempt.ended_at)}"
    if job.state in WAITING and attempt.ended in _BAD:
        return f"attempt {job.attempt + 1} of {job.max_attempts} follows"
    if attempt.by and attempt.by != attempt.replica:
        return f"recorded by {attempt.by.rpartition(':')[0] or attempt.by}"
    return ""


def _line(redact: Redactor, line: LogLine) -> Line:
    fields = redact.value(dict(line.fields))
    return Line(
        at=line.at,
        level=line.level,
        message=redact.text(line.message),
        fields=" ".join(f"{name}={_compact(value)}" for name, value in fields.items()),
        attempt=line.attempt,
    )


def _options(job: Job) -> Sequence[tuple[str, str]]:
    options = job.options
    limit = "none" if options.timeout is None else span(options.timeout)
    return [
        ("Attempts", f"{job.attempt} of {job.max_attempts}"),
        ("Time limit", limit),
        ("Lease", span(options.lease)),
    ]


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _compact(value: Any) -> str:
    return value if isinstance(value, str) and value and " " not in value else json.dumps(value, ensure_ascii=False)
