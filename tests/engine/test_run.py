import asyncio
import gc
import threading
from contextvars import ContextVar
from dataclasses import dataclass

import msgspec
import pytest

from drumline.engine.execution import Execution, Reason
from drumline.engine.run import Runner
from drumline.errors import GiveUp, Retry, Snooze
from drumline.events import JobStarted
from drumline.model.context import Context, current
from drumline.policy.options import Executor
from drumline.policy.verdict import Cancelled, Ending, Misfit, Raised, Returned, Stopped, TimedOut, Wish
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


class Stage:
    """A runner whose endings are kept for the test to see."""

    def __init__(self, kit, **options):
        self.kit = kit
        self.started: list[Execution] = []
        self.ended: list[tuple[Execution, Ending]] = []
        self.runner = Runner(
            kit.registry,
            kit.executions,
            **{"concurrency": 10, "threads": 4, **options},
            clock=kit.clock,
            events=kit.events,
            on_start=self.started.append,
            close=lambda execution, ending: self.ended.append((execution, ending)),
            on_words=lambda _: None,
        )

    def start(self, function, *, using=None, options=None, **arguments):
        name = self.kit.task(function, **(options or {}))
        claim = self.kit.claim_one(name, using=using, **arguments)
        self.runner.start(self.runner.hold(claim, self.kit.clock.monotonic()))
        return self.kit.executions.get(claim.ref)

    async def ending_of(self, execution):
        await eventually(lambda: any(one is execution for one, _ in self.ended))
        (ending,) = [ending for one, ending in self.ended if one is execution]
        return ending

    async def run(self, function, **given):
        return await self.ending_of(self.start(function, **given))


@pytest.fixture
def stage(kit):
    made = Stage(kit)
    yield made
    made.runner.shut()


def value_of(ending):
    assert isinstance(ending, Returned), ending
    return msgspec.json.decode(ending.result or b"")


async def test_a_coroutine_runs_on_the_event_loop(stage):
    async def where(name: str) -> list[object]:
        return [name, threading.current_thread() is threading.main_thread()]

    assert value_of(await stage.run(where, name="Ada")) == ["Ada", True]


async def test_nothing_of_what_has_ended_is_left_to_the_garbage_collector(stage):
    async def greet() -> str:
        return current().job_id

    async def fail() -> None:
        raise ValueError(current().job_id)

    def count() -> int:
        return len(current().job_id)

    def left() -> list[Execution]:
        return [one for one in gc.get_objects() if type(one) is Execution and one.claim.id in ids]

    ids = set()
    gc.collect()
    gc.disable()
    try:
        for function in (greet, fail, count):
            execution = stage.start(function)
            ids.add(execution.claim.id)
            await stage.ending_of(execution)
            stage.kit.executions.remove(execution)
            del execution
        stage.started.clear()
        stage.ended.clear()
        await eventually(lambda: not left())
    finally:
        gc.enable()


async def test_a_plain_function_runs_in_a_thread(stage):
    def where(name: str) -> list[object]:
        return [name, threading.current_thread() is threading.main_thread()]

    assert value_of(await stage.run(where, name="Ada")) == ["Ada", False]


async def test_an_async_function_in_a_thread_gets_an_event_loop_of_its_own(stage):
    here = asyncio.get_running_loop()

    async def where() -> list[object]:
        await asyncio.sleep(0)
        return [asyncio.get_running_loop() is here, current().task]

    assert value_of(await stage.run(where, options={"executor": "thread"})) == [False, "where"]


async def test_a_context_is_given_to_a_function_that_asks_for_one(stage):
    async def tell(ctx: Context, name: str) -> list[object]:
        return [
            ctx.job_id,
            ctx.task,
            ctx.queue,
            ctx.attempt,
            ctx.max_attempts,
            ctx.fence,
            list(ctx.tags),
            ctx.meta,
            name,
        ]

    using = {"queue": "mail", "max_attempts": 3, "tags": ["a"], "meta": {"b": 1}}
    execution = stage.start(tell, using=using, name="Ada")
    claim = execution.claim
    told = value_of(await stage.ending_of(execution))
    assert told == [claim.id, "tell", "mail", 1, 3, claim.fence, ["a"], {"b": 1}, "Ada"]


