import asyncio
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from drumline import Context, Drumline, JobDead, Retry, Snooze, current, testing


@pytest.fixture
def drum(tmp_path: Path) -> Drumline:
    return Drumline(f"sqlite:///{tmp_path}/production.db")


def test_a_plain_function_runs_in_the_callers_own_thread(drum):
    @drum.task
    def find_thread() -> int:
        return threading.get_ident()

    with testing.eager(drum):
        job = find_thread.enqueue_sync()
        assert (job.state, job.result) == ("done", threading.get_ident())


@pytest.mark.asyncio
async def test_a_coroutine_runs_on_the_callers_own_loop(drum):
    @drum.task
    async def find_loop() -> int:
        await asyncio.sleep(0)
        return id(asyncio.get_running_loop())

    @drum.task
    def find_thread() -> int:
        return threading.get_ident()

    with testing.eager(drum):
        assert (await find_loop.enqueue()).result == id(asyncio.get_running_loop())
        assert (await find_thread.enqueue()).result == threading.get_ident()


def test_a_coroutine_runs_for_a_blocking_caller_too(drum: Drumline):
    @drum.task
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    async def call_blocking_code() -> int:
        return double.enqueue_sync(number=21).result

    with testing.eager(drum):
        assert double.enqueue_sync(number=21).result == 42
        assert asyncio.run(call_blocking_code()) == 42


def test_attempts_follow_each_other_without_waiting(drum):
    @drum.task(backoff="1h", max_attempts=3)
    def flaky() -> int:
        if current().attempt < 3:
            raise Retry("not yet", after="24h")
        return current().attempt

    with testing.eager(drum) as seen:
        began = seen.now
        job = flaky.enqueue_sync()
        assert (job.result, len(job.info.attempts)) == (3, 3)
        # What would have been waited for has passed on the manual clock.
        assert (seen.now - began).days == 2
        assert seen.last_job.delay == timedelta()


def test_a_job_that_fails_to_the_last_is_dead_and_the_caller_goes_on(drum):
    @drum.task(max_attempts=2)
    async def broken() -> None:
        raise ValueError("never")

    with testing.eager(drum):
        job = broken.enqueue_sync()
        assert (job.state, job.info.last_error, len(job.info.attempts)) == ("dead", "ValueError: never", 2)
        with pytest.raises(JobDead, match="never"):
            _ = job.result


def test_a_delay_is_passed_over(drum):
    @drum.task
    def greet() -> str:
        return "hello"

    with testing.eager(drum) as seen:
        assert greet.using(delay="24h").enqueue_sync().result == "hello"
        seen.assert_enqueued(greet.using(delay="24h"))


def test_a_snoozed_job_is_left_waiting(drum):
    ran = []

    @drum.task
    def later() -> None:
        ran.append(1)
        raise Snooze("1h")

    with testing.eager(drum):
        assert later.enqueue_sync().state == "delayed"
    assert ran == [1]


def test_jobs_of_a_batch_and_of_jobs_run_where_they_are_enqueued(drum):
    ran = []

    @drum.task
    def note(text: str) -> None:
        ran.append(text)

    @drum.task
    async def parent(name: str) -> None:
        ran.append(f"{name} begins")
        await note.enqueue(text=f"{name}'s child")
        note.enqueue_sync(text=f"{name}'s other child")
        assert current().task == "parent"
        ran.append(f"{name} ends")

    with testing.eager(drum):
        jobs = drum.enqueue_many_sync([parent.call(name="Ada"), note.call(text="last")])
    assert [job.state for job in jobs] == ["done", "done"]
    assert ran == ["Ada begins", "Ada's child", "Ada's other child", "Ada ends", "last"]


def test_the_context_is_that_of_the_job(drum):
    @drum.task(tags=["nightly"])
    def work(ctx: Context) -> list[str]:
        ctx.log("half", rows=3)
        ctx.progress_sync(0.5)
        return [ctx.job_id, ctx.queue, ctx.state, *ctx.tags]

    with testing.eager(drum, state="fake"):
        job = work.using(queue="low", transaction=object()).enqueue_sync()
        assert job.result == [job.id, "low", "fake", "nightly"]
        assert job.info.progress.value == 0.5
        assert [line.message for line in drum.sync.jobs.logs(job.id)] == ["half"]
    assert current().job_id == ""


def test_what_a_test_itself_raises_inside_a_task_reaches_the_test(drum):
    @drum.task
    def fail() -> None:
        pytest.fail("seen")

    with testing.eager(drum), pytest.raises(pytest.fail.Exception, match="seen"):
        fail.enqueue_sync()


def test_a_job_that_cannot_run_here_waits(drum):
    @drum.task(queue="mail")
    def send() -> None: ...

    with testing.eager(drum):
        assert drum.stub("encode").enqueue_sync().state == "ready"
        assert drum.stub("send").enqueue_sync(unknown=1).state == "done"
        drum.sync.queues.pause("mail")
        assert send.enqueue_sync().state == "ready"


def test_arguments_of_another_shape_are_left_for_others(drum):
    @drum.task
    def greet(name: str) -> None: ...

    with testing.eager(drum):
        job = drum.stub("greet").enqueue_sync(name=7)
        assert (job.state, [attempt.ended for attempt in job.info.attempts]) == ("delayed", ["released"])


def test_the_own_store_is_back_afterwards(drum, tmp_path):
    @drum.task
    def greet() -> None: ...

    def break_off() -> None:
        with testing.eager(drum):
            greet.enqueue_sync()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    assert not (tmp_path / "production.db").exists()
    assert greet.enqueue_sync().state == "ready"
    assert drum.sync.counts().ready == 1
