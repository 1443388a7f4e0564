"""What was missed, what starts run, what belongs to each replica, and clocks that lie."""

from datetime import timedelta
from itertools import pairwise

import pytest

from drumline.events import TickSkipped, TicksMissed
from drumline.model.replica import Role
from drumline.model.schedule import Coordination, Decision, Misfire
from drumline.policy.firing import backfill_firing, private_queue
from tests.engine.ticking import TickingFleet, every

PER_REPLICA = Coordination.PER_REPLICA


@pytest.fixture
def fleet():
    return TickingFleet()


# Misfire, as far as the ticker has a part in it.


@pytest.mark.parametrize(("misfire", "fired"), [("skip", []), ("latest", [50]), ("all", [10, 20, 30, 40, 50])])
def test_what_a_stopped_fleet_missed_follows_the_policy(fleet, misfire, fired):
    schedule = every(10, misfire=Misfire(misfire))
    fleet.leave(fleet.join(schedule))
    fleet.play(57)
    replica = fleet.join(schedule)
    assert fleet.fired() == fired
    missed = fleet.rows(Decision.MISSED)
    assert len(missed) + len(fired) == 5
    assert all(f"misfire={misfire}" in row.reason for row in fleet.rows(Decision.MISSED, Decision.FIRED))
    assert [event.instant for event in replica.heard(TickSkipped)] == [row.instant for row in missed]
    assert [event.instant for event in replica.heard(TicksMissed)] == [row.instant for row in missed]
    fleet.play(5)
    assert fleet.fired() == [*fired, 60]


def test_a_tick_that_was_backfilled_before_its_turn_is_not_tried_for_ever(fleet):
    schedule = every(10)
    fleet.leave(fleet.join(schedule))
    fleet.play(57)
    fleet.memory.fire([backfill_firing(schedule, fleet.at(10 * n)) for n in range(1, 6)], by="ann").run()
    fleet.join(schedule)
    fleet.play(3)
    assert fleet.fired() == [10, 20, 30, 40, 50, 60]
    assert len(fleet.jobs()) == 6


# The start.


def test_a_fleet_start_is_run_once_by_three_replicas(fleet):
    schedule = every(3600, run_on_startup=True)
    replicas = [fleet.join(schedule) for _ in range(3)]
    fleet.play(60)
    assert [row.mark for row in fleet.rows(Decision.FIRED)] == ["start:1"]
    fleet.leave(replicas[0])
    fleet.join(schedule)
    fleet.play(60)
    assert len(fleet.jobs()) == 1
    for replica in list(fleet.replicas):
        fleet.leave(replica)
    for _ in range(3):
        fleet.join(schedule)
    assert [row.mark for row in fleet.rows(Decision.FIRED)] == ["start:1", "start:2"]


def test_a_start_passes_over_no_instant(fleet):
    schedule = every(10, run_on_startup=True, misfire=Misfire.ALL)
    fleet.leave(fleet.join(schedule))
    fleet.play(25)
    fleet.join(schedule)
    assert fleet.fired()[1:] == [10, 20, 25]


def test_a_replicas_own_start_is_run_once_in_its_life(fleet):
    schedule = every(3600, run_on_startup=True, coordination=PER_REPLICA)
    replicas = [fleet.join(schedule) for _ in range(3)]
    fleet.play(60)
    assert sorted(row.replica for row in fleet.rows(Decision.FIRED)) == sorted(each.id for each in replicas)
    # The others fall silent, and a new fleet begins: that is no new life of the one that woke up.
    for replica in replicas:
        fleet.kill(replica)
    fleet.play(60)
    fleet.join(schedule)
    replicas[0].clock.advance(60)
    fleet.replicas.append(replicas[0])
    fleet.play(60)
    assert len(fleet.rows(Decision.FIRED)) == 4


# Ticks of each replica.


def test_each_replica_has_ticks_of_its_own_in_its_private_queue(fleet):
    replicas = [fleet.join(every(10, coordination=PER_REPLICA)) for _ in range(3)]
    fleet.play(20)
    for replica in replicas:
        jobs = fleet.jobs(queue=private_queue(replica.id))
        assert sorted(job.tick for job in jobs) == [fleet.at(10), fleet.at(20)]
        assert replica.ticker.has_own
    assert set(fleet.lateness()) == {0}
    assert len(fleet.jobs()) == 6


def test_a_replica_catches_up_with_nothing_from_before_its_start(fleet):
    schedule = every(10, coordination=PER_REPLICA, misfire=Misfire.ALL)
    fleet.leave(fleet.join(schedule))
    fleet.play(57)
    replica = fleet.join(schedule)
    fleet.play(5)
    assert [row.instant for row in fleet.rows(Decision.FIRED, Decision.MISSED)] == [fleet.at(60)]
    assert fleet.jobs()[0].queue == private_queue(replica.id)


