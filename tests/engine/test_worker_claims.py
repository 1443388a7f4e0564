"""A worker and its claims: what beats tell of them, cancelled, lost and unknown ones."""

import asyncio
import threading
from datetime import timedelta

import pytest

from drumline.engine.execution import Reason
from drumline.events import ClaimLost, StaleWrite
from drumline.model.context import Context
from drumline.model.replica import Beat
from drumline.policy.verdict import Lost, verdict
from tests.engine.kit import OTHER
from tests.support.build import replica_info
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


class Work:
    """Tasks that run until they are told to stop."""

    def __init__(self):
        self.begun = threading.Event()
        self.seen: list[str] = []

    async def on_loop(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.seen.append("cleaned")

    def in_thread(self, ctx: Context) -> None:
        self.begun.set()
        for _ in range(20_000):
            if ctx.cancelled or not ctx.held:
                self.seen.append("cancelled" if ctx.cancelled else "lost")
                return
            threading.Event().wait(0.001)


@pytest.fixture
def work():
    return Work()


def take_over(kit, job_id):
    """The fleet presumes this worker dead."""
    (execution,) = [one for one in kit.memory._state.running.values() if one.id == job_id]  # noqa: SLF001
    claim = execution.as_claim()
    lost = verdict(claim, Lost(), by=OTHER, started_at=claim.claimed_at, ended_at=claim.lease_until)
    assert kit.memory.finish([lost]).run() == [True]


def answer(kit, **given):
    told = {"lost": [], "cancelling": [], "unknown": [], "epoch": 1, "next_lease_end": None, "version": 0}
    return Beat(**{"now": kit.clock.now(), **told, **given})


async def beat_once(kit, worker):
    beats = len(kit.wire.asked("beat"))
    worker.heart.beat_now()
    await eventually(lambda: len(kit.wire.asked("beat")) > beats)


async def test_a_coroutine_is_cancelled_at_once_and_its_finally_runs(kit, work):
    job_id = kit.enqueue(kit.task(work.on_loop))
    async with kit.working():
        await eventually(work.begun.is_set)
        kit.cancel(job_id)
        await eventually(lambda: kit.state(job_id) == "cancelled")
    assert (work.seen, kit.ends(job_id)) == (["cleaned"], ["cancelled"])


async def test_a_thread_is_told_and_shown_as_cancelling_until_it_ends(kit):
    begun, told, gate = threading.Event(), threading.Event(), threading.Event()

    def stubborn(ctx: Context) -> None:
        begun.set()
        for _ in range(20_000):
            if ctx.cancelled:
                break
            threading.Event().wait(0.001)
        told.set()
        gate.wait(10)

    job_id = kit.enqueue(kit.task(stubborn))
    async with kit.working():
        await eventually(begun.is_set)
        kit.cancel(job_id)
        await eventually(told.is_set)
        assert kit.state(job_id) == "cancelling"
        gate.set()
        await eventually(lambda: kit.state(job_id) == "cancelled")


async def test_a_waiting_job_that_is_cancelled_never_starts(kit, work):
    job_id = kit.enqueue(kit.task(work.on_loop), using={"delay": "10s"})
    async with kit.working():
        await eventually(lambda: kit.wire.asked("claim"))
        kit.cancel(job_id)
        kit.clock.advance(20)
        looks = len(kit.wire.asked("claim"))
        await eventually(lambda: len(kit.wire.asked("claim")) > looks)
    assert not work.begun.is_set()


async def test_a_lost_claim_cancels_the_coroutine_and_nothing_is_written(kit, work):
    job_id = kit.enqueue(kit.task(work.on_loop), using={"queue": "mine"})
    async with kit.working() as worker:
        await eventually(work.begun.is_set)
        # So that nobody takes the job again here.
        kit.wire.fail("claim")
        take_over(kit, job_id)
        worker.heart.beat_now()
        await eventually(lambda: work.seen == ["cleaned"])
        await eventually(lambda: len(worker.executions) == 0)
        kit.wire.mend("claim")
        assert worker.runner.running == 0
        assert kit.wire.asked("finish") == []
        assert kit.ends(job_id) == ["lost"]
    assert len(kit.heard(ClaimLost)) == 1


async def test_a_claim_that_was_finished_while_a_beat_was_under_way_is_not_lost(kit):
    async def nothing() -> None: ...

    job_id = kit.enqueue(kit.task(nothing))
    hold = kit.wire.hold_reply("finish")
    async with kit.working() as worker:
        await eventually(lambda: hold.waiting)
        # The outcome is written, and nobody here knows: to a beat the claim is one that the store does not have.
        await beat_once(kit, worker)
        await beat_once(kit, worker)
        hold.let_go()
        await eventually(lambda: len(worker.executions) == 0)
    assert (kit.state(job_id), kit.heard(ClaimLost), kit.heard(StaleWrite)) == ("done", [], [])


async def test_a_thread_whose_claim_was_lost_can_see_it_and_nothing_of_it_is_written(kit, work):
    job_id = kit.enqueue(kit.task(work.in_thread))
    async with kit.working() as worker:
        await eventually(work.begun.is_set)
        kit.wire.fail("claim")
        take_over(kit, job_id)
        worker.heart.beat_now()
        await eventually(lambda: work.seen == ["lost"])
        await eventually(lambda: len(worker.executions) == 0)
        assert kit.wire.asked("finish") == []


async def test_a_loss_is_counted_once_though_every_beat_tells_it_again(kit):
    begun, gate = threading.Event(), threading.Event()

    def deaf() -> None:
        begun.set()
        gate.wait(10)

    job_id = kit.enqueue(kit.task(deaf), using={"timeout": 1})
    async with kit.working() as worker:
        await eventually(begun.is_set)
        (execution,) = worker.executions
        # Told to stop for another reason before.
        execution.interrupt(Reason.TIMEOUT)
        kit.wire.fail("claim")
        take_over(kit, job_id)
        for _ in range(3):
            await beat_once(kit, worker)
        await eventually(lambda: not execution.held)
        assert [event.operation for event in kit.heard(StaleWrite)] == ["beat"]
        assert worker.recorder.stale_writes == 1
        gate.set()


async def test_a_coroutine_that_cleans_up_is_not_cancelled_again_by_the_next_beat(kit):
    begun, cleaning, gate, seen = asyncio.Event(), asyncio.Event(), asyncio.Event(), []

    async def careful() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await gate.wait()
            seen.append("cleaned")

    job_id = kit.enqueue(kit.task(careful))
    async with kit.working() as worker:
        await begun.wait()
        (execution,) = worker.executions
        execution.interrupt(Reason.TIMEOUT)
        await cleaning.wait()
        kit.cancel(job_id)
        for _ in range(3):
            await beat_once(kit, worker)
        gate.set()
        await eventually(lambda: kit.state(job_id) == "cancelled")
    assert seen == ["cleaned"]


async def test_an_unknown_claim_is_given_back_only_when_it_is_unknown_twice(kit, work):
    kit.task(work.on_loop)
    worker = kit.worker()
    claim = kit.claim_one("on_loop", replica=worker.id)
    worker._on_beat(replica_info(), answer(kit, unknown=[claim]), kit.clock.monotonic())  # noqa: SLF001
    assert worker.recorder.backlog == 0
    worker._on_beat(replica_info(), answer(kit, unknown=[]), kit.clock.monotonic())  # noqa: SLF001
    worker._on_beat(replica_info(), answer(kit, unknown=[claim]), kit.clock.monotonic())  # noqa: SLF001
    assert worker.recorder.backlog == 0
    worker._on_beat(replica_info(), answer(kit, unknown=[claim]), kit.clock.monotonic())  # noqa: SLF001
    await worker.recorder.step()
    assert (kit.state(claim.id), kit.job(claim.id).attempt, kit.ends(claim.id)) == ("ready", 0, ["released"])


async def test_an_unknown_claim_is_not_given_back_while_a_claim_is_under_way(kit, work):
    kit.task(work.on_loop)
    worker = kit.worker()
    claim = kit.claim_one("on_loop", replica=worker.id)
    worker.fetcher.claiming = True
    for _ in range(3):
        worker._on_beat(replica_info(), answer(kit, unknown=[claim]), kit.clock.monotonic())  # noqa: SLF001
    assert worker.recorder.backlog == 0


async def test_a_claim_that_came_to_run_meanwhile_is_not_unknown(kit, work):
    kit.task(work.on_loop)
    worker = kit.worker()
    claim = kit.claim_one("on_loop", replica=worker.id)
    worker._on_beat(replica_info(), answer(kit, unknown=[claim]), kit.clock.monotonic())  # noqa: SLF001
    worker.runner.start(worker.runner.hold(claim, kit.clock.monotonic()))
    worker._on_beat(replica_info(), answer(kit, unknown=[claim]), kit.clock.monotonic())  # noqa: SLF001
    assert worker.recorder.backlog == 0
    (execution,) = worker.executions
    await eventually(work.begun.is_set)
    execution.interrupt(Reason.STOP)
    await asyncio.wait([execution.task])


async def test_claims_that_a_former_call_left_behind_are_given_back_by_a_working_worker(kit, work):
    name = kit.task(work.on_loop)
    async with kit.working(queues=("other",)) as worker:
        await eventually(lambda: kit.wire.asked("claim"))
        claim = kit.claim_one(name, replica=worker.id)

        def is_back():
            worker.heart.beat_now()
            return kit.state(claim.id) == "ready"

        await eventually(is_back)
    assert kit.job(claim.id).attempt == 0


async def test_a_lease_given_with_the_call_is_renewed_in_its_own_third(kit, work):
    kit.task(work.on_loop)
    async with kit.working() as worker:
        await eventually(lambda: worker.id in kit.workers())
        assert kit.workers()[worker.id].info.beat_every == timedelta(seconds=10)
        kit.enqueue("on_loop", using={"lease": "300ms"})
        await eventually(work.begun.is_set)
        beats = len(kit.wire.asked("beat"))
        await eventually(lambda: len(kit.wire.asked("beat")) >= beats + 3)
        assert kit.workers()[worker.id].info.beat_every == timedelta(milliseconds=100)


async def test_a_job_that_blocks_the_event_loop_is_renewed_meanwhile_and_runs_once(kit):
    runs = []

    async def block(ctx: Context) -> None:
        runs.append(ctx.fence)
        renewed = len(kit.wire.asked("beat"))
        for _ in range(20_000):
            if len(kit.wire.asked("beat")) >= renewed + 5:
                return
            threading.Event().wait(0.001)

    job_id = kit.enqueue(kit.task(block, lease="150ms"))
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "done")
    assert len(runs) == 1
