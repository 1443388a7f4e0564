from datetime import timedelta

import msgspec
import pytest

from drumline.model.query import CommandKind, Keep
from drumline.model.replica import ReplicaState
from drumline.model.schedule import Decision, FiredAnswer
from tests.support.build import BY, cancelled, dead, done, line, new_job, new_schedule, note, tick_at
from tests.support.promises import promises

DAY = 86_400


@promises("purge", "Forget one slice of what has outlived its retention, and say how many; 0 means there is no more.")
def test_jobs_are_forgotten_in_slices_until_there_are_no_more(rig):
    rig.enqueue(*(new_job(retention=0) for _ in range(25)))
    rig.finish(*(done(claim) for claim in rig.take(25)))
    rig.advance(61)
    slices = [rig.store.purge(Keep(), 10).run() for _ in range(5)]
    assert (sum(slices), max(slices), slices[-1]) == (25, 10, 0)
    assert rig.jobs() == []


def test_nothing_is_forgotten_before_its_time(rig):
    for end in (done, dead, cancelled):
        rig.end(end, retention=3600)
    rig.advance(3599)
    assert (rig.purge(), len(rig.jobs())) == (0, 3)
    rig.advance(2)
    assert (rig.purge(), rig.jobs()) == (3, [])


def test_unfinished_jobs_are_never_forgotten(rig):
    rig.add(retention=0)
    rig.add("other", retention=0, delay=60)
    rig.take_one()
    rig.advance(400 * DAY)
    rig.purge(Keep(ticks=timedelta(), newest_ticks=0, audit=timedelta(), series=timedelta(), replicas=timedelta()))
    assert len(rig.jobs()) == 2


def test_a_jobs_log_goes_with_it(rig):
    claim = rig.start(retention=0)
    rig.report(note(claim, line(claim, 1)))
    rig.finish(done(claim))
    rig.advance(61)
    rig.purge()
    assert rig.logs(claim.id) == []


def test_a_forgotten_id_may_be_enqueued_again(rig):
    job = new_job(retention=0)
    rig.enqueue(job)
    rig.finish(done(rig.take_one()))
    rig.advance(61)
    rig.purge()
    assert [answer.created for answer in rig.enqueue(job)] == [True]


def test_the_audit_is_kept_as_long_as_asked_for(rig):
    rig.command(CommandKind.CANCEL, rig.add(), command_id="old")
    rig.advance(10 * DAY)
    rig.command(CommandKind.CANCEL, rig.add(), command_id="new")
    rig.purge(Keep(audit=timedelta(days=11)))
    assert [row.id for row in rig.audit()] == ["new", "old"]
    rig.purge(Keep(audit=timedelta(days=5)))
    assert [row.id for row in rig.audit()] == ["new"]


def test_the_series_is_kept_as_long_as_asked_for(rig):
    start = rig.now()
    rig.end(done)
    rig.advance(10 * DAY)
    rig.end(done)
    rig.purge(Keep(series=timedelta(days=11)))
    assert len(rig.series(start, rig.later(60))) == 2
    rig.purge(Keep(series=timedelta(days=5)))
    assert [point.minute for point in rig.series(start, rig.later(60))] == [rig.now()]


def test_replicas_are_kept_as_long_as_asked_for(rig):
    rig.beat("old:1")
    rig.beat("gone:1", state=ReplicaState.GONE)
    rig.advance(2 * DAY)
    rig.beat("new:1")
    rig.purge(Keep(replicas=timedelta(days=3)))
    assert rig.workers()["old:1"].state is ReplicaState.LOST
    rig.purge(Keep(replicas=timedelta(days=1)))
    assert set(rig.workers()) == {"new:1"}


def fire_minutes(rig, count, schedule="tock"):
    """Fire so many ticks, a minute apart, and end their jobs; their instants."""
    instants = []
    for _ in range(count):
        rig.advance(60)
        rig.fire(tick_at(rig.now(), schedule, retention=0))
        instants.append(rig.now())
    rig.finish(*(done(claim) for claim in rig.take(count)))
    return instants


