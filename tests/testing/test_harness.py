import asyncio
import contextlib
import contextvars
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drumline import Context, Drumline, DrumlineError, GiveUp, JobDead, JobNotFound, Retry, Snooze, current, testing
from drumline.testing import Harness
from tests.engine import process_tasks

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def drum(tmp_path: Path) -> Drumline:
    """A program's own Drumline, on a file that no test shall ever make."""
    return Drumline(f"sqlite:///{tmp_path}/production.db")


@pytest.fixture
def harness(drum: Drumline) -> Iterator[Harness]:
    with testing.harness(drum, now=NOON) as opened:
        yield opened


def test_a_ready_job_is_run_and_given_back_with_its_result(drum, harness):
    @drum.task
    async def double(number: int) -> int:
        return 2 * number

    job = double.enqueue_sync(number=21)
    (ended,) = harness.run_until_idle()
    assert (ended.id, ended.state, ended.result) == (job.id, "done", 42)
    assert harness.job(job).result == harness.last_job.result == 42


def test_a_task_for_a_child_process_runs_in_the_tests_own_where_its_fakes_are():
    with testing.harness(process_tasks.drum, state={"pid": "a fake"}) as harness:
        job = process_tasks.plain.enqueue_sync(n=3)
        process_tasks.state_pid.enqueue_sync()
        harness.run_until_idle()
        assert harness.job(job).result == (3, os.getpid())
        assert harness.last_job.info.result == b'"a fake"'


def test_a_plain_function_runs_in_a_thread(drum, harness):
    @drum.task
    def find_thread() -> str:
        return threading.current_thread().name

    find_thread.enqueue_sync()
    assert harness.run_until_idle()[0].result.startswith("drumline-task")


def test_a_delayed_job_runs_when_its_time_has_come_and_not_before(drum, harness):
    @drum.task
    async def remind() -> None: ...

    job = remind.using(delay="24h").enqueue_sync()
    assert harness.run_until_idle() == []
    assert harness.advance("23h59m") == []
    assert harness.job(job).state == "delayed"
    assert [ended.id for ended in harness.advance("1m")] == [job.id]
    assert harness.job(job).attempts[0].started_at == harness.now == NOON + timedelta(days=1)


def test_advance_runs_each_job_at_its_own_time(drum, harness):
    times = []

    @drum.task
    async def note() -> None:
        times.append(harness.now)

    for minutes in (30, 10, 20):
        note.using(at=NOON + timedelta(minutes=minutes)).enqueue_sync()
    harness.advance("1h")
    assert times == [NOON + timedelta(minutes=minutes) for minutes in (10, 20, 30)]
    assert harness.now == NOON + timedelta(hours=1)


def test_jobs_of_one_instant_run_one_after_the_other_in_the_order_of_a_worker(drum, harness):
    ran = []

    @drum.task
    def in_thread(name: str) -> None:
        ran.append(name)

    @drum.task
    async def on_loop(name: str) -> None:
        ran.append(f"{name} begins")
        await asyncio.sleep(0)
        ran.append(f"{name} ends")

    in_thread.enqueue_sync(name="last")
    on_loop.using(priority=5).enqueue_sync(name="first")
    in_thread.using(priority=3).enqueue_sync(name="second")
    on_loop.using(priority=1).enqueue_sync(name="third")
    harness.run_until_idle()
    assert ran == ["first begins", "first ends", "second", "third begins", "third ends", "last"]


def test_a_failed_job_waits_for_its_back_off_and_is_tried_again(drum, harness):
    @drum.task(backoff=["1m", "10m"], max_attempts=3)
    async def flaky(ctx: Context) -> str:
        if ctx.attempt < 3:
            raise ConnectionError("no answer")
        return "at last"

    flaky.using().enqueue_sync()
    assert harness.run_until_idle() == []
    assert harness.last_job.error == "ConnectionError: no answer"
    (ended,) = harness.advance("1h")
    assert [attempt.ended for attempt in ended.attempts] == ["failed", "failed", "done"]
    first, second, third = (attempt.started_at for attempt in ended.attempts)
    assert first == NOON
    assert timedelta(minutes=1) <= second - first <= timedelta(minutes=1.25)
    assert timedelta(minutes=10) <= third - second <= timedelta(minutes=12.5)


def test_a_job_that_fails_to_the_last_is_dead_with_its_error(drum, harness):
    @drum.task(max_attempts=2, backoff="1s")
    def broken() -> None:
        raise ValueError("never")

    broken.enqueue_sync()
    (ended,) = harness.advance("5s")
    assert (ended.state, ended.error, len(ended.attempts)) == ("dead", "ValueError: never", 2)
    assert "raise ValueError" in ended.attempts[-1].error.traceback
    with pytest.raises(JobDead, match="never"):
        _ = ended.result


