from datetime import timedelta

import pytest

from drumline.model.claim import Share
from drumline.model.query import CommandKind, Counts
from tests.support.build import cancelled, dead, done, new_job, release, retry
from tests.support.promises import promises


def tell(rig, queue="default", task="job"):
    count = rig.count(queue, task)
    told = {
        "ready": count.ready,
        "delayed": count.delayed,
        "running": count.running,
        "done": count.done,
        "dead": count.dead,
        "cancelled": count.cancelled,
    }
    return {state: number for state, number in told.items() if number}


@promises("counts", "Jobs by queue, task and state, and totals")
def test_jobs_are_counted_by_queue_task_and_state(rig):
    rig.add("x", queue="a")
    rig.add("x", queue="a")
    rig.add("y", queue="a", delay=60)
    rig.add("x", queue="b")
    rig.end(done, "z", queue="b")
    assert tell(rig, "a", "x") == {"ready": 2}
    assert tell(rig, "a", "y") == {"delayed": 1}
    assert tell(rig, "b", "x") == {"ready": 1}
    assert (tell(rig, "b", "z"), rig.count("b", "z").total_done) == ({"done": 1}, 1)
    counts = Counts(rig.store.counts().run())
    assert (counts.ready, counts.delayed, counts.done, counts.unfinished) == (3, 1, 1, 4)


def test_counts_follow_a_job_through_every_state(rig):
    rig.add(delay=60)
    assert tell(rig) == {"delayed": 1}
    rig.advance(60)
    assert tell(rig) == {"ready": 1}
    claim = rig.take_one()
    assert tell(rig) == {"running": 1}
    rig.finish(retry(claim, delay=5))
    assert tell(rig) == {"delayed": 1}
    rig.advance(5)
    assert tell(rig) == {"ready": 1}
    rig.finish(release(rig.take_one()))
    assert tell(rig) == {"ready": 1}
    rig.finish(release(rig.take_one(), delay=5))
    assert tell(rig) == {"delayed": 1}
    rig.command(CommandKind.RESCHEDULE, claim.id)
    assert tell(rig) == {"ready": 1}
    rig.command(CommandKind.RESCHEDULE, claim.id, start=rig.later(60))
    assert tell(rig) == {"delayed": 1}
    rig.command(CommandKind.CANCEL, claim.id)
    assert tell(rig) == {"cancelled": 1}
    rig.command(CommandKind.RETRY, claim.id)
    assert tell(rig) == {"ready": 1}
    claim = rig.take_one()
    rig.command(CommandKind.CANCEL, claim.id)
    assert tell(rig) == {"running": 1}
    rig.finish(cancelled(claim))
    assert tell(rig) == {"cancelled": 1}
    rig.command(CommandKind.DISCARD, claim.id)
    assert tell(rig) == {}


@pytest.mark.parametrize(("end", "state"), [(done, "done"), (dead, "dead"), (cancelled, "cancelled")])
def test_counts_follow_a_job_from_its_end_to_its_purge(rig, end, state):
    job_id = rig.end(end, retention=0)
    assert tell(rig) == {state: 1}
    rig.command(CommandKind.RETRY, job_id)
    assert tell(rig) == {"ready": 1}
    rig.finish(end(rig.take_one()))
    assert tell(rig) == {state: 1}
    rig.advance(61)
    assert tell(rig) == {state: 1}
    rig.purge()
    assert tell(rig) == {}


def test_totals_outlive_the_jobs(rig):
    rig.end(done, retention=0)
    rig.end(dead, retention=0)
    rig.advance(61)
    rig.purge()
    count = rig.count()
    assert (count.done, count.dead, count.total_done, count.total_failures) == (0, 0, 1, 1)


def test_a_job_that_was_promoted_by_somebody_elses_claim_is_counted_once(rig):
    rig.add(delay=5)
    rig.advance(5)
    rig.take(9, tasks=["other"])
    assert tell(rig) == {"ready": 1}


def test_the_clock_going_back_leaves_counts_that_agree_with_the_jobs(rig):
    rig.add(delay=60)
    rig.advance(60)
    assert tell(rig) == {"ready": 1}
    rig.set_back(30)
    (job,) = rig.jobs()
    assert tell(rig) == {job.state.value: 1}


@promises("counts", "And since when the oldest ready job of each queue and task is due")
def test_counts_tell_since_when_the_oldest_ready_job_waits(rig):
    begin = rig.later(0)
    rig.add(delay=60, priority=5)
    assert rig.count().oldest_ready is None
    rig.add(delay=1, priority=-3)
    rig.advance(30)
    rig.add(priority=9)
    assert rig.count().oldest_ready == begin + timedelta(seconds=1)
    rig.advance(60)
    for _ in range(3):
        rig.take_one()
    assert rig.count().oldest_ready is None


@promises("counts", "without looking at the backlog")
def test_counts_are_exact_with_a_large_backlog(rig):
    """That a store does not read the backlog for it is shown by the plans of its own statements."""
    for _ in range(2):
        rig.enqueue(*(new_job() for _ in range(10_000)))
    rig.enqueue(*(new_job(delay=60 + number % 50) for number in range(5_000)))
    assert tell(rig) == {"ready": 20_000, "delayed": 5_000}
    rig.advance(60 + 9)
    assert tell(rig) == {"ready": 21_000, "delayed": 4_000}


def end_in(rig, queue, ended=done, *, retention=0):
    """Let a job of a queue end that only who asks for it by name may claim from."""
    rig.add("own", queue=queue, retention=retention)
    rig.finish(*(ended(claim) for claim in rig.take(1, queues=[Share(queue, 1)], tasks=["own"])))


@promises("purge", "What private queues of which nothing is left have come to is kept together, in the queue `@`.")
def test_totals_of_private_queues_that_hold_nothing_are_kept_together(rig):
    for life in range(3):
        end_in(rig, f"@w:{life}")
    end_in(rig, "@w:3", dead)
    end_in(rig, "@w:4", retention=3600)
    end_in(rig, "open")
    rig.advance(61)
    rig.purge()
    rows = {count.queue: count for count in rig.store.counts().run()}
    assert set(rows) == {"@", "@w:4", "open"}
    together = rows["@"]
    assert (together.total_done, together.total_failures, together.ready) == (3, 1, 0)
    assert together.last_error is not None
    # They go on to add up.
    end_in(rig, "@w:5")
    rig.advance(3600)
    rig.purge()
    assert {count.queue: count.total_done for count in rig.store.counts().run()} == {"@": 5, "open": 1}
