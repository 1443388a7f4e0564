"""The checker: from what executions wrote and what the store holds, to every promise that was broken.

A pure function, so that it is tested by itself. It reads a run that has come to rest: nothing is enqueued, runs or is
fired any more. Of each job it knows two stories, and they have to agree:

    the ledger file     began ─ returned   began ─ ✗         began ─ returned        what really ran, under which fence
    the store           claim ─ done       claim ─ lost      claim ─ done            what was counted

An execution that nobody counted is an unexplained double; one that was counted and never ran, an invented attempt; one
whose claim had been taken over, and whose word was taken all the same, a stale write.

One double is explained by the server: Postgres need not have a claim on disk when it answers, and when the server is
killed a claim of the last moment may never have been. Its execution goes on, is counted nowhere, and is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise

import msgspec

from drumline.chaos.ledger import Line, What
from drumline.model.job import ENDED, Attempt, Job, JobState
from drumline.model.query import Count
from drumline.model.schedule import Decision, Tick

__all__ = ["Evidence", "Kind", "Violation", "check", "reclaim_lags"]

_GIVEN_BACK = ("released", "snoozed")
_FAILURES = ("failed", "timeout", "lost")
# What a task has to have been called for; a claim can be lost or given back before that.
_RAN = ("done", "failed", "timeout")
# At the latest so long after its commit a claim is on disk: three times what Postgres' writer pauses, and some more.
_UNSAVED = timedelta(seconds=1)
_TICKS = (Decision.FIRED, Decision.MISSED, Decision.OVERLAP)


class Kind(StrEnum):
    """The promises, by what a broken one is called."""

    LOST = "lost"
    UNFINISHED = "unfinished"
    DOUBLE = "unexplained double"
    STALE = "stale write accepted"
    INVENTED = "invented attempt"
    TRANSITION = "illegal transition"
    TICK_MISSING = "tick missing"
    TICK_DOUBLE = "tick double"
    COUNTER = "wrong counter"
    EXIT = "bad exit"


class Violation(msgspec.Struct, frozen=True):
    """One broken promise: which, of what (a job's id, a tick, a counter), and what is wrong with it."""

    kind: Kind
    where: str
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.words}"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a run that has come to rest."""

    # The jobs whose enqueue was acknowledged.
    accepted: frozenset[str]
    lines: Sequence[Line]
    jobs: Sequence[Job]
    ticks: Sequence[Tick]
    counts: Sequence[Count]
    # The interval of every schedule.
    every: timedelta = timedelta(seconds=1)
    # When the server was killed, and when it was back, by its own clock.
    crashes: Sequence[tuple[datetime, datetime]] = ()

    def has_vanished(self, fence: int) -> bool:
        """Whether the claim was made so shortly before the server was dead that it may have forgotten it.

        A fence tells when it was claimed: it is the store's clock in microseconds.
        """
        claimed_at = datetime.fromtimestamp(fence / 1_000_000, UTC)
        return any(killed - _UNSAVED <= claimed_at <= back for killed, back in self.crashes)


def check(evidence: Evidence) -> list[Violation]:
    """Everything that is wrong; nothing, if every promise held."""
    jobs = {job.id: job for job in evidence.jobs}
    lines: defaultdict[str, list[Line]] = defaultdict(list)
    for line in evidence.lines:
        lines[line.job].append(line)
    found = [
        *_check_presence(evidence, jobs, lines),
        *(violation for job in evidence.jobs for violation in _check_job(evidence, job, lines[job.id])),
        *_check_ticks(evidence, jobs),
        *_check_counts(evidence),
    ]
    return sorted(found, key=lambda violation: list(Kind).index(violation.kind))


def reclaim_lags(jobs: Iterable[Job]) -> Iterator[tuple[datetime, datetime]]:
    """Of each job whose last claim but one was lost: when its lease was over, and when the job was due again.

    Of earlier losses the store no longer tells when they were noticed.
    """
    for job in jobs:
        if len(job.attempts) > 1 and job.attempts[-2].ended == "lost":
            yield job.attempts[-2].ended_at, job.due_at


