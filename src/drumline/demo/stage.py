"""The stage: worker, customers and picture in one process, until time is up or somebody presses Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress

from rich.console import Console
from rich.live import Live

from drumline.clock import Clock, SystemClock
from drumline.demo.app import drum, open_shop
from drumline.demo.news import News, Scene
from drumline.demo.picture import draw, line_of
from drumline.model.job import Job, JobState
from drumline.model.query import JobFilter

__all__ = ["perform"]

LOOK_EVERY = 0.25
LINE_EVERY = 1.0

Show = Callable[[Scene], None]


async def perform(seconds: float | None) -> None:
    """Let the shop work for so long, or until Ctrl-C; then stop in good order and say what was done."""
    console = Console(highlight=False)
    news = News(SystemClock())
    # A line of the engine would tear the picture apart; what it says is in the events.
    logging.getLogger("drumline").addHandler(logging.NullHandler())
    async with drum:
        drum.events.subscribe(news.hear)
        with ExitStack() as stack:
            every, show = _open_view(console, stack)
            await _play(news, every, show, seconds)
        total = (await drum.counts()).total
    console.print(f"the demo is over: {total.done} jobs done, {total.dead} dead, {total.unfinished} left in the file")


def _open_view(console: Console, stack: ExitStack) -> tuple[float, Show]:
    """How often to look, and how to show it: as a picture that lives, or line by line where nobody watches."""
    if not console.is_terminal:
        console.print("\n".join(_hints()), soft_wrap=True)
        return LINE_EVERY, lambda scene: console.print(line_of(scene), soft_wrap=True)
    live = stack.enter_context(Live(console=console, screen=True, auto_refresh=False))
    hints = _hints()
    return LOOK_EVERY, lambda scene: live.update(draw(scene, hints), refresh=True)


async def _play(news: News, every: float, show: Show, seconds: float | None) -> None:
    worker = asyncio.create_task(drum.run(concurrency=20))
    others = [asyncio.create_task(open_shop()), asyncio.create_task(_watch(news, every, show))]
    parts = [worker, *others]
    # Ctrl-C is the worker's: it drains, and its end is the end of the play.
    await asyncio.wait(parts, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for part in parts:
        part.cancel()
    for part in parts:
        with suppress(asyncio.CancelledError):
            await part


async def _watch(news: News, every: float, show: Show) -> None:
    clock: Clock = SystemClock()
    never = asyncio.Event()
    while True:
        running, dead = await _newest(JobState.RUNNING), await _newest(JobState.DEAD)
        show(news.look(await drum.counts(), running, dead, list(drum.schedules.values())))
        await clock.wait(never, every)


async def _newest(state: JobState) -> list[Job]:
    return [job async for job in drum.jobs.select(JobFilter(states=frozenset({state})), 12)]


def _hints() -> list[str]:
    """Commands to try in another terminal while it runs."""
    program = "drumline" if shutil.which("drumline") else sys.argv[0]
    url = drum.settings.store.url
    return [
        "in another terminal:",
        f"  {program} jobs list --state dead --store {url}",
        f"  {program} queues pause mail --store {url}",
        f"  {program} schedules list --store {url}",
        f"  DRUMLINE_DEMO_STORE={url} {program} worker drumline.demo.app:drum",
    ]
