"""The dead letters, grouped by what they died of."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from drumline.model.job import Job, JobState
from drumline.model.options import PRIVATE
from drumline.model.query import JobFilter
from drumline.web.dashboard.frame import page
from drumline.web.dashboard.letters import Letters, group_letters
from drumline.web.dashboard.rows import make_row
from drumline.web.show import redactor_of
from drumline.web.site import Ask

__all__ = ["READ", "show_dead"]

# So many of the newest are read and grouped for one page; the page says so where there are more.
READ = 300
SHOWN_OF_A_GROUP = 5


@page("dead", "pages/dead.html")
async def show_dead(ask: Ask) -> dict[str, Any]:
    task = ask.request.query_params.get("task") or None
    glance = ask.web.glance
    where = JobFilter(states=frozenset({JobState.DEAD}), task=task)
    found = await glance.jobs(where, limit=READ)
    rows = [row for row in await glance.counts() if row.dead and not row.queue.startswith(PRIVATE)]
    total = sum(row.dead for row in rows if task in (None, row.task))
    letters = [job for job in found.items if not job.queue.startswith(PRIVATE)]
    return {
        "groups": [_show(ask, group) for group in group_letters(letters)],
        "read": len(letters),
        "total": max(total, len(letters)),
        "is_cut": found.next is not None,
        "task": task or "",
        "where": urlencode({"state": "dead", **({"task": task} if task else {})}),
        "tasks": sorted({row.task for row in rows}),
    }


def _show(ask: Ask, group: Letters) -> dict[str, Any]:
    jobs: list[Job] = group.jobs[:SHOWN_OF_A_GROUP]
    redact = redactor_of(ask.web.drum, jobs[0])
    return {
        "letters": group,
        "number": len(group.jobs),
        "kind": group.kind,
        "example": redact.text(group.example),
        "rows": [make_row(ask.web.drum, job) for job in jobs],
        "more": len(group.jobs) - len(jobs),
    }
