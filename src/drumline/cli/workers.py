"""`drumline workers`: the replicas of the fleet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from drumline.cli.options import App, Json, Store
from drumline.cli.show import show_json, show_table

if TYPE_CHECKING:
    from drumline.model.replica import Replica

__all__ = ["add_to"]

HEADERS = ("replica", "state", "role", "host", "pid", "running", "slots", "stuck", "queues", "seen")


def add_to(app: typer.Typer) -> None:
    app.command("workers")(workers)


def workers(as_json: Json = False, name: App = None, store: Store = None) -> None:
    """List the replicas of the fleet, with what each runs now; one silent for three of its beats is lost."""
    from drumline.model.view import instant_text, replica_json

    replicas = asyncio.run(_read(name, store))
    if as_json:
        show_json([replica_json(replica) for replica in replicas])
        return
    rows = []
    for replica in replicas:
        info = replica.info
        served = ", ".join(info.queues) or "every queue"
        seen = instant_text(replica.seen_at)
        held = len(replica.running)
        slots = (held, info.slots, info.stuck)
        rows.append((replica.shown, replica.state, info.role, info.host, info.pid, *slots, served, seen))
    show_table(HEADERS, rows)


async def _read(app: str | None, store: str | None) -> list[Replica]:
    from drumline.cli.app import reach

    async with reach(app, store) as client:
        return await client.workers()
