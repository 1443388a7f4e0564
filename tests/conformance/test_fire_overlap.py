import pytest

from drumline.model.job import JobState
from drumline.model.query import Answer, CommandKind
from drumline.model.schedule import Decision, FiredAnswer
from tests.support.build import cancelled, dead, done, new_schedule, retry, tick_at
from tests.support.promises import promises


class Beats:
    """A schedule of every minute, and its ticks one after the other."""

    def __init__(self, rig, overlap):
        self.rig = rig
        rig.declare(new_schedule(overlap=overlap))

    def fire(self):
        """The next tick: what came of it, and its job's id."""
        self.rig.advance(60)
        (fired,) = self.rig.fire(tick_at(self.rig.now()))
        return fired.answer, fired.job_id

    def job(self):
        answer, job_id = self.fire()
        assert answer is FiredAnswer.FIRED
        return job_id

    def state(self, job_id):
        return self.rig.state(job_id)


def finish_as(fate):
    def end(rig, claim):
        assert rig.finish(fate(claim)) == [True]

    return end


def cancel_while_it_runs(rig, claim):
    rig.command(CommandKind.CANCEL, claim.id)
    rig.finish(cancelled(claim))


def cancel_while_it_waits_for_a_retry(rig, claim):
    rig.finish(retry(claim, delay=3600))
    assert rig.command(CommandKind.CANCEL, claim.id) == [Answer.APPLIED]


def end_and_discard(rig, claim):
    rig.finish(dead(claim))
    assert rig.command(CommandKind.DISCARD, claim.id) == [Answer.APPLIED]


ENDS = {
    "done": finish_as(done),
    "dead": finish_as(dead),
    "cancelled": finish_as(cancelled),
    "cancelled by command": cancel_while_it_runs,
    "cancelled while waiting": cancel_while_it_waits_for_a_retry,
    "discarded": end_and_discard,
}


def test_by_default_ticks_may_overlap(rig):
    beats = Beats(rig, "allow")
    first, second = beats.job(), beats.job()
    assert {beats.state(first), beats.state(second)} == {JobState.READY}
    assert {claim.id for claim in rig.take(9)} == {first, second}


@promises("fire", "Overlap looks at the unfinished jobs of the schedule's ticks")
@pytest.mark.parametrize("state", ["ready", "running", "cancelling", "retrying"])
def test_every_unfinished_job_of_an_earlier_tick_counts(rig, state):
    beats = Beats(rig, "skip")
    first = beats.job()
    if state != "ready":
        claim = rig.take_one()
    if state == "cancelling":
        rig.command(CommandKind.CANCEL, first)
    if state == "retrying":
        rig.finish(retry(claim, delay=3600))
    assert beats.fire() == (FiredAnswer.OVERLAP, None)


@pytest.mark.parametrize("end", [done, dead, cancelled], ids=lambda end: end.__name__)
@pytest.mark.parametrize("overlap", ["skip", "queue_one", "cancel_running"])
def test_an_ended_job_stands_in_nobodys_way(rig, end, overlap):
    beats = Beats(rig, overlap)
    beats.job()
    rig.finish(end(rig.take_one()))
    assert beats.state(beats.job()) is JobState.READY


def test_jobs_of_other_schedules_and_of_nobody_stand_in_nobodys_way(rig):
    beats = Beats(rig, "skip")
    rig.declare(new_schedule("other"))
    rig.fire(tick_at(rig.now(), "other"))
    rig.add()
    assert beats.state(beats.job()) is JobState.READY


@promises("fire", "`skip` records the tick without a job")
def test_skip_records_the_tick_without_a_job(rig):
    beats = Beats(rig, "skip")
    first = beats.job()
    assert beats.fire() == (FiredAnswer.OVERLAP, None)
    row = rig.ticks("tock")[0]
    assert (row.decision, row.job_id, row.instant) == (Decision.OVERLAP, None, rig.now())
    assert row.reason == "an earlier job of it is unfinished"
    assert rig.ids() == [first]
    assert rig.schedule().last_tick == rig.now()
    assert [fired.answer for fired in rig.fire(tick_at(rig.now()))] == [FiredAnswer.DUPLICATE]


def test_skip_lets_only_the_first_of_a_batch_through(rig):
    rig.declare(new_schedule(overlap="skip"))
    rig.advance(600)
    answers = [fired.answer for fired in rig.fire(*(tick_at(rig.later(-number * 60)) for number in (3, 2, 1)))]
    assert answers == [FiredAnswer.FIRED, FiredAnswer.OVERLAP, FiredAnswer.OVERLAP]


