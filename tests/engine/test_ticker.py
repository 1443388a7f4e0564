"""When the ticker fires, who does, and what it makes of changes, orphans and errors."""

from datetime import timedelta

import msgspec
import pytest

from drumline.engine.board import WANTED_FOR
from drumline.engine.ticker import BATCH, GRACE
from drumline.errors import StoreUnreachable
from drumline.events import TickFired
from drumline.model.replica import Role
from drumline.model.schedule import Coordination, Decision, Rule
from tests.engine.ticking import TickingFleet, every, finish
from tests.support.build import BY

PER_REPLICA = Coordination.PER_REPLICA


@pytest.fixture
def fleet():
    return TickingFleet()


# When.


def test_a_tick_is_fired_at_its_instant_and_not_before(fleet):
    replica = fleet.join(every(10))
    fleet.move(9.999)
    assert replica.turn() == pytest.approx(0.001)
    assert fleet.fired() == []
    fleet.move(0.001)
    replica.turn()
    assert (fleet.fired(), fleet.lateness()) == ([10], [0])


def test_a_thousand_ticks_do_not_drift(fleet):
    fleet.join(every(0.7))
    fleet.play(700)
    assert fleet.fired() == pytest.approx([0.7 * number for number in range(1, 1001)])
    assert set(fleet.lateness()) == {0}


def test_a_tick_makes_its_job(fleet):
    fleet.join(every(10, args=b'{"n":1}', tags=("t",), meta={"m": 1}))
    fleet.play(10)
    (job,) = fleet.jobs()
    (row,) = fleet.rows(Decision.FIRED)
    assert (job.id, job.schedule, job.tick) == (row.job_id, "tock", fleet.at(10))
    assert (job.args, job.tags, job.meta) == (b'{"n":1}', ("t",), {"m": 1})


def test_every_replica_works_out_the_same_job_id(fleet):
    fleet.join(every(10))
    other = TickingFleet()
    other.join(every(10))
    for each in (fleet, other):
        each.play(20)
    assert [job.id for job in fleet.jobs()] == [job.id for job in other.jobs()]


def test_nothing_is_done_before_the_first_beat(fleet):
    replica = fleet.join(every(10))
    fleet.kill(replica)
    silent = type(replica)(fleet, "silent:1", [every(10)])
    assert finish(silent.ticker.step()) is None
    assert silent.asked() == []


def test_no_instant_after_the_end_of_a_rule_is_fired(fleet):
    rule = Rule(every=timedelta(seconds=10), end=fleet.at(30))
    fleet.join(msgspec.structs.replace(every(10), rule=rule))
    fleet.play(60)
    assert fleet.fired() == [10, 20, 30]


def test_a_clock_that_is_set_back_fires_nothing_twice_and_goes_on_when_its_time_comes(fleet):
    replica = fleet.join(every(10))
    fleet.play(30)
    fleet.clock.set(fleet.at(5))
    replica.beat()
    fleet.play(24.999)
    assert fleet.fired() == [10, 20, 30]
    fleet.play(11)
    assert fleet.fired() == [10, 20, 30, 40]


def test_a_tick_that_the_store_calls_early_is_fired_when_it_has_come(fleet):
    replica = fleet.join(every(10))
    fleet.play(8)
    # Nobody told the replica: it believes to be a second further than the store is.
    fleet.clock.set(fleet.at(7))
    fleet.move(2)
    replica.asked()
    assert replica.turn() == pytest.approx(1)
    assert (fleet.fired(), replica.asked()) == ([], ["fire", "now"])
    fleet.play(1.01)
    assert (fleet.fired(), fleet.lateness()) == ([10], [0])


def test_an_early_tick_hides_no_other_answer(fleet):
    late = msgspec.structs.replace(every(60, "a"), rule=Rule(every=timedelta(minutes=1), start=fleet.at(8.2)))
    owner, replica = fleet.join(every(8, "b")), fleet.join(late)
    fleet.kill(owner)
    fleet.move(8.5)
    fleet.clock.set(fleet.at(8.1))
    finish(replica.ticker.step())
    assert [(event.schedule, event.instant) for event in replica.heard(TickFired)] == [("b", fleet.at(8))]


# Who.


def test_who_fired_the_last_tick_fires_the_next_at_once(fleet):
    leader, standby = fleet.join(every(10)), fleet.join(every(10))
    fleet.play(10)
    for each in (leader, standby):
        each.asked()
    assert fleet.status().leader == leader.id
    fleet.play(9)
    fleet.move(1)
    standby.turn()
    assert fleet.fired() == [10]
    leader.turn()
    assert (fleet.fired(), fleet.lateness()) == ([10, 20], [0, 0])


