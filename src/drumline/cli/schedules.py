"""`drumline schedules`: what fires when; pause and resume, trigger, backfill and unregister."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drumline.cli.options import App, From, Json, Reason, Store, hand_down, read_instants
from drumline.cli.progress import show_progress
from drumline.cli.show import complain, say, show_json, show_table, tell_changes
from drumline.errors import UnknownSchedule

if TYPE_CHECKING:
    from drumline.model.schedule import Rule
    from drumline.schedules import Schedules, ScheduleView

__all__ = ["app"]

HEADERS = ("schedule", "rule", "task", "state", "next", "last tick", "fired", "by", "runs", "failures")

app = typer.Typer(
    help="See what fires when; pause and resume, trigger, backfill and unregister schedules.", rich_markup_mode=None
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a schedule.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of schedules.")]
Number = Annotated[int, typer.Option("--number", "-n", min=1, max=10_000, help="So many.")]
Since = Annotated[str, typer.Option("--from", metavar="INSTANT", help="The first instant: 2026-05-05T14:00:00Z.")]
Until = Annotated[str, typer.Option("--to", metavar="INSTANT", help="The last instant, included.")]


@app.callback(invoke_without_command=True)
def schedules(context: typer.Context, as_json: Json = False, name: App = None, store: Store = None) -> None:
    """See what fires when; pause and resume, trigger, backfill and unregister schedules. Without a command: list."""
    hand_down(context)
    if context.invoked_subcommand is None:
        _list(name, store, as_json=as_json)


@app.command("list")
def list_schedules(as_json: Json = False, name: App = None, store: Store = None) -> None:
    """List the schedules with their next instant; with an app, also those that it declares and no replica has yet."""
    _list(name, store, as_json=as_json)


@app.command("next")
def show_next(
    schedule: Name,
    number: Number = 10,
    start: From = None,
    as_json: Json = False,
    name: App = None,
    store: Store = None,
) -> None:
    """Show the instants at which a schedule fires next, and what a change of the clocks does to them."""
    begin, _ = read_instants(start, None)
    view, rows = asyncio.run(_preview(name, store, schedule, number, begin))
    if as_json:
        show_json(rows)
        return
    show_table(
        ("local", "zone", "utc", "note"), [(_wall(row), row["zone"], row["utc"], row["note"] or "") for row in rows]
    )
    if view.paused or view.orphaned:
        state = _state(view)
        complain(f"schedule {schedule} is {state}: none of these fires while it is")


@app.command("pause")
def pause(names: Names, reason: Reason = "", as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Let schedules fire no more, in the whole fleet; jobs that were made go on."""
    answers = asyncio.run(_set(name, store, names, reason, paused=True))
    tell_changes("schedule", answers, "paused", "was paused already", as_json=as_json)


