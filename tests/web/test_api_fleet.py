import msgspec
import pytest

from drumline.web.api.openapi import describe
from drumline.web.pages import API as ENTRIES
from drumline.web.show import show_tick
from tests.policy.ledger import TEN, paused
from tests.web.shop import work_off

pytestmark = pytest.mark.asyncio
API = "/admin/jobs/api"


async def test_schedules_are_listed_paused_resumed_and_triggered(drum, admin):
    await work_off(drum)
    (shown,) = (await admin.get(f"{API}/schedules")).json["schedules"]
    assert (shown["name"], shown["schedule"], shown["paused"]) == ("tidy", "every 1h", False)
    assert (await admin.post(f"{API}/schedules/tidy/pause", {"reason": "too much"})).json["changed"] is True
    shown = (await admin.get(f"{API}/schedules/tidy")).json
    assert (shown["paused_by"], shown["paused_why"]) == ("admin", "too much")
    assert (await admin.post(f"{API}/schedules/tidy/pause")).json["changed"] is False
    assert (await admin.post(f"{API}/schedules/tidy/resume")).json["changed"] is True
    answer = await admin.post(f"{API}/schedules/tidy/trigger")
    assert answer.status == 201
    assert (await admin.get(f"{API}/jobs/{answer.json['id']}")).json["source"] == "manual"


async def test_a_reason_with_nul_is_refused_before_anything_is_done(drum, admin):
    await work_off(drum)
    for path in ("schedules/tidy/pause", "queues/mail/pause", "schedules/tidy/trigger"):
        answer = await admin.post(f"{API}/{path}", {"reason": "a\0b"})
        assert (answer.status, "reason" in answer.text) == (422, True), path
    assert await drum.queues.paused() == {}
    assert (await admin.get(f"{API}/schedules/tidy")).json["paused"] is False


async def test_a_backfill_fires_what_was_not_and_stands_in_the_ledger(drum, admin):
    await work_off(drum)
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T02:30:00Z"}
    answer = await admin.post(f"{API}/schedules/tidy/backfill", span)
    assert (answer.status, answer.json["jobs"]) == (200, 3)
    assert (await admin.post(f"{API}/schedules/tidy/backfill", span)).json["jobs"] == 0
    first = (await admin.get(f"{API}/schedules/tidy/ticks?limit=1")).json
    assert (first["ticks"][0]["decision"], first["ticks"][0]["by"]) == ("fired", "admin")
    assert first["next"] is not None


async def test_a_pause_is_shown_with_the_number_of_instants_it_passed_over():
    shown = show_tick(msgspec.structs.replace(paused(12, 42), rule=TEN))
    assert (shown["decision"], shown["count"]) == ("paused", 3)


async def test_a_schedule_is_registered_and_unregistered(drum, admin):
    body = {"task": "send_mail", "name": "a/b", "cron": "0 9 * * *", "args": {"user_id": 7}}
    assert (await admin.post(f"{API}/schedules", body)).status == 201
    assert (await admin.get(f"{API}/schedules/a/b")).json["args"] == {"user_id": 7}
    assert (await admin.ask("DELETE", f"{API}/schedules/a/b")).status == 200
    assert (await admin.ask("DELETE", f"{API}/schedules/a/b")).status == 404