def test_what_a_task_asks_for_is_obeyed(drum, harness):
    @drum.task
    async def ask(ctx: Context, times: list[str]) -> None:
        times.append("not kept: arguments are decoded anew")
        if harness.now == NOON:
            raise Snooze("1h")
        if ctx.attempt == 1:
            raise Retry("again", after="2h")
        raise GiveUp("enough")

    ask.enqueue_sync(times=[])
    assert harness.advance("1h") == []
    assert [attempt.ended for attempt in harness.last_job.attempts] == ["snoozed", "failed"]
    assert harness.advance("119m") == []
    assert [job.state for job in harness.advance("1m")] == ["dead"]


def test_jobs_that_a_job_enqueues_run_too(drum, harness):
    @drum.task
    async def count_down(left: int) -> None:
        if left:
            await count_down.enqueue(left=left - 1)

    count_down.enqueue_sync(left=3)
    assert [job.args["left"] for job in harness.run_until_idle()] == [3, 2, 1, 0]


@pytest.mark.parametrize("colour", ["async", "plain"])
def test_a_job_may_wait_for_a_job_that_is_delayed(drum: Drumline, harness, colour):
    @drum.task
    async def child() -> str:
        return "grown"

    @drum.task
    async def async_parent() -> str:
        job = await child.using(delay="5m").enqueue()
        return await job.wait(timeout="10m")

    @drum.task
    def plain_parent() -> str:
        return drum.sync.wait(child.using(delay="5m").enqueue_sync(), timeout="10m")

    (async_parent if colour == "async" else plain_parent).enqueue_sync()
    assert harness.run_until_idle() == []
    assert [job.state for job in harness.jobs] == ["running", "delayed"]
    assert [job.result for job in harness.advance("5m")] == ["grown", "grown"]


@pytest.mark.parametrize("colour", ["async", "plain"])
def test_a_job_that_waits_too_long_for_another_meets_its_timeout(drum, harness, colour):
    @drum.task(max_attempts=1)
    async def async_parent() -> None:
        job = await async_parent.using(delay="1h").enqueue()
        await job.wait(timeout="10m")

    @drum.task(max_attempts=1)
    def plain_parent() -> None:
        drum.sync.wait(plain_parent.using(delay="1h").enqueue_sync(), timeout="10m")

    (async_parent if colour == "async" else plain_parent).enqueue_sync()
    assert harness.advance("599s") == []
    assert [job.error.partition(":")[0] for job in harness.advance("1s")] == ["TimeoutError"]


def test_time_passes_while_a_started_job_runs_and_ends_it_at_its_limit(drum, harness):
    cleaned = []

    @drum.task(timeout="30s", max_attempts=1)
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(harness.now)

    endless.enqueue_sync()
    (started,) = harness.start()
    assert started.state == "running"
    assert harness.advance("29s") == []
    (ended,) = harness.advance("1h")
    assert (ended.state, ended.error) == ("dead", "TimeoutError: ran longer than its time limit of 30 s")
    assert cleaned == [NOON + timedelta(seconds=30)]


def test_a_thread_past_its_limit_is_told_and_recorded_when_it_ends(drum, harness):
    @drum.task(timeout="300ms", max_attempts=1)
    def patient() -> None:
        while not current().cancelled:
            threading.Event().wait(0.001)

    patient.enqueue_sync()
    harness.start()
    (ended,) = harness.advance("1s")
    assert [attempt.ended for attempt in ended.attempts] == ["timeout"]


def test_a_started_job_outlives_its_lease(drum, harness):
    go_on = asyncio.Event()

    @drum.task(lease="10s")
    async def long() -> str:
        await go_on.wait()
        return "held"

    long.enqueue_sync()
    harness.start()
    harness.advance("1h")
    go_on.set()
    (ended,) = harness.run_until_idle()
    assert (ended.result, len(ended.attempts)) == ("held", 1)


def test_a_running_job_can_be_cancelled(drum, harness):
    @drum.task
    async def endless() -> None:
        await asyncio.Event().wait()

    job = endless.enqueue_sync()
    harness.start()
    drum.sync.jobs.cancel(job.id)
    assert [ended.state for ended in harness.run_until_idle()] == ["cancelled"]


def test_a_paused_queue_gives_no_jobs(drum, harness):
    @drum.task(queue="mail")
    async def send() -> None: ...

    send.enqueue_sync()
    drum.sync.queues.pause("mail")
    assert harness.advance("1h") == []
    drum.sync.queues.resume("mail")
    assert len(harness.run_until_idle()) == 1


