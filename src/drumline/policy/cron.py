"""The instants of a cron expression in a time zone, and what becomes of walls that a zone leaves out or repeats.

    the hour field       a wall in a gap                    a wall in a fold
    names hours          run_after: the end of the gap,     once: the first of the two
                         one run for all walls in it;       twice: both
                         skip: none
    `*` or `*/n`         does not happen                    happens twice: real time, hour by hour

Each is found by looking along the stretches of the zone, in which wall clock and real time run side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

from drumline.model.schedule import DstFold, DstGap
from drumline.policy.expression import Expression, read_expression
from drumline.policy.zone import Stretch, stretches, zone

__all__ = ["Cron", "read_cron"]

_SECOND = 1000


@dataclass(frozen=True, slots=True)
class Cron:
    """All instants of an expression in a zone. Instants are milliseconds since the Unix epoch, all of whole seconds."""

    expression: Expression
    zone: ZoneInfo
    runs_after_gap: bool
    runs_twice: bool

    def after(self, instant: int) -> int | None:
        """The first strictly after; None if there is none for fifty years."""
        at = instant // _SECOND + 1
        for stretch in stretches(self.zone, at):
            start = max(at, stretch.start)
            if start == stretch.since and self.is_moved(stretch):
                return start * _SECOND
            wall = self.expression.first(self._low(stretch, start))
            if wall is None:
                return None
            if wall - stretch.offset < stretch.end:
                return (wall - stretch.offset) * _SECOND
        return None

    def count(self, after: int, until: int) -> int:
        """How many lie after `after` up to and including `until`."""
        return sum(
            self.expression.count(low, high) + adds_start for _, adds_start, low, high in self._parts(after, until)
        )

    def between(self, after: int, until: int) -> Iterator[int]:
        """Those that `count` counts, in order."""
        for stretch, adds_start, low, high in self._parts(after, until):
            if adds_start:
                yield stretch.start * _SECOND
            for wall in self.expression.walls(low, high):
                yield (wall - stretch.offset) * _SECOND

    def is_moved(self, stretch: Stretch) -> bool:
        """Whether its offset began with a run for walls in the gap before it."""
        return self.runs_after_gap and self.names_any(stretch.gap)

    def names_any(self, walls: tuple[int, int]) -> bool:
        """Whether the expression names one of the walls from the first up to, not including, the second."""
        low, high = walls
        if low == high:
            return False
        wall = self.expression.first(low)
        return wall is not None and wall < high

    def _parts(self, after: int, until: int) -> Iterator[tuple[Stretch, bool, int, int]]:
        """Each stretch in the range, whether its start is a run of its own, and the walls to look at."""
        at, end = after // _SECOND + 1, until // _SECOND + 1
        for stretch in stretches(self.zone, at):
            if stretch.start >= end:
                return
            start = max(at, stretch.start)
            low, high = self._low(stretch, start), min(end, stretch.end) + stretch.offset
            is_moved = start == stretch.since and self.is_moved(stretch)
            # The end of the gap may be named itself: that is one run, and the walls tell of it.
            yield stretch, is_moved and self.expression.first(low) != low, low, high

    def _low(self, stretch: Stretch, start: int) -> int:
        """The first wall that counts in the stretch from `start` on."""
        wall = start + stretch.offset
        return wall if self.runs_twice else max(wall, stretch.fold[1])


@lru_cache(maxsize=4096)
def read_cron(text: str, timezone: str, dst_gap: DstGap, dst_fold: DstFold) -> Cron:
    """What the options of a rule mean; BadOption for a text or a zone that is none."""
    expression = read_expression(text)
    named = expression.names_hours
    return Cron(
        expression,
        zone(timezone),
        runs_after_gap=named and dst_gap is DstGap.RUN_AFTER,
        runs_twice=not named or dst_fold is DstFold.TWICE,
    )
