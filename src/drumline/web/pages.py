"""What stands under the dashboard's prefix."""

from __future__ import annotations

from drumline.web.api.events import EVENT_ENTRIES
from drumline.web.api.fleet import FLEET_ENTRIES
from drumline.web.api.jobs import JOB_ENTRIES
from drumline.web.api.openapi import openapi_entry
from drumline.web.api.schedules import SCHEDULE_ENTRIES
from drumline.web.dashboard.entries import DASHBOARD

__all__ = ["API", "PAGES"]

_DESCRIBED = (*JOB_ENTRIES, *SCHEDULE_ENTRIES, *FLEET_ENTRIES, *EVENT_ENTRIES)
API = (*_DESCRIBED, openapi_entry(_DESCRIBED))
PAGES = (*DASHBOARD, *API)
