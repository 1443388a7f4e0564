"""What stands under the dashboard's prefix."""

from __future__ import annotations

from starlette.responses import Response

from drumline.web.access import UserRole
from drumline.web.answers import answer_json
from drumline.web.api.events import EVENT_ENTRIES
from drumline.web.api.fleet import FLEET_ENTRIES
from drumline.web.api.jobs import JOB_ENTRIES
from drumline.web.api.openapi import openapi_entry
from drumline.web.api.schedules import SCHEDULE_ENTRIES
from drumline.web.site import Ask, Entry

__all__ = ["API", "PAGES"]


async def answer_index(ask: Ask) -> Response:
    """What can be asked for here."""
    from importlib.metadata import version

    prefix = ask.request.scope.get("root_path", "")
    return answer_json({"drumline": version("drumline"), "openapi": f"{prefix}/api/openapi.json"})


_DESCRIBED = (*JOB_ENTRIES, *SCHEDULE_ENTRIES, *FLEET_ENTRIES, *EVENT_ENTRIES)
API = (*_DESCRIBED, openapi_entry(_DESCRIBED))
PAGES = (Entry(method="GET", path="/", role=UserRole.VIEWER, handle=answer_index), *API)
