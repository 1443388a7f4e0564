"""The overview: what needs a person, how fast the fleet is, how deep the queues are, what fires next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drumline.model.options import PRIVATE
from drumline.model.query import Count
from drumline.model.replica import Replica
from drumline.model.schedule import ScheduleStatus
from drumline.policy.minutes import Minutes, add_up
from drumline.policy.serving import live_workers
from drumline.web.answers import Refusal
from drumline.web.dashboard.attention import find_attention
from drumline.web.dashboard.depths import PACE_OVER, Depth, measure_depths
from drumline.web.dashboard.frame import page
from drumline.web.dashboard.plot import Plot, draw_bars, draw_lines, draw_spark
from drumline.web.dashboard.schedules import ScheduleRow, make_schedule_row, passed_over
from drumline.web.dashboard.strips import draw_strip
from drumline.web.dashboard.wording import per_cent, span_parts
from drumline.web.site import Ask

__all__ = ["show_overview"]

# How far back the charts look, and what that is called.
RANGES = {"hour": "Last hour", "day": "Last day"}
_HOUR = timedelta(hours=1)
MOST_SCHEDULES = 6
MOST_QUEUES = 8
STRIP_PLACES = 40


class Stat(msgspec.Struct, frozen=True, kw_only=True):
    """One number that tells how it goes, and how it went."""

    label: str
    number: str
    unit: str
    kind: str
    spark: str


@page("overview", "pages/overview.html")
async def show_overview(ask: Ask) -> dict[str, Any]:
    name = ask.request.query_params.get("range", "hour")
    if name not in RANGES:
        raise Refusal(422, f"range: must be one of {', '.join(RANGES)}")
    label = RANGES[name]
    glance = ask.web.glance
    now = await glance.now()
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    counts, workers, paused, statuses, recent, minutes = await asyncio.gather(
        glance.counts(),
        glance.workers(),
        glance.paused_queues(),
        glance.schedules(),
        glance.series(end - PACE_OVER, end),
        _read_hour(ask, end) if name == "hour" else ask.web.quarters.day(now),
    )
    depths = measure_depths(counts, workers, paused, recent)
    return {
        "attention": find_attention(counts, depths, statuses, workers, now),
        "stats": _stats(minutes, counts, workers),
        "finished": _plot_finished(minutes, label),
        "waits": _plot_spans(minutes.waits(0.5), minutes.waits(0.95), minutes, f"Wait before start, {label.lower()}"),
        "runs": _plot_spans(minutes.runs(0.5), minutes.runs(0.95), minutes, f"Run time, {label.lower()}"),
        "schedules": await _schedules(ask, statuses, workers, now),
        "more_schedules": max(len(statuses) - MOST_SCHEDULES, 0),
        "depths": _deepest(depths),
        "more_queues": max(len(depths) - MOST_QUEUES, 0),
        "range": name,
        "range_label": label,
        "has_worker": bool(live_workers(workers)),
        "is_new": not counts and not statuses,
    }


async def _read_hour(ask: Ask, end: datetime) -> Minutes:
    points = await ask.web.glance.series(end - _HOUR, end)
    return add_up([point for point in points if not point.queue.startswith(PRIVATE)], end - _HOUR, end)


def _stats(minutes: Minutes, counts: Sequence[Count], workers: Sequence[Replica]) -> list[Stat]:
    # The last minute is not over yet: the one before tells the pace, unless nothing is older.
    pace = max(minutes.steps[-2].done, minutes.steps[-1].done) / minutes.width
    wait = minutes.wait(0.95)
    number, unit = ("–", "") if wait is None else span_parts(timedelta(milliseconds=wait))
    running = sum(row.running for row in counts)
    slots = sum(worker.info.slots for worker in live_workers(workers))
    done, failed = sum(minutes.done), sum(minutes.failed)
    per_step = [step.done + step.failed for step in minutes.steps]
    rates = [100 * step.failed / total if total else 0 for step, total in zip(minutes.steps, per_step, strict=True)]
    return [
        Stat(label="Finished", number=f"{pace:,.0f}", unit="per minute", kind="done", spark=draw_spark(minutes.done)),
        Stat(
            label="Wait before start, p95",
            number=number,
            unit=unit,
            kind="running",
            spark=draw_spark([quantity or 0 for quantity in minutes.waits(0.95)]),
        ),
        Stat(
            label="Running",
            number=f"{running:,}",
            unit=f"of {slots:,} slots",
            kind="ready",
            spark=draw_spark(minutes.busy()),
        ),
        Stat(
            label="Failed attempts",
            number=per_cent(failed, done + failed),
            unit="%",
            kind="dead",
            spark=draw_spark(rates),
        ),
    ]


def _plot_finished(minutes: Minutes, label: str) -> Plot:
    unit = "minute" if minutes.width == 1 else f"{minutes.width} minutes"
    return draw_bars(
        [step.at for step in minutes.steps], minutes.done, minutes.failed, f"Attempts ended per {unit}, {label.lower()}"
    )


def _plot_spans(low: list[float | None], high: list[float | None], minutes: Minutes, title: str) -> Plot:
    return draw_lines([step.at for step in minutes.steps], low, high, title)


async def _schedules(
    ask: Ask, statuses: Sequence[ScheduleStatus], workers: Sequence[Replica], now: datetime
) -> list[ScheduleRow]:
    """The first by name, so that none changes its place under the reader's eyes."""
    shown = [make_schedule_row(status, workers, now) for status in statuses[:MOST_SCHEDULES]]
    ticks = await asyncio.gather(*(ask.web.glance.newest_ticks(row.status, STRIP_PLACES) for row in shown))
    return [
        row.with_strip(draw_strip(found, STRIP_PLACES, passed_over(row.status, now, STRIP_PLACES)))
        for row, found in zip(shown, ticks, strict=True)
    ]


def _deepest(depths: Sequence[Depth]) -> list[Depth]:
    """The queues with the most to do, and of those the first by name."""
    kept = sorted(depths, key=lambda depth: (-depth.ready, depth.name))[:MOST_QUEUES]
    return sorted(kept, key=lambda depth: depth.name)
