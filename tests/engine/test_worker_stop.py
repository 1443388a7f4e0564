"""How a worker stops: in good order, in a hurry, and when the store or a task does not play along."""

import asyncio
import threading
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from drumline.engine import worker as module
from drumline.engine.ahead import Ahead
from drumline.events import ReplicaStopped
from drumline.model.context import Context
from drumline.model.replica import ReplicaState
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

LONG = timedelta(seconds=25)


class Work:
    """Tasks that run until the test lets them go."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.gate = asyncio.Event()
        self.thread_gate = threading.Event()
        self.seen: list[str] = []

    async def on_loop(self) -> str:
        self.begun.release()
        try:
            await self.gate.wait()
        finally:
            self.seen.append("cleaned")
        return "through"

    def in_thread(self, ctx: Context) -> None:
        self.begun.release()
        self.thread_gate.wait(20)
        self.seen.append("stopping" if ctx.stopping else "not told")

    async def wait_begun(self, count: int = 1):
        for _ in range(count):
            await eventually(lambda: self.begun.acquire(blocking=False))


@pytest.fixture
def work():
    made = Work()
    yield made
    made.thread_gate.set()


@asynccontextmanager
async def started(kit, **options):
    """A worker and the asyncio task that runs it."""
    worker = kit.worker(**options)
    run = asyncio.create_task(worker.run())
    try:
        yield worker, run
    finally:
        if not run.done():
            run.cancel()
            await asyncio.wait([run], timeout=20)


async def end_of(run):
    await asyncio.wait([run], timeout=20)
    assert run.done(), "the worker does not stop"
    return run.result()


async def test_an_idle_worker_stops_at_once_and_deregisters(kit):
    async with started(kit) as (worker, run):
        await eventually(lambda: worker.id in kit.workers())
        worker.stop()
        await end_of(run)
    assert kit.workers() == {}
    assert kit.heard(ReplicaStopped) == [ReplicaStopped(worker.id)]


async def test_a_worker_that_was_stopped_before_it_ran_claims_nothing(kit, work):
    job_id = kit.enqueue(kit.task(work.on_loop))
    async with started(kit) as (worker, run):
        worker.stop()
        await end_of(run)
    assert (kit.state(job_id), kit.wire.asked("claim"), kit.workers()) == ("ready", [], {})


async def test_a_worker_that_was_stopped_while_its_lifespan_opens_claims_nothing_and_closes_it(kit, work):
    opening, gate, closed = asyncio.Event(), asyncio.Event(), []

    @asynccontextmanager
    async def lifespan():
        opening.set()
        await gate.wait()
        yield
        closed.append(True)

    kit.enqueue(kit.task(work.on_loop))
    async with started(kit, lifespan=lifespan) as (worker, run):
        await opening.wait()
        worker.stop()
        gate.set()
        await end_of(run)
    assert (kit.wire.asked("claim"), closed) == ([], [True])


async def test_what_runs_may_end_and_nothing_more_is_claimed(kit, work):
    first = kit.enqueue(kit.task(work.on_loop))
    async with started(kit) as (worker, run):
        await work.wait_begun()
        worker.stop()
        await eventually(lambda: kit.workers()[worker.id].state is ReplicaState.DRAINING)
        claims = len(kit.wire.asked("claim"))
        second = kit.enqueue("on_loop")
        work.gate.set()
        await end_of(run)
        assert len(kit.wire.asked("claim")) == claims
    assert (kit.state(first), kit.state(second)) == ("done", "ready")


async def test_what_does_not_end_in_time_is_cancelled_with_its_finally_and_given_back(kit, work):
    job_id = kit.enqueue(kit.task(work.on_loop))
    async with started(kit, shutdown_timeout=LONG) as (worker, run):
        await work.wait_begun()
        worker.stop()
        await eventually(lambda: kit.workers()[worker.id].state is ReplicaState.DRAINING)
        kit.clock.advance(LONG - timedelta(seconds=1))
        assert work.seen == []
        await kit.pass_time(run.done)
        await end_of(run)
    assert work.seen == ["cleaned"]
    assert (kit.state(job_id), kit.job(job_id).attempt, kit.ends(job_id)) == ("ready", 0, ["released"])


async def test_a_task_can_see_that_its_replica_stops(kit, work):
    job_id = kit.enqueue(kit.task(work.in_thread))
    async with started(kit) as (worker, run):
        await work.wait_begun()
        (execution,) = worker.executions
        worker.stop()
        await eventually(lambda: execution.stopping)
        work.thread_gate.set()
        await end_of(run)
    assert (work.seen, kit.state(job_id)) == (["stopping"], "done")


async def test_asked_again_it_hurries(kit, work):
    ids = [kit.enqueue(kit.task(work.on_loop)), kit.enqueue(kit.task(work.in_thread))]
    async with started(kit, shutdown_timeout=LONG) as (worker, run):
        await work.wait_begun(2)
        worker.stop()
        await eventually(lambda: kit.workers()[worker.id].state is ReplicaState.DRAINING)
        assert not run.done()
        worker.stop()
        await end_of(run)
    assert work.seen == ["cleaned"]
    for job_id in ids:
        assert (kit.state(job_id), kit.job(job_id).attempt, kit.ends(job_id)) == ("ready", 0, ["released"])


async def test_a_thread_is_given_back_and_left_to_itself(kit, work):
    job_id = kit.enqueue(kit.task(work.in_thread))
    async with started(kit) as (worker, run):
        await work.wait_begun()
        worker.stop()
        worker.stop()
        await end_of(run)
    assert (kit.state(job_id), kit.job(job_id).attempt) == ("ready", 0)
    work.thread_gate.set()
    await eventually(lambda: work.seen == ["stopping"])
    assert kit.ends(job_id) == ["released"]


async def test_a_thread_that_goes_on_talking_does_not_hold_up_the_stop(kit):
    begun, over, ended = threading.Event(), threading.Event(), threading.Event()

    def chatter(ctx: Context) -> None:
        begun.set()
        while not over.is_set():
            ctx.log("still here")
        ended.set()

    kit.enqueue(kit.task(chatter))
    async with started(kit) as (worker, run):
        await eventually(begun.is_set)
        worker.stop()
        worker.stop()
        # The test's clock stands still: were it to wait for any time to pass, it would wait for ever.
        await end_of(run)
    over.set()
    await eventually(ended.is_set)


async def test_a_job_that_was_given_back_is_run_by_another_worker(kit, work):
    job_id = kit.enqueue(kit.task(work.on_loop))
    async with started(kit) as (worker, run), started(kit, name="second", concurrency=1):
        await work.wait_begun()
        worker.stop()
        worker.stop()
        await end_of(run)
        work.gate.set()
        await eventually(lambda: kit.state(job_id) == "done")
    assert kit.job(job_id).attempt == 1


async def test_cancelling_run_gives_the_jobs_back_and_is_still_a_cancellation(kit, work):
    ids = [kit.enqueue(kit.task(work.on_loop)), kit.enqueue(kit.task(work.in_thread))]
    async with started(kit, shutdown_timeout=LONG) as (_, run):
        await work.wait_begun(2)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await end_of(run)
    assert {kit.state(job_id) for job_id in ids} == {"ready"}
    assert {kit.job(job_id).attempt for job_id in ids} == {0}
    assert (work.seen, kit.workers()) == (["cleaned"], {})


async def test_a_time_limit_around_run_ends_as_such(kit, work):
    job_id = kit.enqueue(kit.task(work.on_loop))

    async def limited():
        async with asyncio.timeout(None) as limit:
            await_begun.append(limit)
            await kit.worker().run()

    await_begun: list[asyncio.Timeout] = []
    run = asyncio.create_task(limited())
    await work.wait_begun()
    await_begun[0].reschedule(0)
    with pytest.raises(TimeoutError):
        await end_of(run)
    assert kit.state(job_id) == "ready"


async def test_a_signal_after_a_cancellation_does_not_make_it_patient_again(kit):
    begun, cleaning, gate = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def careful() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await gate.wait()

    kit.enqueue(kit.task(careful))
    async with started(kit, shutdown_timeout=LONG) as (worker, run):
        await begun.wait()
        run.cancel()
        # Heard of, and the jobs not yet told: two turns of the event loop later.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        worker.stop()
        await asyncio.wait_for(cleaning.wait(), 10)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await end_of(run)


async def test_when_run_is_torn_down_in_the_midst_of_stopping_the_heart_stops_too(kit, work):
    kit.enqueue(kit.task(work.on_loop))
    async with started(kit, shutdown_timeout=LONG) as (worker, run):
        await work.wait_begun()
        worker.stop()
        await eventually(lambda: kit.workers()[worker.id].state is ReplicaState.DRAINING)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await end_of(run)
        await worker.heart.wait_stopped()
        beats = len(kit.wire.asked("beat"))
        worker.heart.beat_now()
        assert "drumline-heart" not in {thread.name for thread in threading.enumerate()}
        assert len(kit.wire.asked("beat")) == beats
        work.gate.set()


async def test_a_coroutine_that_does_not_let_itself_be_cancelled_is_given_back_after_a_while(kit, monkeypatch):
    monkeypatch.setattr(module, "CLEAN_UP", 0.05)
    begun, gate = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        begun.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    job_id = kit.enqueue(kit.task(stubborn))
    async with started(kit) as (worker, run):
        await begun.wait()
        worker.stop()
        worker.stop()
        await end_of(run)
        assert (kit.state(job_id), kit.ends(job_id)) == ("ready", ["released"])
        gate.set()


async def test_a_job_that_was_cancelled_while_its_replica_stops_is_cancelled_and_not_given_back(kit, work):
    job_id = kit.enqueue(kit.task(work.in_thread))
    async with started(kit) as (worker, run):
        await work.wait_begun()
        kit.cancel(job_id)
        worker.stop()
        worker.stop()
        await end_of(run)
    assert kit.state(job_id) == "cancelled"


async def test_outcomes_are_written_before_it_leaves_though_the_store_was_away(kit, work, caplog):
    job_id = kit.enqueue(kit.task(work.on_loop))
    async with started(kit) as (worker, run):
        await work.wait_begun()
        kit.wire.fail("finish")
        work.gate.set()
        await eventually(lambda: worker.recorder.backlog == 1 and len(kit.wire.asked("finish")) >= 1)
        worker.stop()
        await eventually(lambda: kit.workers()[worker.id].state is ReplicaState.DRAINING)
        kit.wire.mend("finish")
        await kit.pass_time(run.done)
        await end_of(run)
    assert (kit.state(job_id), kit.workers()) == ("done", {})


async def test_it_leaves_though_the_store_stays_away(kit, work, caplog):
    kit.enqueue(kit.task(work.on_loop))
    async with started(kit) as (worker, run):
        await work.wait_begun()
        for operation in ("finish", "beat", "claim", "expired", "purge"):
            kit.wire.fail(operation)
        worker.stop()
        work.gate.set()
        await kit.pass_time(run.done)
        await end_of(run)
    assert "could not deregister" in caplog.text


@pytest.mark.parametrize("operation", ["claim", "finish", "beat", "purge"])
async def test_it_leaves_though_a_call_to_the_store_hangs(kit, work, monkeypatch, caplog, operation):
    monkeypatch.setattr(module, "CLEAN_UP", 0.05)
    monkeypatch.setattr("drumline.engine.beat.PATIENCE", 0.05)
    kit.task(work.on_loop)
    async with started(kit) as (worker, run):
        await eventually(lambda: kit.wire.asked("claim"))
        job_id = kit.enqueue("on_loop")
        await work.wait_begun()
        hold = kit.wire.hold(operation)
        if operation == "finish":
            work.gate.set()
        kit.enqueue("on_loop")
        worker.heart.beat_now()
        await kit.pass_time(lambda: hold.waiting, by=1)
        worker.stop()
        work.gate.set()
        await kit.pass_time(run.done)
        await end_of(run)
        hold.let_go()
    assert kit.state(job_id) == ("running" if operation == "finish" else "done")


async def test_a_claim_that_is_under_way_when_it_stops_is_run_or_given_back(kit, work):
    kit.task(work.on_loop)
    async with started(kit) as (worker, run):
        await eventually(lambda: kit.wire.asked("claim"))
        hold = kit.wire.hold_reply("claim")
        job_id = kit.enqueue("on_loop")
        await eventually(lambda: hold.waiting)
        worker.stop()
        hold.let_go()
        await work.wait_begun()
        work.gate.set()
        await end_of(run)
    assert kit.state(job_id) == "done"


async def test_an_abandoned_claim_is_not_kept_alive_once_the_worker_has_gone(kit, work):
    kit.enqueue(kit.task(work.on_loop))
    async with started(kit) as (worker, run):
        await work.wait_begun()
        worker.stop()
        worker.stop()
        await end_of(run)
    assert "drumline-heart" not in {thread.name for thread in threading.enumerate()}


async def test_what_a_claim_took_whose_reply_was_lost_is_given_back_at_once(kit, work):
    job_id = kit.enqueue(kit.task(work.on_loop))
    kit.wire.lose_reply("claim", times=1000)
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "running")
    assert (kit.state(job_id), kit.job(job_id).attempt, kit.ends(job_id)) == ("ready", 0, ["released"])


async def test_a_store_that_cannot_be_asked_about_lost_replies_does_not_hold_up_the_stop(kit, work, caplog):
    job_id = kit.enqueue(kit.task(work.on_loop))
    kit.wire.lose_reply("claim", times=1000)
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "running")
        kit.wire.fail("beat")
    assert kit.state(job_id) == "running"
    assert "could not ask for claims whose reply was lost" in caplog.text


async def test_what_was_claimed_ahead_is_given_back_at_once_while_the_rest_may_end(kit, work, monkeypatch):
    kit.task(work.on_loop, name="on_loop")
    first, second = kit.enqueue("on_loop"), kit.enqueue("on_loop")
    # Every claim is taken for one that slots fall free during.
    monkeypatch.setattr(Ahead, "answered", lambda self, asked: setattr(self, "most", 1))
    async with started(kit, concurrency=1, shutdown_timeout=LONG) as (worker, run):
        await work.wait_begun()
        await eventually(lambda: kit.state(second) == "running")
        worker.stop()
        await eventually(lambda: kit.state(second) == "ready")
        assert (kit.state(first), kit.job(second).attempt) == ("running", 0)
        work.gate.set()
        await end_of(run)
    assert kit.ends(first) == ["done"]
