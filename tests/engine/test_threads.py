import asyncio
import gc
import threading
import weakref
from contextlib import asynccontextmanager
from contextvars import ContextVar

import pytest

from drumline.engine.threads import DaemonPool
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

colour: ContextVar[str] = ContextVar("colour", default="none")


def pool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("drumline-task-")]


@asynccontextmanager
async def pool_of(size: int):
    await eventually(lambda: not pool_threads())
    pool = DaemonPool(size)
    try:
        yield pool
    finally:
        pool.close()
        await eventually(lambda: not pool_threads())


async def test_a_function_runs_in_another_thread_and_its_answer_comes_back():
    async with pool_of(1) as pool:
        assert await pool.run(threading.current_thread) is not threading.main_thread()


async def test_an_error_comes_back_as_itself():
    def fail() -> None:
        raise KeyError("lost")

    async with pool_of(1) as pool:
        with pytest.raises(KeyError, match="lost"):
            await pool.run(fail)


async def test_a_function_sees_its_callers_context_variables_and_its_own_changes_stay_with_it():
    def paint() -> str:
        seen = colour.get()
        colour.set("green")
        return seen

    async with pool_of(1) as pool:
        colour.set("red")
        assert await pool.run(paint) == "red"
        assert await pool.run(paint) == "red"
        assert colour.get() == "red"


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, StopIteration, GeneratorExit, asyncio.CancelledError])
async def test_what_an_event_loop_takes_for_its_own_comes_back_as_an_ordinary_error(kind):
    def leave() -> None:
        raise kind("out")

    async with pool_of(1) as pool:
        with pytest.raises(RuntimeError, match=f"the task raised {kind.__name__}: out") as caught:
            await pool.run(leave)
        assert isinstance(caught.value.__cause__, kind)
        assert await pool.run(lambda: "alive") == "alive"


async def test_there_are_never_more_threads_than_the_pools_size():
    gate = threading.Event()
    async with pool_of(3) as pool:
        calls = [asyncio.create_task(pool.run(gate.wait)) for _ in range(10)]
        await eventually(lambda: len(pool_threads()) == 3)
        gate.set()
        assert await asyncio.gather(*calls) == [True] * 10
        assert len(pool_threads()) == 3


async def test_an_idle_thread_is_used_again():
    async with pool_of(5) as pool:
        first = await pool.run(threading.get_ident)
        # The answer comes a moment before its thread is counted as idle.
        await eventually(lambda: pool._idle == 1)  # noqa: SLF001
        assert await pool.run(threading.get_ident) == first


async def test_the_threads_are_daemons():
    async with pool_of(1) as pool:
        assert (await pool.run(threading.current_thread)).daemon


async def test_close_lets_idle_threads_go_at_once_and_busy_ones_when_they_are_through():
    gate = threading.Event()
    pool = DaemonPool(2)
    busy = asyncio.create_task(pool.run(gate.wait))
    await pool.run(lambda: None)
    pool.close()
    await eventually(lambda: len(pool_threads()) == 1)
    gate.set()
    assert await busy is True
    await eventually(lambda: not pool_threads())


async def test_a_smaller_pool_lets_idle_threads_go_now_and_busy_ones_when_they_are_through():
    gate = threading.Event()
    async with pool_of(4) as pool:
        busy = [asyncio.create_task(pool.run(gate.wait)) for _ in range(4)]
        await eventually(lambda: len(pool_threads()) == 4)
        pool.resize(2)
        gate.set()
        assert await asyncio.gather(*busy) == [True] * 4
        await eventually(lambda: len(pool_threads()) == 2)
        await eventually(lambda: pool._idle == 2)  # noqa: SLF001
        pool.resize(1)
        await eventually(lambda: len(pool_threads()) == 1)
        assert await pool.run(lambda: "served") == "served"


async def test_a_larger_pool_has_more_threads_at_once():
    gate = threading.Event()
    async with pool_of(1) as pool:
        pool.resize(3)
        calls = [asyncio.create_task(pool.run(gate.wait)) for _ in range(5)]
        await eventually(lambda: len(pool_threads()) == 3)
        gate.set()
        assert await asyncio.gather(*calls) == [True] * 5


async def test_calls_that_wait_in_a_pool_that_was_made_smaller_are_all_served():
    gate = threading.Event()
    async with pool_of(3) as pool:
        calls = [asyncio.create_task(pool.run(gate.wait)) for _ in range(12)]
        await eventually(lambda: len(pool_threads()) == 3)
        pool.resize(1)
        gate.set()
        assert await asyncio.gather(*calls) == [True] * 12
        await eventually(lambda: len(pool_threads()) == 1)


async def test_a_thread_the_system_refuses_is_not_counted(monkeypatch):
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with pool_of(1) as pool:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                await pool.run(lambda: None)
        assert await asyncio.wait_for(pool.run(lambda: "later"), 10) == "later"


async def test_an_answer_that_nobody_waits_for_any_more_harms_nothing():
    gate = threading.Event()
    async with pool_of(1) as pool:
        call = asyncio.create_task(pool.run(gate.wait))
        await eventually(lambda: len(pool_threads()) == 1)
        call.cancel()
        gate.set()
        assert await pool.run(lambda: "next") == "next"


async def test_a_thread_whose_event_loop_has_gone_ends_its_work_in_peace():
    gate, pool, ended = threading.Event(), DaemonPool(1), threading.Event()

    def work() -> None:
        gate.wait()
        ended.set()

    async def leave() -> None:
        asyncio.ensure_future(pool.run(work)).cancel()
        waiting = asyncio.ensure_future(pool.run(work))
        await eventually(lambda: bool(pool_threads()))
        waiting.cancel()

    await asyncio.to_thread(lambda: asyncio.run(leave()))
    gate.set()
    await eventually(ended.is_set)
    assert await pool.run(lambda: "alive") == "alive"
    pool.close()
    await eventually(lambda: not pool_threads())


async def test_an_idle_thread_keeps_nothing_of_the_last_task_alive():
    class Heavy:
        """What a task was given."""

    async def use(pool: DaemonPool) -> weakref.ref[Heavy]:
        heavy = Heavy()
        await pool.run(lambda: repr(heavy))
        return weakref.ref(heavy)

    async with pool_of(1) as pool:
        gone = await use(pool)

        def is_gone() -> bool:
            gc.collect()
            return gone() is None

        await eventually(is_gone)
