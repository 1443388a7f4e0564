"""`drumline stats`: the fleet at a glance."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from drumline.cli.options import App, Json, Store
from drumline.cli.show import say, show_fields, show_json, show_table

if TYPE_CHECKING:
    from drumline.policy.stats import Line, Pace, Stats
    from drumline.stores.base import Store as OpenStore

__all__ = ["add_to", "line_cells", "line_headers", "pace_text", "read_stats", "replicas_text", "schedules_text"]

STATES = ("ready", "delayed", "running", "done", "dead", "cancelled")


def add_to(app: typer.Typer) -> None:
    app.command("stats")(stats)


def stats(as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Show the fleet at a glance: jobs by state, queue and task, the last hour, schedules, replicas."""
    found = asyncio.run(_read(name, store))
    if as_json:
        show_json(_as_json(found))
    else:
        _show(found)


async def read_stats(store: OpenStore) -> Stats:
    """What the store tells now, summed up."""
    from drumline.model.query import PauseKind
    from drumline.policy.stats import Fleet, last_hour, sum_up

    now = await store.now()
    return sum_up(
        Fleet(
            counts=await store.counts(),
            points=await store.series(*last_hour(now)),
            schedules=await store.schedules(),
            replicas=await store.workers(),
            paused=await store.paused(PauseKind.QUEUE),
            now=now,
        )
    )


async def _read(app: str | None, store: str | None) -> Stats:
    from drumline.cli.app import reach

    async with reach(app, store) as client:
        return await read_stats(await client.store())


def _as_json(found: Stats) -> dict[str, Any]:
    """Stored facts only: instants and no ages."""
    import msgspec

    from drumline.model.view import instant_text

    return {
        "jobs": msgspec.to_builtins(found.jobs),
        "queues": [{"queue": line.name, **_line_json(line), "paused": line.is_paused} for line in found.queues],
        "tasks": [{"task": line.name, **_line_json(line)} for line in found.tasks],
        "last_hour": {
            "from": instant_text(found.start),
            "to": instant_text(found.end),
            **msgspec.to_builtins(found.pace),
        },
        "schedules": msgspec.to_builtins(found.schedules),
        "replicas": {**found.replicas, "slots": found.slots},
    }


def _line_json(line: Line) -> dict[str, Any]:
    import msgspec

    from drumline.model.view import instant_text

    oldest = None if line.oldest_ready is None else instant_text(line.oldest_ready)
    return {
        **msgspec.to_builtins(line.tally),
        "oldest_ready": oldest,
        "last_hour": msgspec.to_builtins(line.pace),
    }


def _show(found: Stats) -> None:
    show_fields(
        [
            ("jobs", ", ".join(f"{getattr(found.jobs, state)} {state}" for state in STATES)),
            ("last hour", pace_text(found.pace)),
            ("schedules", schedules_text(found)),
            ("replicas", replicas_text(found)),
        ]
    )
    for what, lines in (("queue", found.queues), ("task", found.tasks)):
        if lines:
            say("")
            show_table(line_headers(what), [line_cells(line) for line in lines])


def line_headers(what: str, states: Sequence[str] = STATES) -> tuple[str, ...]:
    """Of a table of queues or tasks; what ended is told of the last hour."""
    return (what, *states, "1h done", "failed", "wait p95", "run p95")


def line_cells(line: Line, states: Sequence[str] = STATES) -> Sequence[object]:
    """One row of it."""
    name = f"{line.name} (paused)" if line.is_paused else line.name
    counts = [getattr(line.tally, state) for state in states]
    return (name, *counts, line.pace.done, line.pace.failed, _span(line.pace.wait_p95), _span(line.pace.run_p95))


def pace_text(pace: Pace) -> str:
    """What ended within the last hour, in a line."""
    ended = f"{pace.done} done, {pace.failed} failed"
    if pace.wait_p50 is None and pace.run_p50 is None:
        return ended
    return (
        f"{ended}; wait p50 {_span(pace.wait_p50)}, p95 {_span(pace.wait_p95)};"
        f" run p50 {_span(pace.run_p50)}, p95 {_span(pace.run_p95)}"
    )


def schedules_text(found: Stats) -> str:
    """How many there are, and what is wrong with some."""
    numbers = found.schedules
    return ", ".join((str(numbers.total), *_told(paused=numbers.paused, orphaned=numbers.orphaned, late=numbers.late)))


def replicas_text(found: Stats) -> str:
    """How many there are, and how much they can do."""
    others = {state: number for state, number in found.replicas.items() if state != "running"}
    return ", ".join((f"{found.replicas['running']} running with {found.slots} slots", *_told(**others)))


def _told(**numbers: int) -> list[str]:
    return [f"{number} {what}" for what, number in numbers.items() if number]


def _span(seconds: float | None) -> str:
    from datetime import timedelta

    from drumline.model.view import span_text

    return "" if seconds is None else span_text(timedelta(seconds=seconds))
