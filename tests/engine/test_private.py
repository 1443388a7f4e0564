from datetime import timedelta

import pytest

from drumline.engine import private
from drumline.engine.janitor import PURGE_EVERY, Janitor
from drumline.engine.private import cancel_left_behind, cancel_waiting
from drumline.model.query import JobFilter, Keep
from drumline.model.replica import ReplicaInfo, ReplicaState
from drumline.policy.firing import private_queue
from tests.engine.kit import ME, OTHER
from tests.support.build import new_job

pytestmark = pytest.mark.asyncio

# Silent for three beats of 10 s, and a little longer.
SILENCE = 31.0


def beat(kit, replica, state=ReplicaState.RUNNING):
    info = ReplicaInfo(id=replica, name=replica, state=state, beat_every=timedelta(seconds=10))
    kit.memory.beat(info, []).run()


def keep_for(kit, replica, count=1, **given):
    """Jobs that wait for that replica alone; their ids."""
    jobs = [new_job(queue=private_queue(replica), **given) for _ in range(count)]
    return [enqueued.id for enqueued in kit.memory.enqueue(jobs).run()]


def states(kit, ids):
    return {job.state.value for job in kit.memory.jobs(JobFilter(ids=tuple(ids))).run().items}


async def test_what_waits_for_a_replica_that_fell_silent_is_cancelled(kit):
    beat(kit, OTHER)
    left = keep_for(kit, OTHER) + keep_for(kit, OTHER, delay=3600)
    kit.clock.advance(SILENCE)
    await cancel_left_behind(kit.store, by=ME)
    assert states(kit, left) == {"cancelled"}


async def test_what_waits_for_a_replica_that_said_good_bye_is_cancelled(kit):
    beat(kit, OTHER)
    left = keep_for(kit, OTHER)
    beat(kit, OTHER, ReplicaState.GONE)
    await cancel_left_behind(kit.store, by=ME)
    assert states(kit, left) == {"cancelled"}


@pytest.mark.parametrize("state", [ReplicaState.RUNNING, ReplicaState.DRAINING])
async def test_what_waits_for_a_live_replica_is_left(kit, state):
    beat(kit, OTHER, state)
    own = keep_for(kit, OTHER)
    await cancel_left_behind(kit.store, by=ME)
    assert states(kit, own) == {"ready"}


async def test_jobs_of_other_queues_are_left_whoever_is_gone(kit):
    (enqueued,) = kit.memory.enqueue([new_job()]).run()
    await cancel_left_behind(kit.store, by=ME)
    assert kit.state(enqueued.id) == "ready"


async def test_a_fleet_without_private_jobs_costs_one_call(kit):
    kit.memory.enqueue([new_job()]).run()
    await cancel_left_behind(kit.store, by=ME)
    assert [name for name, _ in kit.wire.calls] == ["counts"]


async def test_more_than_a_slice_is_cancelled_too(kit, monkeypatch):
    monkeypatch.setattr(private, "SLICE", 3)
    left = keep_for(kit, OTHER, count=10)
    await cancel_waiting(kit.store, [private_queue(OTHER)], by=ME)
    assert states(kit, left) == {"cancelled"}


async def test_the_janitor_sees_to_it_by_and_by(kit):
    janitor = Janitor(
        kit.store,
        kit.executions,
        by=ME,
        steady_since=lambda: float("-inf"),
        clock=kit.clock,
        events=kit.events,
        keep=Keep(),
    )
    beat(kit, OTHER)
    await janitor.step()
    left = keep_for(kit, OTHER)
    kit.clock.advance(PURGE_EVERY)
    await janitor.step()
    assert states(kit, left) == {"cancelled"}
    (row,) = kit.memory.audit().run().items
    assert (row.by.who, row.by.why) == (ME, "its replica is gone")