def kept_instants(rig, schedule="tock"):
    return sorted(row.instant for row in rig.ticks(schedule) if row.decision is Decision.FIRED)


def test_the_ledger_is_kept_as_long_as_asked_for(rig):
    rig.declare(new_schedule())
    old = fire_minutes(rig, 3)
    rig.advance(10 * DAY)
    new = fire_minutes(rig, 2)
    rig.purge(Keep(ticks=timedelta(days=11), newest_ticks=0))
    assert kept_instants(rig) == old + new
    rig.purge(Keep(ticks=timedelta(days=5), newest_ticks=0))
    assert kept_instants(rig) == new


def test_the_newest_ticks_of_each_schedule_are_kept_however_old(rig):
    rig.declare(new_schedule("a"), new_schedule("b"))
    first, second = fire_minutes(rig, 6, "a"), fire_minutes(rig, 2, "b")
    rig.advance(400 * DAY)
    rig.purge(Keep(ticks=timedelta(days=1), newest_ticks=4))
    assert set(kept_instants(rig, "a")) >= set(first[-3:])
    assert len(rig.ticks("a")) == 4
    assert kept_instants(rig, "b") == second


@promises(
    "purge",
    "Never forgets what protects a tick from firing twice: a schedule remembers up to where its ledger was purged.",
)
@pytest.mark.parametrize("newest", [0, 3])
def test_a_purged_ledger_protects_its_ticks_as_before(rig, newest):
    rig.declare(new_schedule())
    instants = fire_minutes(rig, 10)
    rig.advance(400 * DAY)
    rig.purge(Keep(ticks=timedelta(days=1), newest_ticks=newest))
    assert len(kept_instants(rig)) <= newest
    answers = {fired.answer for fired in rig.fire(*(tick_at(instant) for instant in instants))}
    assert answers == {FiredAnswer.DUPLICATE}
    rig.store.close().run()
    assert [fired.answer for fired in rig.fire(tick_at(instants[0]))] == [FiredAnswer.DUPLICATE]
    assert [fired.answer for fired in rig.fire(tick_at(rig.now()))] == [FiredAnswer.FIRED]


@promises("purge", "Never forgets what protects a tick from firing twice")
def test_a_fleet_start_whose_row_was_purged_does_not_fire_again_in_its_epoch(rig):
    """A fleet may live longer than its ledger: each replica that joins it tries the start tick of the epoch."""
    rig.declare(new_schedule(run_on_startup=True))
    start = msgspec.structs.replace(tick_at(rig.now(), retention=0), mark="start:1")
    assert [fired.answer for fired in rig.fire(start)] == [FiredAnswer.FIRED]
    rig.finish(done(rig.take_one()))
    rig.advance(400 * DAY)
    rig.purge(Keep(ticks=timedelta(days=1), newest_ticks=0))
    again = msgspec.structs.replace(tick_at(rig.now()), mark="start:1")
    assert [fired.answer for fired in rig.fire(again)] == [FiredAnswer.DUPLICATE]


@promises("purge", "Never forgets what protects a tick from firing twice")
@pytest.mark.parametrize("order", ["purged, then withdrawn", "withdrawn, then purged"])
def test_a_purged_ledger_protects_its_ticks_when_the_schedule_is_registered_anew(rig, order):
    schedule = new_schedule(in_code=False)
    rig.declare(schedule)
    (instant,) = fire_minutes(rig, 1)
    rig.advance(400 * DAY)
    steps = [
        lambda: rig.purge(Keep(ticks=timedelta(days=1), newest_ticks=0)),
        lambda: rig.store.withdraw(["tock"], by=BY).run(),
    ]
    for step in steps if order == "purged, then withdrawn" else reversed(steps):
        step()
    rig.declare(schedule)
    assert [fired.answer for fired in rig.fire(tick_at(instant))] == [FiredAnswer.DUPLICATE]
