"""A schedule's rule: what a user may say, which instants it yields, and how it is told.

All instants are aware UTC datetimes of whole milliseconds. `start` and `end` are themselves part of the time in which
a rule yields instants.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Protocol

import msgspec

from drumline.errors import BadOption
from drumline.model.instant import Duration, from_millis, millis, parse_duration, parse_instant, to_millis
from drumline.model.schedule import DstFold, DstGap, Rule
from drumline.model.view import span_text
from drumline.policy.cron import Cron, read_cron
from drumline.policy.every import Every
from drumline.policy.expression import read_expression
from drumline.policy.note import note_change
from drumline.policy.options import pick
from drumline.policy.zone import LAST_YEAR, zone

__all__ = ["Times", "check_rule", "describe", "has_idle_zone", "make_rule", "note", "shown_key", "times"]

# No rule yields an instant after this.
_LAST = to_millis(datetime.fromisoformat(f"{LAST_YEAR}-12-31T00:00:00Z"))
_PLAIN = Rule()


class Source(Protocol):
    """Instants without beginning or end, in milliseconds."""

    def after(self, instant: int) -> int | None: ...
    def count(self, after: int, until: int) -> int: ...
    def between(self, after: int, until: int) -> Iterator[int]: ...


class Times:
    """The instants of one rule, from its start to its end."""

    def __init__(self, source: Source, start: datetime | None, end: datetime | None) -> None:
        self._source = source
        # The instant before the first that counts, and the last that does.
        self._before = None if start is None else to_millis(start) - 1
        self._last = _LAST if end is None else min(to_millis(end), _LAST)

    def after(self, instant: datetime) -> datetime | None:
        """The first strictly after the instant; None if the rule yields no more."""
        found = self._source.after(self._from(instant))
        return None if found is None or found > self._last else from_millis(found)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Those after `after` up to and including `until`, oldest first."""
        return map(from_millis, self._source.between(self._from(after), self._until(until)))

    def count(self, after: datetime, until: datetime) -> int:
        """How many `between` would give; quick however many there are."""
        return self._count(self._from(after), self._until(until))

    def newest(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """The last `limit` of what `between` would give, oldest first; quick however many came before."""
        low, high = self._from(after), self._until(until)
        if self._count(low, high) > limit:
            low = self._leave(limit, low, high)
        return [from_millis(found) for found in islice(self._source.between(low, high), limit)]

    def _leave(self, limit: int, low: int, high: int) -> int:
        """A millisecond after which exactly so many are left up to `high`, where more are left after `low`."""
        above = high
        while above - low > 1:
            middle = (low + above) // 2
            if self._count(middle, high) > limit:
                low = middle
            else:
                above = middle
        return above

    def _count(self, after: int, until: int) -> int:
        return self._source.count(after, until) if after < until else 0

    def _from(self, instant: datetime) -> int:
        given = to_millis(instant)
        return given if self._before is None else max(given, self._before)

    def _until(self, instant: datetime) -> int:
        return min(to_millis(instant), self._last)


def make_rule(
    where: str,
    *,
    every: Duration | None = None,
    cron: str | None = None,
    timezone: str | None = None,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    jitter: Duration | None = None,
    dst_gap: DstGap | str | None = None,
    dst_fold: DstFold | str | None = None,
) -> Rule:
    """The rule that a user's options mean; BadOption, naming `where` and the option, for what cannot be."""
    try:
        if (every is None) == (cron is None):
            raise BadOption("rule", "given as either every= or cron=", "neither" if every is None else "both")
        rule = Rule(
            every=None if every is None else _read_every(every),
            cron=None if cron is None else _read_cron(cron),
            timezone=_PLAIN.timezone if timezone is None else _read_zone(timezone),
            start=None if start is None else parse_instant(start, "start"),
            end=None if end is None else parse_instant(end, "end"),
            jitter=_PLAIN.jitter if jitter is None else parse_duration(jitter, "jitter"),
            dst_gap=_PLAIN.dst_gap if dst_gap is None else pick(DstGap, dst_gap, "dst_gap"),
            dst_fold=_PLAIN.dst_fold if dst_fold is None else pick(DstFold, dst_fold, "dst_fold"),
        )
        _check_together(rule)
    except BadOption as error:
        raise error.at(where) from None
    return rule


def check_rule(where: str, rule: Rule) -> Rule:
    """The rule, made again from its own parts: BadOption for one that `make_rule` would not have made."""
    return make_rule(where, **msgspec.structs.asdict(rule))


@lru_cache(maxsize=16_384)
def times(rule: Rule) -> Times:
    """The rule's instants; BadOption for a rule that this machine cannot read, such as one of a zone it lacks."""
    source = _every(rule) or _cron(rule)
    assert source is not None
    return Times(source, rule.start, rule.end)


def has_idle_zone(rule: Rule) -> bool:
    """Whether it has a time zone that changes nothing, so that the user should be warned."""
    return rule.every is not None and rule.timezone != _PLAIN.timezone


def describe(rule: Rule) -> str:
    """The rule in a few words: `every 10s`, `cron 0 9 * * * America/New_York`."""
    if rule.every is not None:
        return f"every {span_text(rule.every)}"
    return f"cron {rule.cron}" + ("" if rule.timezone == _PLAIN.timezone else f" {rule.timezone}")


def shown_key(name: str, rule: Rule, instant: datetime) -> str:
    """The tick as people see it: the name, and the bucket of an interval or else the Unix second."""
    every = _every(rule)
    number = to_millis(instant) // 1000 if every is None else every.bucket(to_millis(instant))
    return f"{name}:{number}"


def note(rule: Rule, instant: datetime) -> str | None:
    """Where a change of the clocks moved, skipped or doubled this instant of the rule; None where it did not."""
    cron = _cron(rule)
    return None if cron is None else note_change(cron, to_millis(instant))


def _every(rule: Rule) -> Every | None:
    if rule.every is None:
        return None
    return Every(millis(rule.every), 0 if rule.start is None else to_millis(rule.start))


def _cron(rule: Rule) -> Cron | None:
    return None if rule.cron is None else read_cron(rule.cron, rule.timezone, rule.dst_gap, rule.dst_fold)


def _read_every(value: object) -> timedelta:
    span = parse_duration(value, "every")
    if not span:
        raise BadOption("every", "a duration of 1 ms or more", value)
    return span


def _read_cron(value: object) -> str:
    if not isinstance(value, str):
        raise BadOption("cron", "a text, such as '0 9 * * *'", value)
    read_expression(value)
    return " ".join(value.split())


def _read_zone(value: object) -> str:
    if not isinstance(value, str):
        raise BadOption("timezone", "the name of an IANA time zone, such as Europe/Berlin", value)
    return zone(value).key


def _check_together(rule: Rule) -> None:
    """BadOption for options that are right alone and wrong together."""
    if rule.every is not None:
        for option in ("dst_gap", "dst_fold"):
            if getattr(rule, option) != getattr(_PLAIN, option):
                raise BadOption(option, "left out with every=, which counts real time", getattr(rule, option).value)
    if rule.start is None or rule.end is None:
        return
    if rule.end < rule.start:
        raise BadOption("end", f"later than start, {rule.start.isoformat()}", rule.end)
    if times(rule).after(rule.start - timedelta(milliseconds=1)) is None:
        expected = f"so late that the rule yields an instant from start, {rule.start.isoformat()}, on"
        raise BadOption("end", expected, rule.end)
