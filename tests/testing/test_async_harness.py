import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drumline import Drumline, DrumlineError, testing

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.asyncio


@pytest.fixture
def drum(tmp_path: Path) -> Drumline:
    return Drumline(f"sqlite:///{tmp_path}/production.db")


async def test_jobs_run_on_the_loop_of_the_test(drum):
    @drum.task
    async def find_loop() -> int:
        return id(asyncio.get_running_loop())

    async with testing.harness(drum) as harness:
        job = await find_loop.enqueue()
        (ended,) = await harness.run_until_idle()
    assert (ended.id, ended.result) == (job.id, id(asyncio.get_running_loop()))


async def test_plain_functions_run_too(drum):
    @drum.task
    def double(number: int) -> int:
        return 2 * number

    async with testing.harness(drum) as harness:
        job = await double.enqueue(number=21)
        await harness.run_until_idle()
        assert await job.wait() == 42


async def test_delays_and_retries_pass_with_the_time_of_the_harness(drum):
    @drum.task(backoff=["1h"], max_attempts=2)
    async def broken() -> None:
        raise ValueError("never")

    async with testing.harness(drum, now=NOON) as harness:
        await broken.using(delay="1h").enqueue()
        assert await harness.advance("1h") == []
        (ended,) = await harness.advance("2h")
    assert [attempt.started_at - NOON >= timedelta(hours=1) for attempt in ended.attempts] == [True, True]
    assert ended.state == "dead"


async def test_a_test_may_wait_for_a_job_while_time_is_moved(drum):
    @drum.task
    async def greet() -> str:
        return "hello"

    async with testing.harness(drum) as harness:
        job = await greet.using(delay="1h").enqueue()
        waiting = asyncio.create_task(job.wait(timeout="2h"))
        impatient = asyncio.create_task(job.wait(timeout="30m"))
        await harness.advance("1h")
        assert await waiting == "hello"
        with pytest.raises(TimeoutError):
            await impatient


async def test_time_passes_while_a_started_job_runs(drum):
    @drum.task(timeout="30s", max_attempts=1)
    async def endless() -> None:
        await asyncio.Event().wait()

    async with testing.harness(drum) as harness:
        await endless.enqueue()
        assert [job.state for job in await harness.start()] == ["running"]
        assert [job.state for job in await harness.advance("1m")] == ["dead"]


async def test_a_started_job_goes_on_when_the_test_lets_it(drum):
    go_on = asyncio.Event()

    @drum.task
    async def wait_for_it() -> str:
        await go_on.wait()
        return "through"

    async with testing.harness(drum) as harness:
        await wait_for_it.enqueue()
        await harness.start()
        assert await harness.advance("1h") == []
        go_on.set()
        assert [job.result for job in await harness.run_until_idle()] == ["through"]


async def test_the_own_store_is_back_after_an_error(drum):
    with pytest.raises(ZeroDivisionError):
        async with testing.harness(drum):
            raise ZeroDivisionError
    async with testing.harness(drum) as harness:
        assert harness.jobs == []


async def test_a_plain_with_in_async_code_is_refused_with_what_to_do(drum):
    with pytest.raises(DrumlineError, match="use `async with"), testing.harness(drum):
        pytest.fail("it was opened")
    async with testing.harness(drum):
        pass


async def test_what_still_runs_at_the_end_is_stopped(drum):
    cleaned = []

    @drum.task
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("stopped")

    async with testing.harness(drum) as harness:
        await endless.enqueue()
        await harness.start()
    assert cleaned == ["stopped"]


async def test_a_program_that_opens_its_drumline_in_a_lifespan_is_tested_as_it_is(drum: Drumline, tmp_path):
    """As a web app does: a module-level drum, opened and closed by the app's lifespan, enqueued to by a handler."""

    @drum.task(queue="mail")
    async def welcome(user_id: int) -> None: ...

    async def handle(user_id: int) -> str:
        return (await welcome.using(delay="24h").enqueue(user_id=user_id)).id

    async with testing.harness(drum) as harness:
        async with drum:
            job_id = await handle(42)
        assert harness.assert_enqueued(welcome.using(queue="mail", delay="24h"), user_id=42).id == job_id
        assert len(await harness.advance("24h")) == 1
    assert not (tmp_path / "production.db").exists()


async def test_an_app_in_memory_needs_no_harness_for_its_store():
    drum = testing.app()

    @drum.task
    async def greet() -> None: ...

    await greet.enqueue()
    assert (await drum.counts()).ready == 1
    assert (await drum.store()).kind == "memory"
