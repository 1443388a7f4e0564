"""The table of the dashboard's pages."""

from __future__ import annotations

from drumline.web.access import UserRole
from drumline.web.dashboard.actions import ACTION_ENTRIES
from drumline.web.dashboard.assets import answer_asset
from drumline.web.dashboard.deadpage import show_dead
from drumline.web.dashboard.fleetpages import show_audit, show_queues, show_workers
from drumline.web.dashboard.joblist import show_jobs
from drumline.web.dashboard.jobpage import show_job_page
from drumline.web.dashboard.overview import show_overview
from drumline.web.dashboard.schedulepages import show_schedule_page, show_schedules
from drumline.web.site import Entry, Handle

__all__ = ["DASHBOARD"]


def _look(path: str, handle: Handle) -> Entry:
    return Entry(method="GET", path=path, role=UserRole.VIEWER, handle=handle, media="text/html")


DASHBOARD = (
    _look("/", show_overview),
    _look("/jobs", show_jobs),
    _look("/jobs/{id}", show_job_page),
    _look("/schedules", show_schedules),
    _look("/schedules/{name:path}", show_schedule_page),
    _look("/dead", show_dead),
    _look("/queues", show_queues),
    _look("/workers", show_workers),
    _look("/audit", show_audit),
    _look("/static/{name}", answer_asset),
    *ACTION_ENTRIES,
)
