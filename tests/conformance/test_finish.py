from datetime import timedelta
from typing import Any

import msgspec
import pytest

from drumline.model.job import JobState
from drumline.model.outcome import Outcome
from drumline.model.query import CommandKind
from tests.support.build import (
    OTHER_REPLICA,
    attempt_of,
    cancelled,
    dead,
    done,
    new_job,
    numbered_id,
    release,
    retry,
)
from tests.support.promises import promises

FATES = [done, dead, cancelled, retry, release]
ENDS = [done, dead, cancelled]


def by_name(fate):
    return fate.__name__


@promises(
    "finish", "Apply each outcome whose claim is still held (id *and* fence match a running job)", "and say which were"
)
@pytest.mark.parametrize(
    ("fate", "state"),
    [
        (done, JobState.DONE),
        (dead, JobState.DEAD),
        (cancelled, JobState.CANCELLED),
        (retry, JobState.READY),
        (release, JobState.READY),
    ],
)
def test_each_outcome_of_a_held_claim_is_applied(rig, fate, state):
    claim = rig.start()
    assert rig.finish(fate(claim)) == [True]
    job = rig.job(claim.id)
    assert (job.state, job.fence) == (state, claim.fence)
    assert (job.claimed_at, job.lease_until, job.replica) == (None, None, None)


@pytest.mark.parametrize("fate", FATES, ids=by_name)
def test_a_claim_that_was_taken_over_can_no_longer_be_finished(rig, fate):
    stale = rig.start()
    rig.finish(release(stale, by="rescuer"))
    held = rig.take_one(replica=OTHER_REPLICA)
    before = rig.job(held.id)
    assert rig.finish(fate(stale)) == [False]
    assert rig.job(held.id) == before
    assert rig.finish(done(held)) == [True]


@pytest.mark.parametrize("fence", [-1, +1])
def test_the_right_id_with_another_fence_is_refused(rig, fence):
    claim = rig.start()
    wrong = msgspec.structs.replace(claim, fence=claim.fence + fence)
    assert rig.finish(done(wrong)) == [False]
    assert rig.state(claim.id) is JobState.RUNNING


def test_an_outcome_of_a_job_that_is_not_stored_is_refused(rig):
    claim = rig.start()
    assert rig.finish(done(msgspec.structs.replace(claim, id=numbered_id(1)))) == [False]
    assert rig.finish() == []


@pytest.mark.parametrize("first", [retry, release], ids=by_name)
def test_a_waiting_job_cannot_be_finished_under_its_last_fence(rig, first):
    claim = rig.start()
    rig.finish(first(claim))
    before = rig.job(claim.id)
    assert rig.finish(done(claim, by="rival")) == [False]
    assert rig.job(claim.id) == before


@promises("finish", "The batch commits as a whole; stale outcomes answer False and change nothing.")
def test_stale_outcomes_in_a_batch_hold_up_no_others(rig):
    rig.enqueue(*(new_job() for _ in range(4)))
    first, stale, third, fourth = rig.take(4)
    rig.finish(release(stale, by="rescuer"))
    assert rig.finish(done(first), dead(stale), retry(third, delay=5), cancelled(fourth)) == [True, False, True, True]
    states = [rig.state(claim.id) for claim in (first, stale, third, fourth)]
    assert states == [JobState.DONE, JobState.READY, JobState.DELAYED, JobState.CANCELLED]
    count = rig.count()
    assert (count.done, count.ready, count.delayed, count.cancelled, count.running) == (1, 1, 1, 1, 0)


@promises("finish", "A repeat after a lost reply answers True and changes nothing")
@pytest.mark.parametrize("fate", FATES, ids=by_name)
def test_a_repeat_after_a_lost_reply_is_told_so_and_changes_nothing(rig, fate):
    claim = rig.start()
    outcome = fate(claim)
    assert rig.finish(outcome) == [True]
    before = rig.job(claim.id), rig.counts(), rig.series()
    rig.advance(1)
    assert rig.finish(outcome) == [True]
    assert (rig.job(claim.id), rig.counts(), rig.series()) == before


@pytest.mark.parametrize("fate", [retry, release], ids=by_name)
def test_a_repeat_is_known_also_after_the_next_claim(rig, fate):
    claim = rig.start()
    outcome = fate(claim)
    rig.finish(outcome)
    held = rig.take_one(replica=OTHER_REPLICA)
    before = rig.job(claim.id)
    assert rig.finish(outcome) == [True]
    assert rig.job(claim.id) == before
    assert rig.finish(done(held)) == [True]
    assert rig.finish(outcome) == [True]
    assert rig.state(claim.id) is JobState.DONE


