"""`drumline queues`: what waits where, pause and resume."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from drumline.cli.options import App, Json, Reason, Store, hand_down
from drumline.cli.show import show_json, show_table, tell_changes

__all__ = ["app"]

STATES = ("ready", "delayed", "running", "done", "dead", "cancelled")

app = typer.Typer(help="See what waits where; pause and resume queues.", rich_markup_mode=None)

Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of queues.")]


@app.callback(invoke_without_command=True)
def queues(context: typer.Context, as_json: Json = False, name: App = None, store: Store = None) -> None:
    """See what waits where; pause and resume queues. Without a command: list."""
    hand_down(context)
    if context.invoked_subcommand is None:
        _list(name, store, as_json=as_json)


@app.command("list")
def list_queues(as_json: Json = False, name: App = None, store: Store = None) -> None:
    """List the queues with their jobs by state."""
    _list(name, store, as_json=as_json)


@app.command("pause")
def pause(names: Names, reason: Reason = "", as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Let queues give no more jobs, to no worker of the fleet; what runs goes on."""
    answers = asyncio.run(_set(name, store, names, reason, paused=True))
    tell_changes("queue", answers, "paused", "was paused already", as_json=as_json)


@app.command("resume")
def resume(names: Names, reason: Reason = "", as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Let queues give jobs again."""
    answers = asyncio.run(_set(name, store, names, reason, paused=False))
    tell_changes("queue", answers, "resumed", "was not paused", as_json=as_json)


def _list(app: str | None, store: str | None, *, as_json: bool) -> None:
    rows = asyncio.run(_read(app, store))
    if as_json:
        show_json(rows)
        return
    show_table(
        ("queue", *STATES, "paused"),
        [(row["queue"], *(row[state] for state in STATES), _paused_text(row)) for row in rows],
    )


def _paused_text(row: dict[str, Any]) -> str:
    if not row["paused"]:
        return ""
    return f"by {row['paused_by']}" + (f": {row['reason']}" if row["reason"] else "")


async def _read(app: str | None, store: str | None) -> list[dict[str, Any]]:
    from drumline.cli.app import reach
    from drumline.model.options import PRIVATE
    from drumline.model.query import Tally

    async with reach(app, store) as client:
        tallies = (await client.counts()).by_queue
        paused = await client.queues.paused()
    return [
        {
            "queue": queue,
            **{state: getattr(tallies.get(queue, Tally()), state) for state in STATES},
            "paused": queue in paused,
            "paused_by": paused[queue].who if queue in paused else None,
            "reason": paused[queue].why if queue in paused else None,
        }
        for queue in sorted({*tallies, *paused})
        if not queue.startswith(PRIVATE)
    ]


async def _set(app: str | None, store: str | None, names: list[str], reason: str, *, paused: bool) -> dict[str, bool]:
    from drumline.cli.app import reach
    from drumline.model.options import check_name

    for name in names:
        check_name(name, "queue")
    unique = list(dict.fromkeys(names))
    async with reach(app, store) as client:
        change = client.queues.pause if paused else client.queues.resume
        return dict(zip(unique, await change(*unique, reason=reason), strict=True))
