"""What happened, as values, and how to hear of it. Subscribers (logging, metrics, traces) can harm nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

__all__ = [
    "Alert",
    "ClaimLost",
    "Event",
    "Events",
    "JobClosed",
    "JobDied",
    "JobEnqueued",
    "JobStarted",
    "LoopFailed",
    "QueueRecovered",
    "QueueUnserved",
    "ReplicaStarted",
    "ReplicaStopped",
    "ScheduleLate",
    "ScheduleRecovered",
    "StaleWrite",
    "TickFired",
    "TickSkipped",
    "TicksMissed",
]

logger = logging.getLogger("drumline")


class Event(msgspec.Struct, frozen=True):
    """The root of all events."""


class JobEnqueued(Event, frozen=True):
    """This process made a job."""

    job_id: str
    task: str
    queue: str


class JobStarted(Event, frozen=True):
    """This replica began an attempt."""

    job_id: str
    task: str
    queue: str
    attempt: int
    waited: timedelta


class JobClosed(Event, frozen=True):
    """This replica's record of how an attempt ended was accepted: of its own, or of one that it found lost."""

    job_id: str
    task: str
    queue: str
    attempt: int
    # done, failed, timeout, lost, cancelled, released or snoozed.
    ended: str
    # What became of the job: done, dead, cancelled, retry or release.
    outcome: str
    ran: timedelta
    error: str | None = None


class ClaimLost(Event, frozen=True):
    """A claim of this replica was taken over by the fleet; its work no longer counts."""

    job_id: str
    fence: int


class StaleWrite(Event, frozen=True):
    """A write of this replica was refused, because its claim had been taken over."""

    job_id: str
    fence: int
    # finish, beat or report.
    operation: str


class LoopFailed(Event, frozen=True):
    """A loop of the engine met an error, and will try again."""

    loop: str
    error: str
    again_in: float


class ReplicaStarted(Event, frozen=True):
    """This process joined the fleet."""

    replica: str
    at: datetime


class ReplicaStopped(Event, frozen=True):
    """This process left the fleet."""

    replica: str


class TickFired(Event, frozen=True):
    """This replica recorded a tick, and its job."""

    schedule: str
    instant: datetime
    job_id: str
    late: timedelta


class TickSkipped(Event, frozen=True):
    """This replica recorded that a tick, or `count` of them from it on, makes no job."""

    schedule: str
    instant: datetime
    # missed or overlap.
    decision: str
    reason: str
    count: int


class Alert(Event, frozen=True):
    """Something that a person should look at."""

    # The same whichever replica tells of it and however often, so that one who hears of it twice can know.
    id: str


class JobDied(Alert, frozen=True):
    """A job has become a dead letter. Told once, by the replica whose record of it was accepted."""

    job_id: str
    task: str
    queue: str
    attempt: int
    error: str | None


class TicksMissed(Alert, frozen=True):
    """A tick, or `count` of them from it on, passed while nobody could fire it. Told once, by whoever recorded it."""

    schedule: str
    instant: datetime
    count: int
    reason: str


class ScheduleLate(Alert, frozen=True):
    """A schedule should have fired at `due`, and has not."""

    schedule: str
    due: datetime


class ScheduleRecovered(Alert, frozen=True):
    """The schedule that was late under this id is so no more."""

    schedule: str


class QueueUnserved(Alert, frozen=True):
    """Jobs of a queue are ready since `since`, and no live worker can take them."""

    queue: str
    since: datetime
    reason: str


class QueueRecovered(Alert, frozen=True):
    """The queue that was unserved under this id is so no more."""

    queue: str


class Events:
    """A set of subscribers, each a plain function of an event, called where the event happens."""

    def __init__(self) -> None:
        self._subscribers: tuple[Callable[[Event], None], ...] = ()

    def __bool__(self) -> bool:
        """Whether anybody listens: the hot paths make no event for nobody."""
        return bool(self._subscribers)

    def subscribe(self, subscriber: Callable[[Event], None]) -> Callable[[], None]:
        """Call `subscriber` with every event from now on; the answer ends that."""
        self._subscribers += (subscriber,)
        return lambda: self._drop(subscriber)

    def emit(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception:
                logger.exception("a subscriber failed on %s", type(event).__name__)

    def _drop(self, subscriber: Callable[[Event], None]) -> None:
        self._subscribers = tuple(other for other in self._subscribers if other is not subscriber)