def test_a_job_of_another_program_stays_where_it_is(drum, harness):
    drum.stub("encode", queue="video").enqueue_sync(file="a.mov")
    assert harness.advance("1h") == []
    assert (harness.last_job.state, harness.last_job.args) == ("ready", {"file": "a.mov"})


def test_arguments_of_a_shape_that_is_gone_are_left_for_others(drum, harness):
    drum.stub("greet").enqueue_sync(name=7)

    @drum.task
    async def greet(name: str) -> None: ...

    assert harness.run_until_idle() == []
    assert harness.last_job.state == "delayed"
    assert "name: expected str, got int" in harness.last_job.error


def test_log_progress_and_context_are_those_of_the_job(drum, harness):
    @drum.task(tags=["nightly"])
    async def work(ctx: Context) -> list[str]:
        ctx.log("half", rows=3)
        await ctx.progress(0.5, "half way")
        return [ctx.job_id, ctx.queue, *ctx.tags]

    job = work.using(queue="low", meta={"by": "Ada"}).enqueue_sync()
    (ended,) = harness.run_until_idle()
    assert ended.result == [job.id, "low", "nightly"]
    assert (ended.info.progress.value, ended.info.meta) == (0.5, {"by": "Ada"})
    assert [(line.message, line.fields) for line in drum.sync.jobs.logs(job.id)] == [("half", {"rows": 3})]


def test_jobs_do_not_see_the_context_variables_of_the_test(drum, harness):
    variable = contextvars.ContextVar("variable", default="unset")

    @drum.task
    async def look() -> str:
        return variable.get()

    variable.set("by the test")
    look.enqueue_sync()
    assert harness.run_until_idle()[0].result == "unset"


def test_jobs_get_the_state_that_the_lifespan_yields(tmp_path):
    steps = []

    @contextlib.asynccontextmanager
    async def open_pool():
        # May only be left by the task that entered it.
        async with asyncio.timeout(60):
            steps.append("opened")
            yield "pool"
            steps.append("closed")

    drum = Drumline(f"sqlite:///{tmp_path}/production.db", lifespan=open_pool)

    @drum.task
    async def use(ctx: Context) -> str:
        return str(ctx.state)

    with testing.harness(drum) as harness:
        use.enqueue_sync()
        assert harness.run_until_idle()[0].result == "pool"
        assert steps == ["opened"]
    assert steps == ["opened", "closed"]
    with testing.harness(drum, state="fake") as harness:
        use.enqueue_sync()
        assert harness.run_until_idle()[0].result == "fake"
    assert steps == ["opened", "closed"]


def test_a_lifespan_that_fails_gives_everything_back(tmp_path):
    class Broken(contextlib.AbstractAsyncContextManager[None]):
        async def __aenter__(self) -> None:
            raise ConnectionError("no pool")

        async def __aexit__(self, *exc: object) -> None: ...

    drum = Drumline(f"sqlite:///{tmp_path}/production.db", lifespan=Broken)
    for _ in range(2):
        with pytest.raises(ConnectionError, match="no pool"), testing.harness(drum):
            pytest.fail("it was opened")


def test_after_the_harness_the_program_has_its_own_store_and_clock_back(tmp_path):
    drum = Drumline(f"sqlite:///{tmp_path}/production.db")

    @drum.task
    async def greet() -> None: ...

    before = greet.enqueue_sync()
    with testing.harness(drum, now=NOON):
        assert drum.sync.counts().unfinished == 0
        inside = greet.enqueue_sync()
    assert drum.sync.counts().unfinished == 1
    assert drum.sync.jobs.get(before.id).info.created_at != NOON
    with pytest.raises(JobNotFound):
        drum.sync.jobs.get(inside.id)


def test_the_own_store_is_back_also_after_an_error(drum, tmp_path):
    with pytest.raises(ZeroDivisionError), testing.harness(drum):
        raise ZeroDivisionError
    with testing.harness(drum) as harness:
        assert harness.jobs == []
    assert not (tmp_path / "production.db").exists()


def test_a_program_that_closes_its_store_does_not_fall_back_to_the_real_one(drum, harness, tmp_path):
    @drum.task
    async def greet() -> None: ...

    async def serve() -> None:
        async with drum:
            await greet.enqueue()

    asyncio.run(serve())
    greet.enqueue_sync()
    assert len(harness.jobs) == 2
    assert not (tmp_path / "production.db").exists()


