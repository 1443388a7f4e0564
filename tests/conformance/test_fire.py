from datetime import timedelta

import msgspec
import pytest

from drumline.model.instant import to_millis
from drumline.model.job import JobState, Source
from drumline.model.query import Keep, PauseKind
from drumline.model.schedule import Decision, Fired, FiredAnswer, Firing
from tests.support.build import (
    OTHER_REPLICA,
    REPLICA,
    done,
    new_job,
    new_schedule,
    tick_at,
    tick_without_job,
    trigger,
)
from tests.support.promises import promises

NO_LEDGER = Keep(ticks=timedelta(), newest_ticks=0)


def fired_rows(rig, schedule="tock"):
    return [row for row in rig.ticks(schedule) if row.decision is Decision.FIRED]


@promises("fire", "Record each tick at most once, with its job")
def test_a_tick_is_recorded_with_its_job(rig):
    rig.declare(new_schedule())
    rig.advance(60)
    firing = tick_at(rig.now(), args=b"[1]", queue="low")
    assert firing.job is not None
    assert rig.fire(firing, by=REPLICA) == [Fired(FiredAnswer.FIRED, firing.job.id)]
    (row,) = fired_rows(rig)
    assert (row.schedule, row.mark, row.replica, row.instant) == ("tock", firing.mark, "", rig.now())
    assert (row.by, row.recorded_at, row.job_id) == (REPLICA, rig.now(), firing.job.id)
    assert (row.count, row.until, row.outcome, row.run_time) == (1, None, None, None)
    job = rig.job(firing.job.id)
    assert (job.state, job.args, job.queue) == (JobState.READY, b"[1]", "low")
    assert (job.source, job.schedule, job.tick) == (Source.SCHEDULED, "tock", rig.now())
    assert rig.count("low").ready == 1


@promises("fire", "at most once", "one step")
def test_a_tick_that_was_recorded_is_a_duplicate_for_everybody_else(rig):
    rig.declare(new_schedule())
    first, second = tick_at(rig.now()), tick_at(rig.now())
    rig.fire(first)
    before = rig.ticks("tock"), rig.jobs(), rig.schedule()
    assert [fired.answer for fired in rig.fire(second, by=OTHER_REPLICA)] == [FiredAnswer.DUPLICATE]
    assert (rig.ticks("tock"), rig.jobs(), rig.schedule()) == before


def test_one_tick_twice_in_a_call_is_fired_once(rig):
    rig.declare(new_schedule())
    answers = [fired.answer for fired in rig.fire(tick_at(rig.now()), tick_at(rig.now()))]
    assert answers == [FiredAnswer.FIRED, FiredAnswer.DUPLICATE]
    assert len(rig.jobs()) == 1


def test_many_ticks_of_many_schedules_are_fired_in_one_call(rig):
    rig.declare(*(new_schedule(f"s{number}") for number in range(50)))
    firings = [tick_at(rig.later(-minute), f"s{number}") for minute in range(4) for number in range(50)]
    assert {fired.answer for fired in rig.fire(*firings)} == {FiredAnswer.FIRED}
    assert {fired.answer for fired in rig.fire(*firings)} == {FiredAnswer.DUPLICATE}
    assert len(rig.jobs()) == 200


def test_ticks_of_two_replicas_are_two_ticks(rig):
    rig.declare(new_schedule())
    firings = [tick_at(rig.now(), replica=name, queue=f"@{name}") for name in (REPLICA, OTHER_REPLICA)]
    assert [fired.answer for fired in rig.fire(*firings)] == [FiredAnswer.FIRED, FiredAnswer.FIRED]
    assert {fired.answer for fired in rig.fire(*firings)} == {FiredAnswer.DUPLICATE}
    assert {row.replica for row in fired_rows(rig)} == {REPLICA, OTHER_REPLICA}


