from tests.support.build import OTHER_REPLICA, REPLICA, dead, done, line, note, release
from tests.support.promises import promises


@promises("expired", "Claims whose lease has passed, the longest past first.")
def test_claims_whose_lease_has_passed_come_the_longest_past_first(rig):
    for lease in (30, 10, 20, 500):
        rig.add(lease=lease)
    claims = {claim.options.lease.total_seconds(): claim for claim in rig.take(4)}
    assert rig.expired() == []
    rig.advance(9)
    assert rig.expired() == []
    rig.advance(91)
    assert rig.expired() == [claims[10], claims[20], claims[30]]
    assert rig.expired(limit=2) == [claims[10], claims[20]]


def test_claims_that_have_ended_do_not_expire(rig):
    rig.finish(done(rig.start(lease=5)))
    rig.finish(release(rig.start(lease=5), delay=3600))
    rig.advance(600)
    assert rig.expired() == []


@promises("expired", "Changes nothing: the rescuer is another finisher.")
def test_looking_for_expired_claims_changes_nothing(rig):
    claim = rig.start(lease=5)
    rig.advance(600)
    before = rig.job(claim.id), rig.counts()
    assert rig.expired() == rig.expired()
    assert (rig.job(claim.id), rig.counts()) == before


def test_a_rescued_claim_is_refused_on_every_write_of_its_late_worker(rig):
    late = rig.start(lease=5)
    rig.advance(600)
    (claim,) = rig.expired()
    assert rig.finish(release(claim, by="rescuer")) == [True]
    rig.take_one(replica=OTHER_REPLICA)
    before = rig.job(late.id)
    assert rig.finish(done(late)) == [False]
    assert rig.report(note(late, line(late, 1), progress=0.5)) == [False]
    assert rig.beat(REPLICA, late.ref).lost == [late.ref]
    assert rig.job(late.id) == before
    assert rig.logs(late.id) == []


def test_a_late_worker_that_finished_first_keeps_the_rescuer_out(rig):
    late = rig.start(lease=5)
    rig.advance(600)
    (claim,) = rig.expired()
    assert rig.finish(done(late)) == [True]
    assert rig.finish(dead(claim, by="rescuer", ended="lost")) == [False]
    assert rig.count().done == 1
