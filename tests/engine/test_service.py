import asyncio
import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drumline.clock import ManualClock
from drumline.engine.service import Loop
from drumline.events import Events, LoopFailed
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


class Turns:
    """A step that counts its turns and does as the test says in each."""

    def __init__(self, *answers: float | Exception | None) -> None:
        self.taken = 0
        self._answers = list(answers)
        self.during: Callable[[], None] = lambda: None

    async def __call__(self) -> float | None:
        self.taken += 1
        self.during()
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def running(step, *, clock=None, events=None):
    loop = Loop("test", step, clock=clock or ManualClock(), events=events or Events())
    task = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        loop.stop()
        await asyncio.wait_for(task, 10)


async def is_at_rest(turns: Turns) -> bool:
    """Whether no further turn is taken of itself."""
    before = turns.taken
    for _ in range(20):
        await asyncio.sleep(0)
    return turns.taken == before


async def test_a_wait_for_the_last_bit_of_a_float_lets_others_take_their_turn():
    clock, turns = ManualClock(), Turns(1e-17)
    async with running(turns, clock=clock):
        await eventually(lambda: turns.taken == 1)
        assert await is_at_rest(turns)
        clock.advance(0.001)
        await eventually(lambda: turns.taken == 2)


async def test_a_step_is_taken_at_once_and_again_after_the_time_it_says():
    clock, turns = ManualClock(), Turns(5.0)
    async with running(turns, clock=clock):
        await eventually(lambda: turns.taken == 1)
        assert await is_at_rest(turns)
        clock.advance(4.9)
        assert await is_at_rest(turns)
        clock.advance(0.1)
        await eventually(lambda: turns.taken == 2)


async def test_a_step_that_says_nothing_sleeps_until_woken():
    clock, turns = ManualClock(), Turns()
    async with running(turns, clock=clock) as loop:
        await eventually(lambda: turns.taken == 1)
        clock.advance(1e6)
        assert await is_at_rest(turns)
        loop.wake()
        await eventually(lambda: turns.taken == 2)


async def test_a_wake_up_during_a_step_leads_to_another_turn():
    turns = Turns()
    async with running(turns) as loop:
        turns.during = lambda: loop.wake() if turns.taken == 1 else None
        await eventually(lambda: turns.taken == 2)
        assert await is_at_rest(turns)


async def test_an_error_never_ends_the_loop(caplog):
    clock, turns = ManualClock(), Turns(*(ValueError("no") for _ in range(20)))
    async with running(turns, clock=clock) as loop:
        for number in range(1, 21):
            await eventually(lambda: turns.taken == number)  # noqa: B023 - awaited within the turn
            clock.advance(10)
        await eventually(lambda: turns.taken == 21)
        assert loop.failures == 20


async def test_after_errors_the_waits_grow_up_to_a_cap_and_start_anew_after_a_success(caplog):
    clock, events = ManualClock(), Events()
    told: list[Any] = []
    events.subscribe(told.append)
    turns = Turns(*(ValueError("no") for _ in range(8)), 0.0, ValueError("again"))
    async with running(turns, clock=clock, events=events):
        for number in range(1, 9):
            await eventually(lambda: len(told) == number)  # noqa: B023 - awaited within the turn
            clock.advance(told[-1].again_in - 0.001)
            assert await is_at_rest(turns)
            clock.advance(0.002)
        await eventually(lambda: len(told) == 9)
    waits = [event.again_in for event in told]
    expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 0.1]
    assert all(base <= wait <= base * 1.25 for base, wait in zip(expected, waits, strict=True))
    assert all(isinstance(event, LoopFailed) and event.loop == "test" for event in told)
    assert told[-1].error == "ValueError: again"


async def test_the_first_of_a_row_of_errors_is_logged_with_its_traceback_and_the_rest_without(caplog):
    clock, turns = ManualClock(), Turns(ValueError("one"), ValueError("two"))
    with caplog.at_level(logging.ERROR, "drumline.engine"):
        async with running(turns, clock=clock):
            await eventually(lambda: turns.taken == 1)
            clock.advance(10)
            await eventually(lambda: turns.taken == 2)
    assert [(record.getMessage()[:9], bool(record.exc_info)) for record in caplog.records] == [
        ("test: one", True),
        ("test: two", False),
    ]


async def test_a_wake_up_cuts_the_wait_after_an_error_short(caplog):
    turns = Turns(ValueError("no"))
    async with running(turns) as loop:
        await eventually(lambda: turns.taken == 1)
        loop.wake()
        await eventually(lambda: turns.taken == 2)


async def test_stop_lets_the_present_turn_end():
    gate, ended = asyncio.Event(), []

    async def step() -> None:
        await gate.wait()
        ended.append(True)

    loop = Loop("test", step, clock=ManualClock(), events=Events())
    task = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    loop.stop()
    gate.set()
    await asyncio.wait_for(task, 10)
    assert ended == [True]


async def test_a_loop_that_was_stopped_before_it_ran_takes_no_turn():
    turns = Turns()
    loop = Loop("test", turns, clock=ManualClock(), events=Events())
    loop.stop()
    await asyncio.wait_for(loop.run(), 10)
    assert turns.taken == 0


async def test_a_step_that_wants_the_next_turn_at_once_lets_others_run_between():
    async def step() -> float:
        return 0

    async with running(step) as loop:
        # Without a breath between the turns this line would never be reached.
        await asyncio.sleep(0)
        loop.stop()
