import pytest

from drumline.model.claim import ClaimRef
from drumline.model.query import CommandKind, PauseKind
from drumline.model.replica import ReplicaState, Role
from tests.support.build import (
    BY,
    OTHER_REPLICA,
    REPLICA,
    done,
    new_job,
    new_schedule,
    numbered_id,
    release,
    replica_info,
    tick_at,
)
from tests.support.promises import promises


@promises("beat", "Register the replica")
def test_a_beat_registers_all_that_the_replica_says_of_itself(rig):
    info = replica_info(
        role=Role.WORKER,
        queues=("a", "b"),
        tasks=("job",),
        schedules=("tock",),
        slots=7,
        host="h",
        pid=42,
        version="1.2.3",
    )
    beat = rig.store.beat(info, []).run()
    assert beat.now == rig.now()
    replica = rig.workers()[REPLICA]
    assert (replica.info, replica.shown, replica.state) == (info, "r1", ReplicaState.RUNNING)
    assert (replica.started_at, replica.seen_at) == (rig.now(), rig.now())
    rig.advance(7)
    rig.beat(state=ReplicaState.DRAINING)
    replica = rig.workers()[REPLICA]
    assert (replica.state, replica.started_at, replica.seen_at) == (ReplicaState.DRAINING, rig.later(-7), rig.now())


@promises("beat", "and prolong each claim it still holds to now + the job's lease")
def test_a_beat_prolongs_each_claim_by_the_jobs_own_lease(rig):
    rig.add(lease=5)
    rig.add(lease=60)
    claims = rig.take(2)
    rig.advance(4)
    rig.beat(REPLICA, *(claim.ref for claim in claims))
    for claim in claims:
        assert rig.job(claim.id).lease_until == rig.now() + claim.options.lease


def test_a_beat_leaves_claims_alone_that_it_does_not_name(rig):
    claim = rig.start(lease=5)
    rig.advance(4)
    rig.beat()
    assert rig.job(claim.id).lease_until == claim.lease_until


def test_a_job_of_many_leases_is_held_by_its_beats(rig):
    claim = rig.start(lease=30)
    for _ in range(15):
        rig.advance(10)
        assert rig.beat(REPLICA, claim.ref).lost == []
        assert (rig.expired(), rig.take(replica=OTHER_REPLICA)) == ([], [])
    assert rig.finish(done(claim, ran=150)) == [True]


@promises("beat", "Answers which are lost")
def test_a_beat_tells_which_claims_are_lost(rig):
    rig.enqueue(*(new_job() for _ in range(4)))
    held, ended, released, taken = rig.take(4)
    rig.finish(done(ended, by="rescuer"), release(released, delay=60, by="rescuer"), release(taken, by="rescuer"))
    other = rig.take_one(replica=OTHER_REPLICA)
    assert other.id == taken.id
    before = rig.job(taken.id)
    stranger = ClaimRef(numbered_id(1), 1)
    rig.advance(1)
    beat = rig.beat(REPLICA, held.ref, ended.ref, released.ref, taken.ref, stranger)
    assert set(beat.lost) == {ended.ref, released.ref, taken.ref, stranger}
    assert rig.job(taken.id) == before


@promises("beat", "which shall be cancelled")
def test_a_beat_tells_which_claims_shall_be_cancelled(rig):
    rig.enqueue(new_job(), new_job())
    first, second = rig.take(2)
    assert rig.beat(REPLICA, first.ref, second.ref).cancelling == []
    rig.command(CommandKind.CANCEL, first.id)
    beat = rig.beat(REPLICA, first.ref, second.ref)
    assert (beat.cancelling, beat.lost) == ([first.ref], [])
    rig.advance(5)
    assert rig.beat(REPLICA, first.ref).cancelling == [first.ref]
    assert rig.job(first.id).lease_until == rig.now() + first.options.lease


@promises("beat", "which running jobs of this replica it did not name")
def test_a_beat_tells_which_running_jobs_the_replica_did_not_name(rig):
    rig.enqueue(new_job(), new_job(args=b"[7]"), new_job())
    named, unknown = rig.take(2)
    rig.take_one(replica=OTHER_REPLICA)
    beat = rig.beat(REPLICA, named.ref)
    assert beat.unknown == [unknown]
    assert rig.beat(REPLICA, named.ref, unknown.ref).unknown == []
    assert [rig.finish(release(claim)) for claim in beat.unknown] == [[True]]
    assert rig.beat(REPLICA, named.ref).unknown == []


def test_a_job_that_is_named_under_an_old_fence_is_both_lost_and_unknown(rig):
    old = rig.start()
    rig.finish(release(old, by="rescuer"))
    new = rig.take_one()
    beat = rig.beat(REPLICA, old.ref)
    assert (beat.lost, [claim.ref for claim in beat.unknown]) == ([old.ref], [new.ref])


@promises("beat", "the fleet's epoch")
def test_a_beat_tells_the_fleets_epoch_to_every_role(rig):
    epoch = rig.beat("s:1", role=Role.SCHEDULER).epoch
    for role in Role:
        assert rig.beat(f"{role}:1", role=role).epoch == epoch