def test_a_standby_looks_after_the_grace_and_finds_nothing_to_do(fleet):
    _, standby = fleet.join(every(60)), fleet.join(every(60))
    fleet.play(70)
    standby.asked()
    fleet.play(49.999)
    assert standby.asked() == []
    fleet.play(0.5)
    assert standby.asked() == ["schedules"]
    assert "fire" not in standby.asked()


def test_a_lost_leader_delays_no_tick_by_more_than_a_second(fleet):
    leader, second, third = (fleet.join(every(10)) for _ in range(3))
    fleet.play(15)
    fleet.kill(leader)
    fleet.play(30)
    assert fleet.fired() == [10, 20, 30, 40]
    assert fleet.lateness() == [0, GRACE.total_seconds(), 0, 0]
    assert timedelta() < GRACE < timedelta(seconds=1)
    assert fleet.status().leader in (second.id, third.id)


def test_a_replica_that_comes_second_rereads_and_goes_on(fleet):
    first, second = fleet.join(every(10)), fleet.join(every(10))
    fleet.move(10)
    first.turn()
    second.asked()
    second.turn()
    assert second.asked() == ["fire", "schedules"]
    assert second.board.statuses["tock"].leader == first.id
    assert second.heard(TickFired) == []
    fleet.play(10.01)
    assert fleet.fired() == [10, 20]


def test_everybody_shows_the_same_facts_within_a_second_of_a_tick(fleet):
    replicas = [fleet.join(every(10)) for _ in range(3)]
    fleet.play(11)
    stored = fleet.status()
    for replica in replicas:
        assert replica.board.statuses["tock"].last_fired_at == stored.last_fired_at
        assert replica.board.statuses["tock"].leader == stored.leader


def test_who_reads_the_board_sees_what_others_fired_within_a_second(fleet):
    fleet.join(every(10))
    reader = fleet.join(every(10), role=Role.WORKER)
    fleet.play(25)
    reader.board.want()
    reader.turn()
    assert reader.board.statuses["tock"] == fleet.status()
    fleet.play(4.9)
    reader.board.want()
    fleet.play(1.2)
    assert reader.board.statuses["tock"].last_tick == fleet.at(30)


def test_a_board_that_nobody_reads_any_more_costs_no_statement(fleet):
    reader = fleet.join(every(3600))
    fleet.play(15)
    reader.asked()
    reader.board.want()
    reader.turn()
    fleet.play(WANTED_FOR + 1)
    assert reader.asked()
    fleet.play(60)
    assert reader.asked() == []


def test_who_keeps_the_board_is_called_when_somebody_begins_to_read(fleet):
    board = fleet.join(every(10)).board
    called: list[int] = []
    with board.kept_by(lambda: called.append(1)):
        board.want()
        board.want()
        fleet.move(WANTED_FOR)
        board.want()
    fleet.move(WANTED_FOR)
    board.want()
    assert len(called) == 2


@pytest.mark.parametrize(("role", "fires"), [(Role.SCHEDULER, True), (Role.WORKER, False), (Role.WEB, False)])
def test_only_roles_that_fire_fire_the_fleets_ticks(fleet, role, fires):
    fleet.join(every(10), role=role)
    fleet.play(11)
    assert bool(fleet.fired()) is fires


# What changes.


def test_a_pause_stops_a_replica_that_has_not_heard_of_it(fleet):
    replica = fleet.join(every(10))
    fleet.play(10)
    replicas, fleet.replicas = fleet.replicas, []
    fleet.pause()
    fleet.replicas = replicas
    fleet.play(30)
    assert fleet.fired() == [10]
    assert replica.board.statuses["tock"].paused_at is not None


def test_a_resumed_schedule_goes_on_from_then(fleet):
    fleet.join(every(10))
    fleet.play(15)
    fleet.pause()
    fleet.play(27)
    fleet.pause(paused=False)
    fleet.play(18)
    assert fleet.fired() == [10, 50, 60]
    (row,) = fleet.rows(Decision.PAUSED)
    assert (row.instant, row.until) == (fleet.at(15), fleet.at(42))


def test_a_changed_rule_counts_from_then(fleet):
    fleet.join(every(10, in_code=False))
    fleet.play(15)
    fleet.declare(every(4, in_code=False))
    fleet.play(10)
    assert fleet.fired() == [10, 16, 20, 24]


