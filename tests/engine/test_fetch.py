import asyncio
import contextvars
import threading
from datetime import timedelta

import pytest
import pytest_asyncio

from drumline.clock import ManualClock
from drumline.engine.ahead import Ahead
from drumline.engine.execution import Reason
from drumline.engine.fetch import Fetcher
from drumline.engine.record import Recorder
from drumline.engine.run import Runner
from drumline.engine.slots import Limits
from drumline.errors import StoreUnreachable
from drumline.model.claim import ANY_QUEUE, Share
from drumline.policy.options import Executor
from tests.engine.kit import ME
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

POLL = 10.0
OF_ANOTHER: contextvars.ContextVar[str | None] = contextvars.ContextVar("of_another", default=None)


class Bench:
    """A fetcher that is stepped by hand; what it claims runs until the test says."""

    def __init__(self, kit, *, concurrency=4, threads=2, queues=(ANY_QUEUE,), most_unwritten=100):
        self.kit = kit
        self.seen = []
        self.gate = asyncio.Event()
        self.thread_gate = threading.Event()
        kit.task(self._wait, name="wait")
        kit.task(self._block, name="block")
        self.recorder = Recorder(
            kit.store,
            kit.executions,
            by=ME,
            clock=kit.clock,
            events=kit.events,
            on_outcome=lambda: None,
            on_written=lambda: None,
        )
        self.runner = Runner(
            kit.registry,
            kit.executions,
            concurrency=concurrency,
            threads=threads,
            clock=kit.clock,
            events=kit.events,
            on_start=lambda _: None,
            close=self.recorder.close,
            on_words=self.recorder.listen,
        )
        self.queues = queues
        self.most_unwritten = most_unwritten
        self.fetcher = self.make({Executor.COROUTINE: ["wait"]})

    def make(self, tasks):
        return Fetcher(
            self.kit.store,
            self.runner,
            self.recorder,
            replica=ME,
            queues=lambda: self.queues,
            tasks=tasks,
            most_unwritten=self.most_unwritten,
            poll=lambda: POLL,
            clock=self.kit.clock,
        )

    async def _wait(self) -> None:
        self.seen.append(OF_ANOTHER.get())
        await self.gate.wait()

    def _block(self) -> None:
        self.thread_gate.wait(10)

    async def free(self):
        """Let everything that runs come to its end."""
        self.gate.set()
        self.thread_gate.set()
        await eventually(lambda: not self.runner.running)
        self.gate.clear()
        self.thread_gate.clear()

    @property
    def claims(self):
        return self.kit.wire.asked("claim")

    @property
    def running(self):
        return sorted(execution.claim.task for execution in self.kit.executions)


@pytest_asyncio.fixture
async def bench(kit):
    made = Bench(kit)
    yield made
    await made.free()
    made.runner.shut()


async def test_as_much_is_claimed_as_there_is_room_for(bench, kit):
    for _ in range(10):
        kit.enqueue("wait")
    await bench.fetcher.step()
    assert bench.runner.running == 4
    assert bench.claims[0][:4] == (ME, [Share(ANY_QUEUE, 4)], 4, ["wait"])


async def test_queues_are_asked_in_the_order_given(kit):
    bench = Bench(kit, queues=("b", "a"))
    await bench.fetcher.step()
    assert bench.claims[0][1] == [Share("b", 4), Share("a", 4)]


async def test_without_room_nothing_is_asked_and_it_sleeps_until_woken(bench, kit):
    for _ in range(5):
        kit.enqueue("wait")
    await bench.fetcher.step()
    assert await bench.fetcher.step() is None
    assert len(bench.claims) == 1


async def test_each_executor_has_room_of_its_own(bench, kit):
    fetcher = bench.make({Executor.COROUTINE: ["wait"], Executor.THREAD: ["block"]})
    for _ in range(5):
        kit.enqueue("block")
    await fetcher.step()
    assert bench.running == ["block", "block"]
    fetcher.hint()
    await fetcher.step()
    assert [(given[2], given[3]) for given in bench.claims] == [(2, ["block", "wait"]), (2, ["wait"])]


