"""Every route × {no one, viewer, operator, admin}. A route that is not listed here fails: so does one that is gone."""

import re

import pytest

from drumline.web.sites import make_root_site, make_sites
from drumline.web.web import Web
from tests.web.browser import Browser, bearer
from tests.web.shop import AUTH, TOKENS, serve

pytestmark = pytest.mark.asyncio

OPEN, VIEWER, OPERATOR, ADMIN = "open", "viewer", "operator", "admin"
ROLES = (VIEWER, OPERATOR, ADMIN)
# What each route needs, said once more, so that a slip in the table is noticed.
EXPECTED = {
    ("GET", "/actuator/live"): OPEN,
    ("GET", "/actuator/ready"): OPEN,
    ("GET", "/actuator/startup"): OPEN,
    ("GET", "/actuator/health"): OPEN,
    ("GET", "/actuator/tasks"): VIEWER,
    ("GET", "/actuator/jobs"): VIEWER,
    ("GET", "/actuator/info"): VIEWER,
    ("GET", "/actuator/metrics"): VIEWER,
    ("GET", "/track/{token}"): OPEN,
    ("GET", "/admin/jobs/"): VIEWER,
    ("GET", "/admin/jobs/jobs"): VIEWER,
    ("GET", "/admin/jobs/jobs/{id}"): VIEWER,
    ("GET", "/admin/jobs/schedules"): VIEWER,
    ("GET", "/admin/jobs/schedules/{name:path}"): VIEWER,
    ("GET", "/admin/jobs/dead"): VIEWER,
    ("GET", "/admin/jobs/queues"): VIEWER,
    ("GET", "/admin/jobs/workers"): VIEWER,
    ("GET", "/admin/jobs/audit"): VIEWER,
    ("GET", "/admin/jobs/static/{name}"): VIEWER,
    ("GET", "/admin/jobs/do/retry"): OPERATOR,
    ("POST", "/admin/jobs/do/retry"): OPERATOR,
    ("GET", "/admin/jobs/do/cancel"): OPERATOR,
    ("POST", "/admin/jobs/do/cancel"): OPERATOR,
    ("GET", "/admin/jobs/do/discard"): ADMIN,
    ("POST", "/admin/jobs/do/discard"): ADMIN,
    ("GET", "/admin/jobs/do/reschedule"): OPERATOR,
    ("POST", "/admin/jobs/do/reschedule"): OPERATOR,
    ("GET", "/admin/jobs/do/pause-queue"): OPERATOR,
    ("POST", "/admin/jobs/do/pause-queue"): OPERATOR,
    ("GET", "/admin/jobs/do/resume-queue"): OPERATOR,
    ("POST", "/admin/jobs/do/resume-queue"): OPERATOR,
    ("GET", "/admin/jobs/do/pause-schedule"): OPERATOR,
    ("POST", "/admin/jobs/do/pause-schedule"): OPERATOR,
    ("GET", "/admin/jobs/do/resume-schedule"): OPERATOR,
    ("POST", "/admin/jobs/do/resume-schedule"): OPERATOR,
    ("GET", "/admin/jobs/do/run-schedule"): OPERATOR,
    ("POST", "/admin/jobs/do/run-schedule"): OPERATOR,
    ("GET", "/admin/jobs/do/backfill-schedule"): ADMIN,
    ("POST", "/admin/jobs/do/backfill-schedule"): ADMIN,
    ("GET", "/admin/jobs/do/unregister-schedule"): ADMIN,
    ("POST", "/admin/jobs/do/unregister-schedule"): ADMIN,
    ("GET", "/admin/jobs/api/jobs"): VIEWER,
    ("POST", "/admin/jobs/api/jobs"): OPERATOR,
    ("GET", "/admin/jobs/api/jobs/{id}"): VIEWER,
    ("POST", "/admin/jobs/api/jobs/{id}/cancel"): OPERATOR,
    ("POST", "/admin/jobs/api/jobs/{id}/retry"): OPERATOR,
    ("POST", "/admin/jobs/api/jobs/{id}/discard"): ADMIN,
    ("POST", "/admin/jobs/api/jobs/{id}/reschedule"): OPERATOR,
    ("POST", "/admin/jobs/api/jobs/cancel"): OPERATOR,
    ("POST", "/admin/jobs/api/jobs/retry"): OPERATOR,
    ("POST", "/admin/jobs/api/jobs/discard"): ADMIN,
    ("GET", "/admin/jobs/api/schedules"): VIEWER,
    ("POST", "/admin/jobs/api/schedules"): ADMIN,
    ("GET", "/admin/jobs/api/schedules/{name:path}"): VIEWER,
    ("DELETE", "/admin/jobs/api/schedules/{name:path}"): ADMIN,
    ("GET", "/admin/jobs/api/schedules/{name:path}/ticks"): VIEWER,
    ("POST", "/admin/jobs/api/schedules/{name:path}/pause"): OPERATOR,
    ("POST", "/admin/jobs/api/schedules/{name:path}/resume"): OPERATOR,
    ("POST", "/admin/jobs/api/schedules/{name:path}/trigger"): OPERATOR,
    ("POST", "/admin/jobs/api/schedules/{name:path}/backfill"): ADMIN,
    ("GET", "/admin/jobs/api/queues"): VIEWER,
    ("POST", "/admin/jobs/api/queues/{name:path}/pause"): OPERATOR,
    ("POST", "/admin/jobs/api/queues/{name:path}/resume"): OPERATOR,
    ("GET", "/admin/jobs/api/workers"): VIEWER,
    ("GET", "/admin/jobs/api/tasks"): VIEWER,
    ("GET", "/admin/jobs/api/counts"): VIEWER,
    ("GET", "/admin/jobs/api/series"): VIEWER,
    ("GET", "/admin/jobs/api/audit"): VIEWER,
    ("GET", "/admin/jobs/api/events"): VIEWER,
    ("GET", "/admin/jobs/api/openapi.json"): VIEWER,
}


