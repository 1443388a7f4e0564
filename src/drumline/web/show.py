"""What is shown of jobs, log lines, schedules and the rest as JSON: stored facts, without their secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from drumline.model.instant import millis
from drumline.model.job import Job, LogLine
from drumline.model.query import AuditRow, Count, Counts
from drumline.model.redact import Redactor
from drumline.model.schedule import Decision, Tick
from drumline.model.sealed import read_body
from drumline.model.secret import NO_MARKS
from drumline.model.view import instant_text, job_json, log_json, options_json
from drumline.policy.held import count_paused
from drumline.schedules import ScheduleView

if TYPE_CHECKING:
    from drumline.app import Drumline

__all__ = ["redactor_of", "show_audit", "show_counts", "show_job", "show_line", "show_schedule", "show_tick"]


def redactor_of(drum: Drumline, job: Job) -> Redactor:
    """What hides the secrets of this job."""
    task = drum.tasks.get(job.task)
    return Redactor(read_body(job.args), NO_MARKS if task is None else task.codec.signature.secrets)


def show_job(drum: Drumline, job: Job) -> dict[str, Any]:
    redact = redactor_of(drum, job)
    return {
        name: redact.args(value) if name == "args" else redact.value(value) for name, value in job_json(job).items()
    }


def show_line(redact: Redactor, line: LogLine) -> dict[str, Any]:
    shown: dict[str, Any] = redact.value(log_json(line))
    return shown


def show_schedule(drum: Drumline, view: ScheduleView) -> dict[str, Any]:
    definition = view.definition
    task = drum.tasks.get(definition.task)
    redact = Redactor(marked=NO_MARKS if task is None else task.codec.signature.secrets)
    return {
        "name": view.name,
        "task": view.task,
        "schedule": view.schedule,
        "coordination": view.coordination.value,
        "misfire": definition.misfire.value,
        "overlap": definition.overlap.value,
        "in_code": definition.in_code,
        "args": redact.args(read_body(definition.args)),
        "options": options_json(definition.options),
        "tags": list(definition.tags),
        "paused": view.paused,
        "paused_by": view.paused_by,
        "paused_why": None if view.paused_why is None else redact.text(view.paused_why),
        "orphaned": view.orphaned,
        "next_run_at": None if view.next_run_at is None else instant_text(view.next_run_at),
        "last_tick": view.last_tick,
        "last_fired_at": None if view.last_fired_at is None else instant_text(view.last_fired_at),
        "current_leader": view.current_leader,
        "status": view.status,
        "total_runs": view.total_runs,
        "total_failures": view.total_failures,
    }


def show_tick(tick: Tick) -> dict[str, Any]:
    return {
        "schedule": tick.schedule,
        "instant": instant_text(tick.instant),
        "until": None if tick.until is None else instant_text(tick.until),
        "count": count_paused(tick) if tick.decision is Decision.PAUSED else tick.count,
        "replica": tick.replica or None,
        "decision": tick.decision.value,
        "reason": Redactor().text(tick.reason),
        "by": tick.by,
        "recorded_at": instant_text(tick.recorded_at),
        "job": tick.job_id,
        "outcome": tick.outcome,
        "run_ms": None if tick.run_time is None else millis(tick.run_time),
    }


def show_audit(row: AuditRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "at": instant_text(row.at),
        "who": row.by.who,
        "via": row.by.via,
        "why": Redactor().text(row.by.why),
        "action": row.action,
        "targets": list(row.targets),
        "answers": [answer.value for answer in row.answers],
        "part_of": row.part_of,
    }


def show_counts(counts: list[Count]) -> dict[str, int]:
    """How many jobs are in each state."""
    tally: dict[str, int] = msgspec.to_builtins(Counts(counts).total)
    return tally
