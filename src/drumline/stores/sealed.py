"""A store whose bodies are encrypted: what goes in is sealed, what comes out is opened. The store holds opaque bytes.

Sealed are the arguments of jobs and schedules, and results. An error that is kept does not repeat an argument. What
cannot be opened here comes out sealed, and whoever needs it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from drumline.model.act import Act
from drumline.model.claim import Claim, Claimed, Share
from drumline.model.job import Attempt, Conflict, Enqueued, Failure, Job, NewJob
from drumline.model.outcome import Outcome
from drumline.model.query import By, JobFilter, Page
from drumline.model.redact import Redactor
from drumline.model.schedule import Fired, Firing, Schedule, ScheduleStatus
from drumline.model.sealed import Scope, is_sealed, is_spoiled, split
from drumline.model.secret import NO_MARKS, Marks
from drumline.sealing import KeyRing
from drumline.stores.base import Op, Store

__all__ = ["SealedStore"]

# There is nothing in it to hide, and a job without arguments then runs without a key.
_NO_ARGS = b"{}"


class SealedStore:
    """Hands everything to the store behind it; see `Store`."""

    def __init__(self, inner: Store, ring: KeyRing) -> None:
        self.inner = inner
        self.ring = ring

    def __getattr__(self, name: str) -> Any:
        # All that carries no body.
        return getattr(self.inner, name)

    def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, act: Act | None = None
    ) -> Op[list[Enqueued]]:
        return self.inner.enqueue([self._seal_job(job) for job in jobs], tx=tx, act=act)

    def claim(self, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str) -> Op[Claimed]:
        return self.inner.claim(replica, queues, limit, tasks, token).then(self._open_claims)

    def stand_by(
        self, replica: str, queues: Sequence[Share], tasks: Sequence[str], token: str, *, seconds: float
    ) -> Op[Claimed | None]:
        standing = self.inner.stand_by(replica, queues, tasks, token, seconds=seconds)
        return standing.then(lambda claimed: None if claimed is None else self._open_claims(claimed))

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        return self.inner.finish([self._seal_outcome(outcome) for outcome in outcomes])

    def declare(self, schedules: Sequence[Schedule], *, by: By, act: Act | None = None) -> Op[list[bool]]:
        return self.inner.declare([self.seal_schedule(schedule) for schedule in schedules], by=by, act=act)

    def schedules(self, names: Sequence[str] = ()) -> Op[list[ScheduleStatus]]:
        return self.inner.schedules(names).then(lambda statuses: [self._open_status(status) for status in statuses])

    def fire(self, firings: Sequence[Firing], *, by: str, act: Act | None = None) -> Op[list[Fired]]:
        return self.inner.fire([self._seal_firing(firing) for firing in firings], by=by, act=act)

    def jobs(self, where: JobFilter, *, after: str | None = None, limit: int = 50) -> Op[Page[Job]]:
        return self.inner.jobs(where, after=after, limit=limit).then(
            lambda page: msgspec.structs.replace(page, items=[self.open_job(job) for job in page.items])
        )

    def seal_args(self, args: bytes, scope: Scope, *owner: str) -> bytes:
        return args if args == _NO_ARGS or is_sealed(args) or is_spoiled(args) else self.ring.seal(args, scope, *owner)

    def open_args(self, job: Job | Claim) -> bytes:
        """The arguments of a job, whatever they were sealed for."""
        return self._open_for(job.args, job.task, job.id, job.schedule or "")

    def reseal_args(self, job: Job) -> bytes:
        """The arguments of a job that is stored, sealed with the current key; as they are if they cannot be opened."""
        # Where a body stands, nothing moves it any more but a replacement, which brings its own.
        return self.seal_args(self.open_args(job), Scope.JOB, job.task, job.id)

    def open_job(self, job: Job) -> Job:
        result = None if job.result is None else self.ring.open(job.result, Scope.RESULT, job.id)
        return msgspec.structs.replace(job, args=self.open_args(job), result=result)

    def seal_schedule(self, schedule: Schedule) -> Schedule:
        args = self.seal_args(schedule.args, Scope.SCHEDULE, schedule.task, schedule.name)
        return msgspec.structs.replace(schedule, args=args)

    def open_schedule(self, schedule: Schedule) -> Schedule:
        args = self._open_for(schedule.args, schedule.task, "", schedule.name)
        return msgspec.structs.replace(schedule, args=args)

    def _open_for(self, args: bytes, task: str, job_id: str, schedule: str) -> bytes:
        if not is_sealed(args):
            return args
        match split(args)[1]:
            case Scope.TASK:
                return self.ring.open(args, Scope.TASK, task)
            case Scope.SCHEDULE:
                return self.ring.open(args, Scope.SCHEDULE, task, schedule)
            case _:
                return self.ring.open(args, Scope.JOB, task, job_id)

    def _seal_job(self, job: NewJob) -> NewJob:
        if job.key is not None and job.key.on_conflict is Conflict.REPLACE:
            return msgspec.structs.replace(job, args=self.seal_args(job.args, Scope.TASK, job.task))
        return msgspec.structs.replace(job, args=self.seal_args(job.args, Scope.JOB, job.task, job.id))

    def _seal_firing(self, firing: Firing) -> Firing:
        return firing if firing.job is None else msgspec.structs.replace(firing, job=self._seal_job(firing.job))

    def _seal_outcome(self, outcome: Outcome) -> Outcome:
        result, claim = outcome.result, outcome.claim
        return msgspec.structs.replace(
            outcome,
            result=None if result is None else self.ring.seal(result, Scope.RESULT, claim.id),
            attempt=_without_args(outcome.attempt, claim),
        )

    def _open_claims(self, claimed: Claimed) -> Claimed:
        claims = [msgspec.structs.replace(claim, args=self.open_args(claim)) for claim in claimed.claims]
        return msgspec.structs.replace(claimed, claims=claims)

    def _open_status(self, status: ScheduleStatus) -> ScheduleStatus:
        return msgspec.structs.replace(status, schedule=self.open_schedule(status.schedule))


def _without_args(attempt: Attempt, claim: Claim) -> Attempt:
    """The attempt, whose error repeats nothing that the arguments hold: they are kept sealed, and it is not."""
    told = attempt.error
    if told is None or claim.args == _NO_ARGS:
        return attempt
    args = msgspec.json.decode(claim.args)
    redact = Redactor(args, Marks(frozenset(args)) if isinstance(args, dict) else NO_MARKS)
    kept = Failure(told.type, redact.known(told.message), redact.known(told.traceback))
    return msgspec.structs.replace(attempt, error=kept)
