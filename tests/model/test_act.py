from datetime import UTC, datetime

from drumline.model.act import Act, fates_of_firings, fates_of_jobs, fates_of_names
from drumline.model.job import Enqueued, JobState
from drumline.model.query import Answer, AuditRow, By
from drumline.model.schedule import Fired, FiredAnswer
from tests.support.build import new_job, trigger

NOW = datetime(2026, 5, 5, tzinfo=UTC)
BOB = By("bob", "http", "because")


def test_an_act_tells_who_did_what_to_which_and_what_became_of_it():
    act = Act(id="a1", by=BOB, action="register", part_of="a0")
    row = act.row(NOW, [("tidy", Answer.APPLIED), ("warm", Answer.REFUSED)])
    assert row == AuditRow(
        id="a1",
        at=NOW,
        by=BOB,
        action="register",
        targets=("tidy", "warm"),
        answers=(Answer.APPLIED, Answer.REFUSED),
        part_of="a0",
    )


def test_a_job_that_stood_already_was_refused_unless_it_was_replaced():
    jobs = [new_job(), new_job(), new_job()]
    answers = [
        Enqueued(jobs[0].id, JobState.READY),
        Enqueued("another", JobState.READY, created=False),
        Enqueued("another", JobState.READY, created=False, replaced=True),
    ]
    assert fates_of_jobs(jobs, answers) == [
        (jobs[0].id, Answer.APPLIED),
        (jobs[1].id, Answer.REFUSED),
        (jobs[2].id, Answer.APPLIED),
    ]


def test_a_schedule_that_was_not_changed_was_refused():
    assert fates_of_names(["a", "b"], [True, False]) == [("a", Answer.APPLIED), ("b", Answer.REFUSED)]


def test_a_schedule_of_which_no_job_was_made_was_refused():
    firings = [trigger(NOW, name) for name in ("a", "b", "b")]
    answers = [Fired(FiredAnswer.OVERLAP), Fired(FiredAnswer.OVERLAP), Fired(FiredAnswer.FIRED, "job")]
    assert fates_of_firings(firings, answers) == [("a", Answer.REFUSED), ("b", Answer.APPLIED)]
