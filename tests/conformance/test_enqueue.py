from datetime import timedelta

import pytest

from drumline.errors import BadOption
from drumline.model.job import Enqueued, JobState, Source
from drumline.model.query import CommandKind
from tests.support.build import (
    cancelled,
    dead,
    done,
    line,
    new_job,
    note,
    numbered_id,
    options,
    release,
    retry,
    unique,
)
from tests.support.promises import promises

PAYLOADS = {
    "empty list": b"[]",
    "empty object": b"{}",
    "null": b"null",
    "big number": b'{"n":9223372036854775808,"m":-9223372036854775809}',
    "floats": b'{"x":1.0,"y":1e400,"z":0.1000000000000000055511151231257827,"w":-0.0}',
    "spaces kept": b'{ "a" : 1 ,"a":2}',
    "unicode": '{"text":"Grüße, 你好, 🥁, \\u0000, \\ud83d"}'.encode(),
    "200 KB": b'["' + b"x" * 200_000 + b'"]',
    "text with a NUL": b"before\0behind",
    "not even JSON": bytes(range(256)),
}


@promises("enqueue", "Make the jobs")
def test_a_new_job_stands_as_it_was_asked_for(rig):
    rig.advance(100)
    asked = new_job(
        "mail.send",
        args=b'{"to":"ann"}',
        queue="mail",
        priority=7,
        lease=12,
        max_attempts=3,
        retention=3600,
        key="welcome-1",
        tags=("a", "b c", "ü"),
        meta={"tenant": "t1", "n": 1, "deep": {"list": [1, 2.5, None, True]}},
        origin="POST /users",
    )
    assert rig.enqueue(asked) == [Enqueued(asked.id, JobState.READY, created=True, replaced=False)]
    job = rig.job(asked.id)
    assert (job.id, job.task, job.queue, job.state) == (asked.id, "mail.send", "mail", JobState.READY)
    assert (job.priority, job.max_attempts, job.attempt, job.fence) == (7, 3, 0, 0)
    assert job.options == asked.options
    assert (job.args, job.key, job.tags, job.meta) == (asked.args, "welcome-1", asked.tags, asked.meta)
    assert (job.source, job.origin, job.schedule, job.tick) == (Source.MANUAL, "POST /users", None, None)
    assert job.created_at == job.due_at == rig.now()
    assert (job.claimed_at, job.lease_until, job.replica, job.finished_at, job.expires_at) == (None,) * 5
    assert (job.waits_for, job.progress, job.attempts, job.result, job.user_error) == (None, None, (), None, None)


@pytest.mark.parametrize("args", PAYLOADS.values(), ids=PAYLOADS)
def test_arguments_and_results_keep_every_byte(rig, args):
    job_id = rig.add(args=args)
    assert rig.job(job_id).args == args
    claim = rig.take_one()
    assert claim.args == args
    rig.finish(done(claim, result=args))
    assert (rig.job(job_id).args, rig.job(job_id).result) == (args, args)


@promises("enqueue", "all or none, up to 10,000, and answer in their order")
def test_ten_thousand_jobs_are_made_in_one_call_and_answered_in_their_order(rig):
    jobs = [new_job(args=b"[%d]" % number, priority=number % 3) for number in range(10_000)]
    jobs[5000] = jobs[10]
    answers = rig.enqueue(*jobs)
    assert [answer.id for answer in answers] == [job.id for job in jobs]
    assert [place for place, answer in enumerate(answers) if not answer.created] == [5000]
    assert rig.count().ready == 9_999


@promises("enqueue", "all or none, up to 10,000")
def test_more_than_ten_thousand_jobs_are_refused_and_none_is_made(rig):
    with pytest.raises(BadOption):
        rig.enqueue(*(new_job() for _ in range(10_001)))
    assert (rig.jobs(), rig.counts()) == ([], {})


def test_no_jobs_are_answered_with_nothing(rig):
    assert rig.enqueue() == []


@promises("enqueue", "A job whose id already stands answers with it, `created=False`")
def test_a_repeated_enqueue_answers_with_the_job_that_stands_and_leaves_it_alone(rig):
    first = new_job(args=b"[1]", tags=("first",), queue="a")
    rig.enqueue(first)
    before = rig.job(first.id)
    rig.advance(5)
    again = new_job(id=first.id, args=b"[2]", tags=("second",), queue="b", delay=60, priority=9)
    assert rig.enqueue(again) == [Enqueued(first.id, JobState.READY, created=False)]
    assert rig.job(first.id) == before
    assert set(rig.counts()) == {("a", "job")}


