"""A worker at work fires ticks and runs their jobs, whatever its store does."""

import asyncio
from datetime import timedelta

import pytest

from drumline.events import LoopFailed
from drumline.model.schedule import Coordination, Decision
from drumline.policy.firing import private_queue
from tests.engine.ticking import every
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


async def job() -> None: ...


@pytest.fixture
def tock(kit):
    kit.task(job)
    kit.schedules["tock"] = every(10)
    return every(10)


def fired(kit):
    """The instants that were fired, in their order."""
    return sorted(row.instant for row in kit.memory.ticks().run().items if row.decision is Decision.FIRED)


def ended(kit):
    return [row.outcome for row in kit.memory.ticks().run().items if row.decision is Decision.FIRED]


async def test_a_worker_fires_and_runs_what_is_due(kit, tock):
    start = kit.clock.now()
    async with kit.working():
        await kit.pass_time(lambda: ended(kit) == ["done", "done"])
    assert fired(kit) == [start + timedelta(seconds=10), start + timedelta(seconds=20)]


async def test_what_is_declared_while_a_worker_runs_is_taken_up_at_once(kit):
    async with kit.working() as worker:
        await eventually(lambda: worker.has_begun)
        kit.task(job)
        kit.schedules["tock"] = every(1)
        worker.learn()
        # Without time passing: nothing waits for a poll or the next beat.
        await eventually(lambda: kit.memory.schedules(["tock"]).run())
        await kit.pass_time(lambda: ended(kit)[-1:] == ["done"])


async def test_a_schedule_that_is_declared_anew_while_a_worker_runs_changes(kit, tock):
    async with kit.working() as worker:
        await kit.pass_time(lambda: len(fired(kit)) >= 1)
        kit.schedules["tock"] = every(1)
        worker.learn()
        await kit.pass_time(lambda: len(fired(kit)) >= 4, by=0.01)
    *_, earlier, later = fired(kit)
    assert later - earlier == timedelta(seconds=1)


@pytest.mark.parametrize("operation", ["declare", "schedules", "fire"])
async def test_errors_of_the_store_end_nothing_and_the_tick_is_fired_afterwards(kit, tock, operation):
    start = kit.clock.now()
    kit.wire.fail(operation)
    async with kit.working():
        await kit.pass_time(lambda: len(kit.heard(LoopFailed)) >= 3)
        assert {event.loop for event in kit.heard(LoopFailed)} == {"ticker"}
        kit.wire.mend(operation)
        await kit.pass_time(lambda: len(fired(kit)) >= 2)
    first, second, *_ = fired(kit)
    assert second - first == timedelta(seconds=10)
    assert (first - start) % timedelta(seconds=10) == timedelta()


async def test_a_replica_runs_its_own_ticks_and_leaves_none_behind(kit):
    kit.task(job)
    kit.schedules["tock"] = every(10, coordination=Coordination.PER_REPLICA)
    async with kit.working() as worker:
        assert worker.served() == ("*",)
        await kit.pass_time(lambda: ended(kit) == ["done"])
        assert worker.served() == (private_queue(worker.id), "*")


async def test_draining_waits_for_the_ticks_of_the_start(kit):
    kit.task(job)
    kit.schedules["tock"] = every(3600, run_on_startup=True)
    kit.wire.fail("fire", times=3)
    run = asyncio.create_task(kit.worker(drain=True).run())
    await kit.pass_time(run.done)
    run.result()
    assert ended(kit) == ["done"]