def test_a_fleet_start_is_a_tick_of_its_own(rig):
    rig.declare(new_schedule())
    start = msgspec.structs.replace(tick_at(rig.now()), mark="start:1")
    assert [fired.answer for fired in rig.fire(start, tick_at(rig.now()))] == [FiredAnswer.FIRED, FiredAnswer.FIRED]
    assert [fired.answer for fired in rig.fire(start)] == [FiredAnswer.DUPLICATE]
    later = msgspec.structs.replace(tick_at(rig.now()), mark="start:2")
    assert [fired.answer for fired in rig.fire(later)] == [FiredAnswer.FIRED]


@promises("fire", "or with the reason there is none")
def test_a_tick_without_a_job_is_recorded_with_its_reason(rig):
    rig.declare(new_schedule())
    first = rig.later(60)
    rig.advance(660)
    firing = tick_without_job(first, Decision.MISSED, until=rig.now(), count=11)
    assert rig.fire(firing) == [Fired(FiredAnswer.RECORDED, None)]
    (row,) = [row for row in rig.ticks("tock") if row.decision is Decision.MISSED]
    assert (row.reason, row.until, row.count, row.job_id) == ("as the test says", rig.now(), 11, None)
    assert (rig.jobs(), rig.schedule().last_tick) == ([], rig.now())
    assert [fired.answer for fired in rig.fire(tick_at(first))] == [FiredAnswer.DUPLICATE]


@promises("fire", "so is one of the fleet that was worked out from a version and begins at or before `last_tick`.")
@pytest.mark.parametrize("count", [1, 11])
def test_a_tick_that_was_worked_out_and_begins_before_the_last_tick_is_a_duplicate(rig, count):
    rig.declare(new_schedule())
    first = rig.later(60)
    rig.advance(660)
    rig.fire(tick_without_job(first, Decision.MISSED, until=first + timedelta(minutes=1), count=2))
    before = rig.ticks("tock"), rig.schedule()
    for begins in (first, first + timedelta(minutes=1), first - timedelta(minutes=1)):
        until = rig.now() if count > 1 else None
        late = tick_without_job(begins, Decision.MISSED, until=until, count=count)
        late = msgspec.structs.replace(late, mark=f"{to_millis(begins)}late", version=rig.schedule().version)
        assert [fired.answer for fired in rig.fire(late)] == [FiredAnswer.DUPLICATE]
    assert (rig.ticks("tock"), rig.schedule()) == before


def test_an_instant_that_shares_a_row_with_others_is_not_fired_by_who_counted_one_less(rig):
    rig.declare(new_schedule())
    first, version = rig.later(60), rig.schedule().version
    rig.advance(660)
    shared = tick_without_job(first, Decision.MISSED, until=rig.now(), count=11)
    alone = [tick_at(first + timedelta(minutes=minute)) for minute in range(11)]
    rig.fire(msgspec.structs.replace(shared, mark=f"{to_millis(first)}+", version=version))
    answers = rig.fire(*(msgspec.structs.replace(tick, version=version) for tick in alone))
    assert {fired.answer for fired in answers} == {FiredAnswer.DUPLICATE}
    assert rig.jobs() == []


def test_a_tick_of_one_replica_does_not_ask_how_far_the_others_are(rig):
    rig.declare(new_schedule())
    first, version = rig.later(60), rig.schedule().version
    rig.advance(660)
    rig.fire(tick_at(rig.now(), replica=OTHER_REPLICA))
    shared = tick_without_job(first, Decision.MISSED, until=rig.later(-60), count=10)
    many = msgspec.structs.replace(shared, mark=f"{to_millis(first)}+", replica=REPLICA, version=version)
    one = msgspec.structs.replace(tick_at(rig.now(), replica=REPLICA), version=version)
    assert [fired.answer for fired in rig.fire(many, many, one, one)] == [
        FiredAnswer.RECORDED,
        FiredAnswer.DUPLICATE,
        FiredAnswer.FIRED,
        FiredAnswer.DUPLICATE,
    ]


