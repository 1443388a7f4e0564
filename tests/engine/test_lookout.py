from datetime import timedelta

import pytest

from drumline.engine.lookout import Lookout
from drumline.events import Alert, Events, JobDied, QueueRecovered, QueueUnserved, ScheduleLate, ScheduleRecovered
from drumline.model.replica import ReplicaInfo, ReplicaState
from tests.engine.kit import ME, OTHER
from tests.support.build import BY, new_schedule

pytestmark = pytest.mark.asyncio


async def greet() -> None: ...


@pytest.fixture
def join(kit):
    """Let a replica beat."""

    def join(replica, **facts):
        info = ReplicaInfo(id=replica, name=replica, beat_every=timedelta(days=1), **facts)
        kit.memory.beat(info, []).run()

    return join


@pytest.fixture
def lookout(kit):
    return Lookout(kit.store, replica=ME, events=kit.events)


async def look(lookout):
    await lookout.step()
    await lookout.step()


def alerts(kit):
    return [event for event in kit.told if isinstance(event, Alert)]


async def test_an_unserved_queue_is_told_once_and_its_recovery_once(kit, lookout, join):
    kit.enqueue(kit.task(greet))
    join(ME)
    kit.clock.advance(60)
    await look(lookout)
    await look(lookout)
    (alert,) = alerts(kit)
    assert isinstance(alert, QueueUnserved)
    assert (alert.queue, alert.reason) == ("default", "no live worker knows task greet")
    join(OTHER, tasks=("greet",))
    await look(lookout)
    await look(lookout)
    assert alerts(kit) == [alert, QueueRecovered(alert.id, "default")]


async def test_a_late_schedule_is_told_once_and_its_recovery_once(kit, lookout, join):
    join(ME)
    await kit.memory.declare([new_schedule(in_code=False)], by=BY)
    kit.clock.advance(120)
    await look(lookout)
    await look(lookout)
    (alert,) = alerts(kit)
    assert isinstance(alert, ScheduleLate)
    await kit.memory.withdraw(["tock"], by=BY)
    await look(lookout)
    assert alerts(kit) == [alert, ScheduleRecovered(alert.id, "tock")]


async def test_of_two_replicas_the_older_one_tells_and_then_the_younger_under_the_same_id(kit, lookout, join):
    kit.enqueue(kit.task(greet))
    join(OTHER)
    kit.clock.advance(60)
    join(ME)
    older = Lookout(kit.store, replica=OTHER, events=kit.events)
    await look(lookout)
    assert alerts(kit) == []
    await look(older)
    (first,) = alerts(kit)
    join(OTHER, state=ReplicaState.GONE)
    await look(older)
    await look(lookout)
    assert alerts(kit) == [first, first]


async def test_nobody_looks_where_nobody_listens(kit, join):
    join(ME)
    quiet = Lookout(kit.store, replica=ME, events=Events())
    await look(quiet)
    assert kit.wire.asked("workers") == []


async def test_a_dead_letter_is_told_once(kit):
    async def fail() -> None:
        raise ValueError("boom")

    name = kit.task(fail, max_attempts=2, backoff="1ms")
    job_id = kit.enqueue(name)
    async with kit.working():
        await kit.pass_time(lambda: kit.state(job_id) == "dead")
        await kit.pass_time(lambda: kit.heard(JobDied))
    (alert,) = kit.heard(JobDied)
    assert (alert.job_id, alert.task, alert.attempt, alert.error) == (job_id, name, 2, "ValueError: boom")


async def test_one_who_subscribes_while_a_worker_runs_is_told_too(kit):
    kit.events = Events()
    job_id = kit.enqueue(kit.task(greet))
    late: list[object] = []
    async with kit.working():
        kit.events.subscribe(late.append)
        await kit.pass_time(lambda: kit.state(job_id) == "done")
        second = kit.enqueue("greet")
        await kit.pass_time(lambda: any(getattr(event, "job_id", "") == second for event in late))