@app.command("resume")
def resume(names: Names, reason: Reason = "", as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Let schedules fire again, from now on: what lay in the pause is not caught up."""
    answers = asyncio.run(_set(name, store, names, reason, paused=False))
    tell_changes("schedule", answers, "resumed", "was not paused", as_json=as_json)


@app.command("trigger")
def trigger(schedule: Name, reason: Reason = "", as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Run a schedule's task now, also while paused; refused while its overlap policy forbids it."""
    job_id = asyncio.run(_trigger(name, store, schedule, reason))
    if as_json:
        show_json({"schedule": schedule, "id": job_id})
    else:
        say(f"schedule {schedule}: job {job_id} made")


@app.command("backfill")
def backfill(
    schedule: Name,
    start: Since,
    end: Until,
    reason: Reason = "",
    as_json: Json = False,
    name: App = None,
    store: Store = None,
) -> None:
    """Fire the instants of a time that has passed, but for those that have fired."""
    read_instants(start, end)
    ids = asyncio.run(_backfill(name, store, schedule, (start, end), reason))
    if as_json:
        show_json({"schedule": schedule, "made": len(ids), "ids": ids})
    else:
        say(f"schedule {schedule}: {len(ids)} {'job' if len(ids) == 1 else 'jobs'} made")


@app.command("unregister")
def unregister(names: Names, reason: Reason = "", as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Remove schedules that were registered at run time; their ledger stays. What the code declares is refused."""
    answers = asyncio.run(_unregister(name, store, names, reason))
    tell_changes("schedule", answers, "unregistered", "was not registered", as_json=as_json)


def _list(app: str | None, store: str | None, *, as_json: bool) -> None:
    rows = asyncio.run(_read(app, store))
    if as_json:
        show_json(rows)
        return
    show_table(
        HEADERS,
        [
            (
                row["name"],
                row["schedule"],
                row["task"],
                row["state"] + (f": {row['paused_why']}" if row["paused_why"] else ""),
                row["next_run_at"] or "",
                row["last_tick"] or "",
                row["last_fired_at"] or "",
                row["current_leader"] or "",
                row["total_runs"],
                row["total_failures"],
            )
            for row in rows
        ],
    )


async def _read(app: str | None, store: str | None) -> list[dict[str, Any]]:
    from drumline.cli.app import reach_schedules

    async with reach_schedules(app, store) as (_, found):
        return [_as_json(view) for view in found.values()]


def _as_json(view: ScheduleView) -> dict[str, Any]:
    from drumline.model.view import instant_text

    schedule = view.definition
    instants = {"next_run_at": view.next_run_at, "last_fired_at": view.last_fired_at}
    return {
        "name": view.name,
        "schedule": view.schedule,
        "task": view.task,
        "queue": schedule.options.queue,
        "coordination": view.coordination.value,
        "misfire": schedule.misfire.value,
        "overlap": schedule.overlap.value,
        "in_code": schedule.in_code,
        "state": _state(view),
        "paused": view.paused,
        "paused_by": view.paused_by,
        "paused_why": view.paused_why,
        "orphaned": view.orphaned,
        "stored": view.is_stored,
        "status": view.status,
        **{name: None if instant is None else instant_text(instant) for name, instant in instants.items()},
        "last_tick": view.last_tick,
        "current_leader": view.current_leader,
        "total_runs": view.total_runs,
        "total_failures": view.total_failures,
    }


def _state(view: ScheduleView) -> str:
    """The one word that matters most."""
    if not view.is_stored:
        return "not stored yet"
    if view.paused:
        return "paused"
    return "orphaned" if view.orphaned else view.status


async def _preview(
    app: str | None, store: str | None, name: str, number: int, start: datetime | None
) -> tuple[ScheduleView, list[dict[str, Any]]]:
    from drumline.cli.app import reach_schedules
    from drumline.schedules import unknown_schedule

    async with reach_schedules(app, store) as (client, found):
        if name not in found:
            raise unknown_schedule(name, found)
        # What fires next lies ahead of the store's clock, whatever this machine's shows.
        now = await (await client.store()).now()
        after = now if start is None else start - timedelta(milliseconds=1)
        return found[name], [*_list_instants(found[name].definition.rule, name, after, number)]


def _list_instants(rule: Rule, name: str, after: datetime, number: int) -> Iterator[dict[str, Any]]:
    from drumline.model.view import instant_text
    from drumline.policy.rule import note, shown_key, times
    from drumline.policy.zone import zone

    yields = times(rule)
    instant = yields.after(after)
    while instant is not None and number > 0:
        local = instant.astimezone(zone(rule.timezone))
        yield {
            "utc": instant_text(instant),
            "local": local.isoformat(timespec="milliseconds"),
            "zone": f"{local:%Z}",
            "timezone": rule.timezone,
            "key": shown_key(name, rule, instant),
            "note": note(rule, instant),
        }
        number -= 1
        instant = yields.after(instant)


def _wall(row: dict[str, Any]) -> str:
    """What a clock on the wall shows; fractions of a second only where there are any."""
    return datetime.fromisoformat(row["local"]).replace(tzinfo=None).isoformat(" ")[:23]


async def _set(app: str | None, store: str | None, names: list[str], reason: str, *, paused: bool) -> dict[str, bool]:
    from drumline.cli.app import reach_schedules

    async with reach_schedules(app, store) as (_, found):
        for name in names:
            _check_stored(found, name)
        change = found.pause if paused else found.resume
        return {name: await change(name, reason) for name in dict.fromkeys(names)}


async def _trigger(app: str | None, store: str | None, name: str, reason: str) -> str:
    from drumline.cli.app import reach_schedules

    async with reach_schedules(app, store) as (_, found):
        _check_stored(found, name)
        return (await found.trigger(name, reason)).id


async def _backfill(app: str | None, store: str | None, name: str, span: tuple[str, str], reason: str) -> list[str]:
    from drumline.cli.app import reach_schedules

    async with reach_schedules(app, store) as (client, found):
        _check_stored(found, name)
        with show_progress(f"instants of {name}") as client.on_progress:
            return [job.id for job in await found.backfill(name, *span, reason)]


async def _unregister(app: str | None, store: str | None, names: list[str], reason: str) -> dict[str, bool]:
    from drumline.cli.app import reach_schedules
    from drumline.schedules import declared_in_code

    async with reach_schedules(app, store) as (_, found):
        # Before any is removed: one that cannot be stops them all.
        for name in names:
            _check_stored(found, name)
            if found[name].definition.in_code:
                raise declared_in_code(name)
        for name in dict.fromkeys(names):
            await found.unregister(name, reason)
        return dict.fromkeys(names, True)


def _check_stored(found: Schedules, name: str) -> None:
    """UnknownSchedule for a name that nothing can be done to."""
    from drumline.schedules import unknown_schedule

    if name not in found:
        raise unknown_schedule(name, found)
    if not found[name].is_stored:
        raise UnknownSchedule(f"schedule {name!r} is declared, but no replica has run it yet: start one first")
