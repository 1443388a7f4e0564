"""The pages of schedules: all of them, and one with its ledger."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

from drumline.model.query import JobFilter
from drumline.model.redact import Redactor
from drumline.model.schedule import Coordination, Decision, ScheduleStatus, Tick
from drumline.model.sealed import read_body
from drumline.model.secret import NO_MARKS
from drumline.model.view import span_text
from drumline.policy.rule import describe
from drumline.web.answers import Refusal
from drumline.web.dashboard.frame import page
from drumline.web.dashboard.rows import make_row
from drumline.web.dashboard.schedules import coverage_of, make_schedule_row, next_runs, passed_over
from drumline.web.dashboard.strips import LATE, Strip, draw_strip, kind_of
from drumline.web.site import Ask

__all__ = ["show_schedule_page", "show_schedules"]

ON_A_PAGE = 25
STRIP_PLACES = 60
LONG_STRIP_PLACES = 100
TICKS_ON_A_PAGE = 25
RUNS_AHEAD = 6
RUNS_BEHIND = 6
_SAID = {
    Decision.FIRED: "fired",
    Decision.MISSED: "missed",
    Decision.OVERLAP: "skipped",
    Decision.PAUSED: "paused",
    Decision.CHANGED: "changed",
    Decision.ORPHANED: "orphaned",
}


@page("schedules", "pages/schedules.html")
async def show_schedules(ask: Ask) -> dict[str, Any]:
    glance = ask.web.glance
    now, statuses, workers = await asyncio.gather(glance.now(), glance.schedules(), glance.workers())
    after = ask.request.query_params.get("after", "")
    behind = [status for status in statuses if status.schedule.name > after]
    shown = behind[:ON_A_PAGE]
    ticks = await asyncio.gather(*(glance.newest_ticks(status, STRIP_PLACES) for status in shown))
    rows = [
        make_schedule_row(status, workers, now).with_strip(_draw(status, found, now, STRIP_PLACES))
        for status, found in zip(shown, ticks, strict=True)
    ]
    return {
        "rows": rows,
        "places": STRIP_PLACES,
        "next": shown[-1].schedule.name if len(behind) > ON_A_PAGE else "",
        "is_first": not after,
    }


@page("schedules", "pages/schedule.html")
async def show_schedule_page(ask: Ask) -> dict[str, Any]:
    glance = ask.web.glance
    now, statuses, workers = await asyncio.gather(glance.now(), glance.schedules(), glance.workers())
    status = _find(statuses, ask.path["name"])
    name = status.schedule.name
    after = ask.request.query_params.get("after") or None
    ledger = await glance.ticks(name, after, TICKS_ON_A_PAGE)
    newest = await glance.newest_ticks(status, LONG_STRIP_PLACES)
    jobs = await glance.jobs(JobFilter(schedule=name), limit=RUNS_BEHIND)
    places = max(STRIP_PLACES, len(newest))
    return {
        "row": make_schedule_row(status, workers, now).with_strip(_draw(status, newest, now, places)),
        "schedule": status.schedule,
        "rule": describe(status.schedule.rule),
        "runs": next_runs(status, now, RUNS_AHEAD),
        "jobs": [make_row(ask.web.drum, job) for job in jobs.items],
        "args": _show_args(ask, status),
        "facts": _facts(status),
        "coverage": coverage_of(status, workers),
        "is_everywhere": status.schedule.coordination is Coordination.PER_REPLICA,
        "ticks": [_show_tick(tick) for tick in ledger.items],
        "next": ledger.next,
        "is_first": after is None,
    }


def _draw(status: ScheduleStatus, ticks: list[Tick], now: datetime, places: int) -> Strip:
    return draw_strip(ticks, places, passed_over(status, now, places))


def _find(statuses: list[ScheduleStatus], name: str) -> ScheduleStatus:
    found = next((status for status in statuses if status.schedule.name == name), None)
    if found is None:
        raise Refusal(404, "There is no such schedule: it was unregistered, or no replica has run it yet.")
    return found


def _show_args(ask: Ask, status: ScheduleStatus) -> str:
    task = ask.web.drum.tasks.get(status.schedule.task)
    args = read_body(status.schedule.args)
    redact = Redactor(args, NO_MARKS if task is None else task.codec.signature.secrets)
    return json.dumps(redact.args(args), ensure_ascii=False, indent=2) if args else ""


def _facts(status: ScheduleStatus) -> list[tuple[str, str]]:
    schedule = status.schedule
    facts = [
        ("Missed ticks", schedule.misfire.value),
        ("Overlap", schedule.overlap.value.replace("_", " ")),
        ("Queue", schedule.options.queue),
        ("Declared", "in code" if schedule.in_code else "at run time"),
    ]
    if schedule.rule.jitter:
        facts.append(("Jitter", span_text(schedule.rule.jitter)))
    if schedule.run_on_startup:
        facts.append(("At the fleet's start", "runs once"))
    return facts


def _show_tick(tick: Tick) -> dict[str, Any]:
    is_fired = tick.decision is Decision.FIRED
    late = tick.recorded_at - tick.instant
    return {
        "instant": tick.instant,
        "until": tick.until,
        "count": tick.count,
        "decision": _SAID.get(tick.decision, tick.decision.value),
        "kind": kind_of(tick) if is_fired else "skipped",
        "outcome": (tick.outcome or "not ended yet") if is_fired else "",
        "reason": Redactor().text(tick.reason),
        "by": tick.replica or tick.by,
        "late": late if is_fired and late >= LATE else None,
        "run_time": tick.run_time,
        "job_id": tick.job_id,
    }
