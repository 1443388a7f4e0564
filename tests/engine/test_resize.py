"""A worker whose limits are changed while it works."""

import asyncio
import random
import threading
from contextlib import contextmanager
from functools import partial

import pytest

from drumline.engine.slots import Limits
from drumline.errors import BadOption
from drumline.policy.options import Executor
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


class Crowd:
    """Tasks of both kinds that count how many of them run at once."""

    def __init__(self):
        self.begun = 0
        self.inside = 0
        # What the number inside was when the last one came in.
        self.highest = 0
        self.gate = threading.Event()
        self._lock = threading.Lock()

    @contextmanager
    def _counted(self):
        with self._lock:
            self.begun += 1
            self.inside += 1
            self.highest = max(self.highest, self.inside)
        try:
            yield
        finally:
            with self._lock:
                self.inside -= 1

    async def on_loop(self) -> None:
        with self._counted():
            while not self.gate.is_set():
                await asyncio.sleep(0.001)

    def in_thread(self) -> None:
        with self._counted():
            self.gate.wait(10)

    async def short(self) -> None:
        with self._counted():
            await asyncio.sleep(0)

    def short_in_thread(self) -> None:
        with self._counted():
            pass


@pytest.fixture
def crowd():
    return Crowd()


async def resize(worker, **limits):
    worker.resize(**limits)
    await eventually(lambda: all(getattr(worker.limits, name) == value for name, value in limits.items()))


async def test_a_raised_limit_lets_more_start_at_once(kit, crowd):
    name = kit.task(crowd.on_loop)
    for _ in range(10):
        kit.enqueue(name)
    async with kit.working(concurrency=2) as worker:
        await eventually(lambda: crowd.inside == 2)
        worker.resize(concurrency=7)
        await eventually(lambda: crowd.inside == 7)
        crowd.gate.set()
        await eventually(lambda: crowd.begun == 10)
    assert crowd.highest == 7


@pytest.mark.parametrize("task", ["on_loop", "in_thread"])
async def test_after_a_lowered_limit_what_runs_goes_on_and_nothing_more_starts_until_there_is_room(kit, crowd, task):
    name = kit.task(getattr(crowd, task))
    for _ in range(12):
        kit.enqueue(name)
    async with kit.working(concurrency=4) as worker:
        await eventually(lambda: crowd.inside == 4)
        await resize(worker, concurrency=1)
        assert crowd.inside == 4
        crowd.highest = 0
        crowd.gate.set()
        await eventually(lambda: crowd.begun == 12)
    assert crowd.highest == 1


async def test_threads_have_a_limit_of_their_own(kit, crowd):
    name = kit.task(crowd.in_thread)
    for _ in range(10):
        kit.enqueue(name)
    async with kit.working(threads=1) as worker:
        await eventually(lambda: crowd.inside == 1)
        worker.resize(threads=5)
        await eventually(lambda: crowd.inside == 5)
        assert worker.limits == Limits(concurrency=100, threads=5)
        crowd.gate.set()


async def test_what_was_claimed_while_the_limit_was_lowered_is_given_back_and_spends_no_attempt(kit, crowd):
    name = kit.task(crowd.on_loop)
    ids = [kit.enqueue(name) for _ in range(3)]
    hold = kit.wire.hold_reply("claim")
    async with kit.working(concurrency=3) as worker:
        await eventually(lambda: hold.waiting)
        await resize(worker, concurrency=1)
        hold.let_go()
        await eventually(lambda: [kit.state(job_id) for job_id in ids] == ["running", "ready", "ready"])
        assert [kit.job(job_id).attempt for job_id in ids] == [1, 0, 0]
        crowd.gate.set()
        await eventually(lambda: all(kit.state(job_id) == "done" for job_id in ids))
    assert crowd.highest == 1


async def test_the_fleet_sees_how_many_slots_there_are_now(kit):
    async with kit.working(concurrency=9) as worker:
        await eventually(lambda: worker.id in kit.workers())
        worker.resize(concurrency=3)
        await eventually(lambda: kit.workers()[worker.id].info.slots == 3)


@pytest.mark.parametrize("option", ["concurrency", "threads", "children"])
async def test_a_limit_below_one_is_refused_by_name(kit, option):
    with pytest.raises(BadOption, match=f"{option} must be a whole number of 1 or more, got 0"):
        kit.worker().resize(**{option: 0})


async def test_limits_that_go_down_to_one_and_up_again_under_load_hang_nothing_and_are_never_exceeded(kit, crowd):
    names = [kit.task(crowd.short), kit.task(crowd.short_in_thread)]
    ids = [kit.enqueue(names[number % 2]) for number in range(3_000)]
    dice = random.Random(7)

    def is_within(limit):
        return crowd.inside <= limit and worker.runner.running <= limit

    def has_begun(aim):
        return crowd.begun >= aim

    async with kit.working(concurrency=20, threads=10) as worker:
        while crowd.begun < len(ids):
            limit = dice.choice([1, 1, 2, 5, 20])
            await resize(worker, concurrency=limit, threads=max(limit // 2, 1))
            # From here on as many as may, and what ran before has to end first.
            await eventually(partial(is_within, limit))
            before, crowd.highest = crowd.begun, 0
            aim = min(before + dice.randrange(1, 60), len(ids))
            await eventually(partial(has_begun, aim))
            assert crowd.highest <= limit
        await eventually(lambda: all(kit.state(job_id) == "done" for job_id in ids))
        assert worker.runner.room(Executor.COROUTINE) == worker.limits.concurrency
    assert crowd.begun == len(ids)
