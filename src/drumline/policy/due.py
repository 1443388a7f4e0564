"""Which instants of a schedule are due now, and what becomes of each. The rules:

    last_tick ........................ now - misfire_grace .............. now
              │        missed        │            on time           │
              skip    none of them fires                  each fires, under every policy
              latest  the newest, unless one is on time
              all     the newest misfire_limit that are not older than misfire_max_age

An instant exactly misfire_grace late is missed. Each gets a ruling of its own, but beyond 1,000 missed ones the oldest
share one. Nothing here looks at a clock: the same schedule, last tick and now give the same rulings on every replica.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import assert_never

import msgspec

from drumline.model.instant import millis, to_millis
from drumline.model.schedule import Decision, Misfire, Schedule
from drumline.model.view import span_text
from drumline.policy.rule import Times, times

__all__ = ["Due", "Ruling", "due", "jittered"]

# Missed instants with a ruling of their own, at most, but for those that fire.
MOST_ALONE = 1000

_MILLISECOND = timedelta(milliseconds=1)


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about one instant, FIRED or MISSED, or about `count` of them up to `until`."""

    instant: datetime
    decision: Decision
    reason: str
    until: datetime | None = None
    count: int = 1


class Due(msgspec.Struct, frozen=True):
    """The rulings, oldest first, and the first instant that is not due yet; None if the rule yields no more."""

    rulings: tuple[Ruling, ...]
    next: datetime | None


def due(schedule: Schedule, last_tick: datetime, now: datetime) -> Due:
    """What is to be recorded of the instants after `last_tick` up to `now`."""
    yields = times(schedule.rule)
    # A clock that was set back decides nothing twice.
    upcoming = yields.after(max(last_tick, now))
    border = max(last_tick, now - schedule.misfire_grace)
    on_time = tuple(
        Ruling(instant=instant, decision=Decision.FIRED, reason="on time") for instant in yields.between(border, now)
    )
    total = yields.count(last_tick, border)
    if not total:
        return Due(on_time, upcoming)
    most = _most_alone(schedule)
    # A ruling for one instant is no shared one.
    alone = yields.newest(last_tick, border, most if total > most + 1 else total)
    firing = _count_firing(schedule, alone, now, on_time)
    shared = _share(schedule, yields, last_tick, alone[0], total - len(alone))
    return Due((*shared, *_rule_alone(schedule, alone, firing, now), *on_time), upcoming)


def jittered(schedule: Schedule, instant: datetime) -> datetime:
    """When the job of that tick is due: up to `jitter` later, the same on every replica."""
    span = millis(schedule.rule.jitter)
    if not span:
        return instant
    digest = blake2b(f"{schedule.name}/{to_millis(instant)}".encode(), digest_size=8).digest()
    return instant + int.from_bytes(digest) % (span + 1) * _MILLISECOND


def _most_alone(schedule: Schedule) -> int:
    return max(MOST_ALONE, schedule.misfire_limit if schedule.misfire is Misfire.ALL else 0)


def _count_firing(schedule: Schedule, missed: Sequence[datetime], now: datetime, on_time: Sequence[Ruling]) -> int:
    """How many of the missed ones fire all the same: always the newest."""
    match schedule.misfire:
        case Misfire.SKIP:
            return 0
        case Misfire.LATEST:
            return 0 if on_time else 1
        case Misfire.ALL:
            oldest = None if schedule.misfire_max_age is None else now - schedule.misfire_max_age
            young = len(missed) if oldest is None else len(missed) - bisect_left(missed, oldest)
            return min(young, schedule.misfire_limit)
        case _:
            assert_never(schedule.misfire)


def _rule_alone(schedule: Schedule, missed: Sequence[datetime], firing: int, now: datetime) -> Iterator[Ruling]:
    for place, instant in enumerate(missed):
        late = f"{span_text(now - instant)} late"
        if place >= len(missed) - firing:
            reason = f"{late}; misfire={schedule.misfire.value}"
            yield Ruling(instant=instant, decision=Decision.FIRED, reason=reason)
        else:
            reason = f"{late}; {_why_missed(schedule, now - instant)}"
            yield Ruling(instant=instant, decision=Decision.MISSED, reason=reason)


def _share(schedule: Schedule, yields: Times, last_tick: datetime, before: datetime, count: int) -> Iterator[Ruling]:
    """One ruling for the instants older than `before`, if there are any."""
    if not count:
        return
    first = yields.after(last_tick)
    assert first is not None
    [last] = yields.newest(last_tick, before - _MILLISECOND, 1)
    reason = f"{count} instants; {_why_missed(schedule, timedelta())}"
    yield Ruling(instant=first, decision=Decision.MISSED, reason=reason, until=last, count=count)


def _why_missed(schedule: Schedule, late: timedelta) -> str:
    match schedule.misfire:
        case Misfire.SKIP:
            return "misfire=skip"
        case Misfire.LATEST:
            return "misfire=latest, and a newer one fires"
        case Misfire.ALL:
            if schedule.misfire_max_age is not None and late > schedule.misfire_max_age:
                return f"misfire=all, but older than misfire_max_age, {span_text(schedule.misfire_max_age)}"
            return f"misfire=all, but {schedule.misfire_limit} newer ones reach misfire_limit"
        case _:
            assert_never(schedule.misfire)
