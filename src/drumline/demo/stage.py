"""The stage: worker, customers, dashboard and picture in one process, until time is up or somebody presses Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live

from drumline.clock import Clock, SystemClock
from drumline.demo.app import drum, keep_shop, open_shop
from drumline.demo.news import News, Scene
from drumline.demo.past import write_past
from drumline.demo.picture import draw, line_of
from drumline.errors import BadSettings
from drumline.model.job import Job, JobState
from drumline.model.query import JobFilter

__all__ = ["perform"]

LOOK_EVERY = 0.25
LINE_EVERY = 1.0

Show = Callable[[Scene], None]


async def perform(seconds: float | None, bind: str, console: Console) -> None:
    """Let the shop work for so long, or until Ctrl-C; then stop in good order and say what was done.

    `bind`: where to serve the dashboard.
    """
    # A line of the engine would tear the picture apart; what it says is in the events.
    logging.getLogger("drumline").addHandler(logging.NullHandler())
    pages = _open_pages(bind)
    console.print("making up the shop's last weeks, so that no page is empty; what follows is real …", soft_wrap=True)
    await write_past(drum, SystemClock().now())
    news = News(SystemClock())
    async with drum:
        drum.events.subscribe(news.hear)
        with ExitStack() as stack:
            every, show = _open_view(console, stack, pages.address)
            await _play(news, every, show, seconds, pages)
        total = (await drum.counts()).total
    console.print(f"the demo is over: {total.done} jobs done, {total.dead} dead, {total.unfinished} left in the file")


@dataclass(frozen=True, slots=True)
class _Pages:
    """Where the dashboard is served, if it is."""

    address: str
    run: Callable[[], Awaitable[None]]


def _open_pages(bind: str) -> _Pages:
    try:
        from drumline.web.access import PrivateAddress
        from drumline.web.serve import open_socket, read_address, serve, visit_address
    except ModuleNotFoundError as error:
        return _Pages(f"(not served: it needs the package {error.name}, pip install 'drumline[web]')", _work)
    auth = PrivateAddress()
    host, port = read_address(bind)
    try:
        door = open_socket(host, port)
    except BadSettings:
        # Somebody else is there already; any free port will do.
        door = open_socket(host, 0)
    return _Pages(visit_address(door, auth), lambda: serve(drum, door, auth, _work))


async def _work(leaving: asyncio.Event | None = None) -> None:
    await drum.run(concurrency=20, until=leaving)


def _open_view(console: Console, stack: ExitStack, address: str) -> tuple[float, Show]:
    """How often to look, and how to show it: as a picture that lives, or line by line where nobody watches."""
    if not console.is_terminal:
        console.print("\n".join(_hints(address)), soft_wrap=True)
        return LINE_EVERY, lambda scene: console.print(line_of(scene), soft_wrap=True)
    live = stack.enter_context(Live(console=console, screen=True, auto_refresh=False))
    hints = _hints(address)
    return LOOK_EVERY, lambda scene: live.update(draw(scene, hints), refresh=True)


async def _play(news: News, every: float, show: Show, seconds: float | None, pages: _Pages) -> None:
    others = (open_shop(), keep_shop(), _watch(news, every, show))
    parts = [asyncio.ensure_future(part) for part in (pages.run(), *others)]
    # Ctrl-C is the first one's: its worker drains, and its end is the end of the play.
    await asyncio.wait(parts, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for part in parts:
        part.cancel()
    for part in parts:
        with suppress(asyncio.CancelledError):
            await part


async def _watch(news: News, every: float, show: Show) -> None:
    clock: Clock = SystemClock()
    never = asyncio.Event()
    # Before that there is nothing to see, and a page may still be empty.
    await news.begun.wait()
    while True:
        running, dead = await _newest(JobState.RUNNING), await _newest(JobState.DEAD)
        show(news.look(await drum.counts(), running, dead, list(drum.schedules.values())))
        await clock.wait(never, every)


async def _newest(state: JobState) -> list[Job]:
    return [job async for job in drum.jobs.select(JobFilter(states=frozenset({state})), 12)]


def _hints(address: str) -> list[str]:
    """Where to look, and commands to try in another terminal while it runs."""
    program = "drumline" if shutil.which("drumline") else sys.argv[0]
    url = drum.settings.store.url
    return [
        f"dashboard: {address}",
        "in another terminal:",
        f"  {program} jobs list --state dead --store {url}",
        f"  {program} queues pause mail --store {url}",
        f"  {program} schedules list --store {url}",
        f"  DRUMLINE_DEMO_STORE={url} {program} worker drumline.demo.app:drum",
    ]
