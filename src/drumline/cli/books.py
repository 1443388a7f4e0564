"""What `drumline ledger verify` reads: of each schedule the rows of the time asked for, and what it needs before."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from drumline.client import Client
from drumline.model.job import Source
from drumline.model.query import JobFilter
from drumline.model.schedule import Decision, ScheduleStatus, Tick
from drumline.policy.held import MILLISECOND, is_instant
from drumline.policy.verify import Findings, Made, verify
from drumline.schedules import Schedules, unknown_schedule

__all__ = ["verify_all"]

# So many rows are read between two words about how far it is.
STRIDE = 1000


@dataclass(slots=True)
class Book:
    """The rows of one schedule from a time on, taken in as they come: the newest recorded first."""

    status: ScheduleStatus | None
    start: datetime | None
    end: datetime | None
    rows: list[Tick] = field(default_factory=list)
    # Whether an older row than those asked for was seen: then none of these is purged.
    reaches_back: bool = False

    def take(self, row: Tick) -> None:
        if self.start is not None and row.recorded_at < self.start:
            self.reaches_back = True
        if not self._is_beside(row):
            self.rows.append(row)

    @property
    def is_enough(self) -> bool:
        """Whether no older row is needed: a tick is recorded at its instant or later."""
        return self.reaches_back and self._knows_rule

    @property
    def whole_after(self) -> datetime | None:
        return self.start - MILLISECOND if self.start is not None and self.is_enough else None

    @property
    def _knows_rule(self) -> bool:
        """Whether it tells which rule held at the start."""
        if self.start is None:
            return False
        if self.status is not None and self.status.begun_at <= self.start:
            return True
        return any(row.decision is Decision.CHANGED and row.instant <= self.start for row in self.rows)

    def _is_beside(self, row: Tick) -> bool:
        """Whether the row decides instants of another time only."""
        is_before = self.start is not None and (row.until or row.instant) < self.start
        is_behind = self.end is not None and row.instant > self.end
        return is_instant(row) and (is_before or is_behind)


async def verify_all(
    client: Client, schedules: Schedules, names: Sequence[str], start: datetime | None, end: datetime | None
) -> list[Findings]:
    """Judge these schedules, or all; UnknownSchedule for one that has neither a status nor a row."""
    store = await client.store()
    now = await store.now()
    statuses = {status.schedule.name: status for status in await store.schedules(names)}
    # Before the rows: a tick that is fired meanwhile must not look like a job without one.
    made = await _read_made(client, names, start)
    books = await _read_books(schedules, names, statuses, start, end)
    for name in names:
        if name not in statuses and not books[name].rows:
            raise unknown_schedule(name, schedules)
    return [
        verify(name, book.rows, made[name], book.status, now=now, start=start, end=end, whole_after=book.whole_after)
        for name, book in sorted(books.items())
    ]


async def _read_books(
    schedules: Schedules,
    names: Sequence[str],
    statuses: Mapping[str, ScheduleStatus],
    start: datetime | None,
    end: datetime | None,
) -> dict[str, Book]:
    if start is None and not names:
        books = {name: Book(status, start, end) for name, status in statuses.items()}
        async for row in _told(schedules, None):
            books.setdefault(row.schedule, Book(None, start, end)).take(row)
        return books
    # What lies before the time asked for, and which rule held then, each schedule has to be looked at for.
    wanted = names or sorted({*statuses, *(await _find_names(schedules, start))})
    books = {name: Book(statuses.get(name), start, end) for name in wanted}
    for name, book in books.items():
        async for row in _told(schedules, name):
            book.take(row)
            if book.is_enough:
                break
    return books


async def _find_names(schedules: Schedules, start: datetime | None) -> set[str]:
    """The schedules that have rows since then: also those that were withdrawn."""
    names: set[str] = set()
    async for row in _told(schedules, None):
        if start is not None and row.recorded_at < start:
            break
        names.add(row.schedule)
    return names


async def _told(schedules: Schedules, name: str | None) -> AsyncIterator[Tick]:
    """The rows, the newest recorded first; on a terminal it is told how many were read."""
    count = 0
    try:
        async for row in schedules.ticks(name):
            yield row
            count += 1
            if not count % STRIDE:
                _tell(f"{name or 'the ledger'}: {count:,} rows read")
    finally:
        if count >= STRIDE:
            _tell("")


def is_terminal() -> bool:
    """Whether somebody watches what is told about the progress."""
    return sys.stderr.isatty()


def _tell(words: str) -> None:
    """Write over the line on which this was last said."""
    if is_terminal():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)


async def _read_made(client: Client, names: Sequence[str], start: datetime | None) -> Mapping[str, list[Made]]:
    """The jobs of ticks, by schedule."""
    made: defaultdict[str, list[Made]] = defaultdict(list)
    for name in names or (None,):
        # A job is made at its instant or later.
        where = JobFilter(schedule=name, source=Source.SCHEDULED, created_from=start)
        async for job in client.jobs.walk(where):
            if job.schedule is not None and job.tick is not None:
                made[job.schedule].append(Made(job.id, job.queue, job.tick))
    return made