async def test_at_rest_one_look_is_for_all_executors(bench, kit):
    fetcher = bench.make({Executor.COROUTINE: ["wait"], Executor.THREAD: ["block"]})
    assert await fetcher.step() == POLL
    kit.clock.advance(POLL)
    assert await fetcher.step() == POLL
    assert len(bench.claims) == 2
    kit.enqueue("block")
    kit.enqueue("wait")
    fetcher.hint()
    await fetcher.step()
    assert bench.running == ["block", "wait"]


async def test_jobs_start_in_their_order_whatever_their_executors(kit):
    bench = Bench(kit, concurrency=1)
    fetcher = bench.make({Executor.COROUTINE: ["wait"], Executor.THREAD: ["block"]})
    tasks = ["wait", "wait", "block", "wait", "block", "block"]
    for place, task in enumerate(tasks):
        kit.enqueue(task, using={"priority": -place})
    ran = []
    for _ in tasks:
        fetcher.hint()
        await fetcher.step()
        ran += bench.running
        kit.clock.advance(1)
        await bench.free()
        await bench.recorder.step()
    assert ran == tasks
    bench.runner.shut()


async def test_a_joint_look_whose_answer_was_lost_is_repeated_though_it_is_no_time_to_rest(bench, kit):
    fetcher = bench.make({Executor.COROUTINE: ["wait"], Executor.THREAD: ["block"]})
    kit.enqueue("block")
    kit.wire.lose_reply("claim", times=1)
    with pytest.raises(StoreUnreachable):
        await fetcher.step()
    assert fetcher.claiming
    bench.runner.resize(Limits(concurrency=4, threads=1, children=None))
    await fetcher.step()
    assert bench.running == ["block"]
    assert len({given[4] for given in bench.claims}) == 1
    assert not fetcher.claiming


async def test_a_full_claim_is_followed_by_another_as_soon_as_there_is_room(bench, kit):
    for _ in range(6):
        kit.enqueue("wait")
    await bench.fetcher.step()
    await bench.free()
    await bench.fetcher.step()
    assert len(bench.claims) == 2
    assert bench.runner.running == 2


async def test_a_slot_that_falls_free_after_a_short_look_costs_no_claim(bench, kit):
    kit.enqueue("wait")
    assert await bench.fetcher.step() == POLL
    await bench.free()
    kit.clock.advance(1)
    assert await bench.fetcher.step() == pytest.approx(POLL - 1)
    assert len(bench.claims) == 1


async def test_after_the_poll_interval_it_looks_again(bench, kit):
    await bench.fetcher.step()
    kit.clock.advance(POLL)
    assert await bench.fetcher.step() == POLL
    assert len(bench.claims) == 2


async def test_a_hint_leads_to_a_look_at_once(bench):
    await bench.fetcher.step()
    bench.fetcher.hint()
    await bench.fetcher.step()
    assert len(bench.claims) == 2


async def test_a_hint_during_a_claim_leads_to_another_look(bench, kit):
    hold = kit.wire.hold_reply("claim")
    step = asyncio.create_task(bench.fetcher.step())
    await eventually(lambda: hold.waiting)
    # Enqueued after the store has answered, and hinted at before the answer came.
    kit.enqueue("wait")
    bench.fetcher.hint()
    hold.let_go()
    pause = await step
    assert pause is not None
    assert pause <= 0
    await bench.fetcher.step()
    assert bench.runner.running == 1


async def test_it_sleeps_until_the_next_delayed_job_is_due(bench, kit):
    kit.enqueue("wait", using={"delay": "2500ms"})
    assert await bench.fetcher.step() == 2.5
    kit.clock.advance(2.5)
    await bench.fetcher.step()
    assert bench.runner.running == 1