def _check_presence(
    evidence: Evidence, jobs: Mapping[str, Job], lines: Mapping[str, Sequence[Line]]
) -> Iterator[Violation]:
    """Accepted is stored, and what ran is stored."""
    for job_id in sorted(evidence.accepted - jobs.keys()):
        yield Violation(Kind.LOST, job_id, "its enqueue was acknowledged, and it is not in the store")
    for job_id in sorted(lines.keys() - jobs.keys() - evidence.accepted):
        yield Violation(Kind.LOST, job_id, "it ran, and is not in the store")
    if len(jobs) != len(evidence.jobs):
        yield Violation(Kind.COUNTER, "jobs", f"{len(evidence.jobs)} are listed, but only {len(jobs)} differ")


def _check_job(evidence: Evidence, job: Job, lines: Sequence[Line]) -> Iterator[Violation]:
    if job.state not in ENDED:
        yield Violation(Kind.UNFINISHED, job.id, f"it is {job.state}, {job.attempt} attempts begun")
        return
    if job.state is JobState.CANCELLED:
        yield Violation(Kind.TRANSITION, job.id, "it is cancelled, and nobody asked for that")
        return
    yield from _check_history(job)
    yield from _check_ending(job, lines)
    yield from _check_executions(evidence, job, lines)


def _check_history(job: Job) -> Iterator[Violation]:
    """Attempts are counted from 1, each spent once, up to the most that are allowed; fences grow."""
    number = 1
    for attempt in job.attempts:
        if attempt.number != number:
            yield Violation(Kind.TRANSITION, job.id, f"attempt {attempt.number} stands where {number} belongs")
            return
        number += attempt.ended not in _GIVEN_BACK
    if number - 1 != job.attempt:
        yield Violation(Kind.TRANSITION, job.id, f"{number - 1} attempts were spent, and {job.attempt} are counted")
    if job.attempt > job.max_attempts:
        yield Violation(Kind.TRANSITION, job.id, f"{job.attempt} attempts of at most {job.max_attempts}")
    if any(later.fence <= earlier.fence for earlier, later in pairwise(job.attempts)):
        yield Violation(Kind.TRANSITION, job.id, f"fences do not grow: {[one.fence for one in job.attempts]}")


def _check_ending(job: Job, lines: Sequence[Line]) -> Iterator[Violation]:
    """One completion was accepted: the last claim's, and by who held it."""
    done = [attempt for attempt in job.attempts if attempt.ended == "done"]
    last = job.attempts[-1] if job.attempts else None
    if job.state is JobState.DEAD:
        is_spent = last is not None and last.ended in _FAILURES and job.attempt == job.max_attempts
        if done or not is_spent:
            yield Violation(Kind.TRANSITION, job.id, f"dead after {job.attempt} of {job.max_attempts} attempts")
        return
    if len(done) != 1 or last is not done[0]:
        yield Violation(Kind.TRANSITION, job.id, f"done, with {len(done)} attempts that ended so")
        return
    yield from _check_accepted(job, done[0], lines)


def _check_accepted(job: Job, done: Attempt, lines: Sequence[Line]) -> Iterator[Violation]:
    if done.fence != job.fence:
        yield Violation(Kind.STALE, job.id, f"done under fence {done.fence}, but claimed since under {job.fence}")
    # Every task returns the fence under which it ran.
    told = None if job.result is None else msgspec.json.decode(job.result)
    if told != done.fence:
        yield Violation(Kind.STALE, job.id, f"done under fence {done.fence} by an execution under {told}")
    if done.by != done.replica:
        yield Violation(Kind.STALE, job.id, f"claimed by {done.replica}, done by {done.by}")
    if not any(line.what is What.RETURNED and line.fence == done.fence for line in lines):
        yield Violation(Kind.INVENTED, job.id, f"done under fence {done.fence}, where nothing returned")


def _check_executions(evidence: Evidence, job: Job, lines: Sequence[Line]) -> Iterator[Violation]:
    """Starts are attempts; two executions at once only where the earlier one's claim was lost, and it was refused."""
    attempts = {attempt.fence: attempt for attempt in job.attempts}
    begun = sorted((line for line in lines if line.what is What.BEGAN), key=lambda line: line.fence)
    for fence, times in Counter(line.fence for line in begun).items():
        if times > 1:
            yield Violation(Kind.DOUBLE, job.id, f"{times} executions under fence {fence}")
        if fence not in attempts and not evidence.has_vanished(fence):
            yield Violation(Kind.DOUBLE, job.id, f"an execution under fence {fence}, which no attempt accounts for")
    started = {line.fence for line in begun}
    for attempt in job.attempts:
        if attempt.ended in _RAN and attempt.fence not in started:
            yield Violation(Kind.INVENTED, job.id, f"attempt {attempt.number} is {attempt.ended}, and nothing began")
    ends = {line.fence: line.at for line in lines if line.what is not What.BEGAN}
    for earlier, later in pairwise(begun):
        ended_at, attempt_before = ends.get(earlier.fence), attempts.get(earlier.fence)
        is_overlap = ended_at is not None and later.at < ended_at
        if is_overlap and attempt_before is not None and attempt_before.ended != "lost":
            yield Violation(Kind.DOUBLE, job.id, f"two executions at once, though the first was {attempt_before.ended}")


