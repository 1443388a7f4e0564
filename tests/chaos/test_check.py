"""The checker by itself: a run in which all is well, and one for every way in which it is not."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from drumline.chaos.check import Evidence, Kind, Violation, check, reclaim_lags
from drumline.chaos.ledger import Line, What
from drumline.model.job import Attempt, Job, JobState
from drumline.model.options import JobOptions
from drumline.model.query import Count
from drumline.model.schedule import Decision, Tick

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
JOB = "00000000-0000-7000-8000-000000000001"


def attempt(number: int, fence: int, ended: str, by: str = "a") -> Attempt:
    at = START + timedelta(seconds=fence % 1000)
    return Attempt(number, fence, "a", by, at, at + SECOND, ended)


def job(*attempts: Attempt, **changes: Any) -> Job:
    spent = sum(one.ended not in ("released", "snoozed") for one in attempts)
    fence = attempts[-1].fence if attempts else 0
    facts: dict[str, Any] = {
        "id": JOB,
        "task": "quick",
        "queue": "default",
        "state": JobState.DONE,
        "priority": 0,
        "attempt": spent,
        "max_attempts": 5,
        "fence": fence,
        "args": b"{}",
        "options": JobOptions(),
        "created_at": START,
        "due_at": START,
        "attempts": attempts,
        "result": str(fence).encode(),
    }
    return Job(**(facts | changes))


def ran(fence: int, began: float, ended: float | None = None, what: What = What.RETURNED) -> list[Line]:
    lines = [Line(What.BEGAN, JOB, fence, 1, 1, began)]
    return lines if ended is None else [*lines, Line(what, JOB, fence, 1, 1, ended)]


def tick(second: int, **changes: Any) -> Tick:
    at = START + second * SECOND
    facts: dict[str, Any] = {
        "schedule": "beat",
        "mark": str(second),
        "replica": "",
        "instant": at,
        "decision": Decision.FIRED,
        "reason": "",
        "by": "a",
        "recorded_at": at,
        "job_id": f"tick-{second}",
    }
    return Tick(**(facts | changes))


def tick_job(second: int, name: str | None = None) -> Job:
    at = START + second * SECOND
    return job(attempt(1, 1, "done"), id=name or f"tick-{second}", schedule="beat", tick=at)


def evidence(
    jobs: Sequence[Job], lines: Sequence[Line] = (), ticks: Sequence[Tick] = (), accepted: Sequence[str] = (JOB,)
) -> Evidence:
    """With the counts that belong to these jobs, and lines for the jobs of ticks."""
    of_ticks = [line for one in jobs if one.id != JOB for line in renamed(one.id, ran(1, 0, 1))]
    states = [one.state for one in jobs]
    failures = sum(a.ended in ("failed", "timeout", "lost") for one in jobs for a in one.attempts)
    done = states.count(JobState.DONE)
    count = Count(queue="default", task="quick", done=done, dead=states.count(JobState.DEAD), total_done=done)
    counts = [msgspec.structs.replace(count, total_failures=failures)] if jobs else []
    return Evidence(
        accepted=frozenset(accepted), lines=[*lines, *of_ticks], jobs=list(jobs), ticks=list(ticks), counts=counts
    )


def renamed(name: str, lines: Sequence[Line]) -> list[Line]:
    return [msgspec.structs.replace(line, job=name) for line in lines]


def kinds(found: Sequence[Violation]) -> list[Kind]:
    return [violation.kind for violation in found]


WELL = {
    "done at once": evidence([job(attempt(1, 1, "done"))], ran(1, 0, 1)),
    "killed and done": evidence([job(attempt(1, 1, "lost"), attempt(2, 2, "done"))], [*ran(1, 0), *ran(2, 5, 6)]),
    "claimed, never begun, and done": evidence([job(attempt(1, 1, "lost"), attempt(2, 2, "done"))], ran(2, 5, 6)),
    "a zombie that was refused": evidence(
        [job(attempt(1, 1, "lost"), attempt(2, 2, "done"))], [*ran(1, 0, 9), *ran(2, 5, 6)]
    ),
    "given back and done": evidence(
        [job(attempt(1, 1, "released"), attempt(1, 2, "done"))], [*ran(1, 0, 1, What.LEFT), *ran(2, 2, 3)]
    ),
    "dead in the end": evidence(
        [job(attempt(1, 1, "failed"), attempt(2, 2, "failed"), state=JobState.DEAD, max_attempts=2, result=None)],
        [*ran(1, 0, 1, What.RAISED), *ran(2, 2, 3, What.RAISED)],
    ),
    "a tick a second": evidence(
        [tick_job(1), tick_job(2)], ticks=[tick(1), tick(2), tick(0, decision=Decision.CHANGED)], accepted=()
    ),
}

DONE = job(attempt(1, 1, "done"))
LOST_THEN_DONE = job(attempt(1, 1, "lost"), attempt(2, 2, "done"))
BROKEN = {
    "an accepted job is not there": (evidence([]), Kind.LOST),
    "a job ran that is not there": (evidence([], ran(1, 0, 1), accepted=()), Kind.LOST),
    "a job has not ended": (evidence([job(state=JobState.READY)]), Kind.UNFINISHED),
    "it is cancelled": (evidence([job(attempt(1, 1, "cancelled"), state=JobState.CANCELLED)]), Kind.TRANSITION),
    "it ran twice under one claim": (evidence([DONE], [*ran(1, 0, 1), *ran(1, 2, 3)]), Kind.DOUBLE),
    "it ran once more than was counted": (evidence([DONE], [*ran(1, 0, 1), *ran(2, 2, 3)]), Kind.DOUBLE),
    "it ran twice at once, and nothing was lost": (
        evidence([job(attempt(1, 1, "failed"), attempt(2, 2, "done"))], [*ran(1, 0, 9, What.RAISED), *ran(2, 5, 6)]),
        Kind.DOUBLE,
    ),
    "a zombie's result was kept": (
        evidence([job(attempt(1, 1, "lost"), attempt(2, 2, "done"), result=b"1")], [*ran(1, 0, 9), *ran(2, 5, 10)]),
        Kind.STALE,
    ),
    "a zombie ended it under its old fence": (
        evidence([job(attempt(1, 1, "done"), fence=2)], ran(1, 0, 1)),
        Kind.STALE,
    ),
    "another than who claimed it ended it": (evidence([job(attempt(1, 1, "done", by="b"))], ran(1, 0, 1)), Kind.STALE),
    "it is done, and nothing returned": (evidence([DONE], ran(1, 0)), Kind.INVENTED),
    "an attempt failed that never began": (
        evidence([job(attempt(1, 1, "failed"), attempt(2, 2, "done"))], ran(2, 0, 1)),
        Kind.INVENTED,
    ),
    "two attempts are done": (
        evidence([job(attempt(1, 1, "done"), attempt(2, 2, "done"))], [*ran(1, 0, 1), *ran(2, 2, 3)]),
        Kind.TRANSITION,
    ),
    "an attempt is counted twice": (
        evidence([job(attempt(1, 1, "lost"), attempt(1, 2, "done"))], [*ran(1, 0), *ran(2, 2, 3)]),
        Kind.TRANSITION,
    ),
    "more attempts than allowed": (
        evidence([job(attempt(1, 1, "lost"), attempt(2, 2, "done"), max_attempts=1)], ran(2, 2, 3)),
        Kind.TRANSITION,
    ),
    "fewer attempts are counted than spent": (
        evidence([job(attempt(1, 1, "done"), attempt=0)], ran(1, 0, 1)),
        Kind.TRANSITION,
    ),
    "fences do not grow": (
        evidence([job(attempt(1, 2, "lost"), attempt(2, 2, "done"))], ran(2, 2, 3)),
        Kind.TRANSITION,
    ),
    "dead too early": (
        evidence([job(attempt(1, 1, "failed"), state=JobState.DEAD)], ran(1, 0, 1, What.RAISED)),
        Kind.TRANSITION,
    ),
    "a tick is missing": (
        evidence([tick_job(1), tick_job(3)], ticks=[tick(1), tick(3)], accepted=()),
        Kind.TICK_MISSING,
    ),
    "a tick was passed over": (
        evidence([tick_job(1)], ticks=[tick(1), tick(2, decision=Decision.MISSED, job_id=None)], accepted=()),
        Kind.TICK_MISSING,
    ),
    "a tick has two rows": (
        evidence([tick_job(1)], ticks=[tick(1), tick(1)], accepted=()),
        Kind.TICK_DOUBLE,
    ),
    "a tick has two jobs": (
        evidence([tick_job(1), tick_job(1, "another")], ticks=[tick(1)], accepted=()),
        Kind.TICK_DOUBLE,
    ),
    "a tick has no job": (evidence([], ticks=[tick(1)], accepted=()), Kind.LOST),
    "a counter is wrong": (
        msgspec.structs.replace(evidence([DONE], ran(1, 0, 1)), counts=[Count(queue="default", task="quick")]),
        Kind.COUNTER,
    ),
    "failures are not counted": (
        msgspec.structs.replace(
            evidence([LOST_THEN_DONE], ran(2, 2, 3)),
            counts=[Count(queue="default", task="quick", done=1, total_done=1)],
        ),
        Kind.COUNTER,
    ),
    "a total is wrong": (
        msgspec.structs.replace(
            evidence([DONE], ran(1, 0, 1)), counts=[Count(queue="default", task="quick", done=1, total_done=2)]
        ),
        Kind.COUNTER,
    ),
    "a job is listed twice": (
        msgspec.structs.replace(evidence([DONE, DONE], ran(1, 0, 1)), ticks=[]),
        Kind.COUNTER,
    ),
}


@pytest.mark.parametrize("name", WELL)
def test_a_run_in_which_all_is_well_breaks_nothing(name):
    assert check(WELL[name]) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_seen(name):
    found, kind = BROKEN[name]
    assert kind in kinds(check(found))


def test_a_claim_that_a_killed_server_forgot_explains_an_execution_and_only_shortly_before():
    claimed = START + timedelta(milliseconds=500)
    early, late = int(START.timestamp() * 1e6), int(claimed.timestamp() * 1e6)
    again = late + 5_000_000
    done = job(attempt(1, again, "done"))
    double = evidence([done], [*ran(late, 0, 1), *ran(again, 5, 6)])
    killed = claimed + timedelta(milliseconds=600)
    crash = (killed, killed + SECOND)
    assert check(msgspec.structs.replace(double, crashes=[crash])) == []
    assert kinds(check(double)) == [Kind.DOUBLE]
    too_early = evidence([done], [*ran(early, 0, 1), *ran(again, 5, 6)])
    assert kinds(check(msgspec.structs.replace(too_early, crashes=[crash]))) == [Kind.DOUBLE]


def test_the_time_until_a_lost_job_is_due_again_is_counted_from_the_end_of_its_lease():
    lost = attempt(1, 1, "lost")
    again = lost.ended_at + SECOND
    assert list(reclaim_lags([job(lost, attempt(2, 4, "done"), due_at=again), DONE])) == [(lost.ended_at, again)]