@pytest.mark.parametrize("fate", FATES, ids=by_name)
def test_one_outcome_twice_in_a_batch_is_applied_once(rig, fate):
    outcome = fate(rig.start())
    assert rig.finish(outcome, outcome) == [True, True]
    assert len(rig.job(outcome.claim.id).attempts) == 1
    assert sum(sum(point.run) for point in rig.series()) <= 1


@promises(
    "finish",
    "the attempt, made by the finisher and naming it, tells it from a rival under the same fence",
)
@pytest.mark.parametrize("fate", FATES, ids=by_name)
@pytest.mark.parametrize("rival", FATES, ids=by_name)
def test_a_rival_under_the_same_fence_is_refused(rig, fate, rival):
    claim = rig.start()
    assert rig.finish(fate(claim)) == [True]
    before = rig.job(claim.id)
    assert rig.finish(rival(claim, by="rescuer")) == [False]
    assert rig.job(claim.id) == before


def test_of_two_rivals_in_one_batch_the_first_wins(rig):
    claim = rig.start()
    assert rig.finish(dead(claim, by="rescuer"), done(claim)) == [True, False]
    assert rig.state(claim.id) is JobState.DEAD


@promises("finish", "Done, dead and cancelled end the job, and keep it for its retention and at least a minute.")
@pytest.mark.parametrize("end", ENDS, ids=by_name)
@pytest.mark.parametrize(("retention", "kept"), [(0, 60), (59, 60), (61, 61), (3600, 3600)])
def test_an_ended_job_is_kept_for_its_retention_and_at_least_a_minute(rig, end, retention, kept):
    claim = rig.start(retention=retention)
    rig.advance(5)
    rig.finish(end(claim, ran=5))
    job = rig.job(claim.id)
    assert (job.finished_at, job.expires_at) == (rig.now(), rig.later(kept))
    rig.advance(kept - 1)
    rig.purge()
    assert rig.find(claim.id) == job
    rig.advance(2)
    rig.purge()
    assert rig.find(claim.id) is None


def test_each_end_has_its_own_retention(rig):
    default = {done: 86_400, dead: 7 * 86_400, cancelled: 86_400}
    for end, seconds in default.items():
        job = rig.job(rig.end(end))
        assert job.expires_at == rig.later(seconds)


@pytest.mark.parametrize("is_repr", [True, False])
def test_the_result_is_kept_with_how_it_was_written(rig, is_repr):
    claim = rig.start()
    rig.finish(Outcome.done(claim, attempt_of(claim), b'{"x":1}', is_repr=is_repr))
    assert (rig.job(claim.id).result, rig.job(claim.id).result_is_repr) == (b'{"x":1}', is_repr)


RESULTS = [b'""', b'"\\""', b'"\\\\"', b'["\\n",","]', b'"{null}"', b"null", '"päng"'.encode(), b"\x00\xff", b"\\x00"]


@pytest.mark.parametrize("results", [RESULTS, [None, *RESULTS, None]], ids=["all", "some"])
def test_the_results_of_one_batch_stay_as_they_were_written(rig, results):
    rig.enqueue(*(new_job() for _ in results))
    claims = rig.take(len(results))
    assert all(rig.finish(*(done(claim, result=result) for claim, result in zip(claims, results, strict=True))))
    assert [rig.job(claim.id).result for claim in claims] == results


def test_no_result_stays_none(rig):
    assert rig.job(rig.end(lambda claim: done(claim, result=None))).result is None


@promises("finish", "Retry makes it waiting until `start`, by the store's clock")
def test_a_retry_waits_until_its_start_by_the_stores_clock(rig):
    for start in (rig.later(90), timedelta(seconds=60)):
        claim = rig.start()
        rig.advance(30)
        rig.finish(retry(claim, start=start, ran=30))
        job = rig.job(claim.id)
        assert (job.state, job.attempt) == (JobState.DELAYED, 1)
        assert job.due_at == rig.later(60)
        rig.advance(59)
        assert rig.take() == []
        rig.advance(1)
        again = rig.take_one()
        assert (again.id, again.attempt, again.due_at) == (claim.id, 2, job.due_at)
        rig.finish(done(again))