def test_a_replica_that_was_asleep_catches_up_with_its_own_ticks(fleet):
    schedule = every(10, coordination=PER_REPLICA, misfire=Misfire.ALL)
    sleeper, other = fleet.join(schedule), fleet.join(schedule)
    fleet.play(10)
    fleet.replicas.remove(sleeper)
    fleet.play(30)
    sleeper.clock.advance(30)
    fleet.replicas.append(sleeper)
    fleet.play(5)
    for replica in (sleeper, other):
        ticks = sorted(job.tick for job in fleet.jobs(queue=private_queue(replica.id)))
        assert ticks == [fleet.at(10), fleet.at(20), fleet.at(30), fleet.at(40)]


def test_many_ticks_that_a_replica_slept_through_share_a_row_though_others_went_on(fleet):
    schedule = every(1, coordination=PER_REPLICA)
    sleeper = fleet.join(schedule)
    other = fleet.join(schedule)
    fleet.play(1)
    fleet.replicas.remove(sleeper)
    fleet.play(1500)
    sleeper.clock.advance(1500)
    sleeper.beat()
    sleeper.turn()
    rows = [row for row in fleet.rows() if row.replica == sleeper.id]
    assert sum(row.count for row in rows) == 1501
    assert sum(row.count for row in fleet.rows() if row.replica == other.id) == 1501


@pytest.mark.parametrize(("role", "has_own"), [(Role.WORKER, True), (Role.WEB, True), (Role.SCHEDULER, False)])
def test_a_replica_that_runs_no_user_code_has_no_ticks_of_its_own(fleet, role, has_own):
    replica = fleet.join(every(10, coordination=PER_REPLICA), role=role)
    fleet.play(10)
    assert (replica.ticker.has_own, bool(fleet.jobs())) == (has_own, has_own)


def test_a_replica_without_the_task_has_no_ticks_of_its_own(fleet):
    fleet.join(every(10, coordination=PER_REPLICA))
    stranger = fleet.join(tasks=())
    fleet.play(10)
    assert fleet.jobs(queue=private_queue(stranger.id)) == []


def test_a_pause_holds_for_the_ticks_of_each_replica(fleet):
    for _ in range(2):
        fleet.join(every(10, coordination=PER_REPLICA))
    fleet.play(15)
    fleet.pause()
    fleet.play(20)
    fleet.pause(paused=False)
    fleet.play(10)
    assert fleet.fired() == [10, 10, 40, 40]


# Clocks that lie.


def test_five_replicas_whose_clocks_are_ten_minutes_apart_fire_nothing_early_or_twice(fleet):
    schedules = [every(7, "a"), every(60, "b"), every(1.5, "c", misfire=Misfire.ALL)]
    for skew in (-600, -300, 0, 300, 600):
        fleet.join(*schedules, skew=skew)
    leaders = set()
    for _ in range(10):
        fleet.play(31)
        leader = next(each for each in fleet.replicas if each.id == fleet.status("c").leader)
        leaders.add(leader.id)
        # Whoever leads is lost, and another with a clock as wrong takes its place.
        fleet.kill(leader)
        fleet.play(1)
        fleet.join(*schedules, skew=(leader.clock.now() - fleet.clock.now()).total_seconds())
    assert len(leaders) > 1
    for name, step in (("a", 7), ("b", 60), ("c", 1.5)):
        assert fleet.fired(name) == [step * number for number in range(1, int(320 // step) + 1)]
    assert min(fleet.lateness()) >= 0
    assert max(fleet.lateness()) <= 1
    assert len(fleet.jobs()) == len(fleet.rows(Decision.FIRED))


def test_a_sleeper_that_missed_many_ticks_leaves_no_hole_where_another_fired_the_first_of_them(fleet):
    sleeper, other = fleet.join(every(1)), fleet.join(every(1))
    fleet.play(1)
    assert fleet.status().leader == sleeper.id
    fleet.kill(sleeper)
    fleet.play(5)
    fleet.kill(other)
    fleet.move(1500)
    sleeper.clock.advance(1505)
    fleet.replicas.append(sleeper)
    sleeper.turn()
    rows = fleet.rows(Decision.FIRED, Decision.MISSED)
    assert sum(row.count for row in rows) == 1506
    ends = [(row.instant, row.until or row.instant) for row in rows]
    assert all(after[0] - before[1] == timedelta(seconds=1) for before, after in pairwise(ends))
