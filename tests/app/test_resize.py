"""Limits that a program changes while it works."""

import pytest

from drumline import DrumlineError
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


async def test_the_limits_are_changed_from_within_a_task_of_any_executor(drum):
    @drum.task
    async def on_loop() -> None:
        drum.resize(concurrency=7)

    @drum.task
    def in_thread() -> None:
        drum.resize(threads=3)

    def slots():
        (worker,) = drum._workers  # noqa: SLF001
        return worker.limits.concurrency, worker.limits.threads

    @drum.task(max_attempts=1)
    async def look() -> list[int]:
        await eventually(lambda: slots() == (7, 3))
        return list(slots())

    jobs = [await on_loop.enqueue(), await in_thread.enqueue(), await look.enqueue()]
    await drum.run(drain=True)
    await drum.jobs.wait(jobs)
    assert await jobs[-1].wait() == [7, 3]


async def test_without_a_worker_in_this_process_there_is_nothing_to_change(drum):
    with pytest.raises(DrumlineError, match=r"no worker runs in this process: call drum.run\(\) first"):
        drum.resize(concurrency=1)
    await drum.run(drain=True)
    with pytest.raises(DrumlineError, match="no worker runs"):
        drum.resize(concurrency=1)


async def test_caps_and_reserved_slots_are_changed_too(drum):
    @drum.task
    async def limit() -> None:
        drum.resize(caps={"mail": 3}, reserved={"critical": 2})

    @drum.task(max_attempts=1)
    async def look() -> list[int]:
        (worker,) = drum.running_here
        await eventually(lambda: worker.rules)
        return [worker.rules.caps["mail"], worker.rules.reserved["critical"]]

    job = await look.enqueue()
    await limit.enqueue()
    await drum.run(drain=True)
    assert await job.wait() == [3, 2]
