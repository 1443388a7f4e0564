"""Whether a schedule's ledger holds what its rules asked for: each instant decided, once, and on time.

    rule held ───────────────────────────────────────────▶ (until it was changed, paused, orphaned, withdrawn)
       ●     ●     ✗     ●     ●     ○     ○
    decided     missing     the last   passed over: due when the rule ceased to hold, and dropped by it

Where the rule still holds, what lies after `last_tick` is undecided: a scheduler decides it as soon as one runs. An
instant is missing only if a later one was decided, or `last_tick` has passed over it.

Of a per_replica schedule each replica is judged by itself, between its first row and its last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import msgspec

from drumline.model.options import PRIVATE
from drumline.model.schedule import Coordination, Decision, Rule, Schedule, ScheduleStatus, Tick
from drumline.policy.firing import BACKFILLED
from drumline.policy.held import FOREVER, MILLISECOND, History, Span, is_instant, read_history, subtract
from drumline.policy.rule import Times, times

__all__ = ["Finding", "Findings", "Kind", "Made", "verify"]

_USUAL_GRACE: timedelta = Schedule(name="any", task="any", rule=Rule()).misfire_grace


class Kind(StrEnum):
    """What can be said of instants besides that all is well."""

    MISSING = "missing"
    # More jobs than the ledger has for the tick.
    DUPLICATE = "duplicate"
    # Fired more than misfire_grace after the instant.
    LATE = "late"
    PASSED_OVER = "passed_over"
    UNDECIDED = "undecided"
    # The ledger of that time has been purged.
    UNKNOWN = "unknown"


class Made(NamedTuple):
    """A job that a tick has made."""

    id: str
    queue: str
    tick: datetime


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was found, about `count` instants from `first` to `last`."""

    kind: Kind
    first: datetime
    last: datetime
    # Nobody knows how many instants are unknown.
    count: int | None = 1
    # Of a per_replica tick, whose it is.
    replica: str = ""
    jobs: tuple[str, ...] = ()


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What verifying one schedule came to: how many instants had to be decided, and what was found."""

    schedule: str
    expected: int
    found: tuple[Finding, ...]

    def count(self, kind: Kind) -> int:
        return sum(finding.count or 0 for finding in self.found if finding.kind is kind)

    @property
    def is_sound(self) -> bool:
        return not self.count(Kind.MISSING) and not self.count(Kind.DUPLICATE)


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """One who has ticks, a replica or the fleet: the time in which it is judged, and what is decided for it."""

    replica: str
    bounds: Span
    # Up to when it could have decided more, at the end of its bounds.
    due: datetime
    points: frozenset[datetime]
    # The same in order, and those of them that nobody had to ask for.
    order: tuple[datetime, ...]
    unasked: tuple[datetime, ...]
    # The times that a row for many instants covers, in order.
    shared: tuple[Span, ...]

    def judge(self, yields: Times, run: Span, scope: Span) -> Judged:
        """What of the run, a time in which one rule held, is decided, and what is not."""
        settled = self.bounds.until if run.until == FOREVER else self._last_in(run)
        end = self.due if run.until == FOREVER else min(run.until, self.bounds.until)
        rest_kind = Kind.UNDECIDED if run.until == FOREVER else Kind.PASSED_OVER
        begun = Span(max(run.after, self.bounds.after, scope.after), scope.until)
        judged, rest = begun.meet(Span(run.after, settled)), begun.meet(Span(settled, end))
        return Judged(
            0 if judged is None else yields.count(judged.after, judged.until),
            (*self._find_open(Kind.MISSING, yields, judged), *self._find_open(rest_kind, yields, rest)),
        )

    def _last_in(self, span: Span) -> datetime:
        """The last that is decided in the span without being asked for, or the span's beginning."""
        parts = [part.until for one in self.shared if (part := one.meet(span)) is not None]
        place = bisect_right(self.unasked, min(span.until, self.bounds.until))
        return max([span.after, *self.unasked[max(place - 1, 0) : place], *parts])

    def _find_open(self, kind: Kind, yields: Times, span: Span | None) -> Iterator[Finding]:
        """The instants of the span that are not decided; those that follow each other make one finding."""
        for left in subtract(span, self.shared) if span is not None else ():
            at = left.after
            while first := next((one for one in yields.between(at, left.until) if one not in self.points), None):
                place = bisect_right(self.order, first)
                at = min([left.until, *(point - MILLISECOND for point in self.order[place : place + 1])])
                [last] = yields.newest(first - MILLISECOND, at, 1)
                count = yields.count(first - MILLISECOND, at)
                yield Finding(kind=kind, first=first, last=last, count=count, replica=self.replica)


class Judged(NamedTuple):
    """How many instants of a run had to be decided, and what was found of them."""

    expected: int
    found: tuple[Finding, ...]


