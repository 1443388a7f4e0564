"""A job: a durable request to run one task once.

                       ┌── retry at ──┐    ┌── release ──┐
                       ▼              │    ▼             │
    enqueue ──▶ delayed ──▶ ready ──▶ running ──▶ done | dead | cancelled
                   │          │                             │
                   └─ cancel ─┴──▶ cancelled                └─ retry (same id) ──▶ ready

A waiting job *reads* as `delayed` while its due time lies ahead, or while it waits for another job to end; else as
`ready`. `cancelling` is `running` with a cancel request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from drumline.errors import BadOption
from drumline.model.options import JobOptions, check_name

__all__ = [
    "ENDED",
    "UNFINISHED",
    "WAITING",
    "Attempt",
    "Conflict",
    "Enqueued",
    "Failure",
    "Job",
    "JobState",
    "Key",
    "KeyWindow",
    "LogLine",
    "NewJob",
    "Progress",
    "Source",
    "Start",
]


class JobState(StrEnum):
    """Where a job stands."""

    DELAYED = "delayed"
    READY = "ready"
    RUNNING = "running"
    CANCELLING = "cancelling"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"


WAITING = frozenset({JobState.DELAYED, JobState.READY})
ENDED = frozenset({JobState.DONE, JobState.DEAD, JobState.CANCELLED})
UNFINISHED = frozenset(JobState) - ENDED


class Source(StrEnum):
    """Who asked for the job: a schedule's tick, or anybody else."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"


class Conflict(StrEnum):
    """What enqueue does when the unique key is held by another job."""

    SKIP = "skip"
    REPLACE = "replace"
    RAISE = "raise"


class KeyWindow(StrEnum):
    """How long a unique key is held: until the job has ended, until it starts, or for a time from enqueue."""

    UNFINISHED = "unfinished"
    PENDING = "pending"
    TIME = "time"


class Key(msgspec.Struct, frozen=True):
    """A unique key: at most one job of the task holds it."""

    name: str
    window: KeyWindow = KeyWindow.UNFINISHED
    # How long from enqueue, where the window is TIME.
    span: timedelta | None = None
    on_conflict: Conflict = Conflict.SKIP

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= 512:
            raise BadOption("key", "a text of 1 to 512 characters", self.name)
        if (self.window is KeyWindow.TIME) != (self.span is not None):
            raise BadOption("key span", "given where the window is a time, and only there", self.span)


# Reading every id as a UUID would cost ten times as much as this look at those that need it.
_CANONICAL_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _canonical_id(given: str) -> str:
    try:
        return str(UUID(given))
    except (ValueError, AttributeError, TypeError):
        raise BadOption("id", "a UUID", given) from None


# When a job becomes due: at an instant, after a time by the store's clock, or (None) at once.
Start = datetime | timedelta | None


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as its caller asks for it."""

    id: str
    task: str
    args: bytes = b"{}"
    options: JobOptions = JobOptions()
    start: Start = None
    key: Key | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}
    source: Source = Source.MANUAL
    origin: str | None = None
    schedule: str | None = None
    tick: datetime | None = None

    def __post_init__(self) -> None:
        check_name(self.task, "task")
        if not _CANONICAL_ID.fullmatch(str(self.id)):
            msgspec.structs.force_setattr(self, "id", _canonical_id(self.id))


class Enqueued(msgspec.Struct, frozen=True):
    """What became of one NewJob: the id that stands for it, and whether this call made or replaced it."""

    id: str
    state: JobState
    created: bool = True
    replaced: bool = False


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt failed, as text."""

    type: str
    message: str
    traceback: str = ""


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One execution under one claim, closed. `by` is who recorded it: the replica that ran it, or its rescuer."""

    number: int
    fence: int
    replica: str
    by: str
    started_at: datetime
    ended_at: datetime
    # done, failed, timeout, lost, cancelled, released or snoozed.
    ended: str
    error: Failure | None = None

    @property
    def died_of(self) -> str | None:
        """What went wrong in the attempt, as `Type: message`. To snooze is not to fail."""
        if self.error is None or self.ended == "snoozed":
            return None
        return f"{self.error.type}: {self.error.message}"


class Progress(msgspec.Struct, frozen=True):
    """How far a running job says it is, 0 to 1."""

    value: float
    message: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 1:
            raise BadOption("progress", "a number from 0 to 1", self.value)


class LogLine(msgspec.Struct, frozen=True):
    """One line that a running task logged. `number` counts within the claim, so that a repeat adds nothing."""

    number: int
    at: datetime
    level: str
    message: str
    fields: Mapping[str, Any] = {}
    attempt: int = 0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is stored."""

    id: str
    task: str
    queue: str
    state: JobState
    priority: int
    # Attempts begun and not given back, since the job was enqueued or retried by command.
    attempt: int
    max_attempts: int
    fence: int
    args: bytes
    options: JobOptions
    created_at: datetime
    due_at: datetime
    # Of the live claim; None unless running.
    claimed_at: datetime | None = None
    lease_until: datetime | None = None
    replica: str | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}
    source: Source = Source.MANUAL
    origin: str | None = None
    schedule: str | None = None
    tick: datetime | None = None
    waits_for: str | None = None
    progress: Progress | None = None
    attempts: tuple[Attempt, ...] = ()
    result: bytes | None = None
    # The result was not serialisable: what is kept is its repr.
    result_is_repr: bool = False
    user_error: str | None = None

    @property
    def last_error(self) -> str | None:
        """What the newest failed attempt died of, as `Type: message`."""
        return next((error for attempt in reversed(self.attempts) if (error := attempt.died_of)), None)
