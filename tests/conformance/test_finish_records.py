from datetime import timedelta

import pytest

from drumline.model.job import Failure, JobState
from drumline.model.query import histogram_bucket
from tests.support.build import cancelled, dead, done, new_schedule, release, retry, tick_at
from tests.support.promises import promises


def by_name(fate):
    return fate.__name__


@promises("finish", "In the same step:", "totals and the minute's series are added to")
def test_totals_count_what_jobs_and_attempts_came_to(rig):
    rig.end(done)
    rig.end(done)
    claim = rig.start()
    rig.finish(retry(claim, error=Failure("OSError", "disk")))
    claim = rig.take_one()
    rig.finish(dead(claim, ended="lost", error=Failure("WorkerLost", "gone")))
    rig.end(lambda claim: dead(claim, ended="timeout", error=Failure("Timeout", "30 s")))
    rig.end(cancelled)
    count = rig.count()
    assert (count.total_done, count.total_failures) == (2, 3)
    assert count.last_error == "Timeout: 30 s"


def test_a_released_attempt_is_no_failure(rig):
    rig.finish(release(rig.start()))
    assert (rig.count().total_failures, rig.count().last_error) == (0, None)


@promises("finish", "totals and the minute's series are added to")
def test_the_series_of_the_minute_tells_how_attempts_ended(rig):
    rig.advance(90)
    rig.end(done)
    rig.finish(retry(rig.start(), delay=600))
    rig.end(dead)
    rig.end(cancelled)
    (point,) = rig.series()
    assert (point.minute, point.queue, point.task) == (rig.later(-30), "default", "job")
    assert (point.done, point.dead, point.cancelled) == (1, 1, 1)
    assert point.failed >= 1


def test_the_series_tells_waits_and_runs_by_bucket(rig):
    rig.add()
    rig.advance(0.02)
    claim = rig.take_one()
    rig.advance(3)
    rig.finish(done(claim, ran=3))
    (point,) = rig.series()
    assert [place for place, number in enumerate(point.wait) if number] == [histogram_bucket(20)]
    assert [place for place, number in enumerate(point.run) if number] == [histogram_bucket(3000)]
    assert (sum(point.wait), sum(point.run)) == (1, 1)


def test_a_wait_is_counted_from_the_due_time(rig):
    rig.add(delay=100)
    rig.advance(100.5)
    rig.finish(done(rig.take_one()))
    (point,) = rig.series()
    assert point.wait[histogram_bucket(500)] == 1


@promises("finish", "the tick's ledger row learns outcome and run time")
@pytest.mark.parametrize("end", [done, dead, cancelled], ids=by_name)
def test_the_ledger_row_of_a_tick_learns_outcome_and_run_time(rig, end):
    rig.declare(new_schedule())
    rig.fire(tick_at(rig.now()))
    claim = rig.take_one()
    assert [(row.outcome, row.run_time) for row in rig.ticks("tock") if row.job_id] == [(None, None)]
    rig.advance(1.5)
    rig.finish(end(claim, ran=1.5))
    assert [(row.outcome, row.run_time) for row in rig.ticks("tock") if row.job_id] == [
        (rig.state(claim.id).value, timedelta(seconds=1.5))
    ]


def test_the_ledger_row_waits_for_the_last_attempt(rig):
    rig.declare(new_schedule())
    rig.fire(tick_at(rig.now()))
    rig.finish(retry(rig.take_one()))
    assert {row.outcome for row in rig.ticks("tock")} == {None}
    claim = rig.take_one()
    rig.advance(2)
    rig.finish(done(claim, ran=2))
    assert [(row.outcome, row.run_time) for row in rig.ticks("tock") if row.job_id] == [("done", timedelta(seconds=2))]


def test_a_schedule_knows_its_runs_and_failures(rig):
    rig.declare(new_schedule())
    rig.fire(tick_at(rig.now()))
    claim = rig.take_one()
    assert rig.schedule().running == 1
    rig.finish(retry(claim))
    assert rig.schedule().running == 0
    rig.finish(done(rig.take_one()))
    status = rig.schedule()
    assert (status.running, status.total_runs, status.total_failures) == (0, 2, 1)


@promises("finish", "and a job that waited for this one becomes ready")
@pytest.mark.parametrize("end", [done, dead, cancelled], ids=by_name)
def test_a_job_that_waited_for_this_one_becomes_ready(rig, end):
    rig.declare(new_schedule(overlap="queue_one"))
    rig.fire(tick_at(rig.now()))
    claim = rig.take_one()
    rig.advance(60)
    (fired,) = rig.fire(tick_at(rig.now()))
    assert fired.job_id is not None
    waiting = rig.job(fired.job_id)
    assert (waiting.state, waiting.waits_for) == (JobState.DELAYED, claim.id)
    assert rig.take() == []
    rig.finish(end(claim, ran=60))
    released = rig.job(fired.job_id)
    assert (released.state, released.waits_for) == (JobState.READY, None)
    assert rig.take_one().id == fired.job_id


@pytest.mark.parametrize("again", [retry, release], ids=by_name)
def test_a_job_waits_on_while_the_earlier_one_is_tried_again(rig, again):
    rig.declare(new_schedule(overlap="queue_one"))
    rig.fire(tick_at(rig.now()))
    claim = rig.take_one()
    rig.advance(60)
    (fired,) = rig.fire(tick_at(rig.now()))
    rig.finish(again(claim))
    assert [taken.id for taken in rig.take(9)] == [claim.id]
    assert fired.job_id is not None
    assert rig.state(fired.job_id) is JobState.DELAYED
