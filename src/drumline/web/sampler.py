"""The sampler: looks at the fleet once a second while anybody watches, however many do, and keeps what changed.

What it sees is a flat table; an update holds only the lines that changed, and None for those that are gone:

    jobs/mail/send_mail   {"ready": 3, "delayed": 0, "running": 1, "done": 9, "dead": 0, "cancelled": 0}
    queues/mail           {"paused": true}
    workers/web-1:3f2a    {"state": "running", "running": 1, "slots": 100, …}
    schedules/tidy        {"status": "idle", "last_tick": "…", "paused": false, …}
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from drumline.clock import fresh_id
from drumline.errors import StoreError
from drumline.model.options import PRIVATE
from drumline.model.query import PauseKind
from drumline.model.view import instant_text
from drumline.web.answers import Refusal

if TYPE_CHECKING:
    from drumline.web.web import Web

__all__ = ["Change", "Sampler"]

logger = logging.getLogger("drumline.web")

LOOK_EVERY = 1.0
# What somebody who was away for so many looks need not be told anew.
KEPT_CHANGES = 300
MOST_WATCHERS = 500
# A watcher is told that it is not forgotten; a proxy in between may close what is silent.
SILENCE = 15.0
# Then it has to come again, and to show who it is.
LONGEST_WATCH = 3600.0

Table = dict[str, Any]


class Change(NamedTuple):
    """What to tell a watcher: an id to go on from, `reset` with all there is, or `update` with what changed."""

    id: str
    name: str
    table: Mapping[str, Any]


class Sampler:
    """One for each process."""

    def __init__(self, web: Web) -> None:
        self._web = web
        # Numbers of another process, or of another life of this one, mean nothing here.
        self._life = fresh_id()[-12:]
        self._number = 0
        self._table: Table = {}
        self._changes: deque[tuple[int, Table]] = deque(maxlen=KEPT_CHANGES)
        self._watchers: set[asyncio.Event] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()
        # Whether the table was looked at since somebody watches again; and that there is no more reason to look.
        self._fresh = asyncio.Event()
        self._idle = asyncio.Event()

    def dismiss(self) -> None:
        """Send every watcher home, and let nobody in any more."""
        self._closed.set()
        self._idle.set()
        self._wake()

    async def close(self) -> None:
        """The same, and wait until nobody looks any more."""
        self.dismiss()
        if self._looking is not None:
            await self._looking

    def check_room(self) -> None:
        """429 if there are too many watchers, 503 if this process is about to leave."""
        if self._closed.is_set():
            raise Refusal(503, "this process is about to leave", headers={"Retry-After": "1"})
        if len(self._watchers) >= MOST_WATCHERS:
            raise Refusal(429, f"too many streams: at most {MOST_WATCHERS}", headers={"Retry-After": "5"})

    async def watch(self, last: str | None, gone: asyncio.Event) -> AsyncIterator[Change | None]:
        """What is new, from the id `last` on; None now and then in silence.

        Ends when the watcher is gone, when it has watched for very long, and when this process leaves.
        """
        news = asyncio.Event()
        self._watchers.add(news)
        ends_at = self._web.clock.monotonic() + LONGEST_WATCH
        watching_gone = asyncio.ensure_future(_pass_on(gone, news))
        try:
            await self._begin()
            seen = self._read_id(last)
            while not (gone.is_set() or self._closed.is_set() or self._web.clock.monotonic() > ends_at):
                news.clear()
                for change in self._since(seen):
                    yield change
                seen = self._number
                if not await self._web.clock.wait(news, SILENCE):
                    yield None
        finally:
            watching_gone.cancel()
            self._watchers.discard(news)
            if not self._watchers:
                self._idle.set()

    def _since(self, seen: int | None) -> list[Change]:
        if seen == self._number:
            return []
        missed = [] if seen is None else [(number, table) for number, table in self._changes if number > seen]
        if seen is None or len(missed) != self._number - seen:
            return [Change(self._id(self._number), "reset", dict(self._table))]
        return [Change(self._id(number), "update", table) for number, table in missed]

    def _id(self, number: int) -> str:
        return f"{self._life}-{number}"

    def _read_id(self, last: str | None) -> int | None:
        life, _, number = (last or "").partition("-")
        is_ours = life == self._life and number.isascii() and number.isdecimal() and len(number) < 16
        return int(number) if is_ours and int(number) <= self._number else None

    async def _begin(self) -> None:
        """A first look for the first watcher; the next ones find what the others see."""
        if self._looking is None or self._looking.done():
            self._fresh.clear()
            self._looking = asyncio.create_task(self._look_on())
        await self._fresh.wait()

    async def _look_on(self) -> None:
        is_lost = False
        while self._watchers and not self._closed.is_set():
            self._idle.clear()
            try:
                self._compare(await self._look())
                is_lost = False
            except StoreError as error:
                if not is_lost:
                    logger.warning("events: %s; trying again", error)
                is_lost = True
            self._fresh.set()
            await self._web.clock.wait(self._idle, LOOK_EVERY)
        self._fresh.set()

    def _compare(self, table: Table) -> None:
        changed = {key: value for key, value in table.items() if self._table.get(key) != value}
        changed.update(dict.fromkeys(self._table.keys() - table.keys()))
        if changed or not self._number:
            self._number += 1
            self._table = table
            self._changes.append((self._number, changed))
            self._wake()

    def _wake(self) -> None:
        for watcher in self._watchers:
            watcher.set()

    async def _look(self) -> Table:
        store = await self._web.drum.store()
        table: Table = {}
        for count in await store.counts():
            if not count.queue.startswith(PRIVATE):
                states = ("ready", "delayed", "running", "done", "dead", "cancelled")
                table[f"jobs/{count.queue}/{count.task}"] = {state: getattr(count, state) for state in states}
        for queue in await store.paused(PauseKind.QUEUE):
            table[f"queues/{queue}"] = {"paused": True}
        for replica in await store.workers():
            facts: dict[str, Any] = {
                "state": replica.state.value,
                "role": replica.info.role.value,
                "slots": replica.info.slots,
            }
            table[f"workers/{replica.info.id}"] = {"shown": replica.shown, **facts, "running": len(replica.running)}
        schedules = await self._web.schedules("events").refresh()
        for name, view in schedules.items():
            fired = None if view.last_fired_at is None else instant_text(view.last_fired_at)
            facts = {"status": view.status, "last_tick": view.last_tick, "last_fired_at": fired, "paused": view.paused}
            table[f"schedules/{name}"] = {**facts, "runs": view.total_runs, "failures": view.total_failures}
        return table


async def _pass_on(event: asyncio.Event, to: asyncio.Event) -> None:
    await event.wait()
    to.set()