@promises("fire", "A schedule that is unknown or paused refuses.")
def test_an_unknown_or_paused_schedule_refuses(rig):
    rig.declare(new_schedule())
    rig.pause(PauseKind.SCHEDULE, "tock")
    rows, status = rig.ticks(), rig.schedule()
    answers = rig.fire(tick_at(rig.now()), tick_at(rig.now(), "nobody"))
    assert answers == [Fired(FiredAnswer.PAUSED), Fired(FiredAnswer.UNKNOWN)]
    assert (rig.ticks(), rig.jobs(), rig.schedule()) == (rows, [], status)
    rig.resume(PauseKind.SCHEDULE, "tock")
    assert [fired.answer for fired in rig.fire(tick_at(rig.now()))] == [FiredAnswer.FIRED]


@promises("fire", "A tick that lies ahead of the store's clock is early", "both leave nothing")
@pytest.mark.parametrize("decision", [Decision.FIRED, Decision.MISSED, Decision.BACKFILL])
def test_a_tick_that_lies_ahead_of_the_stores_clock_is_early(rig, decision):
    rig.declare(new_schedule())
    rows, status = rig.ticks(), rig.schedule()
    ahead = msgspec.structs.replace(tick_at(rig.later(0.001)), decision=decision)
    until_ahead = tick_without_job(rig.now(), Decision.MISSED, until=rig.later(0.001), count=2)
    assert [fired.answer for fired in rig.fire(ahead, until_ahead)] == [FiredAnswer.EARLY, FiredAnswer.EARLY]
    assert (rig.ticks(), rig.jobs(), rig.schedule()) == (rows, [], status)


@promises("fire", "one that was worked out from an older version of the schedule is stale: both leave nothing")
@pytest.mark.parametrize("decision", [Decision.FIRED, Decision.MISSED])
def test_a_tick_that_was_worked_out_from_an_older_version_is_stale(rig, decision):
    rig.declare(new_schedule())
    old = rig.schedule().version
    rig.declare(new_schedule(args=b"[1]"))
    rows, status = rig.ticks(), rig.schedule()
    stale = msgspec.structs.replace(tick_at(rig.now()), decision=decision, version=old)
    assert [fired.answer for fired in rig.fire(stale)] == [FiredAnswer.STALE]
    assert (rig.ticks(), rig.jobs(), rig.schedule()) == (rows, [], status)
    rig.advance(60)
    fresh = msgspec.structs.replace(tick_at(rig.now()), version=status.version)
    assert [fired.answer for fired in rig.fire(fresh)] == [FiredAnswer.FIRED]


@promises("fire", "A tick that stands in the ledger")
@pytest.mark.parametrize("decision", [Decision.MISSED, Decision.OVERLAP])
def test_a_tick_that_was_skipped_stands_in_the_ledger_too(rig, decision):
    rig.declare(new_schedule())
    rig.fire(tick_without_job(rig.now(), decision))
    assert [fired.answer for fired in rig.fire(tick_at(rig.now()))] == [FiredAnswer.DUPLICATE]


@promises("fire", "or is as old as what was purged from it, is a duplicate;")
def test_a_tick_that_was_purged_stays_a_duplicate(rig):
    rig.declare(new_schedule())
    instants = [rig.later(60 * minute) for minute in range(1, 11)]
    rig.advance(600)
    rig.fire(*(tick_at(instant, retention=0) for instant in instants))
    rig.finish(*(done(claim) for claim in rig.take(20)))
    rig.advance(90_000)
    assert rig.purge(NO_LEDGER) > 0
    assert (fired_rows(rig), rig.jobs()) == ([], [])
    answers = rig.fire(*(tick_at(instant) for instant in instants), tick_at(instants[0] - timedelta(minutes=1)))
    assert {fired.answer for fired in answers} == {FiredAnswer.DUPLICATE}
    assert rig.jobs() == []
    assert [fired.answer for fired in rig.fire(tick_at(rig.now()))] == [FiredAnswer.FIRED]


