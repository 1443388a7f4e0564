"""Schedules: look, register, unregister, pause, resume, trigger, backfill; and their ledger."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from drumline.errors import UnknownSchedule
from drumline.web.access import UserRole
from drumline.web.answers import answer_json
from drumline.web.api.bodies import Backfill, Reason, Register, given
from drumline.web.api.reading import PAGING, read_body, read_paging, read_query
from drumline.web.api.schemas import listing, schema_of, shape
from drumline.web.show import show_schedule, show_tick
from drumline.web.site import Ask, Entry

__all__ = ["SCHEDULE_ENTRIES"]

# Of the jobs that a backfill made, so many ids are told.
MOST_IDS = 1_000
_SCHEDULE = shape("name", "task", "schedule", "paused", "next_run_at")
_TICK = shape("schedule", "instant", "decision", "recorded_at")
_CHANGED = shape(name={"type": "string"}, changed={"type": "boolean"})


async def list_schedules(ask: Ask) -> Response:
    """Every schedule of the fleet."""
    read_query(ask, ())
    schedules = await ask.web.schedules(ask.who).refresh()
    return answer_json({"schedules": [show_schedule(ask.web.drum, view) for view in schedules.values()]})


async def show_one(ask: Ask) -> Response:
    return answer_json(await _read(ask, ask.path["name"]))


async def list_ticks(ask: Ask) -> Response:
    """The ledger of one schedule, newest recorded first."""
    after, limit = read_paging(read_query(ask, PAGING))
    name = ask.path["name"]
    await _read(ask, name)
    store = await ask.web.drum.store()
    page = await store.ticks(name, after=after, limit=limit)
    return answer_json({"ticks": [show_tick(tick) for tick in page.items], "next": page.next})


async def register(ask: Ask) -> Response:
    """Hold a schedule of a registered task until it is unregistered."""
    options = given(read_body(ask, Register))
    view = await ask.web.schedules(ask.who).register(options.pop("task"), **options)
    ask.tell("registered schedule %s", view.name)
    return answer_json(show_schedule(ask.web.drum, view), 201)


async def unregister(ask: Ask) -> Response:
    name = ask.path["name"]
    await ask.web.schedules(ask.who).unregister(name, read_body(ask, Reason).reason)
    ask.tell("unregistered schedule %s", name)
    return answer_json({"name": name, "changed": True})


async def pause(ask: Ask) -> Response:
    name = ask.path["name"]
    changed = await ask.web.schedules(ask.who).pause(name, read_body(ask, Reason).reason)
    ask.tell("paused schedule %s", name)
    return answer_json({"name": name, "changed": changed})


async def resume(ask: Ask) -> Response:
    name = ask.path["name"]
    changed = await ask.web.schedules(ask.who).resume(name, read_body(ask, Reason).reason)
    ask.tell("resumed schedule %s", name)
    return answer_json({"name": name, "changed": changed})


async def trigger(ask: Ask) -> Response:
    """Run it now, also while it is paused; 409 if its overlap rule forbids it."""
    reason = read_body(ask, Reason).reason
    name = ask.path["name"]
    job = await ask.web.schedules(ask.who).trigger(name, reason)
    ask.tell("triggered schedule %s", name)
    return answer_json({"name": name, "id": job.id}, 201)


async def backfill(ask: Ask) -> Response:
    """Fire the instants of a range that were not."""
    body = read_body(ask, Backfill)
    name = ask.path["name"]
    jobs = await ask.web.schedules(ask.who).backfill(name, body.start, body.end, body.reason)
    ask.tell("backfilled schedule %s: %d jobs", name, len(jobs))
    return answer_json({"name": name, "jobs": len(jobs), "ids": [job.id for job in jobs[:MOST_IDS]]})


async def _read(ask: Ask, name: str) -> dict[str, Any]:
    schedules = await ask.web.schedules(ask.who).refresh()
    if name not in schedules:
        raise UnknownSchedule(f"schedule {name!r} is not known")
    return show_schedule(ask.web.drum, schedules[name])


def _verb(name: str, handle: Any, role: UserRole, answers: dict[int, Any], body: Any = Reason) -> Entry:
    return Entry(
        method="POST",
        path=f"/api/schedules/{{name:path}}/{name}",
        role=role,
        handle=handle,
        summary=f"{name.capitalize()} a schedule.",
        body=schema_of(body),
        needs_body=body is Backfill,
        answers={404: {}, 409: {}, **answers},
    )


SCHEDULE_ENTRIES = (
    Entry(
        method="GET",
        path="/api/schedules",
        role=UserRole.VIEWER,
        handle=list_schedules,
        summary="Every schedule.",
        answers={200: shape(schedules={"type": "array", "items": _SCHEDULE})},
    ),
    Entry(
        method="POST",
        path="/api/schedules",
        role=UserRole.ADMIN,
        handle=register,
        summary="Register a schedule.",
        body=schema_of(Register),
        needs_body=True,
        answers={201: _SCHEDULE, 404: {}, 409: {}},
    ),
    _verb("pause", pause, UserRole.OPERATOR, {200: _CHANGED}),
    _verb("resume", resume, UserRole.OPERATOR, {200: _CHANGED}),
    _verb("trigger", trigger, UserRole.OPERATOR, {201: shape("name", "id")}),
    _verb("backfill", backfill, UserRole.ADMIN, {200: shape("name", "jobs", "ids")}, Backfill),
    Entry(
        method="GET",
        path="/api/schedules/{name:path}/ticks",
        role=UserRole.VIEWER,
        handle=list_ticks,
        summary="The ledger of a schedule.",
        query=PAGING,
        answers={200: listing("ticks", _TICK)},
    ),
    Entry(
        method="GET",
        path="/api/schedules/{name:path}",
        role=UserRole.VIEWER,
        handle=show_one,
        summary="One schedule.",
        answers={200: _SCHEDULE},
    ),
    Entry(
        method="DELETE",
        path="/api/schedules/{name:path}",
        role=UserRole.ADMIN,
        handle=unregister,
        summary="Unregister a schedule.",
        body=schema_of(Reason),
        answers={200: _CHANGED, 409: {}},
    ),
)
