"""A schedule, its ticks, and the ledger in which each tick stands at most once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from drumline.model.job import NewJob
from drumline.model.options import JobOptions, check_name

__all__ = [
    "OVERLAPPED",
    "Coordination",
    "Decision",
    "DstFold",
    "DstGap",
    "Fired",
    "FiredAnswer",
    "Firing",
    "Misfire",
    "Overlap",
    "Rule",
    "Schedule",
    "ScheduleStatus",
    "Tick",
    "start_epoch",
]

# The reason of a tick that overlap has skipped, whatever it would have been fired for.
OVERLAPPED = "an earlier job of it is unfinished"


class Coordination(StrEnum):
    """Who runs a tick: one replica of the fleet, or each."""

    FLEET = "fleet"
    PER_REPLICA = "per_replica"


class Misfire(StrEnum):
    """What becomes of instants that passed while nobody could fire them."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


class Overlap(StrEnum):
    """What a tick does while a job of an earlier tick is unfinished."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    CANCEL_RUNNING = "cancel_running"


class DstGap(StrEnum):
    """A local time that does not exist: run right after the gap, or not at all."""

    RUN_AFTER = "run_after"
    SKIP = "skip"


class DstFold(StrEnum):
    """A local time that happens twice: run at the first, or at both."""

    ONCE = "once"
    TWICE = "twice"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What yields a schedule's instants."""

    every: timedelta | None = None
    cron: str | None = None
    timezone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None
    jitter: timedelta = timedelta()
    dst_gap: DstGap = DstGap.RUN_AFTER
    dst_fold: DstFold = DstFold.ONCE


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A named rule, and the job to make at each of its instants."""

    name: str
    task: str
    rule: Rule
    coordination: Coordination = Coordination.FLEET
    misfire: Misfire = Misfire.LATEST
    misfire_grace: timedelta = timedelta(seconds=5)
    misfire_limit: int = 100
    misfire_max_age: timedelta | None = None
    overlap: Overlap = Overlap.ALLOW
    run_on_startup: bool = False
    args: bytes = b"{}"
    options: JobOptions = JobOptions()
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}
    # Declared by code (and orphaned without it), or registered at run time (and kept until unregistered).
    in_code: bool = True
    # Counts at the first declaration only.
    paused: bool = False

    def __post_init__(self) -> None:
        check_name(self.name, "schedule name")
        check_name(self.task, "task")


class Decision(StrEnum):
    """What was decided about a tick, or what a ledger row tells of the schedule itself."""

    FIRED = "fired"
    # Missed, and the misfire policy fires it no more.
    MISSED = "missed"
    OVERLAP = "overlap"
    # Rows about the schedule: no instant in (from, to] was due because …
    PAUSED = "paused"
    CHANGED = "changed"
    ORPHANED = "orphaned"
    # Asked for by a person, also while paused. A trigger obeys overlap and makes no row; a backfill takes the place of
    # a row without a job, and its jobs run one after the other unless overlap is allowed.
    TRIGGER = "trigger"
    BACKFILL = "backfill"


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """One tick as a replica proposes to record it."""

    schedule: str
    # What makes the tick itself: the instant in milliseconds as text, or `start:<epoch>`; with a `+` behind it, the
    # first of many instants in one row.
    mark: str
    instant: datetime
    decision: Decision = Decision.FIRED
    reason: str = ""
    # Only for per_replica: the replica whose tick this is.
    replica: str = ""
    job: NewJob | None = None
    # Of a row that stands for many instants: the last one, and how many.
    until: datetime | None = None
    count: int = 1
    # The version of the schedule from which this was worked out; None for what people ask for, and for a fleet's start.
    version: int | None = None

    @property
    def is_tick(self) -> bool:
        """Whether this is the rule's own: people's wishes and rows about the schedule itself are not."""
        return self.decision in (Decision.FIRED, Decision.MISSED, Decision.OVERLAP)

    @property
    def makes_job(self) -> bool:
        return self.decision in (Decision.FIRED, Decision.TRIGGER, Decision.BACKFILL)

    @property
    def moves_on(self) -> bool:
        """Whether `last_tick` follows. A start is no instant of the rule: it must not pass over those still due."""
        return self.is_tick and not self.mark.startswith("start:")

    @property
    def follows_last_tick(self) -> bool:
        """Whether it was worked out from `last_tick`: then what lies at or before that has been decided since.

        Of a replica's own ticks `last_tick`, which may be another's, tells nothing.
        """
        return self.moves_on and self.version is not None and not self.replica

    def recorded_as(self, answer: FiredAnswer) -> Decision:
        """What the ledger's row says, once the store has answered."""
        if answer is FiredAnswer.OVERLAP:
            return Decision.OVERLAP
        return Decision.FIRED if self.decision is Decision.BACKFILL else self.decision


class FiredAnswer(StrEnum):
    """What a store made of a firing."""

    FIRED = "fired"
    RECORDED = "recorded"
    OVERLAP = "overlap"
    DUPLICATE = "duplicate"
    PAUSED = "paused"
    UNKNOWN = "unknown"
    # Worked out from a version of the schedule that holds no longer: read it again.
    STALE = "stale"
    # By the store's clock its instant has not come yet.
    EARLY = "early"


class Fired(msgspec.Struct, frozen=True):
    """The answer to one firing, with the id of its job if it made one."""

    answer: FiredAnswer
    job_id: str | None = None


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the ledger."""

    schedule: str
    mark: str
    replica: str
    instant: datetime
    decision: Decision
    reason: str
    by: str
    recorded_at: datetime
    job_id: str | None = None
    until: datetime | None = None
    # How many instants it decides: none, where it tells of the schedule itself.
    count: int = 1
    # How its job ended, once it has: done, dead or cancelled; and how long its last attempt ran.
    outcome: str | None = None
    run_time: timedelta | None = None
    # Of a row that tells of a change: the rule that holds from here on; None once the schedule was withdrawn. Of one
    # that tells of a pause: the rule whose instants were passed over.
    rule: Rule | None = None


def start_epoch(replica: str, mark: str) -> int:
    """The epoch of a tick that stands for a fleet's start; of any other, one before the first."""
    name, _, epoch = mark.partition(":")
    return int(epoch) if name == "start" and epoch.isdecimal() and not replica else -1


class ScheduleStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as the store holds it."""

    schedule: Schedule
    # Grows with every change, pause, resume and orphaning of it, and never repeats.
    version: int
    declared_at: datetime
    # Since when the present rule counts: it was declared, changed, resumed or adopted then.
    begun_at: datetime
    # Instants up to here are decided; of per_replica, by at least one replica.
    last_tick: datetime
    last_fired_at: datetime | None = None
    # The shown key of the newest fired tick, and who recorded it.
    last_mark: str | None = None
    leader: str | None = None
    paused_at: datetime | None = None
    paused_by: str | None = None
    paused_why: str | None = None
    # Declared in code, but by no live replica.
    orphaned: bool = False
    # Since when that stands in the ledger.
    orphaned_at: datetime | None = None
    # Its jobs that run now; attempts ended since it was declared, and those that failed, timed out or were lost.
    running: int = 0
    total_runs: int = 0
    total_failures: int = 0