async def test_current_gives_the_same_context_in_any_helper(stage):
    def helper() -> str:
        return current().job_id

    async def on_loop() -> list[str]:
        return [helper(), await asyncio.to_thread(helper), await asyncio.create_task(asyncio.to_thread(helper))]

    def in_thread() -> list[str]:
        return [helper()]

    for function in (on_loop, in_thread):
        execution = stage.start(function)
        assert set(value_of(await stage.ending_of(execution))) == {execution.claim.id}
    assert current().job_id == ""


async def test_one_jobs_context_variables_do_not_reach_the_next(stage):
    colour: ContextVar[str] = ContextVar("colour", default="none")

    async def paint() -> str:
        seen = colour.get()
        colour.set("red")
        return seen

    assert value_of(await stage.run(paint)) == "none"
    assert value_of(await stage.run(paint)) == "none"


async def test_state_comes_from_the_runner(stage):
    stage.runner.state = {"pool": 1}

    async def look() -> object:
        return current().state

    assert value_of(await stage.run(look)) == {"pool": 1}


async def test_an_error_is_told_with_what_it_asks_for(stage):
    async def fail(how: str) -> None:
        raise {"plain": ValueError("x"), "retry": Retry(after=5), "give up": GiveUp(), "snooze": Snooze(5)}[how]

    wishes = {}
    for how in ("plain", "retry", "give up", "snooze"):
        ending = await stage.run(fail, how=how)
        assert isinstance(ending, Raised)
        wishes[how] = ending.wish
    assert wishes == {"plain": Wish.RETRY, "retry": Wish.RETRY, "give up": Wish.GIVE_UP, "snooze": Wish.SNOOZE}


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, StopIteration, GeneratorExit, asyncio.CancelledError])
async def test_an_exit_in_a_coroutine_fails_its_job_and_nothing_else(stage, kind):
    async def leave() -> None:
        raise kind(3)

    ending = await stage.run(leave)
    assert isinstance(ending, Raised)
    assert stage.runner.running == 0


async def test_a_run_that_is_thrown_away_with_its_event_loop_is_no_end_of_the_job(stage):
    async def wait() -> None:
        await asyncio.Event().wait()

    execution = stage.start(wait)
    await eventually(lambda: execution.has_begun)
    execution.task.get_coro().close()
    assert stage.ended == []


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, StopIteration, GeneratorExit, asyncio.CancelledError])
async def test_an_exit_in_a_thread_fails_its_job_and_nothing_else(stage, kind):
    def leave() -> None:
        raise kind(3)

    ending = await stage.run(leave)
    assert isinstance(ending, Raised)
    assert kind.__name__ in ending.failure.message
    assert stage.runner.running == 0


async def test_arguments_that_do_not_fit_are_told_as_a_misfit_and_the_task_is_not_called(stage, kit):
    called: list[object] = []

    async def old(count: str) -> None:
        called.append(count)

    async def new(count: int) -> None:
        called.append(count)

    kit.task(old, name="add")
    claim = kit.claim_one("add", count="many")
    kit.task(new, name="add")
    stage.runner.start(stage.runner.hold(claim, 0))
    ending = await stage.ending_of(kit.executions.get(claim.ref))
    assert isinstance(ending, Misfit)
    assert ending.failure.message == "task add: count: expected int, got str"
    assert called == []


@dataclass
class Picky:
    """A model whose own code fails in a way of its own on shapes that it does not know."""

    size: int
    strict = False

    def __post_init__(self) -> None:
        if Picky.strict:
            raise KeyError("size")


async def test_a_model_that_fails_in_its_own_way_on_stored_arguments_is_a_misfit_too(stage, kit, monkeypatch):
    async def pack(box: Picky) -> None: ...

    claim = kit.claim_one(kit.task(pack), box=Picky(1))
    monkeypatch.setattr(Picky, "strict", True)
    stage.runner.start(stage.runner.hold(claim, 0))
    assert isinstance(await stage.ending_of(kit.executions.get(claim.ref)), Misfit)
    assert stage.runner.room(Executor.COROUTINE) == 10


async def test_a_result_that_cannot_be_stored_does_not_fail_the_job(stage):
    async def odd() -> object:
        return object

    ending = await stage.run(odd)
    assert ending == Returned(b"\"<class 'object'>\"", is_repr=True)