@promises("finish", "release too, and gives the attempt back")
def test_a_release_waits_until_its_start_and_gives_the_attempt_back(rig):
    claim = rig.start()
    rig.finish(release(claim, delay=60))
    job = rig.job(claim.id)
    assert (job.state, job.due_at, job.attempt) == (JobState.DELAYED, rig.later(60), 0)
    rig.advance(60)
    again = rig.take_one()
    assert (again.attempt, again.fence > claim.fence) == (1, True)


@promises("finish", "without a start the job is ready at once")
def test_a_retry_without_a_start_is_ready_at_once(rig):
    claim = rig.start()
    rig.advance(5)
    rig.finish(retry(claim, ran=5))
    job = rig.job(claim.id)
    assert (job.state, job.due_at) == (JobState.READY, rig.now())
    assert rig.take_one().id == claim.id


@promises("finish", "a released one with its old due time")
def test_a_release_without_a_start_keeps_its_place(rig):
    first = rig.start()
    rig.advance(5)
    rig.add()
    rig.advance(5)
    rig.finish(release(first, ran=10))
    job = rig.job(first.id)
    assert (job.state, job.due_at) == (JobState.READY, first.due_at)
    assert rig.take_one().id == first.id


@promises("finish", "Each closed attempt is added to the job's history")
def test_each_closed_attempt_is_added_to_the_history(rig):
    fates: list[Any] = [retry, release, retry, done]
    attempts = []
    rig.add()
    for fate in fates:
        claim = rig.take_one()
        rig.advance(2)
        outcome = fate(claim, ran=2)
        rig.finish(outcome)
        attempts.append(outcome.attempt)
    job = rig.jobs()[0]
    assert job.attempts == tuple(attempts)
    assert [attempt.number for attempt in job.attempts] == [1, 2, 2, 3]
    assert job.last_error == "ValueError: boom"


@promises("finish", "of which at least the newest 100 are kept")
def test_at_least_the_newest_hundred_attempts_are_kept(rig):
    rig.add()
    fences = []
    for _ in range(120):
        claim = rig.take_one()
        fences.append(claim.fence)
        assert rig.finish(release(claim)) == [True]
    kept = [attempt.fence for attempt in rig.jobs()[0].attempts]
    assert len(kept) >= 100
    assert kept == fences[-len(kept) :]


@promises("finish", "A claim whose lease has passed, but that nobody took, may still be finished.")
@pytest.mark.parametrize("fate", FATES, ids=by_name)
def test_a_claim_whose_lease_has_passed_may_still_be_finished(rig, fate):
    claim = rig.start(lease=5)
    rig.advance(3600)
    assert [found.id for found in rig.expired()] == [claim.id]
    assert rig.finish(fate(claim, ran=3600)) == [True]
    assert rig.expired() == []


@promises("finish", "A job that somebody asked to cancel does not run again: retry and release end it as cancelled.")
@pytest.mark.parametrize("fate", [retry, release], ids=by_name)
@pytest.mark.parametrize("delay", [None, 60])
def test_a_job_that_was_asked_to_stop_is_not_run_again(rig, fate, delay):
    claim = rig.start(key="k")
    rig.command(CommandKind.CANCEL, claim.id)
    rig.advance(1)
    outcome = fate(claim, ran=1, delay=delay)
    assert rig.finish(outcome) == [True]
    job = rig.job(claim.id)
    assert (job.state, job.finished_at, job.expires_at) == (JobState.CANCELLED, rig.now(), rig.later(86_400))
    assert job.attempts == (outcome.attempt,)
    assert (rig.count().cancelled, rig.count().ready, rig.count().delayed) == (1, 0, 0)
    assert rig.finish(outcome) == [True]
    rig.advance(60)
    assert rig.take() == []
    assert rig.enqueue(new_job(key="k"))[0].created


def test_a_job_that_was_asked_to_stop_may_still_end_as_done(rig):
    claim = rig.start()
    rig.command(CommandKind.CANCEL, claim.id)
    assert rig.state(claim.id) is JobState.CANCELLING
    assert rig.finish(done(claim)) == [True]
    assert rig.state(claim.id) is JobState.DONE


def test_a_job_retried_by_command_refuses_its_earlier_life(rig):
    claim = rig.start()
    rig.finish(dead(claim, by="rescuer"))
    rig.command(CommandKind.RETRY, claim.id)
    held = rig.take_one()
    assert rig.finish(done(claim)) == [False]
    assert rig.finish(dead(claim, by="rescuer")) == [True]
    assert rig.state(claim.id) is JobState.RUNNING
    assert rig.finish(done(held)) == [True]
