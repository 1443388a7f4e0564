import pytest

from drumline.model.job import JobState
from drumline.model.query import Answer, By, CommandKind
from tests.support.build import (
    OTHER_REPLICA,
    REPLICA,
    cancelled,
    dead,
    done,
    line,
    new_job,
    new_schedule,
    note,
    numbered_id,
    retry,
    tick_at,
    unique,
)
from tests.support.promises import promises

ENDS = [done, dead, cancelled]
CANCEL, RETRY, DISCARD, RESCHEDULE = (
    CommandKind.CANCEL,
    CommandKind.RETRY,
    CommandKind.DISCARD,
    CommandKind.RESCHEDULE,
)


def by_name(fate):
    return fate.__name__


@promises("command", "Act on jobs, and write the audit row in the same step")
@pytest.mark.parametrize("kind", list(CommandKind))
def test_a_command_leaves_an_audit_row_with_who_and_why(rig, kind):
    job_id = rig.add()
    rig.advance(3)
    by = By("bob", "cli", "wrong address")
    answers = rig.command(kind, job_id, numbered_id(1), command_id="c1", by=by, part_of="bulk")
    (row,) = rig.audit()
    assert (row.id, row.at, row.by, row.part_of) == ("c1", rig.now(), by, "bulk")
    assert (row.targets, row.answers) == ((job_id, numbered_id(1)), tuple(answers))
    assert kind.value in row.action
    assert answers[1] is Answer.NOT_FOUND


@promises("command", "a repeat with the command's id answers the same again")
@pytest.mark.parametrize("kind", list(CommandKind))
def test_a_repeated_command_answers_the_same_and_does_nothing(rig, kind):
    ids = [rig.end(dead), rig.start().id, rig.add(), numbered_id(1)]
    first = rig.command(kind, *ids, command_id="c1", start=rig.later(60))
    assert set(first) > {Answer.NOT_FOUND}
    rig.advance(1)
    before = rig.jobs(), rig.counts(), rig.audit()
    assert rig.command(kind, *ids, command_id="c1", start=rig.later(60)) == first
    assert (rig.jobs(), rig.counts(), rig.audit()) == before


@promises("command", "Cancel: a waiting job ends at once")
@pytest.mark.parametrize("delay", [None, 60], ids=["ready", "delayed"])
def test_a_waiting_job_that_is_cancelled_ends_at_once(rig, delay):
    job_id = rig.add(delay=delay, key="k")
    rig.advance(1)
    assert rig.command(CANCEL, job_id) == [Answer.APPLIED]
    job = rig.job(job_id)
    assert (job.state, job.finished_at, job.expires_at) == (JobState.CANCELLED, rig.now(), rig.later(86_400))
    rig.advance(60)
    assert rig.take() == []
    count = rig.count()
    assert (count.cancelled, count.ready, count.delayed) == (1, 0, 0)
    assert rig.enqueue(new_job(key="k"))[0].created


def test_a_job_that_waits_for_a_retry_can_be_cancelled(rig):
    claim = rig.start()
    rig.finish(retry(claim, delay=60))
    assert rig.command(CANCEL, claim.id) == [Answer.APPLIED]
    assert len(rig.job(claim.id).attempts) == 1


@promises("command", "a running one is asked to stop")
def test_a_running_job_that_is_cancelled_is_asked_to_stop(rig):
    claim = rig.start()
    assert rig.command(CANCEL, claim.id) == [Answer.REQUESTED]
    job = rig.job(claim.id)
    assert (job.state, job.fence, job.replica) == (JobState.CANCELLING, claim.fence, REPLICA)
    assert rig.count().running == 1
    assert rig.beat(REPLICA, claim.ref).cancelling == [claim.ref]
    assert rig.command(CANCEL, claim.id) == [Answer.REQUESTED]
    rig.finish(cancelled(claim))
    assert rig.state(claim.id) is JobState.CANCELLED


@pytest.mark.parametrize("end", ENDS, ids=by_name)
def test_an_ended_job_cannot_be_cancelled(rig, end):
    job_id = rig.end(end)
    before = rig.job(job_id)
    assert rig.command(CANCEL, job_id) == [Answer.REFUSED]
    assert rig.job(job_id) == before


def test_cancelling_the_waiting_job_of_a_tick_closes_its_row(rig):
    rig.declare(new_schedule())
    (fired,) = rig.fire(tick_at(rig.now()))
    assert fired.job_id is not None
    rig.command(CANCEL, fired.job_id)
    assert [row.outcome for row in rig.ticks("tock") if row.job_id] == ["cancelled"]


@promises(
    "command",
    "Retry: an ended job becomes ready again under its own id, history kept, attempts from 1, the fence going on",
)
@pytest.mark.parametrize("end", ENDS, ids=by_name)
def test_an_ended_job_that_is_retried_becomes_ready_again(rig, end):
    claim = rig.start(args=b"[1]", tags=("t",), meta={"m": 1}, max_attempts=1)
    rig.finish(end(claim))
    ended = rig.job(claim.id)
    rig.advance(100)
    assert rig.command(RETRY, claim.id) == [Answer.APPLIED]
    job = rig.job(claim.id)
    assert (job.state, job.due_at, job.attempt) == (JobState.READY, rig.now(), 0)
    assert (job.finished_at, job.expires_at) == (None, None)
    assert (job.args, job.tags, job.meta, job.options) == (b"[1]", ("t",), {"m": 1}, ended.options)
    assert (job.attempts, job.fence, job.created_at) == (ended.attempts, claim.fence, ended.created_at)
    count = rig.count()
    assert (count.ready, count.done, count.dead, count.cancelled) == (1, 0, 0, 0)
    again = rig.take_one()
    assert (again.id, again.attempt, again.fence > claim.fence) == (claim.id, 1, True)
    assert again.cancelling is False
    rig.finish(done(again))
    assert len(rig.job(claim.id).attempts) == 2