def verify(
    name: str,
    rows: Sequence[Tick],
    jobs: Iterable[Made],
    status: ScheduleStatus | None,
    *,
    now: datetime,
    start: datetime | None = None,
    end: datetime | None = None,
    whole_after: datetime | None = None,
) -> Findings:
    """Judge the ledger of one schedule from `start` to `end`, both included; by default all of it.

    `rows` are all its rows, in any order, or with `whole_after` those since then and what tells which rule held then;
    `jobs` those of its ticks, read before the rows. Without a status it was withdrawn.
    """
    history = read_history(rows, status, whole_after)
    last = now if end is None else min(end, now)
    found = [*_find_unknown(history, status, start, last)]
    if history.known_after is None:
        return Findings(schedule=name, expected=0, found=tuple(found))
    scope = Span(history.known_after if start is None else max(history.known_after, start - MILLISECOND), last)
    grace = _USUAL_GRACE if status is None else status.schedule.misfire_grace
    expected = 0
    for owner in _list_owners(rows, status, Span(history.known_after, now), now - grace):
        for rule, run in _list_runs(history):
            judged = owner.judge(times(rule), run, scope)
            expected += judged.expected
            found += judged.found
    found += _find_duplicates(rows, jobs, scope)
    found += _find_late(rows, scope, grace)
    return Findings(schedule=name, expected=expected, found=tuple(found))


def _list_runs(history: History) -> Iterator[tuple[Rule, Span]]:
    """The times in which ticks had to be, each with its rule."""
    for stretch in history.stretches:
        for part in subtract(stretch.span, history.silences):
            yield stretch.rule, part


def _list_owners(rows: Sequence[Tick], status: ScheduleStatus | None, whole: Span, due: datetime) -> Iterator[Owner]:
    """Those who have ticks. Where a schedule has been of both kinds, a row of one kind decides for the other too."""
    instants = [row for row in rows if is_instant(row)]
    names = {row.replica for row in instants}
    is_own = status.schedule.coordination is Coordination.PER_REPLICA if status is not None else any(names)
    if not is_own:
        last = whole.until if status is None else status.last_tick
        yield _own("", instants, Span(whole.after, last), due)
        names.discard("")
    for name in sorted(names):
        own = [row for row in instants if row.replica == name]
        others = [row for row in instants if bool(row.replica) != bool(name)]
        first, last = min(row.instant for row in own), max(row.until or row.instant for row in own)
        yield _own(name, [*own, *others], Span(first - MILLISECOND, last), last)


def _own(replica: str, rows: Sequence[Tick], bounds: Span, due: datetime) -> Owner:
    points = {row.instant: row.reason != BACKFILLED for row in rows if row.until is None}
    shared = [Span(row.instant - MILLISECOND, row.until) for row in rows if row.until is not None]
    return Owner(
        replica=replica,
        bounds=bounds,
        due=due,
        points=frozenset(points),
        order=tuple(sorted(points)),
        unasked=tuple(sorted(instant for instant, is_unasked in points.items() if is_unasked)),
        shared=tuple(sorted(shared, key=lambda span: span.after)),
    )


def _find_unknown(
    history: History, status: ScheduleStatus | None, start: datetime | None, end: datetime
) -> Iterator[Finding]:
    if status is None:
        return
    first = status.declared_at if start is None else max(start, status.declared_at)
    last = end if history.known_after is None else min(end, history.known_after)
    if first < last:
        yield Finding(kind=Kind.UNKNOWN, first=first, last=last, count=None)


def _find_duplicates(rows: Sequence[Tick], jobs: Iterable[Made], scope: Span) -> Iterator[Finding]:
    """The ticks that have more jobs than the ledger names."""
    starts = {row.job_id for row in rows if not is_instant(row)}
    made: defaultdict[tuple[datetime, str], set[str]] = defaultdict(set)
    named: defaultdict[tuple[datetime, str], int] = defaultdict(int)
    for row in rows:
        if is_instant(row) and row.job_id is not None:
            made[row.instant, row.replica].add(row.job_id)
            named[row.instant, row.replica] = 1
    for job in jobs:
        if job.id not in starts:
            owner = job.queue.removeprefix(PRIVATE) if job.queue.startswith(PRIVATE) else ""
            made[job.tick, owner].add(job.id)
    for (instant, replica), ids in sorted(made.items()):
        more = len(ids) - named[instant, replica]
        if more and scope.holds(instant):
            names = tuple(sorted(ids))
            yield Finding(kind=Kind.DUPLICATE, first=instant, last=instant, count=more, replica=replica, jobs=names)


def _find_late(rows: Sequence[Tick], scope: Span, grace: timedelta) -> Iterator[Finding]:
    for row in sorted(rows, key=lambda row: row.instant):
        is_own_time = is_instant(row) and row.decision is Decision.FIRED and row.reason != BACKFILLED
        if is_own_time and scope.holds(row.instant) and row.recorded_at - row.instant > grace:
            jobs = () if row.job_id is None else (row.job_id,)
            yield Finding(kind=Kind.LATE, first=row.instant, last=row.instant, replica=row.replica, jobs=jobs)