@promises("beat", "when the earliest lease ends")
def test_a_beat_tells_when_the_earliest_lease_of_the_fleet_ends(rig):
    assert rig.beat().next_lease_end is None
    rig.add(lease=50)
    mine = rig.take_one()
    rig.add(lease=20)
    other = rig.take_one(replica=OTHER_REPLICA)
    assert rig.beat(REPLICA, mine.ref).next_lease_end == rig.later(20)
    rig.advance(10)
    assert rig.beat(OTHER_REPLICA, other.ref).next_lease_end == rig.later(20)
    rig.finish(done(other))
    assert rig.beat(REPLICA, mine.ref).next_lease_end == rig.later(50)
    rig.finish(done(mine))
    assert rig.beat().next_lease_end is None


@promises("beat", "and the version of schedules and pauses")
def test_the_version_grows_with_every_change_of_schedules_and_pauses(rig):
    changes = [
        lambda: rig.declare(new_schedule()),
        lambda: rig.declare(new_schedule(args=b"[1]")),
        lambda: rig.declare(new_schedule("live", in_code=False)),
        lambda: rig.store.withdraw(["live"], by=BY).run(),
        lambda: rig.pause(PauseKind.SCHEDULE, "tock"),
        lambda: rig.resume(PauseKind.SCHEDULE, "tock"),
        lambda: rig.pause(PauseKind.QUEUE, "mail"),
        lambda: rig.resume(PauseKind.QUEUE, "mail"),
    ]
    version = rig.beat().version
    for change in changes:
        change()
        assert rig.beat().version > version
        version = rig.beat().version


def test_the_version_stands_still_while_nothing_changes(rig):
    rig.declare(new_schedule())
    rig.pause(PauseKind.QUEUE, "mail")
    rig.beat()
    version = rig.beat().version
    rig.declare(new_schedule())
    rig.pause(PauseKind.QUEUE, "mail")
    rig.fire(tick_at(rig.now()))
    rig.finish(done(rig.take_one()))
    assert rig.beat().version == version


@promises("beat", "An expired claim that nobody took is prolonged too.")
def test_an_expired_claim_that_nobody_took_is_prolonged_too(rig):
    claim = rig.start(lease=5)
    rig.advance(600)
    assert [found.id for found in rig.expired()] == [claim.id]
    beat = rig.beat(REPLICA, claim.ref)
    assert (beat.lost, rig.expired()) == ([], [])
    assert rig.job(claim.id).lease_until == rig.later(5)


@promises("beat", "The epoch grows when a role that fires registers while no other such replica is alive")
@pytest.mark.parametrize("role", [Role.COMBINED, Role.SCHEDULER])
def test_the_epoch_grows_with_the_first_replica_that_fires(rig, role):
    before = rig.beat("w:1", role=Role.WORKER).epoch
    first = rig.beat("a:1", role=role).epoch
    assert first > before
    assert rig.beat("b:1", role=Role.COMBINED).epoch == first
    assert rig.beat("c:1", role=Role.SCHEDULER).epoch == first
    rig.advance(10)
    assert rig.beat("a:1", role=role).epoch == first


@pytest.mark.parametrize("role", [Role.WORKER, Role.WEB])
def test_a_role_that_does_not_fire_neither_grows_the_epoch_nor_keeps_it(rig, role):
    before = rig.beat("a:1", role=role).epoch
    assert rig.beat("b:1", role=role).epoch == before
    assert rig.beat("c:1", role=Role.SCHEDULER).epoch == before + 1


@promises("beat", "one that is gone, or silent for three of its beats, is not alive")
def test_the_epoch_grows_when_the_last_replica_that_fires_was_gone(rig):
    first = rig.beat("a:1").epoch
    rig.beat("a:1", state=ReplicaState.GONE)
    assert rig.beat("a:2").epoch == first + 1


@promises("beat", "or silent for three of its beats, is not alive")
def test_the_epoch_grows_when_the_last_replica_that_fires_fell_silent(rig):
    first = rig.beat("a:1").epoch
    rig.advance(29)
    assert rig.beat("b:1").epoch == first
    rig.advance(31)
    assert rig.beat("c:1").epoch == first + 1


def test_a_rolling_deploy_is_no_fleet_start(rig):
    epoch = rig.beat("a:1").epoch
    for life in range(2, 6):
        rig.advance(10)
        assert rig.beat(f"a:{life}").epoch == epoch
        rig.beat(f"a:{life - 1}", state=ReplicaState.GONE)
        rig.advance(10)
        assert rig.beat(f"a:{life}").epoch == epoch


@promises("beat", "With state `gone` the replica leaves.")
def test_a_replica_that_says_it_is_gone_is_shown_as_running_no_more(rig):
    rig.beat()
    rig.beat(state=ReplicaState.GONE)
    assert {replica.state for replica in rig.workers().values()} <= {ReplicaState.GONE}
    rig.advance(3600)
    assert {replica.state for replica in rig.workers().values()} <= {ReplicaState.GONE}