def test_each_harness_begins_with_nothing(drum):
    @drum.task
    async def greet() -> None: ...

    for _ in range(2):
        with testing.harness(drum) as harness:
            greet.enqueue_sync()
            assert len(harness.jobs) == 1


def test_a_second_harness_inside_the_first_is_refused(drum, harness):
    with pytest.raises(DrumlineError, match="cannot be nested"), testing.harness(drum):
        pytest.fail("it was opened")
    with pytest.raises(DrumlineError, match="cannot be nested"), testing.eager(drum):
        pytest.fail("it was opened")
    assert harness.run_until_idle() == []


def test_a_harness_of_another_program_may_be_open_at_the_same_time(harness, tmp_path):
    other = Drumline(f"sqlite:///{tmp_path}/other.db")

    @other.task
    async def greet() -> None: ...

    with testing.harness(other) as second:
        greet.enqueue_sync()
        assert len(second.run_until_idle()) == 1
    assert harness.jobs == []


def test_what_still_runs_at_the_end_is_stopped(drum):
    cleaned = []

    @drum.task
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(current().stopping)

    with testing.harness(drum) as harness:
        endless.enqueue_sync()
        harness.start()
    assert cleaned == [True]


def test_a_job_that_takes_real_time_for_ever_is_named(drum):
    @drum.task
    async def endless() -> None:
        await asyncio.Event().wait()

    with testing.harness(drum, patience="10ms") as harness:
        job = endless.enqueue_sync()
        with pytest.raises(TimeoutError, match=rf"0.01 s of real time: job {job.id} of task endless\. .*start\(\)"):
            harness.run_until_idle()


def test_a_job_that_is_forgotten_meanwhile_is_not_given_back(drum, harness):
    @drum.task
    async def greet() -> None: ...

    @drum.task(priority=-1)
    async def tidy() -> None:
        await drum.jobs.discard(task="greet")

    greet.enqueue_sync()
    tidy.enqueue_sync()
    assert [job.task for job in harness.run_until_idle()] == ["tidy"]


def test_jobs_that_make_each_other_without_end_are_found_out(drum, monkeypatch):
    monkeypatch.setattr("drumline.testing.steps.MOST_CLAIMS", 50)

    @drum.task
    async def again() -> None:
        await again.enqueue()

    with testing.harness(drum) as harness:
        again.enqueue_sync()
        with pytest.raises(RuntimeError, match="without end"):
            harness.run_until_idle()


def test_a_job_of_a_transaction_is_there_at_once(drum, harness):
    @drum.task
    async def greet() -> None: ...

    greet.using(transaction=object()).enqueue_sync()
    assert len(harness.run_until_idle()) == 1


def test_time_begins_at_the_present_unless_it_is_given(drum):
    with testing.harness(drum) as harness:
        assert abs(harness.now - datetime.now(UTC)) < timedelta(minutes=5)
    with testing.harness(drum, now="2026-03-01T13:00:00+01:00") as harness:
        assert harness.now == harness.clock.now() == NOON


@pytest.mark.parametrize("by", [-1, "soon", None])
def test_a_wrong_duration_is_refused(harness, by):
    with pytest.raises(ValueError, match="by must be a duration"):
        harness.advance(by)


def test_a_day_of_delays_and_retries_runs_in_order(drum, harness):
    """Every ten minutes a poll that enqueues the next; every sixth fails once, and is tried again a minute later."""
    ran: list[tuple[int, int]] = []

    @drum.task(backoff=["1m"], max_attempts=2)
    async def poll(ctx: Context, number: int) -> int:
        ran.append((number, ctx.attempt))
        if ctx.attempt == 1:
            await poll.using(delay="10m").enqueue(number=number + 1)
        if number % 6 == 0 and ctx.attempt == 1:
            raise ConnectionError
        return number

    @drum.task
    def report(hour: int) -> None:
        ran.append((-hour, 1))

    poll.using(delay="10m").enqueue_sync(number=1)
    drum.enqueue_many_sync(report.using(delay=f"{hour}h").call(hour=hour) for hour in range(1, 25))
    ended = harness.advance("24h")

    assert [job.state for job in ended] == ["done"] * len(ended)
    # The last poll, at 24:00, is yet to be tried again.
    assert len(ended) == 143 + 24
    polls = [(number, attempt) for number, attempt in ran if number > 0 and attempt == 1]
    assert polls == [(number, 1) for number in range(1, 145)]
    assert [number for number, attempt in ran if attempt == 2] == list(range(6, 144, 6))
    assert [number for number, _ in ran if number < 0] == list(range(-1, -25, -1))
    assert harness.now == NOON + timedelta(days=1)