def test_a_job_that_was_cancelled_while_running_starts_anew_when_retried(rig):
    claim = rig.start()
    rig.command(CANCEL, claim.id)
    rig.finish(cancelled(claim))
    rig.command(RETRY, claim.id)
    again = rig.take_one()
    assert (again.cancelling, rig.state(claim.id)) == (False, JobState.RUNNING)
    assert rig.beat(REPLICA, again.ref).cancelling == []


def test_a_retried_job_outlives_its_former_retention(rig):
    job_id = rig.end(done, retention=0)
    rig.command(RETRY, job_id)
    rig.advance(3600)
    rig.purge()
    assert rig.take_one().id == job_id


def test_an_unfinished_job_cannot_be_retried(rig):
    waiting, running = rig.add(delay=60), rig.start().id
    assert rig.command(RETRY, waiting, running) == [Answer.REFUSED, Answer.REFUSED]


@promises("command", "refused while another job holds its key")
@pytest.mark.parametrize("window", ["unfinished", "pending", 3600])
def test_a_job_whose_key_another_holds_is_not_retried(rig, window):
    ended, free = rig.end(dead, key=unique("k", "pending")), rig.end(dead)
    holder = rig.add(key=unique("k", window))
    before = rig.job(ended)
    assert rig.command(RETRY, ended, free) == [Answer.KEY_TAKEN, Answer.APPLIED]
    assert rig.job(ended) == before
    rig.command(CANCEL, holder)
    rig.advance(3601)
    assert rig.command(RETRY, ended) == [Answer.APPLIED]


def test_a_retried_job_holds_its_key_again(rig):
    job_id = rig.end(dead, key="k")
    rig.command(RETRY, job_id)
    assert [answer.id for answer in rig.enqueue(new_job(key="k"))] == [job_id]


def test_a_window_of_time_counts_from_enqueue_also_for_a_retried_job(rig):
    job_id = rig.end(dead, key=unique("k", 3600))
    rig.advance(1800)
    rig.command(RETRY, job_id)
    assert [answer.id for answer in rig.enqueue(new_job(key="k"))] == [job_id]
    rig.advance(1801)
    assert rig.enqueue(new_job(key="k"))[0].created


def test_of_two_ended_jobs_with_one_key_one_is_retried(rig):
    first, second = rig.end(dead, key="k"), rig.end(dead, key="k")
    assert rig.command(RETRY, first, second) == [Answer.APPLIED, Answer.KEY_TAKEN]


@promises("command", "Discard: an ended job is forgotten.")
@pytest.mark.parametrize("end", ENDS, ids=by_name)
def test_an_ended_job_that_is_discarded_is_forgotten(rig, end):
    claim = rig.start()
    rig.report(note(claim, line(claim, 1)))
    rig.finish(end(claim))
    totals = rig.count().total_done, rig.count().total_failures
    assert rig.command(DISCARD, claim.id) == [Answer.APPLIED]
    assert (rig.find(claim.id), rig.jobs(), rig.logs(claim.id)) == (None, [], [])
    count = rig.count()
    assert (count.done, count.dead, count.cancelled) == (0, 0, 0)
    assert (count.total_done, count.total_failures) == totals
    assert rig.command(DISCARD, claim.id) == [Answer.NOT_FOUND]


def test_an_unfinished_job_cannot_be_discarded(rig):
    waiting, running = rig.add(delay=60), rig.start().id
    assert rig.command(DISCARD, waiting, running) == [Answer.REFUSED, Answer.REFUSED]
    assert len(rig.jobs()) == 2


@promises("command", "Reschedule: a waiting job is moved to another due time.")
def test_a_waiting_job_is_moved_to_another_due_time(rig):
    ready, delayed = rig.add(), rig.add(delay=600)
    assert rig.command(RESCHEDULE, ready, delayed, start=rig.later(60)) == [Answer.APPLIED, Answer.APPLIED]
    assert {job.due_at for job in rig.jobs()} == {rig.later(60)}
    assert (rig.count().delayed, rig.count().ready, rig.take()) == (2, 0, [])
    rig.advance(60)
    assert (rig.count().delayed, rig.count().ready) == (0, 2)
    assert len(rig.take(9)) == 2


def test_a_delayed_job_can_be_brought_forward(rig):
    past, now = rig.add(delay=600), rig.add(delay=600)
    rig.command(RESCHEDULE, past, start=rig.later(-60))
    rig.command(RESCHEDULE, now)
    assert (rig.state(past), rig.state(now)) == (JobState.READY, JobState.READY)
    assert {claim.id for claim in rig.take(9)} == {past, now}


def test_a_running_or_ended_job_is_not_moved(rig):
    running, ended = rig.start().id, rig.end(done)
    before = rig.jobs()
    assert rig.command(RESCHEDULE, running, ended, start=rig.later(60)) == [Answer.REFUSED, Answer.REFUSED]
    assert rig.jobs() == before


def test_a_command_on_many_jobs_answers_in_their_order(rig):
    waiting, running, ended = rig.add(delay=60), rig.start().id, rig.end(done)
    answers = rig.command(CANCEL, ended, running, numbered_id(1), waiting)
    assert answers == [Answer.REFUSED, Answer.REQUESTED, Answer.NOT_FOUND, Answer.APPLIED]


def test_another_replica_is_not_told_of_a_request_to_stop(rig):
    claim = rig.start()
    rig.command(CANCEL, claim.id)
    assert rig.beat(OTHER_REPLICA).cancelling == []
