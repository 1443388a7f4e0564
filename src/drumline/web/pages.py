"""What stands under the dashboard's prefix."""

from __future__ import annotations

from starlette.responses import Response

from drumline.web.access import UserRole
from drumline.web.answers import answer_json
from drumline.web.site import Ask, Entry

__all__ = ["PAGES"]


async def answer_index(ask: Ask) -> Response:
    """What can be asked for here."""
    from importlib.metadata import version

    return answer_json({"drumline": version("drumline"), "replica_id": ask.web.drum.replica_name})


PAGES = (Entry(method="GET", path="/", role=UserRole.VIEWER, handle=answer_index),)