async def test_room_is_limited_in_all_and_by_executor(kit):
    stage, gate, blocked = Stage(kit, concurrency=3, threads=2), asyncio.Event(), threading.Event()

    async def wait() -> None:
        await gate.wait()

    def block() -> None:
        blocked.wait(10)

    def rooms():
        return stage.runner.room(Executor.COROUTINE), stage.runner.room(Executor.THREAD)

    assert rooms() == (3, 2)
    stage.start(block)
    assert rooms() == (2, 1)
    stage.start(block)
    assert rooms() == (1, 0)
    stage.start(wait)
    assert rooms() == (0, 0)
    gate.set()
    blocked.set()
    await eventually(lambda: len(stage.ended) == 3)
    assert rooms() == (3, 2)
    stage.runner.shut()


async def test_there_are_no_more_thread_slots_than_slots(kit):
    stage = Stage(kit, concurrency=1, threads=32)
    assert stage.runner.room(Executor.THREAD) == 1


async def test_a_start_is_told_with_how_long_the_job_waited(stage, kit):
    async def greet() -> None: ...

    name = kit.task(greet)
    job_id = kit.enqueue(name)
    kit.clock.advance(2)
    (claim,) = kit.claim()
    received = kit.clock.monotonic()
    kit.clock.advance(0.5)
    stage.runner.start(stage.runner.hold(claim, received))
    await eventually(lambda: stage.ended)
    (event,) = kit.heard(JobStarted)
    assert (event.job_id, event.task, event.attempt, event.waited.total_seconds()) == (job_id, "greet", 1, 2.5)
    assert [execution.claim.id for execution in stage.started] == [job_id]


@pytest.mark.parametrize(
    ("reason", "expected"), [(Reason.CANCEL, Cancelled), (Reason.STOP, Stopped), (Reason.LOST, Stopped)]
)
async def test_an_interrupted_coroutine_runs_its_finally_and_ends_by_the_reason(stage, reason, expected):
    begun, cleaned = asyncio.Event(), []

    async def wait() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    execution = stage.start(wait)
    await begun.wait()
    execution.interrupt(reason)
    assert isinstance(await stage.ending_of(execution), expected)
    assert cleaned == [True]


async def test_a_coroutine_past_its_time_limit_is_told_as_such(stage):
    begun = asyncio.Event()

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    execution = stage.start(wait, using={"timeout": "1500ms"})
    await begun.wait()
    execution.interrupt(Reason.TIMEOUT)
    ending = await stage.ending_of(execution)
    assert isinstance(ending, TimedOut)
    assert (ending.failure.type, ending.failure.message) == ("TimeoutError", "ran longer than its time limit of 1.5 s")


@pytest.mark.parametrize(("reason", "expected"), [(Reason.CANCEL, Cancelled), (Reason.TIMEOUT, TimedOut)])
async def test_a_thread_that_was_told_to_stop_ends_by_the_reason_though_it_returns(stage, reason, expected):
    begun, gate = threading.Event(), threading.Event()

    def work(ctx: Context) -> str:
        begun.set()
        gate.wait(10)
        return "stopped" if ctx.cancelled else "went on"

    execution = stage.start(work, using={"timeout": 1})
    await eventually(begun.is_set)
    execution.interrupt(reason)
    assert stage.ended == []
    gate.set()
    assert isinstance(await stage.ending_of(execution), expected)


async def test_a_coroutine_that_was_told_to_stop_but_returned_its_value_is_done(stage):
    begun = asyncio.Event()

    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "through"
        return "never"

    execution = stage.start(stubborn)
    await begun.wait()
    execution.interrupt(Reason.STOP)
    assert value_of(await stage.ending_of(execution)) == "through"


@pytest.mark.parametrize("executor", ["coroutine", "thread"])
async def test_one_that_is_told_to_stop_before_it_began_never_begins_and_leaves_nothing_behind(stage, executor):
    called = []

    async def work() -> None:
        called.append(True)

    execution = stage.start(work, options={"executor": executor})
    # As a beat does that found the claim before its task took a first step.
    execution.interrupt(Reason.CANCEL)
    assert isinstance(await stage.ending_of(execution), Cancelled)
    assert called == []
    assert stage.runner.running == 0
    assert stage.runner.room(Executor.COROUTINE) == 10


async def test_release_gives_back_what_runs_and_a_thread_that_ends_later_is_not_heard(stage):
    begun, gate = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        gate.wait(10)

    execution = stage.start(work)
    await eventually(begun.is_set)
    stage.runner.release()
    assert stage.ended == [(execution, Stopped())]
    gate.set()
    await asyncio.wait([execution.task])
    assert stage.ended == [(execution, Stopped())]
    assert stage.runner.running == 0
