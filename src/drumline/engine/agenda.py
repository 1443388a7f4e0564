"""The agenda: the schedules that one replica fires, and when it next has to act on each."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from datetime import datetime
from itertools import count

import msgspec

from drumline.model.schedule import Coordination, ScheduleStatus

__all__ = ["Agenda", "Line"]


class Line(msgspec.Struct, kw_only=True):
    """One schedule, as this replica plans it."""

    status: ScheduleStatus
    # Instants up to here are decided; of per_replica, for this replica.
    done: datetime
    next: datetime | None = None
    # When to act on `next`: at once, or after the grace.
    act_at: datetime | None = None
    # Another replica was met that fires what is due: we look before we try it.
    stands_by: bool = False

    @property
    def name(self) -> str:
        return self.status.schedule.name

    @property
    def is_own(self) -> bool:
        """Whether each replica has ticks of its own."""
        return self.status.schedule.coordination is Coordination.PER_REPLICA


class Agenda:
    """A line for each schedule, one by name; those that have something to act on, by time."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        # (when to act, order of entry, name); an entry whose line has since been entered anew counts no more.
        self._entries: list[tuple[datetime, int, str]] = []
        self._order = count()

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines.values())

    @property
    def next_at(self) -> datetime | None:
        """When there is something to do; None if nothing is entered."""
        while self._entries and not self._is_valid(self._entries[0]):
            heapq.heappop(self._entries)
        return self._entries[0][0] if self._entries else None

    def find(self, name: str) -> Line | None:
        return self._lines.get(name)

    def holds(self, line: Line) -> bool:
        """Whether this very line still stands for its schedule."""
        return self._lines.get(line.name) is line

    def add(self, line: Line) -> Line:
        self._lines[line.name] = line
        return line

    def drop(self, name: str) -> None:
        self._lines.pop(name, None)

    def keep_only(self, names: Collection[str]) -> None:
        """Drop the lines of all other schedules."""
        self._lines = {name: line for name, line in self._lines.items() if name in names}

    def enter(self, line: Line, act_at: datetime) -> None:
        """Act on the line then, and at no other time."""
        line.act_at = act_at
        heapq.heappush(self._entries, (act_at, next(self._order), line.name))

    def take_due(self, now: datetime) -> list[Line]:
        """The lines whose time to act has come, off the agenda."""
        lines: dict[str, Line] = {}
        while (act_at := self.next_at) is not None and act_at <= now:
            _, _, name = heapq.heappop(self._entries)
            lines[name] = self._lines[name]
        return list(lines.values())

    def _is_valid(self, entry: tuple[datetime, int, str]) -> bool:
        line = self._lines.get(entry[2])
        return line is not None and line.act_at == entry[0]
