"""What the memory store holds, and the few steps that more than one operation takes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drumline.model.claim import Claim
from drumline.model.instant import from_millis, to_millis
from drumline.model.job import Attempt, Job, JobState, Key, KeyWindow, LogLine, Progress, Source, Start
from drumline.model.options import JobOptions
from drumline.model.query import AuditRow, By, SeriesPoint
from drumline.model.replica import ReplicaInfo, ReplicaState
from drumline.model.schedule import Schedule, Tick
from drumline.stores.base import SHORTEST_KEEP_MILLIS, Topic, topic

__all__ = ["Holder", "Member", "Plan", "Purged", "Record", "State", "Total", "due_at"]

_SHORTEST_KEEP = timedelta(milliseconds=SHORTEST_KEEP_MILLIS)


class Record(msgspec.Struct, kw_only=True):
    """One job. `state` is WAITING (kept as READY), RUNNING or an end; how it reads depends on the clock."""

    id: str
    task: str
    args: bytes
    options: JobOptions
    created_at: datetime
    due_at: datetime
    state: JobState = JobState.READY
    attempt: int = 0
    fence: int = 0
    releases: int = 0
    cancelling: bool = False
    claimed_at: datetime | None = None
    lease_until: datetime | None = None
    replica: str | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    key: Key | None = None
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
    result_is_repr: bool = False
    user_error: str | None = None

    def reads_as(self, now: datetime) -> JobState:
        if self.state is JobState.RUNNING and self.cancelling:
            return JobState.CANCELLING
        if self.state is JobState.READY and (self.waits_for is not None or self.due_at > now):
            return JobState.DELAYED
        return self.state

    @property
    def is_waiting(self) -> bool:
        return self.state is JobState.READY

    def as_job(self, now: datetime) -> Job:
        same = {name: getattr(self, name) for name in _SAME}
        return Job(
            **same,
            state=self.reads_as(now),
            queue=self.options.queue,
            priority=self.options.priority,
            max_attempts=self.options.max_attempts,
            key=self.key.name if self.key else None,
        )

    def as_claim(self) -> Claim:
        assert self.replica is not None
        assert self.claimed_at is not None
        assert self.lease_until is not None
        return Claim(
            self.id,
            self.fence,
            self.task,
            self.options.queue,
            self.attempt,
            self.args,
            self.options,
            self.replica,
            self.created_at,
            self.due_at,
            self.claimed_at,
            self.lease_until,
            self.tags,
            self.meta,
            self.source,
            self.schedule,
            self.tick,
            self.key.name if self.key else None,
            self.cancelling,
            self.releases,
        )


_SAME = tuple(
    name for name in Record.__struct_fields__ if name in Job.__struct_fields__ and name not in ("state", "key")
)


class Holder(msgspec.Struct, frozen=True):
    """Who holds a unique key, and until when (None: as its window says)."""

    job_id: str
    window: KeyWindow
    until: datetime | None = None


class Total(msgspec.Struct):
    """What the jobs of one task in one queue have come to since the beginning."""

    done: int = 0
    failures: int = 0
    last_error: str | None = None


class Member(msgspec.Struct):
    """A replica, as last heard of."""

    info: ReplicaInfo
    started_at: datetime
    seen_at: datetime

    def is_alive(self, now: datetime) -> bool:
        return now - self.seen_at <= 3 * self.info.beat_every and self.info.state is not ReplicaState.GONE


class Plan(msgspec.Struct, kw_only=True):
    """A schedule, with how far it has come."""

    schedule: Schedule
    version: int = 0
    declared_at: datetime
    begun_at: datetime
    last_tick: datetime
    last_fired_at: datetime | None = None
    last_mark: str | None = None
    leader: str | None = None
    paused_at: datetime | None = None
    paused_by: By | None = None
    orphaned_at: datetime | None = None
    total_runs: int = 0
    total_failures: int = 0


class Purged(msgspec.Struct, frozen=True):
    """Up to where a schedule's ledger was purged: ticks up to here may be forgotten, so they may never fire."""

    to: datetime
    # The newest fleet start whose row is gone; -1 if there was none.
    start: int = -1