async def test_the_routes_are_those_listed(drum):
    sites = make_sites(Web(drum), AUTH, path="/admin/jobs", actuator="/actuator", track="/track")
    found = {(entry.method, prefix + entry.path) for prefix, site in sites.items() for entry in site.entries}
    assert found == set(EXPECTED)


@pytest.mark.parametrize(("method", "path"), EXPECTED)
async def test_a_route_lets_in_whom_it_should(drum, method, path):
    browser = Browser(serve(drum, AUTH))
    needed = EXPECTED[method, path]
    url = re.sub(r"{[^}]*}", "00000000-0000-0000-0000-000000000000", path)
    statuses = {"nobody": (await _status(browser, method, url))}
    for role in ROLES:
        statuses[role] = await _status(browser.known_as(bearer(TOKENS[role])), method, url)
    if needed == OPEN:
        assert all(status not in (401, 403) for status in statuses.values())
        return
    refused = dict.fromkeys(ROLES[: ROLES.index(needed)], 403)
    assert {who: status for who, status in statuses.items() if status in (401, 403)} == {"nobody": 401, **refused}


@pytest.mark.parametrize(("method", "path"), EXPECTED)
async def test_a_closed_site_lets_nobody_in(drum, method, path):
    url = re.sub(r"{[^}]*}", "00000000-0000-0000-0000-000000000000", path)
    browser = Browser(serve(drum, None)).known_as(bearer(TOKENS["admin"]))
    assert (await _status(browser, method, url) == 403) == (EXPECTED[method, path] != OPEN)


async def test_at_the_root_stand_the_words_for_supervisors(drum):
    entries = make_root_site(Web(drum), AUTH).entries
    assert {entry.path: entry.role for entry in entries} == {
        "/live": None,
        "/ready": None,
        "/startup": None,
        "/metrics": "viewer",
    }


async def _status(browser: Browser, method: str, url: str) -> int:
    async with browser.open(url) if method == "GET" else browser.asking(method, url) as answer:
        await answer.begun.wait()
        return answer.status
