"""The page of one job: all that is stored of it, what it logged, and why it waits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from drumline.cli.app import reach
from drumline.cli.show import say, show_fields
from drumline.model.job import Attempt, Job, LogLine
from drumline.model.plain import clean, clean_lines
from drumline.model.query import PauseKind
from drumline.model.sealed import body_text
from drumline.model.view import instant_text, job_json, log_json, span_text
from drumline.policy.waiting import why_waiting

__all__ = ["Page", "read_page", "show_page"]


@dataclass(frozen=True, slots=True)
class Page:
    """What is shown of one job."""

    job: Job
    lines: list[LogLine]
    # Empty if it does not wait.
    waits: str

    def as_json(self) -> dict[str, Any]:
        # Without the reason for waiting: it holds ages, and two reads of an unchanged job are equal.
        return {**job_json(self.job), "logs": [log_json(line) for line in self.lines]}


async def read_page(app: str | None, store_url: str | None, job_id: str) -> Page:
    """Read the page; JobNotFound if there is no such job."""
    async with reach(app, store_url) as client:
        job = await client.jobs.read(job_id)
        store = await client.store()
        waits = why_waiting(job, await store.workers(), await store.paused(PauseKind.QUEUE), await store.now())
        return Page(job, await client.jobs.logs(job_id), waits)


def show_page(page: Page) -> None:
    """Print it for a person."""
    show_fields((name, value) for name, value in _fields(page) if value not in (None, ""))
    for attempt in page.job.attempts:
        _show_attempt(attempt)
    if page.lines:
        say("")
        say("log")
    for line in page.lines:
        _show_line(line)


def _fields(page: Page) -> Iterator[tuple[str, object]]:
    job = page.job
    yield "job", job.id
    yield "task", job.task
    yield "state", job.state
    yield "waits", page.waits
    yield "queue", job.queue
    yield "priority", job.priority
    yield "attempt", f"{job.attempt} of {job.max_attempts}"
    yield "args", body_text(job.args)
    yield "key", job.key
    yield "tags", ", ".join(job.tags)
    yield "meta", json.dumps(dict(job.meta), ensure_ascii=False) if job.meta else None
    yield "source", job.source
    yield "origin", job.origin
    yield "schedule", job.schedule
    yield "progress", None if job.progress is None else f"{job.progress.value:.0%} {job.progress.message}"
    yield "result", None if job.result is None else body_text(job.result)
    yield "error", job.last_error
    yield "replica", job.replica
    for name in ("tick", "created_at", "due_at", "claimed_at", "lease_until", "finished_at", "expires_at"):
        instant = getattr(job, name)
        yield name, None if instant is None else instant_text(instant)
    yield "timeout", "none" if job.options.timeout is None else span_text(job.options.timeout)
    yield "lease", span_text(job.options.lease)
    yield "fence", job.fence


def _show_attempt(attempt: Attempt) -> None:
    ran = span_text(attempt.ended_at - attempt.started_at)
    say("")
    say(
        f"attempt {attempt.number}: {attempt.ended} after {ran}, begun {instant_text(attempt.started_at)} "
        f"by {attempt.replica}" + (f", recorded by {attempt.by}" if attempt.by != attempt.replica else "")
    )
    if attempt.error is None:
        return
    say(f"  {attempt.error.type}: {attempt.error.message}")
    for line in clean_lines(attempt.error.traceback).splitlines():
        print(f"    {line}")


def _show_line(line: LogLine) -> None:
    fields = "".join(f" {name}={value!r}" for name, value in line.fields.items())
    print(f"  {instant_text(line.at)} {clean(line.level):<8} attempt {line.attempt}: {clean(line.message + fields)}")
