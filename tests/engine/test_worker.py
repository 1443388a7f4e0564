"""A worker as a whole: how it begins, what it makes of jobs, when it stops by itself."""

import asyncio
import signal
import threading
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import pytest

from drumline.clock import fresh_id
from drumline.errors import GiveUp, Retry, Snooze, StoreUnreachable
from drumline.events import LoopFailed, ReplicaStarted, ReplicaStopped
from drumline.model.context import Context
from drumline.model.job import Progress
from drumline.model.query import By, PauseKind
from drumline.model.replica import Role
from tests.engine.kit import OTHER
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


async def greet(name: str = "you") -> str:
    return f"hello {name}"


async def test_a_job_is_run_and_its_result_kept(kit):
    job_id = kit.enqueue(kit.task(greet), name="Ada")
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "done")
    job = kit.job(job_id)
    assert (job.result, job.attempt, kit.ends(job_id)) == (b'"hello Ada"', 1, ["done"])


async def test_a_job_that_comes_while_it_works_is_run_at_once(kit):
    name = kit.task(greet)
    async with kit.working():
        await eventually(lambda: kit.wire.asked("claim"))
        job_id = kit.enqueue(name)
        await eventually(lambda: kit.state(job_id) == "done")


async def test_many_jobs_of_both_executors_are_all_run(kit):
    def count() -> None: ...

    names = [kit.task(greet), kit.task(count)]
    ids = [kit.enqueue(names[number % 2]) for number in range(300)]
    async with kit.working(concurrency=7, threads=3):
        await eventually(lambda: all(kit.state(job_id) == "done" for job_id in ids))
    assert {kit.job(job_id).attempt for job_id in ids} == {1}


async def test_the_first_beat_comes_before_the_first_claim(kit):
    kit.enqueue(kit.task(greet))
    async with kit.working():
        await eventually(lambda: kit.wire.asked("claim"))
    names = [name for name, _ in kit.wire.calls]
    assert names.index("beat") < names.index("claim")


async def test_a_replica_registers_with_what_it_is(kit):
    kit.task(greet)
    async with kit.working(queues=("mail", "default"), concurrency=7, role=Role.WORKER, version="1.2") as worker:
        await eventually(lambda: worker.id in kit.workers())
        info = kit.workers()[worker.id].info
    assert (info.name, info.role, info.queues, info.tasks) == ("me", Role.WORKER, ("mail", "default"), ("greet",))
    assert (info.slots, info.version) == (7, "1.2")
    assert worker.id.startswith("me:")


async def test_two_lives_of_one_name_have_different_ids(kit):
    assert kit.worker().id != kit.worker().id


async def test_its_beginning_and_its_end_are_told(kit):
    async with kit.working() as worker:
        await eventually(lambda: kit.heard(ReplicaStarted))
    assert kit.heard(ReplicaStarted)[0].replica == worker.id
    assert kit.heard(ReplicaStopped) == [ReplicaStopped(worker.id)]


async def test_without_a_store_it_does_not_begin_and_what_was_opened_is_closed(kit):
    closed = []

    @asynccontextmanager
    async def lifespan():
        try:
            yield
        finally:
            closed.append(True)

    kit.wire.fail("beat")
    with pytest.raises(StoreUnreachable):
        await kit.worker(lifespan=lifespan).run()
    assert closed == [True]


async def test_the_lifespan_is_opened_before_the_first_job_and_closed_after_the_last(kit):
    story = []

    @asynccontextmanager
    async def lifespan():
        story.append("open")
        yield {"pool": "ours"}
        story.append("close")

    async def use(ctx: Context) -> None:
        story.append(ctx.state["pool"])

    job_id = kit.enqueue(kit.task(use))
    async with kit.working(lifespan=lifespan):
        await eventually(lambda: kit.state(job_id) == "done")
    assert story == ["open", "ours", "close"]


async def test_a_lifespan_that_fails_keeps_it_from_beginning(kit):
    @asynccontextmanager
    async def lifespan():
        if kit:
            raise ValueError("no database")
        yield

    with pytest.raises(ValueError, match="no database"):
        await kit.worker(lifespan=lifespan).run()
    assert kit.wire.calls == []


