from datetime import timedelta

import msgspec
import pytest

from drumline.model.job import JobState, Source
from drumline.model.query import PauseKind
from drumline.model.schedule import Decision, Fired, FiredAnswer, Overlap
from tests.support.build import done, new_schedule, tick_at, tick_without_job
from tests.support.promises import promises

NOT_ALLOW = [overlap.value for overlap in Overlap if overlap is not Overlap.ALLOW]


def backfill(instant, **given):
    return msgspec.structs.replace(tick_at(instant, **given), decision=Decision.BACKFILL, reason="backfilled")


def minutes(rig, count):
    return [rig.now() - timedelta(minutes=minute) for minute in range(count - 1, -1, -1)]


@promises("fire", "A backfill", "takes the place of a row without a job")
@pytest.mark.parametrize("decision", [Decision.MISSED, Decision.OVERLAP])
def test_a_backfill_fires_a_tick_that_was_skipped(rig, decision):
    rig.declare(new_schedule())
    rig.fire(tick_without_job(rig.now(), decision))
    firing = backfill(rig.now())
    assert firing.job is not None
    assert rig.fire(firing, by="ann") == [Fired(FiredAnswer.FIRED, firing.job.id)]
    (row,) = [row for row in rig.ticks("tock") if row.mark == firing.mark]
    assert (row.decision, row.job_id, row.reason, row.by) == (Decision.FIRED, firing.job.id, "backfilled", "ann")
    assert (rig.job(firing.job.id).source, rig.job(firing.job.id).tick) == (Source.SCHEDULED, rig.now())


def test_a_backfilled_tick_is_a_duplicate_for_the_next_backfill_and_for_the_rule(rig):
    rig.declare(new_schedule())
    instants = minutes(rig, 3)
    assert {fired.answer for fired in rig.fire(*map(backfill, instants))} == {FiredAnswer.FIRED}
    assert {fired.answer for fired in rig.fire(*map(backfill, instants))} == {FiredAnswer.DUPLICATE}
    assert {fired.answer for fired in rig.fire(*map(tick_at, instants))} == {FiredAnswer.DUPLICATE}
    assert len(rig.jobs()) == 3


@promises("fire", "and a duplicate moves it too.")
def test_a_tick_that_was_backfilled_ahead_of_the_rule_moves_the_last_tick_once_the_rule_comes_to_it(rig):
    rig.declare(new_schedule())
    rig.advance(60)
    rig.fire(backfill(rig.now()))
    assert [fired.answer for fired in rig.fire(tick_at(rig.now()))] == [FiredAnswer.DUPLICATE]
    assert rig.schedule().last_tick == rig.now()


def test_a_backfill_leaves_a_tick_that_was_fired(rig):
    rig.declare(new_schedule())
    (fired,) = rig.fire(tick_at(rig.now()))
    assert rig.fire(backfill(rig.now())) == [Fired(FiredAnswer.DUPLICATE, fired.job_id)]
    assert len(rig.jobs()) == 1


@promises("fire", "A backfill works while paused too")
def test_a_backfill_works_while_paused(rig):
    rig.declare(new_schedule())
    rig.pause(PauseKind.SCHEDULE, "tock")
    assert [fired.answer for fired in rig.fire(backfill(rig.now()))] == [FiredAnswer.FIRED]


@promises("fire", "does not move `last_tick`")
def test_a_backfill_does_not_move_the_last_tick(rig):
    rig.declare(new_schedule())
    rig.advance(180)
    before = rig.schedule()
    rig.fire(backfill(rig.now()))
    assert rig.schedule() == before


def test_the_ledger_row_of_a_backfilled_tick_learns_its_outcome(rig):
    rig.declare(new_schedule())
    rig.fire(tick_without_job(rig.now(), Decision.MISSED))
    rig.fire(backfill(rig.now()))
    rig.finish(done(rig.take_one()))
    assert [row.outcome for row in rig.ticks("tock") if row.decision is Decision.FIRED] == ["done"]


@promises("fire", "and where overlap is not allowed its job waits for the one before")
@pytest.mark.parametrize("overlap", NOT_ALLOW)
def test_backfilled_jobs_run_one_after_the_other_where_overlap_is_not_allowed(rig, overlap):
    rig.declare(new_schedule(overlap=overlap))
    jobs = [fired.job_id for fired in rig.fire(*map(backfill, minutes(rig, 4)))]
    jobs += [fired.job_id for fired in rig.fire(backfill(minutes(rig, 6)[0]))]
    order = []
    while claims := rig.take(10):
        (claim,) = claims
        order.append(claim.id)
        rig.finish(done(claim))
    assert order == jobs


def test_backfilled_jobs_are_ready_at_once_where_overlap_is_allowed(rig):
    rig.declare(new_schedule())
    jobs = [fired.job_id for fired in rig.fire(*map(backfill, minutes(rig, 3)))]
    assert {rig.state(job) for job in jobs} == {JobState.READY}