def _check_ticks(evidence: Evidence, jobs: Mapping[str, Job]) -> Iterator[Violation]:
    """Each instant of each schedule has one row and one job."""
    rows = [row for row in evidence.ticks if row.decision in _TICKS and not row.mark.startswith("start:")]
    for (schedule, instant), times in Counter((row.schedule, row.instant) for row in rows).items():
        if times > 1:
            yield Violation(Kind.TICK_DOUBLE, f"{schedule} {instant}", f"{times} rows")
    for row in rows:
        where = f"{row.schedule} {row.instant}"
        if row.decision is not Decision.FIRED:
            yield Violation(Kind.TICK_MISSING, where, f"{row.decision}, {row.count} instants: {row.reason}")
        elif row.job_id not in jobs:
            yield Violation(Kind.LOST, where, f"its job {row.job_id} is not in the store")
    yield from _check_tick_jobs(rows, jobs.values())
    yield from _check_gaps(rows, evidence.every)


def _check_tick_jobs(rows: Sequence[Tick], jobs: Iterable[Job]) -> Iterator[Violation]:
    fired = {row.job_id for row in rows}
    made = Counter((job.schedule, job.tick) for job in jobs if job.schedule is not None and job.tick is not None)
    for (schedule, tick), times in made.items():
        if times > 1:
            yield Violation(Kind.TICK_DOUBLE, f"{schedule} {tick}", f"{times} jobs")
    for job in jobs:
        if job.schedule is not None and job.id not in fired:
            yield Violation(Kind.TICK_DOUBLE, f"{job.schedule} {job.tick}", f"job {job.id} is in no row")


def _check_gaps(rows: Sequence[Tick], every: timedelta) -> Iterator[Violation]:
    instants: defaultdict[str, set[datetime]] = defaultdict(set)
    for row in rows:
        instants[row.schedule].add(row.instant)
    for schedule, fired in instants.items():
        for earlier, later in pairwise(sorted(fired)):
            if later - earlier > every:
                yield Violation(Kind.TICK_MISSING, f"{schedule} {earlier + every}", f"the next is {later}")


def _check_counts(evidence: Evidence) -> Iterator[Violation]:
    """What the store counts is what it holds."""
    held = Counter((job.task, job.state) for job in evidence.jobs)
    failures = Counter(job.task for job in evidence.jobs for one in job.attempts if one.ended in _FAILURES)
    counted: Counter[tuple[str, JobState]] = Counter()
    counted_failures: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for row in evidence.counts:
        waiting = {JobState.READY: row.ready, JobState.DELAYED: row.delayed, JobState.RUNNING: row.running}
        ended = {JobState.DONE: row.done, JobState.DEAD: row.dead, JobState.CANCELLED: row.cancelled}
        counted.update({(row.task, state): number for state, number in {**waiting, **ended}.items()})
        counted_failures[row.task] += row.total_failures
        done[row.task] += row.total_done
    for task, state in sorted({*held, *counted}):
        if held[task, state] != counted[task, state]:
            words = f"{counted[task, state]} are counted, and there are {held[task, state]}"
            yield Violation(Kind.COUNTER, f"{task} {state}", words)
    for task in sorted({*failures, *counted_failures}):
        if failures[task] != counted_failures[task]:
            words = f"{counted_failures[task]} are counted, and {failures[task]} stand in histories"
            yield Violation(Kind.COUNTER, f"{task} failures", words)
    for task in sorted(done):
        if done[task] != held[task, JobState.DONE]:
            yield Violation(Kind.COUNTER, f"{task} total", f"{done[task]}, and {held[task, JobState.DONE]} are done")
