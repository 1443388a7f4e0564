"""A cron expression, as the times of the wall clock that it names.

cronsim reads it and knows which days it means; the times of such a day are the product of three lists. So a time can be
found, and any number of them counted, without walking through them. Walls are whole seconds, as in `zone`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from copy import copy
from datetime import date, datetime, time
from functools import lru_cache

from cronsim import CronSim, CronSimError

from drumline.errors import BadOption

__all__ = ["Expression", "read_expression"]

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS = {
    "second": "0 to 59",
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, L (the last day) or LW (the last weekday)",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 or SUN to SAT (a range ends with 7 for Sunday), 5L (the last Friday), 5#2 (the second)",
}
LONGEST = 500

_DAY = 86_400
_EPOCH_DAY = date(1970, 1, 1).toordinal()
# Days of the week and leap years come round within 40 years from any day on.
_ANY_MIDNIGHT = datetime.combine(date(2000, 1, 1), time())


class Expression:
    """The walls that a cron expression names, without regard to any zone."""

    def __init__(self, parsed: CronSim) -> None:
        self._parsed = parsed
        self._hours = sorted(parsed.hours)
        self._minutes = sorted(parsed.minutes)
        self._seconds = sorted(parsed.seconds)
        self._a_day = len(self._hours) * len(self._minutes) * len(self._seconds)
        # A copy that names midnight of the same days; it is copied again for each walk, since a walk moves it.
        self._days = CronSim(f"0 0 0 {' '.join(parsed.parts[3:])}", _ANY_MIDNIGHT)
        self._next_day = lru_cache(maxsize=256)(self._find_day)

    @property
    def names_hours(self) -> bool:
        """Whether it says at which hours, and not `*` or `*/n`, which is each hour, or every n-th, as it comes."""
        return not all(term.startswith("*") for term in self._parsed.parts[2].split(","))

    @property
    def ever(self) -> bool:
        """Whether it names any time at all."""
        return self._next_day(_ANY_MIDNIGHT.toordinal()) is not None

    def first(self, wall: int) -> int | None:
        """The first named wall at or after; None if there is none for fifty years."""
        day, second = divmod(wall, _DAY)
        found = self._next_day(day + _EPOCH_DAY)
        if found == day + _EPOCH_DAY:
            rank = self._rank(second)
            if rank < self._a_day:
                return day * _DAY + self._time(rank)
            found = self._next_day(found + 1)
        return None if found is None else (found - _EPOCH_DAY) * _DAY + self._time(0)

    def count(self, low: int, high: int) -> int:
        """How many named walls there are from `low` up to, not including, `high`."""
        if high <= low:
            return 0
        (first, low_second), (last, high_second) = divmod(low, _DAY), divmod(high, _DAY)
        days = sum(self._is_day(day + _EPOCH_DAY) for day in range(first, last))
        before = self._rank(low_second) if self._is_day(first + _EPOCH_DAY) else 0
        after = self._rank(high_second) if self._is_day(last + _EPOCH_DAY) else 0
        return days * self._a_day - before + after

    def walls(self, low: int, high: int) -> Iterator[int]:
        """Those that `count` counts, in order."""
        wall = self.first(low)
        while wall is not None and wall < high:
            midnight = wall - wall % _DAY
            for rank in range(self._rank(wall % _DAY), self._a_day):
                wall = midnight + self._time(rank)
                if wall >= high:
                    return
                yield wall
            wall = self.first(midnight + _DAY)

    def _rank(self, second: int) -> int:
        """How many named times of a day come before that second of it."""
        hour, rest = divmod(second, 3600)
        minute, second = divmod(rest, 60)
        rank = bisect_left(self._hours, hour)
        whole = rank < len(self._hours) and self._hours[rank] == hour
        for value, named in ((minute, self._minutes), (second, self._seconds)):
            place = bisect_left(named, value) if whole else 0
            whole = whole and place < len(named) and named[place] == value
            rank = rank * len(named) + place
        return rank

    def _time(self, rank: int) -> int:
        """The named time of a day with so many before it, in seconds."""
        rank, second = divmod(rank, len(self._seconds))
        hour, minute = divmod(rank, len(self._minutes))
        return self._hours[hour] * 3600 + self._minutes[minute] * 60 + self._seconds[second]

    def _is_day(self, ordinal: int) -> bool:
        day = date.fromordinal(ordinal)
        return day.month in self._parsed.months and self._parsed.match_day(day)

    def _find_day(self, ordinal: int) -> int | None:
        if self._is_day(ordinal):
            return ordinal
        walk = copy(self._days)
        walk.dt = datetime.combine(date.fromordinal(ordinal), time())
        try:
            return next(walk).toordinal()
        except (StopIteration, OverflowError, ValueError):
            return None


@lru_cache(maxsize=4096)
def read_expression(text: str) -> Expression:
    """What the text names; BadOption that says which field is wrong, and what it may be."""
    if len(text) > LONGEST:
        raise BadOption("cron", f"a text of at most {LONGEST} characters", text)
    fields = _unfold(text).split()
    if len(fields) not in (5, 6):
        expected = "5 fields (minute hour day-of-month month day-of-week), or 6 with seconds first"
        raise BadOption("cron", f"{expected}, and not {len(fields)}", text)
    _check_fields(fields, text)
    try:
        expression = Expression(CronSim(" ".join(fields), _ANY_MIDNIGHT))
    except CronSimError:
        expression = None
    if expression is None or not expression.ever:
        raise BadOption("cron", "an expression that names a day which exists", text)
    return expression


def _unfold(text: str) -> str:
    alias = text.strip().lower()
    if not alias.startswith("@"):
        return text
    if alias == "@reboot":
        raise BadOption("cron", "a rule for times; to run when the fleet starts, give run_on_startup=True", text)
    if alias not in ALIASES:
        raise BadOption("cron", f"one of {', '.join(ALIASES)}, or 5 or 6 fields", text)
    return ALIASES[alias]


def _check_fields(fields: Sequence[str], text: str) -> None:
    """BadOption for the first field that is wrong, whatever the others are."""
    names = list(FIELDS)[-len(fields) :]
    for place, (name, value) in enumerate(zip(names, fields, strict=True)):
        alone = ["*"] * len(fields)
        alone[place] = value
        try:
            CronSim(" ".join(alone), _ANY_MIDNIGHT)
        except CronSimError:
            expected = f"right in its {name} field, {value!r}, which takes {FIELDS[name]}"
            raise BadOption("cron", f"{expected}; *, lists, ranges and steps such as */2", text) from None
