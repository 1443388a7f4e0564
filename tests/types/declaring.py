"""What a type checker must see of a declared task: parameters without the context, what a call and a job give."""

from collections.abc import Coroutine
from typing import Any, assert_type

from drumline import Call, Context, Drumline, JobHandle, Task

drum = Drumline("memory://")


@drum.task
async def bare(user_id: int, name: str = "x") -> str:
    return name * user_id


@drum.task()
async def empty(user_id: int) -> str:
    return str(user_id)


@drum.task(queue="mail", max_attempts=6, backoff="500ms", timeout="30s", tags=["a"])
async def with_options(user_id: int) -> list[str]:
    return [str(user_id)]


@drum.task
def plain(user_id: int) -> float:
    return float(user_id)


@drum.task(executor="thread")
def plain_with_options(user_id: int) -> float:
    return float(user_id)


@drum.task
async def with_context(ctx: Context, user_id: int) -> bool:
    return ctx.attempt > user_id


@drum.task(queue="mail")
async def with_context_and_options(ctx: Context, user_id: int) -> bool:
    return ctx.attempt > user_id


@drum.task
def plain_with_context(ctx: Context, user_id: int) -> bool:
    return ctx.attempt > user_id


@drum.task
async def without_result() -> None: ...


async def calling_runs_the_function() -> None:
    assert_type(await bare(1, name="y"), str)
    assert_type(await empty(1), str)
    assert_type(await with_options(1), list[str])
    assert_type(plain(1), float)
    assert_type(plain_with_options(1), float)
    assert_type(await with_context(1), bool)
    assert_type(await with_context_and_options(1), bool)
    assert_type(plain_with_context(1), bool)


async def enqueue_gives_a_handle_of_the_result() -> None:
    assert_type(await bare.enqueue(1, name="y"), JobHandle[str])
    assert_type(await with_options.enqueue(user_id=1), JobHandle[list[str]])
    assert_type(await plain.enqueue(1), JobHandle[float])
    assert_type(await with_context.enqueue(1), JobHandle[bool])
    assert_type(await with_context_and_options.enqueue(user_id=1), JobHandle[bool])
    assert_type(await plain_with_context.enqueue(1), JobHandle[bool])
    assert_type(await without_result.enqueue(), JobHandle[None])
    assert_type(plain.enqueue_sync(1), JobHandle[float])


async def waiting_gives_the_result() -> None:
    job = await with_options.enqueue(1)
    assert_type(await job.wait(timeout="10s"), list[str])
    assert_type(job.result, list[str])
    assert_type(await job.refresh(), JobHandle[list[str]])
    assert_type(drum.sync.wait(plain.enqueue_sync(1)), float)


async def using_keeps_the_types() -> None:
    later = with_context.using(delay="24h", priority=5, key="a").using(queue="mail")
    assert_type(await later.enqueue(1), JobHandle[bool])
    assert_type(await (await later.enqueue(user_id=1)).wait(), bool)
    assert_type(await later(1), bool)


async def calls_are_values() -> None:
    assert_type(bare.call(1), Call)
    assert_type(await drum.enqueue_many([bare.call(1), plain.call(2)]), list[JobHandle[Any]])


async def by_name_and_for_stubs_nothing_is_known() -> None:
    assert_type(await drum.enqueue("bare", user_id=1), JobHandle[Any])
    assert_type(drum.stub("encode", queue="video"), Task[..., Any, Any])


def a_task_is_a_value_of_its_types(task: Task[[int], Coroutine[Any, Any, str], str]) -> JobHandle[str]:
    return task.enqueue_sync(1)


a_task_is_a_value_of_its_types(empty)