def test_a_replica_that_has_not_heard_of_a_changed_rule_fires_none_of_the_old(fleet):
    fleet.join(every(10, in_code=False))
    fleet.play(5)
    replicas, fleet.replicas = fleet.replicas, []
    fleet.declare(every(7, in_code=False))
    fleet.replicas = replicas
    fleet.play(16)
    assert fleet.fired() == [7, 14, 21]


def test_a_schedule_that_is_registered_while_running_is_fired_and_no_more_once_withdrawn(fleet):
    fleet.join()
    fleet.play(5)
    fleet.declare(every(10, in_code=False))
    fleet.play(20)
    assert fleet.fired() == [10, 20]
    replicas, fleet.replicas = fleet.replicas, []
    fleet.withdraw("tock")
    fleet.replicas = replicas
    fleet.play(20)
    assert fleet.fired() == [10, 20]


def test_a_schedule_that_starts_paused_waits_to_be_resumed(fleet):
    fleet.join(every(10, paused=True, run_on_startup=True))
    fleet.play(15)
    assert fleet.fired() == []
    fleet.pause(paused=False)
    fleet.play(15)
    assert fleet.fired() == [20, 30]


def test_the_latest_start_wins_and_the_others_fire_its_rule(fleet):
    old = fleet.join(every(10))
    fleet.play(5)
    new = fleet.join(every(3))
    old.ticker.hear_change()
    old.turn()
    fleet.kill(new)
    fleet.play(8)
    assert fleet.fired() == [6, 9, 12]


def test_what_the_store_has_lost_is_declared_again(fleet):
    replica = fleet.join(every(10, in_code=False))
    fleet.play(5)
    fleet.withdraw("tock")
    assert fleet.status().begun_at == fleet.at(5)
    fleet.play(5)
    assert (fleet.fired(), replica.turn() is not None) == ([10], True)


# Orphans.


def test_a_schedule_that_nobody_declares_is_recorded_once_and_not_fired(fleet):
    owner = fleet.join(every(10))
    others = [fleet.join() for _ in range(2)]
    fleet.play(15)
    fleet.leave(owner)
    fleet.play(60)
    assert fleet.fired() == [10]
    (row,) = fleet.rows(Decision.ORPHANED)
    assert (row.instant, row.count) == (fleet.at(10), 0)
    assert fleet.status().orphaned_at is not None
    assert {other.board.statuses["tock"].orphaned for other in others} == {True}


def test_an_orphan_costs_no_statement(fleet):
    owner, other = fleet.join(every(10)), fleet.join()
    fleet.play(15)
    fleet.leave(owner)
    fleet.play(15)
    other.asked()
    fleet.play(100)
    assert other.asked() == []


def test_an_orphan_is_adopted_by_who_declares_it_and_counts_from_then(fleet):
    owner, _ = fleet.join(every(10)), fleet.join()
    fleet.play(15)
    fleet.leave(owner)
    fleet.play(60)
    fleet.join(every(10))
    fleet.play(30)
    assert fleet.fired() == [10, 80, 90, 100]
    assert fleet.status().orphaned_at is None


def test_a_silent_owner_that_wakes_up_adopts_its_schedule_again(fleet):
    owner, _ = fleet.join(every(10)), fleet.join()
    fleet.play(15)
    fleet.kill(owner)
    fleet.play(60)
    assert fleet.status().orphaned_at is not None
    owner.clock.advance(60)
    fleet.replicas.append(owner)
    fleet.play(60)
    assert fleet.status().orphaned_at is None
    assert [instant for instant in fleet.fired() if instant > 76] == [80, 90, 100, 110, 120, 130]


# Errors.


def test_a_store_that_is_away_costs_a_tick_only_its_time(fleet):
    replica = fleet.join(every(10))
    fleet.move(10)
    replica.wire.fail("fire", 2)
    for _ in range(2):
        with pytest.raises(StoreUnreachable):
            replica.turn()
        fleet.move(0.5)
    replica.turn()
    assert (fleet.fired(), fleet.lateness()) == ([10], [1])
    fleet.play(10)
    assert fleet.fired() == [10, 20]


def test_a_lost_reply_is_not_fired_again(fleet):
    replica = fleet.join(every(10))
    fleet.move(10)
    replica.wire.lose_reply("fire")
    with pytest.raises(StoreUnreachable):
        replica.turn()
    fleet.play(11)
    assert fleet.fired() == [10, 20]
    assert len(fleet.jobs()) == 2