async def test_signals_are_caught_from_the_beginning_so_that_a_slow_start_can_be_stopped(kit):
    caught = []

    @asynccontextmanager
    async def lifespan():
        caught.append(signal.getsignal(signal.SIGTERM))
        yield
        caught.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    async with kit.working(lifespan=lifespan):
        await eventually(lambda: kit.wire.asked("claim") or kit.heard(ReplicaStarted))
    assert len(caught) == 2
    assert before not in caught
    assert signal.getsignal(signal.SIGTERM) == before


async def test_outside_the_main_thread_it_works_without_signals(kit):
    job_id = kit.enqueue(kit.task(greet))

    async def run():
        async with kit.working():
            await eventually(lambda: kit.state(job_id) == "done")

    await asyncio.to_thread(lambda: asyncio.run(run()))


async def test_only_the_named_queues_are_served(kit):
    name = kit.task(greet)
    other, mine = kit.enqueue(name, using={"queue": "other"}), kit.enqueue(name, using={"queue": "mail"})
    async with kit.working(queues=("mail",)):
        await eventually(lambda: kit.state(mine) == "done")
        assert kit.state(other) == "ready"


async def test_an_unknown_task_is_left_for_others_and_no_attempt_is_spent(kit):
    known = kit.task(greet)
    strange = kit.enqueue(kit.task(greet, name="strange"))
    del kit.registry["strange"]
    job_id = kit.enqueue(known)
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "done")
        assert (kit.state(strange), kit.job(strange).attempt, kit.ends(strange)) == ("ready", 0, [])


async def test_a_job_stored_under_an_alias_is_run(kit):
    kit.task(greet, name="old")
    job_id = kit.enqueue("old")
    del kit.registry["old"]
    kit.task(greet, name="new", aliases=["old"])
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "done")


async def test_a_delayed_job_runs_when_it_is_due_and_not_before(kit):
    name = kit.task(greet)
    async with kit.working():
        job_id = kit.enqueue(name, using={"delay": "10s"})
        looks = len(kit.wire.asked("claim"))
        await eventually(lambda: len(kit.wire.asked("claim")) > looks)
        due = kit.job(job_id).due_at
        await kit.pass_time(lambda: kit.state(job_id) == "done")
    (attempt,) = kit.job(job_id).attempts
    assert timedelta() <= attempt.started_at - due <= timedelta(milliseconds=100)


async def test_a_failed_job_is_tried_again_after_its_back_off_until_it_works(kit):
    attempts = []

    async def flaky(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError("not yet")

    job_id = kit.enqueue(kit.task(flaky, backoff="10s"))
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "delayed")
        failed = kit.job(job_id)
        wait = failed.due_at - failed.attempts[0].ended_at
        assert timedelta(seconds=10) <= wait <= timedelta(seconds=12.5)
        await kit.pass_time(lambda: kit.state(job_id) == "done", by=1)
    assert (attempts, kit.ends(job_id)) == ([1, 2, 3], ["failed", "failed", "done"])
    assert kit.job(job_id).last_error == "ValueError: not yet"


async def test_a_job_that_fails_in_its_last_attempt_is_dead(kit):
    async def fail() -> None:
        raise ValueError("never")

    job_id = kit.enqueue(kit.task(fail, max_attempts=2, backoff=0))
    async with kit.working():
        await kit.pass_time(lambda: kit.state(job_id) == "dead")
    assert kit.ends(job_id) == ["failed", "failed"]


async def test_retry_comes_at_the_time_the_task_asked_for(kit):
    async def ask(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise Retry(after="1h")

    job_id = kit.enqueue(kit.task(ask))
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "delayed")
        assert kit.job(job_id).due_at - kit.clock.now() == timedelta(hours=1)
        await kit.pass_time(lambda: kit.state(job_id) == "done", by=600)


async def test_give_up_is_dead_at_once(kit):
    async def refuse() -> None:
        raise GiveUp("no use")

    job_id = kit.enqueue(kit.task(refuse))
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "dead")
    assert (kit.job(job_id).attempt, kit.job(job_id).last_error) == (1, "GiveUp: no use")


async def test_a_snoozed_job_comes_back_with_its_attempt(kit):
    seen = []

    async def nap(ctx: Context) -> None:
        seen.append(ctx.attempt)
        if len(seen) == 1:
            raise Snooze(60)

    job_id = kit.enqueue(kit.task(nap, max_attempts=1))
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "delayed")
        assert kit.job(job_id).due_at - kit.clock.now() == timedelta(minutes=1)
        await kit.pass_time(lambda: kit.state(job_id) == "done", by=5)
    assert (seen, kit.ends(job_id)) == ([1, 1], ["snoozed", "done"])


