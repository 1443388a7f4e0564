"""An oracle for cron expressions: it walks through real time and looks at the wall clock; there is nothing to work out.

It shares no code with `drumline.policy`, and reads no expression: whoever writes one says what its fields mean.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTE = 60
DAY = 86_400


@dataclass(frozen=True)
class Written:
    """A cron expression, and what it means."""

    text: str
    seconds: Collection[int]
    minutes: Collection[int]
    hours: Collection[int]
    # Whether its hour field is something else than `*` and `*/n`.
    names_hours: bool
    # The days, by what the calendar says of them; either kind of day is enough if both are named.
    days: frozenset[int]
    weekdays: frozenset[tuple[int, int]]
    needs_both: bool
    months: Collection[int] = frozenset(range(1, 13))

    def names_minute(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.names_day(wall.date())

    def names_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_month, by_week = not self.days.isdisjoint(_days(day)), not self.weekdays.isdisjoint(_weekdays(day))
        return by_month and by_week if self.needs_both else by_month or by_week


class Moment(NamedTuple):
    """A look at the wall clock."""

    instant: int
    wall: datetime
    # Whether the clock has shown the same before.
    is_second: bool


def look(zone: ZoneInfo, first: int, last: int, step: int) -> list[Moment]:
    """What the clock shows every second, or every minute, from just before `first` (a whole minute) to `last`."""
    shown = ((instant, datetime.fromtimestamp(instant, zone)) for instant in range(first - step, last + 1, step))
    return [Moment(instant, local.replace(tzinfo=None, fold=0), local.fold == 1) for instant, local in shown]


def walk(written: Written, moments: Sequence[Moment], **rules: str) -> list[int]:
    """The instants, after the first moment up to the last, at which the expression runs."""
    found = set()
    moves = written.names_hours and rules["dst_gap"] == "run_after"
    repeats = not written.names_hours or rules["dst_fold"] == "twice"
    step, last = moments[1].instant - moments[0].instant, moments[-1].instant
    pace = timedelta(seconds=step)
    for (_, previous, _), (instant, wall, is_second) in pairwise(moments):
        if moves and wall - previous > pace and any(map(written.names_minute, _minutes_between(previous, wall))):
            found.add(instant)
        if written.names_minute(wall) and (repeats or not is_second):
            waits = (second - wall.second for second in written.seconds)
            found.update(instant + wait for wait in waits if 0 <= wait < step and instant + wait <= last)
    return sorted(found)


@cache
def list_changes(zone: ZoneInfo, first_year: int = 1990, last_year: int = 2040) -> tuple[tuple[int, int, int], ...]:
    """Each change of the zone's offset: the instant, and the offsets before and after."""
    start, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (first_year, last_year + 1))
    return tuple(_find_changes(zone, start, end))


def _find_changes(zone: ZoneInfo, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    before = _offset(zone, start)
    for instant in range(start, end, DAY):
        if _offset(zone, instant) == before:
            continue
        low, high = instant - DAY, instant
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
        yield high, before, _offset(zone, high)
        before = _offset(zone, instant)


def _offset(zone: ZoneInfo, instant: int) -> int:
    span = datetime.fromtimestamp(instant, zone).utcoffset()
    assert span is not None
    return int(span.total_seconds())


def _minutes_between(previous: datetime, wall: datetime) -> Iterator[datetime]:
    # A zone's clock jumps at whole minutes, or did so since 1990.
    missing = (previous + timedelta(minutes=1)).replace(second=0)
    while missing < wall:
        yield missing
        missing += timedelta(minutes=1)


LAST = 99


@lru_cache(maxsize=4096)
def _days(day: date) -> frozenset[int]:
    """What a day is in its month: its number, and LAST for the last one."""
    is_last = (day + timedelta(days=1)).month != day.month
    return frozenset({day.day, LAST} if is_last else {day.day})


@lru_cache(maxsize=4096)
def _weekdays(day: date) -> frozenset[tuple[int, int]]:
    """What a day is among its kind (Sunday is 0): any (0), the n-th, and LAST for the last one of its month."""
    kind = day.isoweekday() % 7
    is_last = (day + timedelta(days=7)).month != day.month
    places = [0, (day.day + 6) // 7, *([LAST] if is_last else [])]
    return frozenset((kind, place) for place in places)
