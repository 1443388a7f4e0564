"""A worker whose store lets a claim stand by: played over a memory store, with a bell that the test rings."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest

from drumline.clock import fresh_id
from drumline.model.claim import Share
from drumline.model.queues import QueueRules
from drumline.stores.base import Op
from drumline.stores.memory import MemoryStore
from tests.engine.kit import Kit
from tests.support.waiting import eventually
from tests.support.wire import Wire

pytestmark = pytest.mark.asyncio


class Waiting(MemoryStore):
    """Claims that stand by are made when the bell rings, or somebody uses up their token. Hints are not told."""

    tells_of_all = True

    def __init__(self, clock):
        super().__init__(clock)
        self.bell = asyncio.Event()
        self.used_up = set()
        self.standing = []

    def wakeups(self, hear):
        return super().wakeups(lambda topic: None)

    def claim(self, replica, queues, limit, tasks, token):
        if limit == 0:
            self.used_up.add(token)
            self.bell.set()
        return super().claim(replica, queues, limit, tasks, token)

    def stand_by(self, replica, queues, tasks, token, *, seconds):
        async def wait():
            self.standing.append((tuple(queues), tuple(tasks), seconds))
            await self.bell.wait()
            self.bell.clear()
            return await self.claim(replica, queues, 0 if token in self.used_up else 1, tasks, token)

        return Op(lambda: None, wait)


@pytest.fixture
def waiting_kit():
    kit = Kit()
    kit.memory = Waiting(kit.clock)
    kit.wire = Wire(kit.memory)

    async def work(number: int) -> int:
        return number

    kit.task(work)
    return kit


def is_done(kit, job):
    return kit.state(job) == "done"


def asked(kit, operation="claim"):
    return [arguments for name, arguments in kit.wire.calls if name == operation]


async def test_a_job_that_comes_while_a_claim_stands_by_runs_without_a_hint(waiting_kit):
    kit = waiting_kit
    async with kit.working():
        await eventually(lambda: kit.memory.standing)
        job = kit.enqueue("work", number=1)
        kit.memory.bell.set()
        await eventually(lambda: kit.state(job) == "done")
        # There may have been more than the one it took: another look, and then it stands by again.
        await eventually(lambda: len(kit.memory.standing) == 2)
    assert kit.ends(job) == ["done"]


async def test_what_stands_by_asks_for_one_job_of_all_that_is_served(waiting_kit):
    kit = waiting_kit
    async with kit.working(queues=("a", "b"), poll_interval=timedelta(seconds=7)):
        await eventually(lambda: kit.memory.standing)
    (queues, tasks, seconds), *_ = kit.memory.standing
    assert (queues, tasks, seconds) == ((Share("a", 1), Share("b", 1)), ("work",), 14.0)


async def test_where_jobs_come_without_a_word_nothing_stands_by_for_longer_than_a_look_may_wait(waiting_kit):
    kit = waiting_kit
    kit.memory.tells_of_all = False
    async with kit.working(poll_interval=timedelta(seconds=7)):
        await eventually(lambda: kit.memory.standing)
    (*_, seconds), *_ = kit.memory.standing
    assert seconds == 7.0


async def test_more_jobs_than_one_are_looked_for_once_the_first_has_come(waiting_kit):
    kit = waiting_kit
    async with kit.working():
        await eventually(lambda: kit.memory.standing)
        jobs = [kit.enqueue("work", number=number) for number in range(5)]
        kit.memory.bell.set()
        await eventually(lambda: [kit.state(job) for job in jobs] == ["done"] * 5)


async def test_while_a_claim_stands_by_only_a_delayed_job_is_looked_for(waiting_kit):
    kit = waiting_kit
    job = kit.enqueue("work", using={"delay": 90}, number=1)
    async with kit.working(poll_interval=timedelta(seconds=60)):
        await eventually(lambda: kit.memory.standing)
        looks = len(asked(kit))
        kit.clock.advance(80)
        await asyncio.sleep(0.02)
        assert len(asked(kit)) == looks
        await kit.pass_time(lambda: kit.state(job) == "done", by=1)
    assert kit.ends(job) == ["done"]


async def test_a_claim_that_stands_by_too_long_does_not_keep_the_worker_from_looking(waiting_kit):
    kit = waiting_kit
    async with kit.working(poll_interval=timedelta(seconds=60)):
        await eventually(lambda: kit.memory.standing)
        job = kit.enqueue("work", number=1)
        await kit.pass_time(lambda: kit.state(job) == "done", by=5)
    assert kit.ends(job) == ["done"]


async def test_a_worker_that_stops_recalls_its_claim(waiting_kit):
    kit = waiting_kit
    async with kit.working() as worker:
        await eventually(lambda: kit.memory.standing)
        worker.stop()
        await eventually(lambda: kit.memory.used_up)
    job = kit.enqueue("work", number=1)
    kit.memory.bell.set()
    assert (kit.state(job), len(kit.memory.standing)) == ("ready", 1)


async def test_a_job_that_came_as_the_worker_stops_is_not_lost(waiting_kit):
    kit = waiting_kit
    async with kit.working() as worker:
        await eventually(lambda: kit.memory.standing)
        job = kit.enqueue("work", number=1)
        kit.memory.bell.set()
        worker.stop()
    assert kit.state(job) in ("done", "ready")


async def test_a_worker_that_drains_lets_nothing_stand_by(waiting_kit):
    kit = waiting_kit
    job = kit.enqueue("work", number=1)
    worker = kit.worker(drain=True)
    run = asyncio.create_task(worker.run())
    await kit.pass_time(run.done)
    assert (kit.state(job), kit.memory.standing) == ("done", [])


async def test_a_worker_with_rules_for_its_queues_lets_nothing_stand_by(waiting_kit):
    kit = waiting_kit
    async with kit.working(queues=("a", "b"), rules=QueueRules(caps={"a": 1})):
        await eventually(lambda: asked(kit))
        await asyncio.sleep(0.02)
    assert kit.memory.standing == []


async def test_a_store_where_nobody_can_wait_is_asked_now_and_then(waiting_kit):
    kit = waiting_kit
    kit.memory = MemoryStore(kit.clock)
    kit.wire = Wire(kit.memory)
    async with kit.working(poll_interval=timedelta(seconds=60)):
        await eventually(lambda: asked(kit, "stand_by"))
        for number in range(5):
            job = kit.enqueue("work", number=number)
            await eventually(partial(is_done, kit, job))
        assert len(asked(kit, "stand_by")) == 1
        await kit.pass_time(lambda: len(asked(kit, "stand_by")) == 2, by=10)


async def test_a_worker_that_cannot_stand_by_looks_again(waiting_kit):
    kit = waiting_kit
    kit.wire.fail("stand_by", times=1)
    async with kit.working():
        await eventually(lambda: asked(kit, "stand_by"))
        await kit.pass_time(lambda: kit.memory.standing)
        assert len(asked(kit)) >= 2


async def test_claims_that_nobody_knows_of_are_given_back_though_one_stands_by(waiting_kit):
    kit = waiting_kit
    async with kit.working() as worker:
        await eventually(lambda: kit.memory.standing)
        job = kit.enqueue("work", number=1)
        (claim,) = kit.memory.claim(worker.id, [Share("default", 1)], 1, ["work"], fresh_id()).run().claims
        assert claim.id == job
        # Its answer was lost: what the beats say of it recalls the one that stands by, and then it is given back.

        def beats_until(condition):
            def is_so():
                worker.heart.beat_now()
                return condition()

            return is_so

        await eventually(beats_until(lambda: kit.ends(job)))
        assert kit.memory.used_up
        kit.memory.bell.set()
        await eventually(beats_until(lambda: kit.state(job) == "done"))
    assert kit.ends(job) == ["released", "done"]