async def test_system_exit_in_a_task_does_not_end_the_worker(kit):
    async def leave() -> None:
        raise SystemExit(3)

    def leave_in_thread() -> None:
        raise SystemExit(3)

    ids = [kit.enqueue(kit.task(function, max_attempts=1)) for function in (leave, leave_in_thread)]
    name = kit.task(greet)
    async with kit.working():
        await eventually(lambda: {kit.state(job_id) for job_id in ids} == {"dead"})
        after = kit.enqueue(name)
        await eventually(lambda: kit.state(after) == "done")


async def test_arguments_that_do_not_fit_are_left_for_others_for_a_while(kit):
    async def old(count: str) -> None: ...

    async def new(count: int) -> None: ...

    kit.task(old, name="add")
    job_id = kit.enqueue("add", count="many")
    kit.task(new, name="add")
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "delayed")
    assert (kit.job(job_id).attempt, kit.ends(job_id)) == (0, ["released"])
    assert "expected int, got str" in (kit.job(job_id).last_error or "")


async def test_a_coroutine_past_its_time_limit_is_cancelled_recorded_and_tried_again(kit):
    cleaned, begun = [], asyncio.Event()

    async def slow(ctx: Context) -> None:
        begun.set()
        if ctx.attempt == 2:
            return
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    name = kit.task(slow, timeout="5s", backoff=0)
    async with kit.working():
        # The watcher has long gone to sleep when the first job with a limit comes.
        await eventually(lambda: kit.wire.asked("claim"))
        job_id = kit.enqueue(name)
        await begun.wait()
        kit.clock.advance(4.9)
        await asyncio.sleep(0)
        assert cleaned == []
        await kit.pass_time(lambda: kit.state(job_id) == "done")
    assert (cleaned, kit.ends(job_id)) == ([True], ["timeout", "done"])
    assert kit.job(job_id).last_error == "TimeoutError: ran longer than its time limit of 5 s"


async def test_a_thread_past_its_time_limit_is_told_and_recorded_when_it_ends(kit):
    begun = threading.Event()

    def slow(ctx: Context) -> None:
        begun.set()
        for _ in range(10_000):
            if ctx.cancelled:
                return
            threading.Event().wait(0.001)

    job_id = kit.enqueue(kit.task(slow, timeout="5s", max_attempts=1))
    async with kit.working():
        await eventually(begun.is_set)
        await kit.pass_time(lambda: kit.state(job_id) == "dead")
    assert kit.ends(job_id) == ["timeout"]


async def test_words_are_visible_while_the_task_runs_whatever_runs_it(kit):
    gate, thread_gate = asyncio.Event(), threading.Event()

    async def on_loop(ctx: Context) -> None:
        ctx.log("one", rows=1)
        await ctx.progress(0.5, "half")
        await gate.wait()

    def in_thread(ctx: Context) -> None:
        ctx.log("one", rows=1)
        ctx.progress_sync(0.5, "half")
        thread_gate.wait(10)

    def has_progressed(job_id):
        return kit.job(job_id).progress == Progress(0.5, "half")

    ids = [kit.enqueue(kit.task(function)) for function in (on_loop, in_thread)]
    async with kit.working():
        for job_id in ids:
            await kit.pass_time(partial(has_progressed, job_id))
            assert kit.state(job_id) == "running"
            assert [(line.message, line.fields) for line in kit.lines(job_id)] == [("one", {"rows": 1})]
        gate.set()
        thread_gate.set()
        await eventually(lambda: {kit.state(job_id) for job_id in ids} == {"done"})


async def test_it_goes_on_when_the_store_was_away(kit, caplog):
    name = kit.task(greet)
    async with kit.working():
        await eventually(lambda: kit.wire.asked("claim"))
        for operation in ("claim", "finish", "beat", "expired", "purge"):
            kit.wire.fail(operation)
        ids = [kit.enqueue(name) for _ in range(5)]
        await eventually(lambda: kit.heard(LoopFailed))
        kit.wire.mend("claim", "expired", "purge")
        await kit.pass_time(lambda: any(event.loop == "record" for event in kit.heard(LoopFailed)))
        kit.wire.mend("finish", "beat")
        await kit.pass_time(lambda: all(kit.state(job_id) == "done" for job_id in ids))
    assert {tuple(kit.ends(job_id)) for job_id in ids} == {("done",)}