async def test_every_act_on_a_schedule_stands_in_the_audit(drum, admin):
    await work_off(drum)
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T02:30:00Z"}
    await admin.post(f"{API}/schedules", {"task": "send_mail", "name": "a", "every": "1h", "args": {"user_id": 7}})
    await admin.post(f"{API}/schedules/tidy/trigger", {"reason": "to see it"})
    await admin.post(f"{API}/schedules/tidy/backfill", {**span, "reason": "we were down"})
    await admin.post(f"{API}/schedules/tidy/pause", {"reason": "too much"})
    await admin.post(f"{API}/schedules/tidy/resume")
    await admin.ask("DELETE", f"{API}/schedules/a")
    rows = (await admin.get(f"{API}/audit")).json["audit"][::-1]
    assert [(row["action"], row["targets"], row["why"]) for row in rows] == [
        ("register", ["a"], ""),
        ("trigger", ["tidy"], "to see it"),
        ("backfill", ["tidy"], "we were down"),
        ("pause schedule", ["tidy"], "too much"),
        ("resume schedule", ["tidy"], ""),
        ("unregister", ["a"], ""),
    ]
    assert {(row["who"], row["via"], *row["answers"]) for row in rows} == {("admin", "http", "applied")}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"task": "no_such", "every": "1h"}, 404),
        ({"task": "send_mail", "cron": "never"}, 422),
        ({"task": "send_mail", "every": "1h", "args": {"user_id": "x"}}, 422),
        ({"task": "tidy", "every": "1h"}, 422),
        ({"task": "tidy", "name": "x", "every": 0}, 422),
    ],
)
async def test_a_schedule_that_does_not_fit_is_refused(drum, admin, body, status):
    answer = await admin.post(f"{API}/schedules", body)
    assert answer.status == status, answer.text


@pytest.mark.parametrize("verb", ["pause", "resume", "trigger", "ticks", "backfill"])
async def test_a_schedule_that_is_not_there_is_404(admin, verb):
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T02:30:00Z"}
    url = f"{API}/schedules/nothing/{verb}"
    answer = await admin.get(url) if verb == "ticks" else await admin.post(url, span if verb == "backfill" else None)
    assert answer.status == 404


@pytest.mark.parametrize(
    "span", [{"start": "x", "end": "y"}, {"start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}]
)
async def test_a_range_that_does_not_fit_is_refused(drum, admin, span):
    await work_off(drum)
    assert (await admin.post(f"{API}/schedules/tidy/backfill", span)).status == 422


async def test_queues_are_listed_paused_and_resumed(drum, admin):
    await drum.enqueue("send_mail", user_id=7)
    answer = await admin.post(f"{API}/queues/mail/pause", {"reason": "down"})
    assert answer.json == {"name": "mail", "changed": True}
    (shown,) = (await admin.get(f"{API}/queues")).json["queues"]
    assert (shown["name"], shown["ready"], shown["paused"]["who"]) == ("mail", 1, "admin")
    assert (await admin.post(f"{API}/queues/mail/resume")).json["changed"] is True
    assert (await admin.post(f"{API}/queues/%40private/pause")).status == 422


async def test_workers_tasks_counts_and_series_are_told(drum, admin):
    await drum.enqueue("send_mail", user_id=7)
    await work_off(drum)
    assert [one["state"] for one in (await admin.get(f"{API}/workers")).json["workers"]] in (["gone"], [])
    assert [task["name"] for task in (await admin.get(f"{API}/tasks")).json["tasks"]] == ["fail", "send_mail", "tidy"]
    assert (await admin.get(f"{API}/counts")).json["by_task"]["send_mail"]["done"] == 1
    (point,) = (await admin.get(f"{API}/series")).json["series"]
    assert (point["task"], point["done"], sum(point["run"])) == ("send_mail", 1, 1)


@pytest.mark.parametrize(
    "query", ["start=x", "end=2026-01-01T00:00:00Z&start=2026-01-02T00:00:00Z", "start=2020-01-01T00:00:00Z", "x=1"]
)
async def test_a_series_that_does_not_fit_is_refused(admin, query):
    assert (await admin.get(f"{API}/series?{query}")).status == 422


async def test_the_openapi_document_tells_of_every_route_and_all_it_refers_to(admin):
    document = (await admin.get(f"{API}/openapi.json")).json
    told = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}
    assert told == {(entry.method, entry.path.replace(":path}", "}")) for entry in ENTRIES}
    assert document["servers"] == [{"url": "/admin/jobs"}]
    for reference in find_references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"], reference


async def test_operation_ids_are_unique():
    operations = [operation for path in describe(ENTRIES)["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))


def find_references(value):
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        for part in value.values():
            yield from find_references(part)
    if isinstance(value, list):
        for part in value:
            yield from find_references(part)