@pytest.mark.parametrize("operation", ["declare", "schedules", "fire"])
def test_an_error_at_the_start_is_made_good_at_the_next_turn(fleet, operation):
    replica = fleet.join()
    fleet.leave(replica)
    late = type(replica)(fleet, "late:1", [every(10, run_on_startup=True)])
    fleet.replicas.append(late)
    late.beat()
    late.wire.fail(operation, 1)
    with pytest.raises(StoreUnreachable):
        late.turn()
    late.turn()
    fleet.play(10)
    assert fleet.rows(Decision.FIRED)[0].mark == "start:2"
    assert fleet.fired()[-1] == 10


def test_an_error_while_an_orphan_is_recorded_is_made_good(fleet):
    owner, other = fleet.join(every(10)), fleet.join()
    fleet.leave(owner)
    other.ticker.hear_change()
    other.wire.fail("fire", 1)
    with pytest.raises(StoreUnreachable):
        other.turn()
    other.turn()
    assert len(fleet.rows(Decision.ORPHANED)) == 1


def test_an_error_while_declaring_again_is_made_good(fleet):
    replica = fleet.join(every(10, in_code=False))
    fleet.memory.withdraw(["tock"], by=BY).run()
    replica.ticker.hear_change()
    replica.wire.fail("declare", 1)
    with pytest.raises(StoreUnreachable):
        replica.turn()
    replica.turn()
    assert fleet.status().schedule.name == "tock"


# Cost.


def test_a_thousand_idle_schedules_cost_no_statement_between_ticks(fleet):
    replicas = [fleet.join(*(every(3600, f"s{number}") for number in range(1000))) for _ in range(2)]
    fleet.play(3610)
    for replica in replicas:
        replica.asked()
    fleet.play(3580)
    assert [replica.asked() for replica in replicas] == [[], []]


def test_a_paused_overdue_schedule_costs_no_statement(fleet):
    replica = fleet.join(every(1))
    fleet.play(5)
    fleet.pause()
    fleet.play(5)
    replica.asked()
    assert replica.turn() is None
    fleet.play(100)
    assert replica.asked() == []


def test_ten_thousand_schedules_that_are_due_together_are_fired_in_batches(fleet):
    replica = fleet.join(*(every(60, f"s{number}") for number in range(10_000)))
    replica.asked()
    fleet.move(60)
    replica.turn()
    assert replica.asked() == ["fire"] * (10_000 // BATCH)
    assert len(fleet.rows(Decision.FIRED)) == 10_000
    assert len({job.schedule for job in fleet.jobs()}) == 10_000


def test_ten_thousand_schedules_are_each_fired_once_by_three_replicas(fleet):
    names = [f"s{number}" for number in range(10_000)]
    replicas = [fleet.join(*(every(60, name) for name in names)) for _ in range(3)]
    fleet.move(60)
    for replica in replicas:
        replica.turn()
    assert len(fleet.rows(Decision.FIRED)) == len(fleet.jobs()) == 10_000


def test_a_schedule_is_declared_only_once_a_beat_has_named_it(fleet):
    one, other = fleet.join(every(10, "tick")), fleet.join(every(10, "tick"))
    one.board.declared = {**one.board.declared, "tock": every(10)}
    one.ticker.hear_declared()
    one.ticker.hear_change()
    one.turn()
    assert fleet.rows(name="tock") == []
    one.beat()
    one.turn()
    other.ticker.hear_change()
    other.turn()
    fleet.play(30)
    assert fleet.fired("tock") == [10, 20, 30]
    assert fleet.rows(Decision.ORPHANED) == []


def test_who_meets_what_another_fires_stands_by_and_looks_before_it_goes_on(fleet):
    schedules = [every(10, f"s{number}") for number in range(4 * BATCH)]
    one, other = fleet.join(*schedules), fleet.join(*schedules)
    fleet.move(10)
    one.turn()
    other.asked()
    other.turn()
    # Its first part was fired already: no more of them, and what is left is looked at later.
    assert other.asked().count("fire") == 1
    fleet.move(GRACE.total_seconds())
    other.turn()
    assert "fire" not in other.asked()
    assert sorted(fleet.fired()) == [10] * len(schedules)


def test_who_stands_by_fires_what_another_has_left(fleet):
    schedules = [every(10, f"s{number}") for number in range(BATCH + 100)]
    one, other = fleet.join(*schedules), fleet.join(*schedules)
    fleet.move(10)
    # It dies when its first part is recorded, and the other one's first part has at least 400 of these.
    one.wire.lose_reply("fire")
    with pytest.raises(StoreUnreachable):
        one.turn()
    fleet.kill(one)
    other.asked()
    other.turn()
    assert other.asked().count("fire") == 1
    fleet.play(1)
    assert sorted(fleet.fired()) == [10] * len(schedules)