async def test_it_never_sleeps_longer_than_the_poll_interval(bench, kit):
    kit.enqueue("wait", using={"delay": "1h"})
    assert await bench.fetcher.step() == POLL


async def test_the_same_token_is_used_until_an_answer_came(bench, kit):
    kit.enqueue("wait")
    kit.wire.lose_reply("claim", times=2)
    for _ in range(2):
        with pytest.raises(StoreUnreachable):
            await bench.fetcher.step()
        assert bench.fetcher.claiming
    await bench.fetcher.step()
    tokens = [given[4] for given in bench.claims]
    assert len(set(tokens)) == 1
    assert bench.runner.running == 1
    assert not bench.fetcher.claiming
    bench.fetcher.hint()
    await bench.fetcher.step()
    assert bench.claims[-1][4] != tokens[0]


async def test_after_an_error_it_looks_again_at_once(bench, kit):
    kit.enqueue("wait")
    kit.wire.fail("claim", times=1)
    with pytest.raises(StoreUnreachable):
        await bench.fetcher.step()
    await bench.fetcher.step()
    assert bench.runner.running == 1


async def test_claiming_is_true_while_a_call_is_under_way(bench, kit):
    hold = kit.wire.hold("claim")
    assert not bench.fetcher.claiming
    step = asyncio.create_task(bench.fetcher.step())
    await eventually(lambda: hold.waiting)
    assert bench.fetcher.claiming
    hold.let_go()
    await step
    assert not bench.fetcher.claiming


async def test_a_backlog_of_unwritten_outcomes_holds_up_claiming_until_it_is_written(kit):
    bench = Bench(kit, most_unwritten=2)
    for _ in range(4):
        kit.enqueue("wait")
    bench.gate.set()
    await bench.fetcher.step()
    await eventually(lambda: bench.recorder.backlog == 4)
    kit.enqueue("wait")
    bench.fetcher.hint()
    assert await bench.fetcher.step() is None
    assert len(bench.claims) == 1
    await bench.recorder.step()
    await bench.fetcher.step()
    assert len(bench.claims) == 2


async def test_times_are_reckoned_from_when_the_answer_came(bench, kit):
    job_id = kit.enqueue("wait")
    hold = kit.wire.hold_reply("claim")
    step = asyncio.create_task(bench.fetcher.step())
    await eventually(lambda: hold.waiting)
    kit.clock.advance(timedelta(seconds=5))
    hold.let_go()
    await step
    (execution,) = kit.executions
    assert execution.claim.id == job_id
    assert execution.now() == execution.claim.claimed_at


class Flood:
    """A fetcher on a flood of short tasks: slots fall free while it claims."""

    def __init__(self, kit, *, concurrency=4):
        self.kit = kit
        self.bench = Bench(kit, concurrency=concurrency)
        self.fetcher = self.bench.fetcher

    async def begin(self, jobs=20):
        """As many run as there are slots, and as many more are claimed and wait."""
        self.ids = [self.kit.enqueue("wait") for _ in range(jobs)]
        await self.fetcher.step()
        await self.bench.free()
        for _ in range(4):
            self.fetcher.end(Executor.COROUTINE, "default")
        self.kit.clock.advance(0.02)
        hold = self.kit.wire.hold("claim")
        step = asyncio.create_task(self.fetcher.step())
        await eventually(lambda: hold.waiting)
        self.kit.clock.advance(0.02)
        hold.let_go()
        await step
        await self.bench.recorder.step()
        await self.fetcher.step()
        assert self.bench.runner.running == 4
        return [execution for execution in self.kit.executions if execution.task is None]


@pytest_asyncio.fixture
async def flood(kit):
    made = Flood(kit)
    yield made
    made.fetcher.give_back()
    await made.bench.free()