@promises("fire", "`last_tick` only moves forward, and")
def test_last_tick_only_moves_forward(rig):
    rig.declare(new_schedule())
    rig.advance(600)
    rig.fire(tick_at(rig.later(-60)))
    assert rig.schedule().last_tick == rig.later(-60)
    rig.fire(tick_at(rig.later(-300)))
    assert rig.schedule().last_tick == rig.later(-60)
    rig.fire(tick_without_job(rig.now(), Decision.MISSED))
    assert rig.schedule().last_tick == rig.now()
    rig.set_back(3600)
    rig.fire(tick_at(rig.now()))
    assert rig.schedule().last_tick == rig.later(3600)


def test_the_newest_fired_tick_names_its_time_and_who_recorded_it(rig):
    rig.declare(new_schedule())
    rig.advance(600)
    rig.fire(tick_at(rig.later(-60)), by=REPLICA)
    rig.advance(1)
    rig.fire(tick_at(rig.now()), by=OTHER_REPLICA)
    status = rig.schedule()
    assert (status.last_fired_at, status.leader) == (rig.now(), OTHER_REPLICA)
    assert status.last_mark is not None


def test_a_job_that_starts_later_than_its_tick_waits(rig):
    rig.declare(new_schedule())
    (fired,) = rig.fire(tick_at(rig.now(), delay=5))
    assert fired.job_id is not None
    assert (rig.state(fired.job_id), rig.job(fired.job_id).due_at) == (JobState.DELAYED, rig.later(5))


@promises("fire", "A trigger works while paused, obeys overlap and leaves no row.")
def test_a_trigger_works_while_paused_and_leaves_no_row(rig):
    rig.declare(new_schedule())
    rig.pause(PauseKind.SCHEDULE, "tock")
    rows, last_tick = rig.ticks("tock"), rig.schedule().last_tick
    rig.advance(10)
    firing = trigger(rig.now(), args=b"[1]")
    (fired,) = rig.fire(firing)
    assert firing.job is not None
    assert fired == Fired(FiredAnswer.FIRED, firing.job.id)
    job = rig.job(firing.job.id)
    assert (job.source, job.schedule, job.args, job.state) == (Source.MANUAL, "tock", b"[1]", JobState.READY)
    assert (rig.ticks("tock"), rig.schedule().last_tick) == (rows, last_tick)
    assert [fired.answer for fired in rig.fire(trigger(rig.now(), "nobody"))] == [FiredAnswer.UNKNOWN]


@promises("fire", "obeys overlap")
def test_a_trigger_obeys_overlap(rig):
    rig.declare(new_schedule(overlap="skip"))
    rig.fire(tick_at(rig.now()))
    rows = rig.ticks("tock")
    assert rig.fire(trigger(rig.now())) == [Fired(FiredAnswer.OVERLAP, None)]
    assert (rig.ticks("tock"), len(rig.jobs())) == (rows, 1)


def test_a_firing_that_asks_for_a_job_of_an_id_that_stands_makes_no_second_one(rig):
    rig.declare(new_schedule())
    job = new_job(schedule="tock", tick=rig.now())
    rig.enqueue(job)
    rig.fire(Firing(schedule="tock", mark="1", instant=rig.now(), job=job))
    assert rig.ids() == [job.id]


@promises("ticks", "The ledger, newest recorded first.")
def test_the_ledger_is_told_newest_recorded_first(rig):
    rig.declare(new_schedule("a"), new_schedule("b"))
    marks = []
    for number in range(130):
        rig.advance(1)
        firing = tick_at(rig.later(-number * 60), "ab"[number % 2])
        rig.fire(firing)
        marks.append(firing.mark)
    assert [row.mark for row in rig.ticks() if row.job_id] == marks[::-1]
    assert [row.mark for row in rig.ticks("b") if row.job_id] == marks[1::2][::-1]
    assert rig.ticks("nobody") == []
    page = rig.store.ticks("a", limit=7).run()
    assert (len(page.items), page.next is not None) == (7, True)