async def test_a_claim_whose_reply_was_lost_is_run_all_the_same(kit, caplog):
    job_id = kit.enqueue(kit.task(greet))
    kit.wire.lose_reply("claim")
    async with kit.working():
        await kit.pass_time(lambda: kit.state(job_id) == "done")
    assert kit.ends(job_id) == ["done"]


async def test_draining_ends_when_nothing_is_left(kit):
    ids = [kit.enqueue(kit.task(greet)) for _ in range(3)]
    ids.append(kit.enqueue("greet", using={"delay": "10s"}))
    run = asyncio.create_task(kit.worker(drain=True).run())
    await kit.pass_time(run.done)
    run.result()
    assert {kit.state(job_id) for job_id in ids} == {"done"}


async def test_draining_does_not_wait_for_what_this_worker_cannot_run(kit):
    strange = kit.enqueue(kit.task(greet, name="strange"))
    del kit.registry["strange"]
    elsewhere = kit.enqueue(kit.task(greet), using={"queue": "other"})
    run = asyncio.create_task(kit.worker(drain=True, queues=("default",)).run())
    await kit.pass_time(run.done)
    run.result()
    assert {kit.state(job_id) for job_id in (strange, elsewhere)} == {"ready"}


async def test_draining_does_not_wait_for_a_paused_queue(kit):
    kit.enqueue(kit.task(greet))
    kit.memory.pause(PauseKind.QUEUE, ["default"], paused=True, by=By("test"), token=fresh_id()).run()
    run = asyncio.create_task(kit.worker(drain=True).run())
    await kit.pass_time(run.done)
    run.result()
    assert kit.memory.counts().run()[0].ready == 1


async def test_draining_waits_for_a_job_that_another_replica_may_yet_lose(kit):
    claim = kit.claim_one(kit.task(greet), replica=OTHER)
    run = asyncio.create_task(kit.worker(drain=True).run())
    await kit.pass_time(lambda: len(kit.wire.asked("counts")) > 3, by=0.01)
    assert not run.done()
    run.cancel()
    await asyncio.wait([run], timeout=20)
    assert kit.state(claim.id) == "running"


async def test_draining_goes_on_when_the_store_was_away_for_a_moment(kit, caplog):
    job_id = kit.enqueue(kit.task(greet))
    kit.wire.fail("counts", times=3)
    run = asyncio.create_task(kit.worker(drain=True).run())
    await kit.pass_time(run.done)
    run.result()
    assert kit.state(job_id) == "done"


async def test_a_job_of_a_dead_replica_is_rescued_and_run(kit):
    claim = kit.claim_one(kit.task(greet), replica=OTHER, using={"lease": 3})
    async with kit.working(concurrency=1) as worker:
        await eventually(lambda: kit.wire.asked("claim"))

        def is_done():
            # The thread of the heart does not know of the test's time.
            worker.heart.beat_now()
            return kit.state(claim.id) == "done"

        await kit.pass_time(is_done)
    assert kit.ends(claim.id) == ["lost", "done"]
    assert kit.job(claim.id).attempt == 2


async def test_the_hosts_own_signal_handlers_are_there_again_afterwards(kit):
    def mine(number: int, frame: object) -> None: ...

    kit.task(greet)
    before = signal.signal(signal.SIGTERM, mine)
    try:
        async with kit.working():
            await eventually(lambda: kit.wire.asked("claim"))
            assert signal.getsignal(signal.SIGTERM) is not mine
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_while_no_hints_arrive_it_looks_often_enough_without(kit):
    name = kit.task(greet)
    hub = kit.memory._hub  # noqa: SLF001
    async with kit.working(poll_interval=timedelta(hours=1)) as worker:
        await eventually(lambda: kit.wire.asked("claim"))
        assert worker.hints.poll_interval() == 3600
        hub.go_deaf()
        # Nobody is told of a job any more.
        hub.tell = lambda topics: None
        assert worker.hints.poll_interval() == 1
        job_id = kit.enqueue(name)
        await kit.pass_time(lambda: kit.state(job_id) == "done")
    assert kit.clock.elapsed < timedelta(minutes=10)