async def test_in_a_flood_as_many_are_claimed_ahead_as_will_have_a_slot_when_the_answer_comes(flood):
    waiting = await flood.begin()
    assert len(waiting) == 4
    assert len(flood.bench.claims) == 3


async def test_where_claims_are_quick_they_are_large_all_the_same():
    clock = ManualClock()
    ahead = Ahead(clock, 500)
    clock.advance(1)
    for _ in range(1000):
        ahead.end()
    ahead.answered(clock.monotonic())
    assert ahead.most == 40


async def test_what_is_claimed_ahead_is_two_batches_at_most():
    clock = ManualClock()
    ahead = Ahead(clock, 10)
    clock.advance(1)
    for _ in range(1000):
        ahead.end()
    ahead.answered(clock.monotonic() - 1)
    assert ahead.most == 20


async def test_a_moment_in_which_nothing_ended_does_not_make_the_next_claim_small():
    clock = ManualClock()
    ahead = Ahead(clock, 500)
    clock.advance(1)
    for _ in range(1000):
        ahead.end()
    ahead.answered(clock.monotonic())
    clock.advance(0.025)
    ahead.answered(clock.monotonic())
    assert ahead.most == 30
    clock.advance(0.1)
    ahead.answered(clock.monotonic())
    assert ahead.most == 0


async def test_what_was_claimed_ahead_starts_when_a_slot_falls_free_without_asking_the_store(flood):
    waiting = await flood.begin()
    asked = len(flood.bench.claims)
    await flood.bench.free()
    flood.fetcher.end(Executor.COROUTINE, "default")
    await eventually(lambda: all(execution.task is not None for execution in waiting))
    assert len(flood.bench.claims) == asked


async def test_a_task_started_by_the_end_of_another_does_not_inherit_its_context(flood):
    await flood.begin()
    await flood.bench.free()
    contextvars.copy_context().run(lambda: (OF_ANOTHER.set("theirs"), flood.fetcher.end(Executor.COROUTINE, "default")))
    await eventually(lambda: len(flood.bench.seen) == 12)
    assert set(flood.bench.seen) == {None}


async def test_what_waits_for_a_slot_too_long_is_given_back_and_spends_no_attempt(flood, kit):
    waiting = await flood.begin()
    assert 0 < await flood.fetcher.step() <= 0.25
    kit.clock.advance(0.25)
    await flood.fetcher.step()
    await flood.bench.recorder.step()
    job = kit.job(waiting[0].claim.id)
    assert (job.state, job.attempt) == ("ready", 0)
    assert len(kit.executions) == 4


async def test_what_waits_and_is_cancelled_ends_without_a_slot(flood, kit):
    (first, *_) = await flood.begin()
    kit.cancel(first.claim.id)
    first.interrupt(Reason.CANCEL)
    flood.fetcher.end_interrupted()
    await eventually(lambda: flood.bench.recorder.backlog)
    await flood.bench.recorder.step()
    assert kit.state(first.claim.id) == "cancelled"


async def test_what_waits_and_was_lost_is_let_go_of(flood, kit):
    (first, *_) = await flood.begin()
    first.interrupt(Reason.LOST)
    flood.fetcher.end_interrupted()
    await eventually(lambda: kit.executions.get(first.claim.ref) is None)
    assert not flood.bench.recorder.backlog


async def test_slow_tasks_are_not_claimed_ahead(bench, kit):
    for _ in range(20):
        kit.enqueue("wait")
    await bench.fetcher.step()
    kit.clock.advance(10)
    await bench.free()
    await bench.recorder.step()
    for _ in range(4):
        bench.fetcher.end(Executor.COROUTINE, "default")
    hold = kit.wire.hold("claim")
    step = asyncio.create_task(bench.fetcher.step())
    await eventually(lambda: hold.waiting)
    kit.clock.advance(0.01)
    hold.let_go()
    await step
    await bench.fetcher.step()
    assert len(kit.executions) == 4
