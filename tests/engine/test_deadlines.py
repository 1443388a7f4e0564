import asyncio
from datetime import timedelta

import pytest

from drumline.engine.deadlines import LOOK_EVERY, Deadlines
from drumline.engine.execution import Reason

pytestmark = pytest.mark.asyncio


async def greet() -> None: ...


GRACE = 30.0


@pytest.fixture
def given_up():
    return []


@pytest.fixture
def deadlines(kit, given_up):
    return Deadlines(kit.executions, kit.clock, grace=timedelta(seconds=GRACE), give_up=given_up.append)


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


async def test_what_was_interrupted_is_looked_at_again_when_the_grace_is_over(kit, deadlines, given_up):
    execution = start(kit, timeout=1)
    kit.clock.advance(1)
    assert await deadlines.step() == GRACE
    kit.clock.advance(GRACE - 1)
    assert await deadlines.step() == 1
    assert given_up == []
    kit.clock.advance(1)
    assert await deadlines.step() is None
    assert given_up == [execution]


async def test_what_ended_in_time_is_not_given_up(kit, deadlines, given_up):
    execution = start(kit, timeout=1)
    kit.clock.advance(1)
    await deadlines.step()
    kit.executions.remove(execution)
    kit.clock.advance(GRACE)
    assert await deadlines.step() is None
    assert given_up == []


async def test_one_that_was_cancelled_is_not_said_to_have_run_too_long(kit, deadlines):
    execution = start(kit, timeout=1)
    execution.interrupt(Reason.CANCEL)
    kit.clock.advance(1)
    assert await deadlines.step() is None
    assert execution.reason is Reason.CANCEL