@promises("fire", "`queue_one` lets one job wait until the earlier one has ended, and skips further ones")
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_queue_one_lets_one_job_wait_whatever_ends_the_earlier_one(rig, end):
    beats = Beats(rig, "queue_one")
    beats.job()
    claim = rig.take_one()
    waiting = beats.job()
    assert (rig.job(waiting).waits_for, beats.state(waiting)) == (claim.id, JobState.DELAYED)
    assert beats.fire() == (FiredAnswer.OVERLAP, None)
    assert rig.ticks("tock")[0].decision is Decision.OVERLAP
    assert (rig.count().delayed, rig.take(9)) == (1, [])
    end(rig, claim)
    assert (rig.job(waiting).waits_for, beats.state(waiting)) == (None, JobState.READY)
    assert (rig.count().delayed, rig.count().ready) == (0, 1)
    assert rig.take_one().id == waiting


def test_queue_one_waits_for_a_job_that_has_not_started_too(rig):
    beats = Beats(rig, "queue_one")
    first, second = beats.job(), beats.job()
    assert [claim.id for claim in rig.take(9)] == [first]
    assert rig.job(second).waits_for == first


def test_queue_one_forms_a_chain_over_time(rig):
    beats = Beats(rig, "queue_one")
    beats.job()
    for _ in range(5):
        claim = rig.take_one()
        waiting = beats.job()
        assert beats.fire() == (FiredAnswer.OVERLAP, None)
        rig.finish(done(claim))
        assert beats.state(waiting) is JobState.READY


def test_a_waiting_job_that_is_cancelled_makes_room_for_the_next(rig):
    beats = Beats(rig, "queue_one")
    first, waiting = beats.job(), beats.job()
    assert rig.command(CommandKind.CANCEL, waiting) == [Answer.APPLIED]
    assert rig.job(beats.job()).waits_for == first


def test_a_waiting_job_is_not_woken_by_the_clock(rig):
    beats = Beats(rig, "queue_one")
    beats.job()
    rig.take_one()
    waiting = beats.job()
    rig.advance(86_400)
    assert (rig.take(9), beats.state(waiting), rig.count().delayed) == ([], JobState.DELAYED, 1)
    assert (rig.ids(states=frozenset({JobState.DELAYED})), rig.ids(states=frozenset({JobState.READY}))) == (
        [waiting],
        [],
    )


@promises(
    "fire",
    "`cancel_running` asks the earlier one to stop (a waiting one ends at once) and waits in the same way",
)
@pytest.mark.parametrize("end", [done, cancelled], ids=lambda end: end.__name__)
def test_cancel_running_asks_the_earlier_one_to_stop_and_waits(rig, end):
    beats = Beats(rig, "cancel_running")
    beats.job()
    claim = rig.take_one()
    waiting = beats.job()
    assert beats.state(claim.id) is JobState.CANCELLING
    assert rig.beat(claim.replica, claim.ref).cancelling == [claim.ref]
    assert (beats.state(waiting), rig.job(waiting).waits_for) == (JobState.DELAYED, claim.id)
    assert rig.take(9) == []
    rig.finish(end(claim))
    assert beats.state(waiting) is JobState.READY
    assert rig.take_one().id == waiting


@promises("fire", "(a waiting one ends at once)")
@pytest.mark.parametrize("delay", [None, 3600], ids=["ready", "delayed"])
def test_cancel_running_ends_an_earlier_one_that_waits_at_once(rig, delay):
    rig.declare(new_schedule(overlap="cancel_running"))
    (first,) = rig.fire(tick_at(rig.now(), delay=delay))
    rig.advance(60)
    (second,) = rig.fire(tick_at(rig.now()))
    assert first.job_id is not None
    assert second.job_id is not None
    assert rig.state(first.job_id) is JobState.CANCELLED
    assert (rig.state(second.job_id), rig.job(second.job_id).waits_for) == (JobState.READY, None)
    assert [row.outcome for row in rig.ticks("tock") if row.job_id == first.job_id] == ["cancelled"]
    count = rig.count()
    assert (count.ready, count.delayed, count.cancelled) == (1, 0, 1)


def test_cancel_running_lets_only_the_newest_wait(rig):
    beats = Beats(rig, "cancel_running")
    beats.job()
    claim = rig.take_one()
    passed_over, newest = beats.job(), beats.job()
    assert beats.state(passed_over) is JobState.CANCELLED
    assert rig.job(newest).waits_for == claim.id
    rig.finish(cancelled(claim))
    assert [taken.id for taken in rig.take(9)] == [newest]
