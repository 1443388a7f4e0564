"""Time zones: how a zone's wall clock and real time belong together.

Between two changes of its offset a zone is a straight line, `wall = instant + offset`: a stretch. Where two stretches
meet, the wall clock jumps:

    instant   ──────────────┐ change ┌──────────────
    gap       01:58  01:59  │        │ 03:00  03:01      02:00 … 02:59 do not exist
    fold      02:58  02:59  │        │ 02:00  02:01      02:00 … 02:59 happen twice

Instants are whole seconds since the Unix epoch, walls the same count as if the wall clock showed UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from drumline.errors import BadOption

__all__ = ["FIRST_YEAR", "LAST_YEAR", "Stretch", "show_wall", "stretches", "zone"]

# Zones have no offset worth the name before, and datetime has no years after.
FIRST_YEAR = 1900
LAST_YEAR = 9998

_DAY = 86_400
# What the machine is set to, which need not be the same on two replicas.
_OF_THE_HOST = ("localtime", "posixrules")


class Stretch(NamedTuple):
    """A time from `start` up to, not including, `end` in which the offset stays the same."""

    start: int
    end: int
    offset: int
    # When that offset began, and the one before it; `start` and `offset` again if that was long ago.
    since: int
    before: int

    @property
    def gap(self) -> tuple[int, int]:
        """The walls, from and up to, that were left out when the offset began; an empty range if none were."""
        return self.since + self.before, self.since + max(self.offset, self.before)

    @property
    def fold(self) -> tuple[int, int]:
        """The walls, from and up to, that happened twice when the offset began; an empty range if none did."""
        return self.since + self.offset, self.since + max(self.offset, self.before)


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The zone of that IANA name; BadOption, with what was probably meant, if there is none."""
    try:
        if name not in _OF_THE_HOST:
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # Of a folder of zones, such as "Europe", or a path that leads elsewhere.
        pass
    raise BadOption("timezone", f"an IANA time zone{_suggest(name)}", name)


def stretches(where: ZoneInfo, instant: int) -> Iterator[Stretch]:
    """The stretches from the one that holds the instant on; each ends with its UTC year at the latest."""
    year = _year_of(instant)
    if year < FIRST_YEAR:
        year = FIRST_YEAR
    while year <= LAST_YEAR:
        for stretch in _stretches_of(where, year):
            if stretch.end > instant:
                yield stretch
        year += 1


def show_wall(wall: int) -> str:
    """The wall time for a person: 2026-03-29 02:30, with seconds if it has any."""
    shown = _EPOCH + timedelta(seconds=wall)
    return shown.strftime("%Y-%m-%d %H:%M:%S" if shown.second else "%Y-%m-%d %H:%M")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _suggest(name: str) -> str:
    by_lower = {known.lower(): known for known in sorted(available_timezones()) if known not in _OF_THE_HOST}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return f" (did you mean {by_lower[near[0]]}?)" if near else ", such as Europe/Berlin"


def _year_of(instant: int) -> int:
    return (_EPOCH + timedelta(seconds=instant)).year


@lru_cache(maxsize=8192)
def _stretches_of(where: ZoneInfo, year: int) -> tuple[Stretch, ...]:
    start, end = (int(datetime(at, 1, 1, tzinfo=UTC).timestamp()) for at in (year, year + 1))
    offset = _offset(where, start)
    # A fold may reach over the end of a year.
    before = _offset(where, start - 2 * _DAY)
    since = start if before == offset else _find_change(where, start - 2 * _DAY, start)
    found = []
    # A look a day finds every change: in no zone are two of them less than six days apart.
    for day in range(start + _DAY, end + _DAY, _DAY):
        until = min(day, end) - 1
        if _offset(where, until) == offset:
            continue
        change = _find_change(where, until - _DAY, until)
        found.append(Stretch(start, change, offset, since, before))
        start, since, before, offset = change, change, offset, _offset(where, change)
    found.append(Stretch(start, end, offset, since, before))
    return tuple(found)


def _find_change(where: ZoneInfo, low: int, high: int) -> int:
    """The first instant after `low` with the offset that holds at `high`."""
    offset = _offset(where, high)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(where, middle) == offset:
            high = middle
        else:
            low = middle
    return high


def _offset(where: ZoneInfo, instant: int) -> int:
    span = datetime.fromtimestamp(instant, where).utcoffset()
    assert span is not None
    return span // timedelta(seconds=1)
