"""Which rule of a schedule held when, and when it was silent, as its ledger tells.

    changed ────────────── changed ─────────────── changed (withdrawn)
            │ rule A            │ rule B                │ no rule
                 paused ── until      orphaned ─ ─ ─ ─ ─ up to the next change

A change counts for the instants after it, and so does a silence: what was due at its moment, and undecided, was passed
over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from drumline.errors import BadOption
from drumline.model.schedule import Decision, Rule, ScheduleStatus, Tick
from drumline.policy.firing import BACKFILLED
from drumline.policy.rule import times

__all__ = [
    "FOREVER",
    "MILLISECOND",
    "History",
    "Span",
    "Stretch",
    "count_instants",
    "count_paused",
    "is_instant",
    "read_history",
    "silence",
    "subtract",
]

MILLISECOND = timedelta(milliseconds=1)
# The end of what has none.
FOREVER = datetime.max.replace(microsecond=0, tzinfo=UTC)


class Span(msgspec.Struct, frozen=True):
    """The time after `after`, up to and including `until`."""

    after: datetime
    until: datetime

    def holds(self, instant: datetime) -> bool:
        return self.after < instant <= self.until

    def meet(self, other: Span) -> Span | None:
        """What both have in common; None if that is nothing."""
        after, until = max(self.after, other.after), min(self.until, other.until)
        return Span(after, until) if after < until else None


class Stretch(msgspec.Struct, frozen=True):
    """A time in which one rule held."""

    rule: Rule
    span: Span


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The rules, oldest first; the times without ticks; and after when the ledger is whole (None: it tells nothing)."""

    stretches: tuple[Stretch, ...]
    silences: tuple[Span, ...]
    known_after: datetime | None


def read_history(rows: Iterable[Tick], status: ScheduleStatus | None, whole_after: datetime | None = None) -> History:
    """What the rows of one schedule, in any order, and its present status tell; without a status, it was withdrawn.

    With `whole_after` these are its rows since then, and among them or in the status is the rule that held then.
    """
    ledger = sorted(rows, key=_place)
    changes = [row for row in ledger if row.decision is Decision.CHANGED]
    spans = [span for row in ledger if (span := silence(row, changes)) is not None]
    if status is not None and status.paused_at is not None:
        spans.append(Span(status.paused_at, FOREVER))
    if status is not None and status.orphaned_at is not None:
        # Its row may be older than those that were read.
        spans.append(Span(status.last_tick, FOREVER))
    known_after = _find_beginning(ledger, changes, status) if whole_after is None else whole_after
    stretches = tuple(_list_stretches(changes))
    if not changes and status is not None and known_after is not None:
        # No row is there that tells of a change, as it was purged or is too old: the rule has not changed since.
        stretches = (Stretch(status.schedule.rule, Span(known_after, FOREVER)),)
    return History(
        stretches=stretches, silences=tuple(sorted(spans, key=lambda span: span.after)), known_after=known_after
    )


def silence(row: Tick, changes: Sequence[Tick]) -> Span | None:
    """The time in which, as this row tells, the schedule was paused or orphaned; None for a row of another kind."""
    if row.decision is Decision.PAUSED:
        return Span(row.instant, row.until or row.instant)
    if row.decision is not Decision.ORPHANED:
        return None
    adopted = (change.instant for change in sorted(changes, key=_place) if _place(change) > _place(row))
    return Span(row.instant, next(adopted, FOREVER))


def is_instant(row: Tick) -> bool:
    """Whether the row decides instants of the rule: a fleet's start is none."""
    return row.decision in (Decision.FIRED, Decision.MISSED, Decision.OVERLAP) and not row.mark.startswith("start:")


def subtract(span: Span, holes: Iterable[Span]) -> Iterator[Span]:
    """What is left of the span without the holes, which are in the order of their beginnings.

    Also a hole without length cuts it in two: a pause that ends at once passes over what was due.
    """
    at = span.after
    for hole in holes:
        if hole.until <= at or span.until <= hole.after:
            continue
        if at < hole.after:
            yield Span(at, hole.after)
        at = hole.until
    if at < span.until:
        yield Span(at, span.until)


def count_instants(history: History, span: Span, now: datetime) -> int | None:
    """How many instants the rules that held then have yielded in the span up to now; None if that was purged."""
    if history.known_after is None or span.after < history.known_after:
        return None
    past = Span(span.after, min(span.until, now))
    parts = ((stretch.rule, stretch.span.meet(past)) for stretch in history.stretches)
    return sum(times(rule).count(part.after, part.until) for rule, part in parts if part is not None)


def count_paused(row: Tick) -> int | None:
    """How many instants the pause passed over that this row tells of; None if its rule cannot be worked out here."""
    if row.rule is None or row.until is None:
        return None
    try:
        return times(row.rule).count(row.instant, row.until)
    except BadOption:
        return None


def _list_stretches(changes: Sequence[Tick]) -> Iterator[Stretch]:
    ends = [*(change.instant for change in changes[1:]), FOREVER]
    for change, end in zip(changes, ends[: len(changes)], strict=True):
        if change.rule is not None and end != change.instant:
            yield Stretch(change.rule, Span(change.instant, end))


def _find_beginning(ledger: Sequence[Tick], changes: Sequence[Tick], status: ScheduleStatus | None) -> datetime | None:
    """After when no row is purged: they are in the order of their instants, but for those recorded much later."""
    first = changes[0].instant if changes else None
    if first is not None and (status is None or first <= status.declared_at):
        return first
    regular = (row.instant for row in ledger if is_instant(row) and row.reason != BACKFILLED)
    # A pause that began before the first change left may be purged, and have lasted until the first tick.
    oldest = next((instant for instant in regular if first is None or instant > first), None)
    return first if oldest is None else oldest - MILLISECOND


def _place(row: Tick) -> tuple[datetime, int]:
    """The order of rows; of those of one instant that tell of the schedule itself, by its version."""
    number = row.mark.rpartition(":")[2]
    return row.instant, int(number) if number.isdecimal() else 0
