"""What pages read from the store, shared: however many tabs ask within a moment, the store is asked once.

Nothing is kept beyond the next change that the sampler sees, or the next action of anybody in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from drumline.model.job import Job, LogLine
from drumline.model.query import AuditRow, By, Count, JobFilter, Page, PauseKind, SeriesPoint
from drumline.model.replica import Replica
from drumline.model.schedule import ScheduleStatus, Tick
from drumline.stores.base import Store

if TYPE_CHECKING:
    from drumline.web.web import Web

__all__ = ["Glance"]

T = TypeVar("T")

# An answer, when it was asked for, and what the sampler had seen by then.
Kept = tuple[asyncio.Future[Any], float, int]

# How long an answer serves others who ask the same, unless the sampler sees a change. Tabs look once a second, each in
# its own time; what one job says of itself the sampler does not see, and a tab that follows it asks twice a second.
FRESH = 1.0
FOLLOWED_FRESH = 0.4
# A day of minutes is long to read, and a minute more or less in it is not seen.
DAY_FRESH = 20.0
# Two clocks drift apart by less than a millisecond in this time.
CLOCK_FRESH = 10.0
# What cannot have changed as long as its key has not.
LASTING = 300.0
_MOST_KEPT = 512


class Glance:
    """One for each process."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._kept: dict[Hashable, Kept] = {}

    def forget(self) -> None:
        """Somebody has acted: whoever looks next sees what came of it."""
        self._kept.clear()

    async def now(self) -> datetime:
        """The store's clock, as it has gone on since it was last asked."""
        shown, received = await self._ask("now", self._ask_time, CLOCK_FRESH)
        return shown + timedelta(seconds=self._web.clock.monotonic() - received)

    async def counts(self) -> list[Count]:
        return await self._ask("counts", lambda store: store.counts())

    async def workers(self) -> list[Replica]:
        return await self._ask("workers", lambda store: store.workers())

    async def paused_queues(self) -> dict[str, By]:
        return await self._ask("paused", lambda store: store.paused(PauseKind.QUEUE))

    async def schedules(self) -> list[ScheduleStatus]:
        return await self._ask("schedules", lambda store: store.schedules())

    async def series(self, start: datetime, end: datetime) -> list[SeriesPoint]:
        fresh = FRESH if end - start <= timedelta(hours=1) else DAY_FRESH
        return await self._ask(("series", start, end), lambda store: store.series(start, end), fresh)

    async def newest_ticks(self, status: ScheduleStatus, limit: int) -> list[Tick]:
        """The newest rows of its ledger; asked for anew when the schedule has fired, or a job of it has ended."""
        name = status.schedule.name
        seen = (status.version, status.last_tick, status.last_mark, status.running, status.total_runs)
        key = ("ticks", name, limit, *seen)
        # A job that is cancelled before it runs leaves no trace in the schedule.
        fresh = FRESH if _has_unfinished(self._kept.get(key)) else LASTING
        page = await self._ask(key, lambda store: store.ticks(name, limit=limit), fresh)
        return page.items

    async def ticks(self, name: str, after: str | None, limit: int) -> Page[Tick]:
        return await self._ask(
            ("ledger", name, after, limit), lambda store: store.ticks(name, after=after, limit=limit)
        )

    async def jobs(self, where: JobFilter, after: str | None = None, limit: int = 50) -> Page[Job]:
        # A filter may hold a mapping, and so is no key itself.
        key = ("jobs", repr(where), after, limit)
        fresh = FOLLOWED_FRESH if where.ids else FRESH
        return await self._ask(key, lambda store: store.jobs(where, after=after, limit=limit), fresh)

    async def logs(self, job_id: str) -> list[LogLine]:
        return await self._ask(("logs", job_id), lambda store: store.logs(job_id), FOLLOWED_FRESH)

    async def audit(self, after: str | None, limit: int) -> Page[AuditRow]:
        return await self._ask(("audit", after, limit), lambda store: store.audit(after=after, limit=limit))

    async def _ask(self, key: Hashable, ask: Callable[[Store], Awaitable[T]], fresh: float = FRESH) -> T:
        now, seen = self._web.clock.monotonic(), self._web.sampler.number
        kept = self._kept.get(key)
        if kept is None or _is_stale(kept, now, seen, fresh):
            self._make_room(now)
            kept = (asyncio.ensure_future(self._read(ask)), now, seen)
            kept[0].add_done_callback(_drop_error)
            self._kept[key] = kept
        # One who leaves does not take the answer from the others.
        answer: T = await asyncio.shield(kept[0])
        return answer

    async def _ask_time(self, store: Store) -> tuple[datetime, float]:
        return await store.now(), self._web.clock.monotonic()

    async def _read(self, ask: Callable[[Store], Awaitable[T]]) -> T:
        return await ask(await self._web.drum.store())

    def _make_room(self, now: float) -> None:
        if len(self._kept) >= _MOST_KEPT:
            self._kept = {key: kept for key, kept in self._kept.items() if now - kept[1] < FRESH}


def _has_unfinished(kept: Kept | None) -> bool:
    """Whether these ticks, as far as they are known, tell of a job that had not ended."""
    if kept is None or not kept[0].done() or _has_failed(kept[0]):
        return False
    return any(tick.job_id is not None and tick.outcome is None for tick in kept[0].result().items)


def _has_failed(ended: asyncio.Future[Any]) -> bool:
    return ended.cancelled() or ended.exception() is not None


def _is_stale(kept: Kept, now: float, seen: int, fresh: float) -> bool:
    future, asked, had_seen = kept
    if not future.done():
        # Asked before the sampler saw a change: the answer may not tell of it.
        return had_seen != seen
    if _has_failed(future):
        return True
    return now - asked >= fresh or (had_seen != seen and fresh <= FRESH)


def _drop_error(future: asyncio.Future[Any]) -> None:
    """Whoever waits is told; that nobody waits any more is no reason for a warning."""
    if not future.cancelled():
        future.exception()
