import asyncio

import pytest

from drumline.engine.deadlines import LOOK_EVERY, Deadlines
from drumline.engine.execution import Reason

pytestmark = pytest.mark.asyncio


async def greet() -> None: ...


@pytest.fixture
def deadlines(kit):
    return Deadlines(kit.executions, kit.clock)


def start(kit, **using):
    return kit.execution(kit.claim_one(kit.task(greet), using=using))


async def test_without_a_limit_there_is_nothing_to_watch(kit, deadlines):
    start(kit)
    assert await deadlines.step() is None


async def test_what_runs_past_its_limit_is_interrupted_and_the_rest_is_not(kit, deadlines):
    short, long, free = start(kit, timeout=1), start(kit, timeout=2), start(kit)
    kit.clock.advance(0.999)
    assert await deadlines.step() == LOOK_EVERY
    assert [one.reason for one in (short, long, free)] == [None, None, None]
    kit.clock.advance(0.001)
    assert await deadlines.step() == LOOK_EVERY
    assert [one.reason for one in (short, long, free)] == [Reason.TIMEOUT, None, None]


async def test_nothing_is_interrupted_twice(kit, deadlines):
    execution = start(kit, timeout=1)
    execution.task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    kit.clock.advance(1)
    await deadlines.step()
    await deadlines.step()
    assert execution.task.cancelling() == 1
    execution.task.cancel()
    await asyncio.wait([execution.task])


async def test_once_all_were_interrupted_there_is_nothing_to_watch(kit, deadlines):
    start(kit, timeout=1)
    kit.clock.advance(1)
    assert await deadlines.step() is None


async def test_one_that_was_cancelled_is_not_said_to_have_run_too_long(kit, deadlines):
    execution = start(kit, timeout=1)
    execution.interrupt(Reason.CANCEL)
    kit.clock.advance(1)
    await deadlines.step()
    assert execution.reason is Reason.CANCEL