def test_one_id_twice_in_a_batch_makes_one_job(rig):
    job = new_job(args=b"[1]")
    first, second = rig.enqueue(job, new_job(id=job.id, args=b"[2]"))
    assert (first.created, second.created, second.id) == (True, False, job.id)
    assert rig.job(job.id).args == b"[1]"
    assert rig.count().ready == 1


def test_a_repeated_enqueue_tells_in_which_state_the_job_is(rig):
    delayed, running, cancelling = new_job(delay=60), new_job(), new_job()
    rig.enqueue(delayed)
    for job in (running, cancelling):
        rig.enqueue(job)
        rig.take_one()
    rig.command(CommandKind.CANCEL, cancelling.id)
    answers = rig.enqueue(delayed, running, cancelling)
    assert [answer.state for answer in answers] == [JobState.DELAYED, JobState.RUNNING, JobState.CANCELLING]
    assert not any(answer.created for answer in answers)


@promises("enqueue", "also when that job has ended: a repeat never revives")
@pytest.mark.parametrize("ended", [done, dead, cancelled], ids=lambda ended: ended.__name__)
def test_a_repeated_enqueue_does_not_revive_an_ended_job(rig, ended):
    job = new_job()
    rig.enqueue(job)
    rig.finish(ended(rig.take_one()))
    before = rig.job(job.id)
    (answer,) = rig.enqueue(job)
    assert (answer.id, answer.created, answer.state) == (job.id, False, before.state)
    assert rig.job(job.id) == before
    assert rig.take() == []


def test_a_repeated_enqueue_does_not_revive_a_job_that_is_kept_for_no_time(rig):
    job = new_job(retention=0)
    rig.enqueue(job)
    rig.finish(done(rig.take_one()))
    for _ in range(5):
        rig.advance(11.9)
        rig.purge()
        assert [answer.created for answer in rig.enqueue(job)] == [False]
    assert rig.take() == []


@promises("enqueue", "A start that is past, or none, makes the job ready")
def test_a_start_that_is_past_or_none_makes_the_job_ready(rig):
    answers = rig.enqueue(
        new_job(), new_job(start=rig.later(-60)), new_job(start=rig.now()), new_job(start=timedelta())
    )
    assert {answer.state for answer in answers} == {JobState.READY}
    assert {job.state for job in rig.jobs()} == {JobState.READY}
    assert len(rig.take(10)) == 4


@promises("enqueue", "a later one delayed, by the store's clock")
def test_a_start_that_lies_ahead_makes_the_job_delayed_until_then(rig):
    rig.advance(1_000_000)
    answers = rig.enqueue(new_job(start=rig.later(60)), new_job(start=timedelta(seconds=60)))
    assert {answer.state for answer in answers} == {JobState.DELAYED}
    assert {job.due_at for job in rig.jobs()} == {rig.later(60)}
    rig.advance(59.999)
    assert {job.state for job in rig.jobs()} == {JobState.DELAYED}
    assert rig.take(10) == []
    rig.advance(0.001)
    assert {job.state for job in rig.jobs()} == {JobState.READY}
    assert len(rig.take(10)) == 2


def test_stored_instants_are_whole_milliseconds(rig):
    rig.enqueue(new_job(start=rig.later(60) + timedelta(microseconds=1999)))
    (job,) = rig.jobs()
    assert job.due_at == rig.later(60.001)


@promises("base", "Every operation is one atomic step, takes batches, reads no policy")
def test_a_job_is_treated_by_its_own_options_whatever_an_operation_would_prefer(rig):
    claim = rig.start(max_attempts=1, retention=5, lease=7)
    assert rig.finish(retry(claim)) == [True]
    claim = rig.take_one()
    assert (claim.attempt, claim.options) == (2, options(max_attempts=1, retention=5, lease=7))


@promises("base", "and is safe to repeat after a lost reply: ids, claim tokens and command ids are made by the caller")
def test_every_step_may_be_repeated_after_a_lost_reply(rig):
    job = new_job(id=numbered_id(1), key=unique("k", on_conflict="raise"))
    for _ in range(2):
        assert [answer.id for answer in rig.enqueue(job)] == [job.id]
    (claim,), (again,) = (rig.take(token="t1") for _ in range(2))
    assert claim == again
    for _ in range(2):
        assert rig.report(note(claim, line(claim, 1))) == [True]
    for _ in range(2):
        assert rig.finish(release(claim)) == [True]
    answers = [rig.command(CommandKind.CANCEL, job.id, command_id="c1") for _ in range(2)]
    assert answers[0] == answers[1]
    assert (rig.state(job.id), len(rig.logs(job.id)), len(rig.audit())) == (JobState.CANCELLED, 1, 1)
    assert len(rig.job(job.id).attempts) == 1
