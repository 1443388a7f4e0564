"""`drumline top`: the fleet, live in a terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from drumline.cli.options import App, Store
from drumline.cli.show import make_table
from drumline.cli.stats import line_cells, line_headers, pace_text, read_stats, replicas_text, schedules_text
from drumline.errors import BadOption

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import RenderableType

    from drumline.model.job import Job
    from drumline.model.replica import Replica
    from drumline.model.schedule import ScheduleStatus
    from drumline.policy.stats import Stats
    from drumline.stores.base import Store as OpenStore

__all__ = ["Frame", "add_to", "draw", "read_frame"]

MOST_LINES = 12
# Of a queue: those that somebody has to act on. All six would not fit into a terminal of 80 columns.
STATES = ("ready", "delayed", "running", "dead")

Once = Annotated[bool, typer.Option("--once", help="Print one picture and end.")]
Every = Annotated[float, typer.Option("--every", min=0.2, metavar="SECONDS", help="How often to look.")]


@dataclass(frozen=True, slots=True)
class Frame:
    """What one picture shows."""

    where: str
    stats: Stats
    running: list[Job]
    schedules: list[ScheduleStatus]
    replicas: list[Replica]


def add_to(app: typer.Typer) -> None:
    app.command("top")(top)


def top(once: Once = False, every: Every = 1.0, name: App = None, store: Store = None) -> None:
    """Watch the fleet: queues, rates, running jobs, schedules, replicas. q or Ctrl-C ends."""
    if not once and not sys.stdout.isatty():
        raise BadOption("--once", "given where the answer is not shown in a terminal", once)
    with suppress(KeyboardInterrupt):
        asyncio.run(_watch(name, store, None if once else every))


async def _watch(app: str | None, url: str | None, every: float | None) -> None:
    from rich.live import Live

    from drumline.cli.app import open_app
    from drumline.cli.console import Paper
    from drumline.model.mask import mask_url

    console = Paper()
    async with open_app(app, url) as drum:
        store, where = await drum.store(), mask_url(drum.settings.store.url)
        if every is None:
            console.print(draw(await read_frame(store, where)))
            return
        ended = asyncio.Event()
        with _keys(ended), Live(console=console, screen=True, auto_refresh=False) as live:
            while not ended.is_set():
                live.update(draw(await read_frame(store, where)), refresh=True)
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), every)


async def read_frame(store: OpenStore, where: str) -> Frame:
    """Look at the store once."""
    from drumline.model.job import JobState
    from drumline.model.query import JobFilter

    running = await store.jobs(JobFilter(states=frozenset({JobState.RUNNING})), limit=MOST_LINES)
    return Frame(
        where=where,
        stats=await read_stats(store),
        running=running.items,
        schedules=await store.schedules(),
        replicas=await store.workers(),
    )


def draw(frame: Frame) -> RenderableType:
    """The picture, the same for the same frame."""
    from rich.console import Group
    from rich.text import Text

    from drumline.model.plain import clean

    stats = frame.stats
    jobs = stats.jobs
    head = [
        f"{frame.where}   q ends",
        f"jobs       {jobs.ready} ready, {jobs.delayed} delayed, {jobs.running} running, {jobs.dead} dead",
        f"last hour  {pace_text(stats.pace)}",
        f"schedules  {schedules_text(stats)}",
        f"replicas   {replicas_text(stats)}",
    ]
    parts: list[RenderableType] = [Text(clean(line), no_wrap=True, overflow="ellipsis") for line in head]
    for headers, rows in _tables(frame):
        if rows:
            parts += [Text(""), make_table(headers, rows[:MOST_LINES])]
    return Group(*parts)


def _tables(frame: Frame) -> Iterator[tuple[Sequence[str], list[Sequence[object]]]]:
    from drumline.policy.rule import describe

    yield line_headers("queue", STATES), [line_cells(line, STATES) for line in frame.stats.queues]
    yield (
        ("running", "task", "queue", "attempt", "since", "replica"),
        [(job.id, job.task, job.queue, job.attempt, _instant(job.claimed_at), job.replica) for job in frame.running],
    )
    yield (
        ("schedule", "rule", "state", "fired"),
        [
            (one.schedule.name, describe(one.schedule.rule), _state(one), _instant(one.last_fired_at))
            for one in frame.schedules
        ],
    )
    yield (
        ("replica", "state", "role", "running", "slots", "seen"),
        [
            (one.shown, one.state, one.info.role, len(one.running), one.info.slots, _instant(one.seen_at))
            for one in frame.replicas
        ],
    )


def _state(status: ScheduleStatus) -> str:
    if status.paused_at is not None:
        return "paused"
    if status.orphaned:
        return "orphaned"
    return "running" if status.running else "idle"


def _instant(instant: datetime | None) -> str:
    """To the second and without the year, so that it is not cut."""
    return "" if instant is None else f"{instant:%m-%d %H:%M:%S}Z"


@contextmanager
def _keys(ended: asyncio.Event) -> Iterator[None]:
    """Set the event when somebody presses q; the terminal is given back as it was."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    loop = asyncio.get_running_loop()

    def read() -> None:
        if b"q" in os.read(keyboard, 100).lower():
            ended.set()

    tty.setcbreak(keyboard)
    loop.add_reader(keyboard, read)
    try:
        yield
    finally:
        loop.remove_reader(keyboard)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