class State:
    """Everything in one store."""

    def __init__(self) -> None:
        self.jobs: dict[str, Record] = {}
        # The same records again, by what the hot operations look for.
        self.waiting: dict[str, Record] = {}
        self.running: dict[str, Record] = {}
        self.followers: dict[str, list[Record]] = {}
        self.keys: dict[tuple[str, str], Holder] = {}
        self.tokens: dict[str, tuple[datetime, list[tuple[str, int]]]] = {}
        self.totals: dict[tuple[str, str], Total] = {}
        self.series: dict[tuple[datetime, str, str], SeriesPoint] = {}
        self.logs: dict[str, dict[tuple[int, int], LogLine]] = {}
        self.members: dict[str, Member] = {}
        self.plans: dict[str, Plan] = {}
        self.ticks: dict[tuple[str, str, str], Tick] = {}
        # By schedule; outlives it, so that one registered anew does not fire old ticks again.
        self.purged: dict[str, Purged] = {}
        self.tick_of: dict[str, tuple[str, str, str]] = {}
        self.pauses: dict[str, By] = {}
        self.audit: dict[str, AuditRow] = {}
        self.epoch = 0
        self.version = 0
        # What there is to hint at once the present operation is over.
        self.news: set[Topic] = set()

    def held_key(self, task: str, key: str, now: datetime) -> Holder | None:
        """Who holds the key now."""
        holder = self.keys.get((task, key))
        if holder is None or (holder.until is not None and holder.until <= now):
            return None
        return holder

    def take_key(self, record: Record) -> None:
        if record.key is None:
            return
        # From enqueue, also for a job that is retried much later.
        until = record.created_at + record.key.span if record.key.span is not None else None
        self.keys[record.task, record.key.name] = Holder(record.id, record.key.window, until)

    def free_key(self, record: Record, windows: frozenset[KeyWindow]) -> None:
        """Free the job's key, if the job holds it and under one of these windows."""
        if record.key is None:
            return
        place = (record.task, record.key.name)
        holder = self.keys.get(place)
        if holder is not None and holder.job_id == record.id and holder.window in windows:
            del self.keys[place]

    def wait(self, record: Record, due_at: datetime) -> None:
        """Make the job waiting."""
        self.running.pop(record.id, None)
        self.waiting[record.id] = record
        record.state = JobState.READY
        record.due_at = due_at
        record.replica = record.claimed_at = record.lease_until = None
        self.news.add(topic.queue(record.options.queue))

    def run(self, record: Record, replica: str, now: datetime) -> None:
        """Make the job running, under a new claim."""
        del self.waiting[record.id]
        self.running[record.id] = record
        record.state = JobState.RUNNING
        record.attempt += 1
        record.fence = max(record.fence + 1, to_millis(now) * 1000)
        record.replica = replica
        record.claimed_at = now
        record.lease_until = now + record.options.lease
        self.free_key(record, frozenset({KeyWindow.PENDING}))

    def forget(self, record: Record) -> None:
        """Drop an ended job."""
        del self.jobs[record.id]
        self.logs.pop(record.id, None)

    def end(self, record: Record, state: JobState, now: datetime, run_time: timedelta | None = None) -> None:
        """Make the job ended: free its key, tell its tick, let go the job that waits for it."""
        keep = {
            JobState.DONE: record.options.retention.done,
            JobState.DEAD: record.options.retention.dead,
            JobState.CANCELLED: record.options.retention.cancelled,
        }[state]
        self.waiting.pop(record.id, None)
        self.running.pop(record.id, None)
        record.state = state
        record.finished_at = now
        record.expires_at = now + max(keep, _SHORTEST_KEEP)
        record.replica = record.claimed_at = record.lease_until = record.waits_for = None
        record.cancelling = False
        self.free_key(record, frozenset({KeyWindow.UNFINISHED, KeyWindow.PENDING}))
        place = self.tick_of.get(record.id)
        if place is not None:
            self.ticks[place] = msgspec.structs.replace(self.ticks[place], outcome=state.value, run_time=run_time)
        for follower in self.followers.pop(record.id, ()):
            if follower.waits_for == record.id:
                follower.waits_for = None
                self.news.add(topic.queue(follower.options.queue))
        self.news.add(topic.ended(record.id))


def due_at(start: Start, now: datetime) -> datetime:
    """When a job that starts so becomes due; a past start counts as now."""
    if start is None:
        return now
    instant = now + start if isinstance(start, timedelta) else start
    return max(from_millis(to_millis(instant)), now)
