"""How a job is shown as JSON, to programs: stored facts only, so that two reads of an unchanged job are equal.

Instants are ISO 8601 in UTC with milliseconds, durations are seconds, arguments and results are values and not texts.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import durationpy
import msgspec

from drumline.model.job import Attempt, Enqueued, Job, LogLine, NewJob
from drumline.model.options import Backoff, JobOptions, Retention
from drumline.model.replica import Replica
from drumline.model.schedule import Tick
from drumline.model.sealed import read_body

__all__ = [
    "enqueued_json",
    "instant_text",
    "job_json",
    "log_json",
    "options_json",
    "replica_json",
    "seconds",
    "span_text",
    "tick_json",
]


def job_json(job: Job) -> dict[str, Any]:
    """All that is stored of a job, but for its log lines."""
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "state": job.state.value,
        "priority": job.priority,
        "args": read_body(job.args),
        "key": job.key,
        "tags": list(job.tags),
        "meta": dict(job.meta),
        "source": job.source.value,
        "origin": job.origin,
        "schedule": job.schedule,
        "tick": _instant(job.tick),
        "waits_for": job.waits_for,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "fence": job.fence,
        "created_at": instant_text(job.created_at),
        "due_at": instant_text(job.due_at),
        "claimed_at": _instant(job.claimed_at),
        "finished_at": _instant(job.finished_at),
        "expires_at": _instant(job.expires_at),
        "replica": job.replica,
        "lease_until": _instant(job.lease_until),
        "progress": None if job.progress is None else msgspec.to_builtins(job.progress),
        "result": None if job.result is None else read_body(job.result),
        "result_is_repr": job.result_is_repr,
        "user_error": job.user_error,
        "last_error": job.last_error,
        "attempts": [*map(_attempt_json, job.attempts), *_open_attempt(job)],
        **_treatment(job.options),
    }


def enqueued_json(asked: NewJob, answer: Enqueued) -> dict[str, Any]:
    """What an enqueue came to: the job as it was asked for, or, under its unique key, the one that stood already."""
    return {
        "id": answer.id,
        "task": asked.task,
        "queue": asked.options.queue,
        "state": answer.state.value,
        "priority": asked.options.priority,
        "args": read_body(asked.args),
        "key": None if asked.key is None else asked.key.name,
        "tags": list(asked.tags),
        "created": answer.created,
        "replaced": answer.replaced,
    }


def log_json(line: LogLine) -> dict[str, Any]:
    """One line that a job logged."""
    return {
        "attempt": line.attempt,
        "number": line.number,
        "at": instant_text(line.at),
        "level": line.level,
        "message": line.message,
        "fields": dict(line.fields),
    }


def replica_json(replica: Replica) -> dict[str, Any]:
    """All that is stored of a replica, and the jobs it holds."""
    info = replica.info
    return {
        "replica": replica.shown,
        "id": info.id,
        "name": info.name,
        "state": replica.state.value,
        "role": info.role.value,
        "host": info.host,
        "pid": info.pid,
        "version": info.version,
        "queues": list(info.queues),
        "tasks": list(info.tasks),
        "schedules": list(info.schedules),
        "slots": info.slots,
        "running": list(replica.running),
        "stale_writes": info.stale_writes,
        "stuck": info.stuck,
        "beat_every": seconds(info.beat_every),
        "started_at": instant_text(replica.started_at),
        "seen_at": instant_text(replica.seen_at),
    }


def tick_json(tick: Tick) -> dict[str, Any]:
    """One row of the ledger."""
    return {
        "schedule": tick.schedule,
        "mark": tick.mark,
        "replica": tick.replica or None,
        "instant": instant_text(tick.instant),
        "until": _instant(tick.until),
        "count": tick.count,
        "decision": tick.decision.value,
        "reason": tick.reason,
        "by": tick.by,
        "recorded_at": instant_text(tick.recorded_at),
        "job_id": tick.job_id,
        "outcome": tick.outcome,
        "run_time": None if tick.run_time is None else seconds(tick.run_time),
        "rule": None if tick.rule is None else msgspec.to_builtins(tick.rule),
    }


def options_json(options: JobOptions) -> dict[str, Any]:
    """Every option of a job with its value."""
    return {
        "queue": options.queue,
        "priority": options.priority,
        "max_attempts": options.max_attempts,
        **_treatment(options),
    }


def instant_text(instant: datetime) -> str:
    """The instant in UTC, to the millisecond."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(span: timedelta) -> int | float:
    """The span as a number; a whole one where it is whole."""
    number = span.total_seconds()
    return int(number) if number.is_integer() else number


def span_text(span: timedelta) -> str:
    """The span as a person would give it: 1h30m, 7d, 250ms."""
    text: str = durationpy.to_str(span, extended=True)
    return text if span else "0s"


def _treatment(options: JobOptions) -> dict[str, Any]:
    """The options that a job does not show elsewhere."""
    return {
        "backoff": _backoff_json(options.backoff),
        "timeout": None if options.timeout is None else seconds(options.timeout),
        "lease": seconds(options.lease),
        "retention": _retention_json(options.retention),
    }


def _backoff_json(backoff: Backoff) -> dict[str, Any]:
    return {
        "initial": seconds(backoff.initial),
        "factor": backoff.factor,
        "cap": seconds(backoff.cap),
        "jitter": backoff.jitter,
        "steps": [seconds(step) for step in backoff.steps],
    }


def _retention_json(retention: Retention) -> dict[str, Any]:
    return {name: seconds(getattr(retention, name)) for name in ("done", "dead", "cancelled")}


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "fence": attempt.fence,
        "replica": attempt.replica,
        "by": attempt.by,
        "started_at": instant_text(attempt.started_at),
        "ended_at": instant_text(attempt.ended_at),
        "ended": attempt.ended,
        "error": None if attempt.error is None else msgspec.to_builtins(attempt.error),
    }


def _open_attempt(job: Job) -> list[dict[str, Any]]:
    """The attempt that runs now, in the shape of one that has ended."""
    if job.claimed_at is None:
        return []
    return [
        {
            "number": job.attempt,
            "fence": job.fence,
            "replica": job.replica,
            "by": None,
            "started_at": instant_text(job.claimed_at),
            "ended_at": None,
            "ended": None,
            "error": None,
        }
    ]


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else instant_text(instant)
