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

__all__ = ["Change", "Sampler", "Seat"]

logger = logging.getLogger("drumline.web")

# With what a look and the page's own take, the page is at most a second behind.
LOOK_EVERY = 0.8
# A store that takes longer to answer is lost until the next look.
PATIENCE = 5.0
# What somebody who was away for so many looks need not be told anew; less of it where each look brings much.
KEPT_CHANGES = 300
MOST_KEPT_LINES = 20_000
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


class Seat:
    """One watcher's place."""

    def __init__(self) -> None:
        # Set when there is something to look at: a change, or a reason to end.
        self.news = asyncio.Event()
        self.is_left = False

    def leave(self) -> None:
        """The watcher is gone."""
        self.is_left = True
        self.news.set()


class Sampler:
    """One for each process."""

    def __init__(self, web: Web) -> None:
        self._web = web
        # Numbers of another process, or of another life of this one, mean nothing here.
        self._life = fresh_id()[-12:]
        self._number = 0
        self._table: Table = {}
        self._changes: deque[tuple[int, Table]] = deque()
        self._kept_lines = 0
        self._watchers: set[Seat] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()
        # Whether the table was looked at since somebody watches again; and that there is no more reason to look.
        self._fresh = asyncio.Event()
        self._idle = asyncio.Event()

    @property
    def number(self) -> int:
        """Grows with every change that was seen."""
        return self._number

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

    def take_seat(self) -> Seat:
        """A place among the watchers; 429 if there is none left, 503 if this process is about to leave."""
        if self._closed.is_set():
            raise Refusal(503, "this process is about to leave", headers={"Retry-After": "1"})
        if len(self._watchers) >= MOST_WATCHERS:
            raise Refusal(429, f"too many streams: at most {MOST_WATCHERS}", headers={"Retry-After": "5"})
        seat = Seat()
        self._watchers.add(seat)
        return seat

    def leave_seat(self, seat: Seat) -> None:
        self._watchers.discard(seat)
        if not self._watchers:
            self._idle.set()

    async def watch(self, seat: Seat, last: str | None) -> AsyncIterator[Change | None]:
        """What is new, from the id `last` on; None now and then in silence.

        Ends when the watcher is gone, when it has watched for very long, and when this process leaves.
        """
        ends_at = self._web.clock.monotonic() + LONGEST_WATCH
        await self._begin()
        seen = self._read_id(last)
        while not (seat.is_left or self._closed.is_set() or self._web.clock.monotonic() > ends_at):
            seat.news.clear()
            # Whoever comes while the store is lost has seen nothing yet. What changes while these are sent comes next.
            changes, seen = self._since(seen), self._number or None
            for change in changes:
                yield change
            if not await self._web.clock.wait(seat.news, SILENCE):
                yield None

    def _since(self, seen: int | None) -> list[Change]:
        if seen == self._number or not self._number:
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
                async with asyncio.timeout(PATIENCE):
                    table = await self._look()
                self._compare(table)
                is_lost = False
            except (StoreError, TimeoutError) as error:
                if not is_lost:
                    logger.warning("events: %s; trying again", str(error) or "the store does not answer")
                is_lost = True
            except Exception:
                # Watchers wait for the next look, whatever became of this one.
                if not is_lost:
                    logger.exception("events: the look has failed; trying again")
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
            self._keep(changed)
            self._wake()

    def _keep(self, changed: Table) -> None:
        self._changes.append((self._number, changed))
        self._kept_lines += len(changed)
        while self._changes and (len(self._changes) > KEPT_CHANGES or self._kept_lines > MOST_KEPT_LINES):
            self._kept_lines -= len(self._changes.popleft()[1])

    def _wake(self) -> None:
        for seat in self._watchers:
            seat.news.set()

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
