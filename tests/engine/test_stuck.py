"""Tasks that do not end though their time is over: the job goes on without them, their slot does not."""

import asyncio
import logging
import threading
from datetime import timedelta

import pytest

from drumline.model.context import Context
from drumline.policy.options import Executor
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

GRACE = timedelta(seconds=30)


class Stubborn:
    """A task that stays in its first attempt until the gate is opened."""

    def __init__(self):
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.seen = []

    def in_thread(self, ctx: Context) -> str:
        self.begun.set()
        if ctx.attempt == 1:
            self.gate.wait(30)
            self.seen.append((ctx.cancelled, ctx.held))
        return f"attempt {ctx.attempt}"

    async def on_loop(self, ctx: Context) -> str:
        self.begun.set()
        while ctx.attempt == 1 and not self.gate.is_set():
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                self.seen.append("swallowed")
        return f"attempt {ctx.attempt}"


@pytest.fixture
def task():
    made = Stubborn()
    yield made
    made.gate.set()


@pytest.mark.parametrize("where", ["in_thread", "on_loop"])
async def test_a_task_that_does_not_end_is_recorded_as_timed_out_and_its_job_goes_on(kit, task, caplog, where):
    name = kit.task(getattr(task, where), timeout="5s", backoff=0, lease="1h")
    job_id = kit.enqueue(name)
    async with kit.working(concurrency=4, threads=2, timeout_grace=GRACE) as worker:
        await eventually(task.begun.is_set)
        await kit.pass_time(lambda: worker.runner.stuck, by=1)
        # Time stands still from here on: the second attempt has a limit too.
        await eventually(lambda: kit.state(job_id) == "done")
        assert kit.ends(job_id) == ["timeout", "done"]
        assert kit.job(job_id).result == b'"attempt 2"'
        first = kit.job(job_id).attempts[0]
        assert first.error is not None
        assert first.error.message == "ran longer than its time limit of 5 s"
        assert timedelta(seconds=35) <= first.ended_at - first.started_at < timedelta(seconds=40)
        (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert f"task {name}, job {job_id}" in record.getMessage()
        assert ("self.gate.wait(30)" if where == "in_thread" else "await asyncio.sleep(0.001)") in record.getMessage()
        task.gate.set()
        await eventually(lambda: not worker.runner.stuck)
    assert kit.ends(job_id) == ["timeout", "done"]


async def test_until_then_it_keeps_its_claim(kit, task):
    job_id = kit.enqueue(kit.task(task.in_thread, timeout="5s", backoff=0, lease="1h"))
    async with kit.working(timeout_grace=GRACE) as worker:
        await eventually(task.begun.is_set)
        (execution,) = worker.executions
        await kit.pass_time(lambda: execution.cancelled, by=1)
        kit.clock.advance(20)
        assert (kit.state(job_id), worker.runner.stuck, worker.is_healthy) == ("running", 0, True)
        task.gate.set()
        await eventually(lambda: kit.state(job_id) == "done")
    assert (task.seen, kit.ends(job_id)) == ([(True, True)], ["timeout", "done"])


async def test_the_slot_is_stuck_and_the_replica_not_healthy_until_it_really_ends(kit, task):
    def quick() -> None: ...

    name = kit.task(quick)
    blocked = kit.enqueue(kit.task(task.in_thread, timeout="5s", max_attempts=1, lease="1h"))
    async with kit.working(concurrency=1, threads=1, timeout_grace=GRACE) as worker:
        await eventually(task.begun.is_set)
        await kit.pass_time(lambda: kit.state(blocked) == "dead", by=1)
        assert not worker.is_healthy
        assert (worker.runner.stuck, worker.runner.running, worker.runner.room(Executor.THREAD)) == (1, 0, 0)
        worker.heart.beat_now()
        await eventually(lambda: kit.workers()[worker.id].info.stuck == 1)
        waiting = kit.enqueue(name)
        looks = len(kit.wire.asked("claim"))
        kit.clock.advance(5)
        await eventually(lambda: not worker.recorder.backlog)
        assert (kit.state(waiting), len(kit.wire.asked("claim"))) == ("ready", looks)
        task.gate.set()
        # Nobody has to look: the slot that falls free wakes the worker.
        await eventually(lambda: kit.state(waiting) == "done")
        assert (worker.is_healthy, worker.runner.stuck) == (True, 0)
        worker.heart.beat_now()
        await eventually(lambda: kit.workers()[worker.id].info.stuck == 0)
    assert task.seen == [(True, False)]


async def test_what_it_gives_at_last_is_thrown_away(kit, task):
    job_id = kit.enqueue(kit.task(task.in_thread, timeout="5s", max_attempts=1, lease="1h"))
    async with kit.working(timeout_grace=GRACE) as worker:
        await eventually(task.begun.is_set)
        await kit.pass_time(lambda: kit.state(job_id) == "dead", by=1)
        before = kit.job(job_id)
        task.gate.set()
        await eventually(lambda: worker.is_healthy)
        assert worker.recorder.idle
        assert kit.job(job_id) == before


async def test_a_stuck_task_does_not_hold_up_the_stop(kit, task):
    job_id = kit.enqueue(kit.task(task.in_thread, timeout="5s", max_attempts=1, lease="1h"))
    worker = kit.worker(timeout_grace=GRACE)
    run = asyncio.create_task(worker.run())
    await eventually(task.begun.is_set)
    await kit.pass_time(lambda: kit.state(job_id) == "dead", by=1)
    worker.stop()
    # The clock stands still: were it to wait for the thread, it would wait for ever.
    await asyncio.wait_for(run, 20)
    assert kit.ends(job_id) == ["timeout"]


async def test_a_cancelled_thread_is_never_said_to_be_stuck(kit, task):
    job_id = kit.enqueue(kit.task(task.in_thread, timeout="5s", lease="1h"))
    async with kit.working(timeout_grace=GRACE) as worker:
        await eventually(task.begun.is_set)
        kit.cancel(job_id)
        (execution,) = worker.executions
        await eventually(lambda: execution.cancelled)
        kit.clock.advance(100)
        await eventually(lambda: kit.state(job_id) == "cancelling")
        assert worker.runner.stuck == 0
        task.gate.set()
        await eventually(lambda: kit.state(job_id) == "cancelled")
