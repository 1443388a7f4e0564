"""The pages of queues, workers and the audit."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import msgspec

from drumline.model.query import Answer, AuditRow, JobFilter
from drumline.model.redact import Redactor
from drumline.model.replica import Replica, ReplicaState
from drumline.web.dashboard.depths import PACE_OVER, measure_depths
from drumline.web.dashboard.frame import page
from drumline.web.dashboard.rows import JobRow, make_row
from drumline.web.site import Ask

__all__ = ["show_audit", "show_queues", "show_workers"]

ON_A_PAGE = 50
# Of what a replica runs, so many jobs are shown.
SHOWN_OF_A_WORKER = 8
_SHOWN_TARGETS = 3
_ORDER = list(ReplicaState)


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One replica, and what it runs now."""

    replica: Replica
    jobs: list[JobRow]
    more: int


@page("queues", "pages/queues.html")
async def show_queues(ask: Ask) -> dict[str, Any]:
    glance = ask.web.glance
    now = await glance.now()
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    counts, workers, paused, recent = await asyncio.gather(
        glance.counts(), glance.workers(), glance.paused_queues(), glance.series(end - PACE_OVER, end)
    )
    return {"depths": measure_depths(counts, workers, paused, recent)}


@page("workers", "pages/workers.html")
async def show_workers(ask: Ask) -> dict[str, Any]:
    replicas = sorted(await ask.web.glance.workers(), key=lambda one: (_ORDER.index(one.state), one.shown))
    ids = [job_id for replica in replicas for job_id in replica.running[:SHOWN_OF_A_WORKER]]
    found = await ask.web.glance.jobs(JobFilter(ids=tuple(ids))) if ids else None
    rows = {job.id: make_row(ask.web.drum, job) for job in (found.items if found else [])}
    return {"workers": [_worker(replica, rows) for replica in replicas]}


@page("audit", "pages/audit.html")
async def show_audit(ask: Ask) -> dict[str, Any]:
    after = ask.request.query_params.get("after") or None
    found = await ask.web.glance.audit(after, ON_A_PAGE)
    return {"rows": [_audit(row) for row in found.items], "next": found.next, "is_first": after is None}


def _worker(replica: Replica, rows: dict[str, JobRow]) -> WorkerRow:
    jobs = [rows[job_id] for job_id in replica.running[:SHOWN_OF_A_WORKER] if job_id in rows]
    return WorkerRow(replica=replica, jobs=jobs, more=max(len(replica.running) - SHOWN_OF_A_WORKER, 0))


def _audit(row: AuditRow) -> dict[str, Any]:
    return {
        "at": row.at,
        "who": row.by.who,
        "via": row.by.via,
        "why": Redactor().text(row.by.why),
        "action": row.action,
        "targets": list(row.targets[:_SHOWN_TARGETS]),
        "more": max(len(row.targets) - _SHOWN_TARGETS, 0),
        "came_to": _came_to(row),
        "is_slice": row.part_of is not None,
        "about_jobs": row.action in ("cancel", "retry", "discard", "reschedule"),
    }


def _came_to(row: AuditRow) -> str:
    """`12 applied, 1 refused`; nothing where it was done to one, as asked."""
    answers = Counter(answer.value for answer in row.answers)
    if len(row.answers) == 1:
        (only,) = answers
        return "" if only == Answer.APPLIED else only
    return ", ".join(f"{number:,} {answer}" for answer, number in answers.items())
