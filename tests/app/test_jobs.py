"""Handles and the verbs on many jobs."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from drumline import BadOption, Context, Drumline, JobCancelled, JobDead, JobNotFound, JobState, client
from drumline.clock import ManualClock, fresh_id
from drumline.model.query import Answer
from tests.support.build import new_job
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


@pytest.fixture
def add(drum):
    @drum.task
    async def add(a: int, b: int = 1) -> tuple[int, str]:
        return a + b, "sum"

    return add


@pytest.fixture
def fail(drum):
    @drum.task(max_attempts=1)
    async def fail() -> None:
        raise ValueError("boom")

    return fail


async def ids_of(found):
    return {job.id async for job in found}


async def test_wait_gives_the_typed_result(drum, add):
    job = await add.enqueue(2)
    await drum.run(drain=True)
    assert await job.wait() == (3, "sum")
    assert (job.state, job.result, job.info.attempt) == (JobState.DONE, (3, "sum"), 1)


async def test_wait_wakes_when_the_job_ends(drum, add):
    job = await add.enqueue(2)
    waiting = asyncio.create_task(job.wait(timeout="20s"))
    await drum.run(drain=True)
    assert await asyncio.wait_for(waiting, 5) == (3, "sum")


async def test_wait_raises_for_a_dead_job_and_says_why(drum, fail):
    job = await fail.enqueue()
    await drum.run(drain=True)
    with pytest.raises(JobDead, match=f"job {job.id} of task fail is dead: ValueError: boom"):
        await job.wait()


async def test_wait_raises_for_a_cancelled_job(add):
    job = await add.enqueue(1)
    assert await job.cancel() is Answer.APPLIED
    with pytest.raises(JobCancelled):
        await job.wait()


async def test_wait_gives_up_after_its_time():
    clock = ManualClock()
    drum = Drumline("memory://", clock=clock)

    @drum.task
    async def greet() -> None: ...

    job = await greet.enqueue()
    waiting = asyncio.create_task(job.wait(timeout="25s"))

    def is_over():
        clock.advance(1)
        return waiting.done()

    await eventually(is_over)
    with pytest.raises(TimeoutError, match="1 of the jobs waited for have not ended in time"):
        waiting.result()


async def test_while_no_hints_arrive_wait_looks_every_second():
    clock = ManualClock()
    drum = Drumline("memory://", clock=clock)

    @drum.task
    async def greet() -> None: ...

    job = await greet.enqueue()
    store: Any = await drum.store()
    hub = store._hub  # noqa: SLF001
    waiting = asyncio.create_task(drum.jobs.wait([job]))
    await eventually(lambda: hub.topics)
    hub.go_deaf()
    hub.tell = lambda topics: None
    await job.cancel()

    def is_over():
        clock.advance(0.1)
        return waiting.done()

    await eventually(is_over)
    assert [job.state for job in await waiting] == ["cancelled"]
    assert clock.monotonic() < client.LOOK_EVERY


async def test_wait_of_a_job_that_does_not_exist_is_refused(drum):
    with pytest.raises(JobNotFound):
        await drum.jobs.wait([fresh_id()])


async def test_a_result_that_cannot_be_stored_is_given_as_its_repr(drum):
    @drum.task
    async def odd() -> object:
        return type

    job = await odd.enqueue()
    await drum.run(drain=True)
    assert await job.wait() == "<class 'type'>"
    assert job.info.result_is_repr


async def test_a_job_that_is_not_read_yet_says_so(add):
    job = await add.enqueue(1)
    with pytest.raises(JobNotFound, match=r"await job.refresh\(\) first"):
        _ = job.info
    await job.refresh()
    with pytest.raises(JobNotFound, match="no result yet: it is ready"):
        _ = job.result


async def test_a_handle_reads_its_log_lines(drum):
    @drum.task
    async def talk(ctx: Context) -> None:
        ctx.log("one", level="warning", rows=3)

    job = await talk.enqueue()
    await drum.run(drain=True)
    assert [(line.level, line.message, line.fields) for line in await job.logs()] == [("warning", "one", {"rows": 3})]


async def test_the_last_line_of_a_handle_says_that_the_lines_were_cut(drum):
    @drum.task
    async def chatter(ctx: Context) -> None:
        for number in range(1_100):
            ctx.log(f"line {number}")

    job = await chatter.enqueue()
    await drum.run(drain=True)
    lines = [line.message for line in await job.logs()]
    assert lines == [*(f"line {number}" for number in range(1_000)), "only the first 1,000 lines are kept"]


async def test_a_handle_moves_its_job(add):
    job = await add.enqueue(1)
    assert await job.reschedule(delay="1h") is Answer.APPLIED
    await job.refresh()
    assert (job.state, job.info.due_at - job.info.created_at >= timedelta(hours=1)) == (JobState.DELAYED, True)
    assert await job.reschedule(at="2000-01-01T00:00:00Z") is Answer.APPLIED
    assert (await job.refresh()).state is JobState.READY


async def test_a_move_needs_one_time_and_not_two(drum, add):
    job = await add.enqueue(1)
    for options in ({}, {"at": "2026-01-01T00:00:00Z", "delay": 1}):
        with pytest.raises(BadOption, match="reschedule: at must be given, or delay, but not both"):
            await drum.jobs.reschedule(job.id, **options)


async def test_get_gives_a_handle_that_was_read(drum, add):
    job = await add.enqueue(1)
    found = await drum.jobs.get(job.id)
    assert (found.id, found.state, found.created, found.info.task) == (job.id, JobState.READY, False, "add")
    with pytest.raises(JobNotFound, match="the id is wrong, or its retention is over"):
        await drum.jobs.get(fresh_id())


async def test_jobs_are_found_by_what_they_are(drum, add, fail):
    plain = await add.enqueue(1)
    origin = {"origin": "POST /orders", "meta": {"order": 7}}
    tagged = await add.using(tags=["red"], queue="mail", key="k", **origin).enqueue(2)
    dead = await fail.enqueue()
    await drum.queues.pause("mail", "default")
    await drum.queues.resume("default")
    await drum.jobs.reschedule(plain.id, delay=100)
    run = asyncio.create_task(drum.run(concurrency=1))
    await dead_of(dead)
    run.cancel()
    await asyncio.wait([run])
    assert await ids_of(drum.jobs.find(task="fail")) == {dead.id}
    assert await ids_of(drum.jobs.find(state="dead")) == {dead.id}
    assert await ids_of(drum.jobs.find(state=["dead", "delayed"])) == {dead.id, plain.id}
    assert await ids_of(drum.jobs.find(tag="red")) == {tagged.id}
    assert await ids_of(drum.jobs.find(queue="mail")) == {tagged.id}
    assert await ids_of(drum.jobs.find(key="k")) == {tagged.id}
    assert await ids_of(drum.jobs.find(origin="POST /orders")) == {tagged.id}
    assert await ids_of(drum.jobs.find(meta={"order": 7})) == {tagged.id}
    assert await ids_of(drum.jobs.find(error="boom")) == {dead.id}
    assert await ids_of(drum.jobs.find(id=[plain.id, dead.id])) == {plain.id, dead.id}
    assert await ids_of(drum.jobs.find(source="scheduled")) == set()
    assert await ids_of(drum.jobs.find()) == {plain.id, tagged.id, dead.id}


async def dead_of(job):
    with pytest.raises(JobDead):
        await job.wait(timeout="20s")


async def test_finding_goes_over_many_pages_newest_first_and_stops_at_the_limit(drum, add):
    jobs = await drum.enqueue_many([add.call(number) for number in range(250)])
    found = [job.id async for job in drum.jobs.find(task="add")]
    assert found == [job.id for job in reversed(jobs)]
    assert [job.id async for job in drum.jobs.find(limit=120)] == found[:120]


async def test_the_private_jobs_of_replicas_are_found_only_where_they_are_named(drum, add):
    public = await add.enqueue(1)
    store = await drum.store()
    private = [new_job("add", queue="@web-1:1", schedule="warm", args=b'{"a": 1}') for _ in range(120)]
    await store.enqueue(private)
    ids = {job.id for job in private}
    assert await ids_of(drum.jobs.find(task="add")) == {public.id}
    assert await ids_of(drum.jobs.find(task="add", limit=1)) == {public.id}
    assert await ids_of(drum.jobs.find(queue="@web-1:1")) == ids
    assert await ids_of(drum.jobs.find(schedule="warm")) == ids
    assert await ids_of(drum.jobs.find(id=[private[0].id])) == {private[0].id}
    assert await drum.jobs.cancel(state="ready") == {public.id: Answer.APPLIED}
    counts = await drum.counts()
    assert (list(counts.by_queue), counts.ready, counts.by_task["add"].ready) == (["default"], 120, 120)


async def test_a_state_that_does_not_exist_is_refused_by_name(drum):
    with pytest.raises(BadOption, match="state must be one of delayed, ready, running"):
        _ = [job async for job in drum.jobs.find(state="lost")]


async def test_a_source_that_does_not_exist_is_refused_by_name(drum):
    with pytest.raises(BadOption, match='source must be "scheduled" or "manual", got \'lost\''):
        _ = [job async for job in drum.jobs.find(source="lost")]


async def test_jobs_are_named_by_ids_or_handles_one_by_one_or_in_lists(drum, add):
    first, second, third, fourth = [await add.enqueue(number) for number in range(4)]
    answers = await drum.jobs.cancel(first, second.id, [third, fourth.id])
    assert answers == dict.fromkeys((job.id for job in (first, second, third, fourth)), Answer.APPLIED)
    assert await drum.jobs.retry([]) == {}
    with pytest.raises(BadOption, match="cancel: jobs must be ids or handles of jobs, or lists of them, got 7"):
        await drum.jobs.cancel([first, 7])


async def test_jobs_are_retried_by_id(drum, fail):
    job = await fail.enqueue()
    await drum.run(drain=True)
    assert await drum.jobs.retry(job.id, reason="mended") == {job.id: Answer.APPLIED}
    await job.refresh()
    assert (job.state, job.info.attempt, len(job.info.attempts)) == (JobState.READY, 0, 1)


async def test_jobs_are_retried_by_filter(drum, fail, add):
    jobs = [await fail.enqueue() for _ in range(3)]
    await drum.run(drain=True)
    waiting = await add.enqueue(1)
    answers = await drum.jobs.retry(state="dead")
    assert answers == dict.fromkeys((job.id for job in jobs), Answer.APPLIED)
    assert waiting.id not in answers


async def test_jobs_are_cancelled_by_filter_in_slices(drum, add, monkeypatch):
    monkeypatch.setattr("drumline.client.SLICE", 2)
    await drum.enqueue_many([add.using(queue="mail").call(number) for number in range(5)])
    other = await add.enqueue(1)
    assert set((await drum.jobs.cancel(queue="mail")).values()) == {Answer.APPLIED}
    counts = await drum.counts()
    assert (counts.by_queue["mail"].cancelled, counts.by_queue["default"].ready) == (5, 1)
    assert (await other.refresh()).state is JobState.READY


async def test_slices_of_one_act_refer_to_its_audit_row(drum, add, monkeypatch):
    monkeypatch.setattr("drumline.client.SLICE", 2)
    await drum.enqueue_many([add.call(number) for number in range(5)])
    await drum.jobs.cancel(state="ready", reason="a mistake")
    rows = (await (await drum.store()).audit()).items
    (whole,) = [row for row in rows if row.part_of is None]
    assert sorted(len(row.targets) for row in rows) == [1, 2, 2]
    assert [row.part_of for row in rows if row is not whole] == [whole.id] * 2


async def test_ended_jobs_are_discarded_and_others_are_not(drum, add):
    ended, waiting = await add.enqueue(1), await add.enqueue(2)
    await ended.cancel()
    answers = await drum.jobs.discard(ended.id, waiting.id)
    assert answers == {ended.id: Answer.APPLIED, waiting.id: Answer.REFUSED}
    with pytest.raises(JobNotFound):
        await ended.refresh()


async def test_jobs_are_moved_by_filter(drum, add):
    job = await add.using(key="k").enqueue(1)
    assert await drum.jobs.reschedule(key="k", delay="1h") == {job.id: Answer.APPLIED}
    assert (await job.refresh()).state is JobState.DELAYED


async def test_an_id_that_is_not_stored_answers_so(drum):
    missing = fresh_id()
    assert await drum.jobs.cancel(missing) == {missing: Answer.NOT_FOUND}


@pytest.mark.parametrize("verb", ["retry", "cancel", "discard"])
async def test_a_verb_needs_ids_or_a_filter_and_not_both(drum, add, verb):
    job = await add.enqueue(1)
    for ids, where in (((), {}), ((job.id,), {"state": "ready"})):
        with pytest.raises(BadOption, match=f"{verb}: jobs must be ids, or a filter"):
            await getattr(drum.jobs, verb)(*ids, **where)
    assert (await job.refresh()).state is JobState.READY


@pytest.mark.parametrize("verb", ["retry", "cancel", "discard"])
@pytest.mark.parametrize("where", [{"tag": None}, {"id": None, "state": None}, {"meta": {}}, {"error": ""}])
async def test_a_verb_refuses_a_filter_that_names_nothing(drum, add, verb, where):
    job = await add.enqueue(1)
    with pytest.raises(BadOption, match=f"{verb}: jobs must be chosen by a filter that names something"):
        await getattr(drum.jobs, verb)(**where)
    assert (await job.refresh()).state is JobState.READY


async def test_no_state_at_all_is_refused_and_not_every_state(drum, add):
    job = await add.enqueue(1)
    with pytest.raises(BadOption, match=r"state must be one of delayed, .* got \[\]"):
        await drum.jobs.cancel(state=[])
    assert (await job.refresh()).state is JobState.READY


async def test_an_empty_list_of_ids_is_no_job_and_not_every_job(drum, add):
    job = await add.enqueue(1)
    assert await ids_of(drum.jobs.find(id=[])) == set()
    assert await drum.jobs.cancel(id=[]) == {}
    assert (await job.refresh()).state is JobState.READY


@pytest.mark.parametrize("reason", ["a\0b", "\ud800", None])
async def test_a_reason_that_no_store_can_hold_is_refused(drum, add, reason):
    job = await add.enqueue(1)
    with pytest.raises(BadOption, match="reason must be text without NUL and without half characters"):
        await drum.jobs.cancel(job, reason=reason)
    with pytest.raises(BadOption, match="reason must be text without NUL"):
        await drum.queues.pause("default", reason=reason)
    assert (await job.refresh()).state is JobState.READY
    assert await drum.queues.paused() == {}


async def test_a_name_that_no_store_can_hold_is_refused(drum, add):
    named = drum.client(via="http", who="ad\0a")
    with pytest.raises(BadOption, match="who must be text without NUL"):
        await named.queues.pause("default")
    assert await drum.queues.paused() == {}


async def test_many_jobs_are_waited_for_together(drum, add, fail):
    jobs = [await add.enqueue(1), await fail.enqueue(), await add.enqueue(2)]
    waiting = asyncio.create_task(drum.jobs.wait([jobs[2], jobs[0].id, jobs[1]], timeout=20))
    await drum.run(drain=True)
    ended = await waiting
    assert [job.id for job in ended] == [jobs[2].id, jobs[0].id, jobs[1].id]
    assert [job.state for job in ended] == ["done", "done", "dead"]
    assert [job.id async for job in drum.jobs.as_ended([])] == []


@pytest.mark.parametrize("name", ["bad name!", "@private", ["mail"]])
async def test_a_name_that_no_queue_has_is_not_paused(drum, name):
    with pytest.raises(BadOption, match="queue must be 1 to 100 letters"):
        await drum.queues.pause("mail", name)
    assert await drum.queues.paused() == {}


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(drum, add):
    assert await drum.queues.pause("default", reason="maintenance") == [True]
    assert await drum.queues.pause("default") == [False]
    (by,) = (await drum.queues.paused()).values()
    assert by.why == "maintenance"
    job = await add.enqueue(1)
    run = asyncio.create_task(drum.run())
    other = await add.using(queue="other").enqueue(1)
    await other.wait(timeout="20s")
    assert (await job.refresh()).state is JobState.READY
    assert await drum.queues.resume("default") == [True]
    await job.wait(timeout="20s")
    run.cancel()
    await asyncio.wait([run])


async def test_counts_are_in_all_by_queue_and_by_task(drum, add, fail):
    await add.enqueue(1)
    await add.using(queue="mail", delay=100).enqueue(2)
    await (await fail.enqueue()).cancel()
    counts = await drum.counts()
    assert (counts.ready, counts.delayed, counts.cancelled, counts.unfinished) == (1, 1, 1, 2)
    assert counts.by_queue["mail"].delayed == 1
    assert (counts.by_task["add"].unfinished, counts.by_task["fail"].unfinished) == (2, 0)
