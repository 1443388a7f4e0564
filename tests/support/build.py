"""Values that tests need many of, with only what matters to the test said aloud."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from drumline.clock import fresh_id
from drumline.model.claim import Claim, ClaimRef, Note
from drumline.model.instant import to_millis
from drumline.model.job import Attempt, Conflict, Failure, Key, KeyWindow, LogLine, NewJob, Progress, Source, Start
from drumline.model.options import JobOptions, Retention
from drumline.model.outcome import Outcome
from drumline.model.query import By
from drumline.model.replica import ReplicaInfo
from drumline.model.schedule import Decision, Firing, Overlap, Rule, Schedule

TASK = "job"
QUEUE = "default"
REPLICA = "r1:1"
OTHER_REPLICA = "r2:1"
BY = By("ann", "test", "because")
BOOM = Failure("ValueError", "boom", "Traceback: …")
EVERY_MINUTE = Rule(every=timedelta(minutes=1))


def numbered_id(number: int) -> str:
    """A valid job id that sorts as its number does."""
    return f"00000000-0000-7000-8000-{number:012x}"


def options(
    *,
    queue: str = QUEUE,
    priority: int = 0,
    lease: float = 30,
    max_attempts: int = 5,
    retention: float | None = None,
) -> JobOptions:
    kept = Retention() if retention is None else Retention.of(retention)
    lasting = timedelta(seconds=lease)
    return JobOptions(queue=queue, priority=priority, lease=lasting, max_attempts=max_attempts, retention=kept)


def new_job(
    task: str = TASK,
    *,
    id: str | None = None,
    args: bytes = b"{}",
    start: Start = None,
    delay: float | None = None,
    key: Key | str | None = None,
    tags: tuple[str, ...] = (),
    meta: Mapping[str, Any] | None = None,
    source: Source = Source.MANUAL,
    origin: str | None = None,
    schedule: str | None = None,
    tick: datetime | None = None,
    **given: Any,
) -> NewJob:
    """A job; `given` are its options, with durations in seconds."""
    return NewJob(
        id=id or fresh_id(),
        task=task,
        args=args,
        options=options(**given),
        start=start if delay is None else timedelta(seconds=delay),
        key=Key(key) if isinstance(key, str) else key,
        tags=tags,
        meta=meta or {},
        source=source,
        origin=origin,
        schedule=schedule,
        tick=tick,
    )


def unique(name: str, window: str | float = "unfinished", on_conflict: str = "skip") -> Key:
    """A unique key; a number as its window is a time in seconds."""
    if isinstance(window, str):
        return Key(name, KeyWindow(window), None, Conflict(on_conflict))
    return Key(name, KeyWindow.TIME, timedelta(seconds=window), Conflict(on_conflict))


def attempt_of(
    claim: Claim, ended: str = "done", *, by: str | None = None, ran: float = 0, error: Failure | None = None
) -> Attempt:
    """The line that closes the claim's attempt, `ran` seconds after it was claimed."""
    return Attempt(
        number=claim.attempt,
        fence=claim.fence,
        replica=claim.replica,
        by=by or claim.replica,
        started_at=claim.claimed_at,
        ended_at=claim.claimed_at + timedelta(seconds=ran),
        ended=ended,
        error=error,
    )


def done(claim: Claim, *, result: bytes | None = b"1", by: str | None = None, ran: float = 0) -> Outcome:
    return Outcome.done(claim, attempt_of(claim, by=by, ran=ran), result)


def dead(
    claim: Claim, *, by: str | None = None, ran: float = 0, ended: str = "failed", error: Failure = BOOM
) -> Outcome:
    return Outcome.dead(claim, attempt_of(claim, ended, by=by, ran=ran, error=error))


def cancelled(claim: Claim, *, by: str | None = None, ran: float = 0) -> Outcome:
    return Outcome.cancelled(claim, attempt_of(claim, "cancelled", by=by, ran=ran))


def retry(
    claim: Claim,
    *,
    start: Start = None,
    delay: float | None = None,
    by: str | None = None,
    ran: float = 0,
    ended: str = "failed",
    error: Failure = BOOM,
) -> Outcome:
    when = start if delay is None else timedelta(seconds=delay)
    return Outcome.retry(claim, attempt_of(claim, ended, by=by, ran=ran, error=error), when)


def release(
    claim: Claim,
    *,
    start: Start = None,
    delay: float | None = None,
    by: str | None = None,
    ran: float = 0,
    releases: int = 0,
) -> Outcome:
    when = start if delay is None else timedelta(seconds=delay)
    return Outcome.release(claim, attempt_of(claim, "released", by=by, ran=ran), when, releases=releases)


def line(claim: Claim, number: int, message: str = "", **fields: Any) -> LogLine:
    return LogLine(number, claim.claimed_at, "info", message or f"line {number}", fields, claim.attempt)


def note(
    claim: Claim,
    *lines: LogLine,
    progress: float | None = None,
    user_error: str | None = None,
    fence: int | None = None,
) -> Note:
    """What the job says of itself; `fence` stands for another claim than the given one."""
    ref = claim.ref if fence is None else ClaimRef(claim.id, fence)
    said = None if progress is None else Progress(progress, f"at {progress}")
    return Note(ref, said, lines, user_error)


def replica_info(id: str = REPLICA, **given: Any) -> ReplicaInfo:
    """A replica that beats every 10 s."""
    return ReplicaInfo(id=id, **{"name": id.partition(":")[0], **given})


def new_schedule(name: str = "tock", task: str = TASK, *, overlap: str = "allow", **given: Any) -> Schedule:
    """A schedule of every minute."""
    return Schedule(name=name, task=task, overlap=Overlap(overlap), **{"rule": EVERY_MINUTE, **given})


def tick_at(instant: datetime, schedule: str = "tock", *, task: str = TASK, replica: str = "", **given: Any) -> Firing:
    """The firing of one instant; `given` are the job's."""
    job = new_job(task, source=Source.SCHEDULED, schedule=schedule, tick=instant, **given)
    return Firing(schedule=schedule, mark=str(to_millis(instant)), instant=instant, replica=replica, job=job)


def tick_without_job(
    instant: datetime, decision: Decision, schedule: str = "tock", *, until: datetime | None = None, count: int = 1
) -> Firing:
    return Firing(
        schedule=schedule,
        mark=str(to_millis(instant)),
        instant=instant,
        decision=decision,
        reason="as the test says",
        until=until,
        count=count,
    )


def trigger(instant: datetime, schedule: str = "tock", **given: Any) -> Firing:
    """A run that a person asks for now; each is one of its own."""
    job = new_job(schedule=schedule, **given)
    return Firing(schedule=schedule, mark=job.id, instant=instant, decision=Decision.TRIGGER, job=job)
