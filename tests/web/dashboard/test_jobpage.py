from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drumline.model.job import Attempt, Failure, Job, JobState, Progress
from drumline.model.options import JobOptions
from drumline.web.dashboard.jobpage import tell_left, timeline

START = datetime(2026, 5, 5, 14, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def job(state: JobState, **given: Any) -> Job:
    base: dict[str, Any] = {"priority": 0, "attempt": 1, "max_attempts": 5, "fence": 1, "args": b"{}"}
    given = {"due_at": START, **base, **given}
    return Job(id="0", task="send", queue="mail", state=state, options=JobOptions(), created_at=START, **given)


def attempt(number: int, begun: float, ended: float, how: str) -> Attempt:
    error = Failure("ValueError", "boom") if how == "failed" else None
    return Attempt(number, number, "r:1", "r:1", at(begun), at(ended), how, error)


def steps(shown: Job) -> list[tuple[str, str, float | None]]:
    return [(one.kind, one.label, None if one.after is None else one.after.total_seconds()) for one in timeline(shown)]


def test_a_timeline_tells_every_state_and_how_long_after_the_one_before():
    attempts = (attempt(1, 1, 3, "failed"), attempt(2, 8, 10, "done"))
    assert steps(job(JobState.DONE, attempts=attempts, finished_at=at(10))) == [
        ("ready", "enqueued", None),
        ("running", "attempt 1 began", 1),
        ("dead", "failed", 2),
        ("running", "attempt 2 began", 5),
        ("done", "done", 2),
    ]


def test_a_timeline_tells_the_last_failure_and_the_death_as_one():
    dead = job(JobState.DEAD, attempts=(attempt(1, 1, 3, "failed"),), finished_at=at(3))
    assert steps(dead)[-1] == ("dead", "failed, dead", 2)


@pytest.mark.parametrize(
    ("waiting", "last"),
    [
        (job(JobState.DELAYED, attempt=0, due_at=at(60)), ("delayed", "due", 60)),
        (job(JobState.RUNNING, claimed_at=at(4)), ("running", "attempt 1 began", 4)),
        (job(JobState.CANCELLED, attempt=0, finished_at=at(2)), ("cancelled", "cancelled", 2)),
    ],
)
def test_a_timeline_goes_as_far_as_the_job_has_come(waiting, last):
    assert steps(waiting)[-1] == last


def test_the_time_that_is_left_is_told_from_the_pace_so_far():
    running = job(JobState.RUNNING, claimed_at=START, progress=Progress(0.6, "rows"))
    assert tell_left(running, at(60)) == "60 % · about 40 s left"
    assert tell_left(job(JobState.RUNNING, claimed_at=START, progress=Progress(0.0, "")), at(60)) == "0 %"
    assert tell_left(job(JobState.RUNNING, claimed_at=START), at(60)) == ""
