"""What the read side and the operators' side of a store speak: filters, pages, counts, series, commands, audit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from drumline.errors import BadOption
from drumline.model.job import JobState, Source, Start
from drumline.model.options import PRIVATE

__all__ = [
    "HISTOGRAM_MILLIS",
    "Answer",
    "AuditRow",
    "By",
    "Command",
    "CommandKind",
    "Count",
    "Counts",
    "JobFilter",
    "Keep",
    "Page",
    "PauseKind",
    "SeriesPoint",
    "Tally",
    "histogram_bucket",
]

T = TypeVar("T")

# Upper ends of the wait and run histograms' buckets, in milliseconds; one more bucket takes what is longer.
HISTOGRAM_MILLIS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 3_600_000)


def histogram_bucket(millis: int) -> int:
    """The index of the bucket that a span of so many milliseconds falls into."""
    return bisect_left(HISTOGRAM_MILLIS, millis)


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs; a field left empty asks for nothing. `running` includes those being cancelled."""

    # None asks for nothing; an empty tuple names no job, and none fits.
    ids: tuple[str, ...] | None = None
    states: frozenset[JobState] = frozenset()
    task: str | None = None
    queue: str | None = None
    tag: str | None = None
    key: str | None = None
    schedule: str | None = None
    source: Source | None = None
    origin: str | None = None
    # Each of these stands in the job's metadata, with this value.
    meta: Mapping[str, Any] = {}
    created_from: datetime | None = None
    created_to: datetime | None = None
    # A text that the last error contains.
    error: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing, so that every job fits."""
        return self == JobFilter()

    def shows(self, queue: str) -> bool:
        """Whether a list has jobs of this queue: of a private one only where queue, jobs or schedule are named."""
        is_named = self.queue is not None or self.ids is not None or self.schedule is not None
        return is_named or not queue.startswith(PRIVATE)

    def __post_init__(self) -> None:
        # Nested values and fractions would be compared by each store in its own way, and no metadata hold a NUL.
        if not all(_is_plain(name, value) for name, value in self.meta.items()):
            raise BadOption(
                "meta", "an object of texts without NUL, whole numbers of 64 bits, true, false and null", self.meta
            )


def _is_plain(name: object, value: object) -> bool:
    if isinstance(value, int):
        return _is_text(name) and -(2**63) <= value < 2**63
    return _is_text(name) and (value is None or _is_text(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some of what was asked for, newest first. `next` continues; None means there is no more.

    A page may be short, even empty, while there is more: a store looks at a bounded number of rows per call.
    """

    items: list[T]
    next: str | None = None


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of one task in one queue are in each state now, and what they have come to since the beginning."""

    queue: str
    task: str
    ready: int = 0
    delayed: int = 0
    running: int = 0
    done: int = 0
    dead: int = 0
    cancelled: int = 0
    total_done: int = 0
    # Attempts that failed, timed out or were lost.
    total_failures: int = 0
    last_error: str | None = None
    # Since when the one that has been ready for longest waits.
    oldest_ready: datetime | None = None


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs by state."""

    ready: int = 0
    delayed: int = 0
    running: int = 0
    done: int = 0
    dead: int = 0
    cancelled: int = 0

    @property
    def unfinished(self) -> int:
        return self.ready + self.delayed + self.running


class Counts(msgspec.Struct, frozen=True):
    """Jobs by state: in all, by queue, by task."""

    rows: list[Count]

    def __iter__(self) -> Iterator[Count]:
        return iter(self.rows)

    @property
    def total(self) -> Tally:
        return _add(self.rows)

    @property
    def by_queue(self) -> dict[str, Tally]:
        """Without the private queues, whose jobs are in the total and in the tasks."""
        names = {row.queue for row in self.rows if not row.queue.startswith(PRIVATE)}
        return {name: _add([row for row in self.rows if row.queue == name]) for name in names}

    @property
    def by_task(self) -> dict[str, Tally]:
        return {name: _add([row for row in self.rows if row.task == name]) for name in {r.task for r in self.rows}}

    @property
    def ready(self) -> int:
        return self.total.ready

    @property
    def delayed(self) -> int:
        return self.total.delayed

    @property
    def running(self) -> int:
        return self.total.running

    @property
    def done(self) -> int:
        return self.total.done

    @property
    def dead(self) -> int:
        return self.total.dead

    @property
    def cancelled(self) -> int:
        return self.total.cancelled

    @property
    def unfinished(self) -> int:
        return self.total.unfinished


class SeriesPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One minute of one task in one queue: attempts ended, by how; waits and run times by bucket."""

    minute: datetime
    queue: str
    task: str
    done: int = 0
    failed: int = 0
    dead: int = 0
    cancelled: int = 0
    wait: tuple[int, ...] = (0,) * (len(HISTOGRAM_MILLIS) + 1)
    run: tuple[int, ...] = (0,) * (len(HISTOGRAM_MILLIS) + 1)


class PauseKind(StrEnum):
    """What can be paused."""

    QUEUE = "queue"
    SCHEDULE = "schedule"


class By(msgspec.Struct, frozen=True):
    """Who acts, through which door, and why."""

    who: str
    via: str = "code"
    why: str = ""


class CommandKind(StrEnum):
    """What an operator can do to jobs."""

    CANCEL = "cancel"
    RETRY = "retry"
    DISCARD = "discard"
    RESCHEDULE = "reschedule"


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One action on some jobs. Its id, made by the caller, is also its audit row's: a repeat does nothing again."""

    id: str
    kind: CommandKind
    ids: tuple[str, ...]
    by: By
    # When rescheduled jobs become due.
    start: Start = None
    # The audit row of a bulk action of which this is a slice.
    part_of: str | None = None


class Answer(StrEnum):
    """What a command did to one job."""

    APPLIED = "applied"
    # Running: the worker has been asked to stop it.
    REQUESTED = "requested"
    NOT_FOUND = "not found"
    # The job is in a state in which this cannot be done.
    REFUSED = "refused"
    # Retry only: another job holds its unique key.
    KEY_TAKEN = "key taken"


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a person or program on the fleet."""

    id: str
    at: datetime
    by: By
    action: str
    targets: tuple[str, ...]
    answers: tuple[Answer, ...] = ()
    part_of: str | None = None


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """How long the records are kept that no job's own retention decides."""

    ticks: timedelta = timedelta(days=30)
    # Of each schedule, however old.
    newest_ticks: int = 1000
    audit: timedelta = timedelta(days=90)
    series: timedelta = timedelta(days=7)
    replicas: timedelta = timedelta(days=1)


def _add(rows: list[Count]) -> Tally:
    return Tally(
        ready=sum(row.ready for row in rows),
        delayed=sum(row.delayed for row in rows),
        running=sum(row.running for row in rows),
        done=sum(row.done for row in rows),
        dead=sum(row.dead for row in rows),
        cancelled=sum(row.cancelled for row in rows),
    )
