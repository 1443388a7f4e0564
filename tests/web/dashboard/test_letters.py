from datetime import UTC, datetime

import pytest

from drumline.model.job import Attempt, Failure, Job, JobState
from drumline.model.options import JobOptions
from drumline.web.dashboard.letters import group_letters, kind_of_error

AT = datetime(2026, 5, 5, 14, 0, tzinfo=UTC)


def dead(error: str | None, task: str = "charge") -> Job:
    attempts = () if error is None else (Attempt(1, 1, "r:1", "r:1", AT, AT, "failed", Failure("E", error)),)
    return Job(
        id="0",
        task=task,
        queue="default",
        state=JobState.DEAD,
        priority=0,
        attempt=1,
        max_attempts=1,
        fence=1,
        args=b"{}",
        options=JobOptions(),
        created_at=AT,
        due_at=AT,
        finished_at=AT,
        attempts=attempts,
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 7 timed out", "order 12 timed out"),
        ("user 'ann' is gone", "user 'bob' is gone"),
        ("job 019a1e2d-5765-744f-8e80-ed8e506ade1a", "job 019a1e2d-5791-75b3-bf09-baa4204f29e6"),
        ("at 0x7f3a", "at 0x12"),
        ("took 1.5 s", "took 22.75 s"),
        ("first\nsecond", "first\nthird"),
    ],
)
def test_errors_that_differ_in_details_are_of_one_kind(one, other):
    assert kind_of_error(one) == kind_of_error(other)


def test_errors_of_other_words_are_of_other_kinds():
    assert kind_of_error("refused") != kind_of_error("timed out")


def test_a_kind_holds_no_secret():
    assert kind_of_error("refused: password=hunter") == "refused: password=***"


def test_groups_are_by_task_and_kind_and_the_largest_comes_first():
    jobs = [dead("a 1"), dead("b"), dead("b"), dead("b", "mail"), dead("b")]
    assert [(group.task, group.example, len(group.jobs)) for group in group_letters(jobs)] == [
        ("charge", "E: b", 3),
        ("charge", "E: a 1", 1),
        ("mail", "E: b", 1),
    ]


def test_a_dead_job_without_an_error_has_its_group_too():
    assert group_letters([dead(None)])[0].example == "no error is recorded"
