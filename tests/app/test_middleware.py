"""The program's own code around every enqueue: it sees the jobs, may change them, and learns what became of them."""

import msgspec
import pytest

from drumline import BadOption, Drumline, KeyTaken, current
from drumline.events import JobEnqueued


@pytest.fixture
def drum():
    return Drumline("memory://")


def stamped(stamp):
    """A middleware that marks each job, and remembers what it saw."""
    seen: list[tuple[str, str, object]] = []

    def around(jobs):
        seen.append(("before", stamp, len(jobs)))
        meta = [{**job.meta, "stamps": [*job.meta.get("stamps", []), stamp]} for job in jobs]
        answer = yield [msgspec.structs.replace(job, meta=one) for job, one in zip(jobs, meta, strict=True)]
        seen.append(("after", stamp, [one.created for one in answer]))

    return around, seen


@pytest.mark.asyncio
async def test_middleware_changes_jobs_and_learns_what_became_of_them(drum):
    task = drum.task(name="ring")(_ring)
    around, seen = stamped("trace")
    drum.around_enqueue(around)
    job = await (await task.enqueue()).refresh()
    assert job.info.meta == {"stamps": ["trace"]}
    assert seen == [("before", "trace", 1), ("after", "trace", [True])]


@pytest.mark.asyncio
async def test_middleware_sees_the_ids_that_the_jobs_will_have(drum):
    seen: list[str] = []

    @drum.around_enqueue
    def watch(jobs):
        seen.extend(job.id for job in jobs)
        yield jobs

    @drum.task
    async def greet() -> None: ...

    calls = [greet.call() for _ in range(3)]
    assert [job.id for job in await drum.enqueue_many(calls[::-1])] == seen == sorted(seen)


def test_blocking_callers_pass_through_it_too(drum):
    task = drum.task(name="ring")(_ring)
    around, seen = stamped("trace")
    drum.around_enqueue(around)
    drum.enqueue_many_sync([task.call(), task.call()])
    assert seen == [("before", "trace", 2), ("after", "trace", [True, True])]


@pytest.mark.asyncio
async def test_the_first_one_added_is_outermost(drum):
    task = drum.task(name="ring")(_ring)
    for stamp in ("outer", "inner"):
        drum.around_enqueue(stamped(stamp)[0])
    job = await (await task.enqueue()).refresh()
    assert job.info.meta == {"stamps": ["outer", "inner"]}


@pytest.mark.asyncio
async def test_an_error_of_the_store_passes_through_it(drum):
    task = drum.task(name="ring")(_ring)
    met = []

    @drum.around_enqueue
    def around(jobs):
        try:
            yield jobs
        except KeyTaken as error:
            met.append(error)
            raise

    await task.using(key="once").enqueue()
    with pytest.raises(KeyTaken):
        await task.using(key="once", on_conflict="raise").enqueue()
    assert len(met) == 1


@pytest.mark.asyncio
async def test_middleware_that_loses_a_job_is_refused_and_nothing_is_enqueued(drum):
    task = drum.task(name="ring")(_ring)

    @drum.around_enqueue
    def around(jobs):
        yield jobs[1:]

    with pytest.raises(BadOption, match="middleware around enqueue: jobs must be as many as were given, 1, got 0"):
        await task.enqueue()
    assert (await drum.counts()).unfinished == 0


@pytest.mark.asyncio
async def test_a_failing_subscriber_harms_nothing(drum):
    task = drum.task(name="ring")(_ring)
    told: list[JobEnqueued] = []

    def fail(event):
        raise RuntimeError("a bug in a subscriber")

    drum.events.subscribe(fail)
    end = drum.events.subscribe(told.append)
    job = await task.enqueue()
    end()
    await task.enqueue()
    assert [event.job_id for event in told] == [job.id]


@pytest.mark.asyncio
@pytest.mark.parametrize("executor", ["coroutine", "thread"])
async def test_middleware_around_a_run_sees_the_context_and_may_change_the_result(drum, executor):
    async def shout(word: str) -> str:
        return word.upper()

    task = drum.task(executor=executor)(shout)
    met = []

    @drum.around_run
    async def outer(ctx, run):
        met.append(("outer", ctx.task))
        return f"<{await run()}>"

    @drum.around_run
    async def inner(ctx, run):
        met.append(("inner", current().job_id == ctx.job_id))
        return f"{await run()}!"

    job = await task.enqueue("hey")
    await drum.run(drain=True)
    assert await job.wait() == "<HEY!>"
    assert met == [("outer", "shout"), ("inner", True)]


@pytest.mark.asyncio
async def test_what_middleware_raises_counts_as_raised_by_the_task(drum):
    task = drum.task(name="ring", max_attempts=1)(_ring)

    @drum.around_run
    async def refuse(ctx, run):
        raise PermissionError("not today")

    job = await task.enqueue()
    await drum.run(drain=True)
    assert (await job.refresh()).info.last_error == "PermissionError: not today"


async def _ring() -> None:
    """Nothing to do."""
