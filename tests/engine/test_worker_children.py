"""A worker and its child processes: deaths, time limits, cancels and stops, from claim to record."""

import asyncio
import os
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from drumline.engine.childrun import open_children
from drumline.engine.options import WorkerOptions
from drumline.engine.run import Runner
from drumline.model.claim import ClaimRef
from drumline.model.job import Progress
from drumline.model.replica import Beat
from drumline.policy.options import Executor
from tests.engine import process_tasks
from tests.support.build import replica_info
from tests.support.descendants import descendants, direct_children
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

PATIENCE = 40.0


class Scene:
    """What the tasks did, by their own account."""

    def __init__(self, kit, folder):
        self.kit = kit
        self.gate = str(folder / "gate")
        self.ledger = folder / "ledger"
        self.ledger.touch()

    def pids(self, word):
        return [int(line.split()[1]) for line in self.ledger.read_text().splitlines() if line.split()[0] == word]

    def open_gate(self):
        Path(self.gate).touch()

    async def until(self, condition):
        await eventually(condition, PATIENCE)

    async def until_state(self, job_id, state):
        await self.until(lambda: self.kit.state(job_id) == state)

    async def pass_time(self, condition):
        """Let time pass, by so little that no lease ends while a child takes its real moment to start."""

        def is_so():
            self.kit.clock.advance(0.01)
            return condition()

        await self.until(is_so)

    @asynccontextmanager
    async def running(self, job, **options):
        """A worker, and its run, while it works on that task."""
        worker = self.kit.worker(**{"children": 2, "shutdown_timeout": timedelta(hours=1), **options})
        run = asyncio.create_task(worker.run())
        try:
            await self.until(lambda: self.pids(job))
            yield worker, run
        finally:
            worker.stop()
            worker.stop()
            await asyncio.wait([run], timeout=30)
        run.result()


@pytest.fixture
def scene(kit, tmp_path, monkeypatch):
    made = Scene(kit, tmp_path)
    monkeypatch.setenv(process_tasks.LEDGER, str(made.ledger))
    kit.registry.update(process_tasks.drum.tasks)
    before = direct_children()
    yield made
    left = descendants(before)
    assert left == [], "something is still running"


async def test_jobs_are_run_in_children_and_recorded(kit, scene):
    ids = [kit.enqueue("count", n=n) for n in range(10)]
    async with kit.working(children=2):
        await scene.until(lambda: {kit.state(job_id) for job_id in ids} == {"done"})
    assert [kit.job(job_id).result for job_id in ids] == [str(n).encode() for n in range(10)]


async def test_only_the_job_of_a_child_that_died_fails(kit, scene):
    dying = {kit.enqueue("die", how=how): how for how in ("kill", "3")}
    ids = [kit.enqueue("count", n=n) for n in range(6)]
    async with kit.working(children=2):
        await scene.until(lambda: {kit.state(job_id) for job_id in ids} == {"done"})
        await scene.until(lambda: {kit.state(job_id) for job_id in dying} == {"dead"})
    errors = {how: kit.job(job_id).last_error for job_id, how in dying.items()}
    assert errors == {
        "kill": "ProcessDied: process died: signal 9 (SIGKILL)",
        "3": "ProcessDied: process died: exit code 3",
    }


async def test_there_are_as_many_process_slots_as_children(kit, scene):
    pool = kit.worker(children=3, concurrency=5).runner
    assert [pool.room(executor) for executor in (Executor.COROUTINE, Executor.PROCESS)] == [5, 3]
    assert kit.worker(children=9, concurrency=5).runner.room(Executor.PROCESS) == 5
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert kit.worker().runner.room(Executor.PROCESS) == cores


async def test_without_children_such_tasks_run_in_threads(kit, scene):
    job_id = kit.enqueue("plain", n=1)
    async with kit.working(children=0):
        await scene.until_state(job_id, "done")
    assert kit.job(job_id).result == f"[1,{os.getpid()}]".encode()


async def test_words_are_visible_while_the_task_runs(kit, scene):
    job_id = kit.enqueue("speak", gate=scene.gate)
    async with kit.working():
        await scene.pass_time(lambda: kit.job(job_id).user_error == "sorry")
        assert kit.state(job_id) == "running"
        assert kit.job(job_id).progress == Progress(0.5, "half")
        assert [line.message for line in kit.lines(job_id)] == ["one"]
        scene.open_gate()
        await scene.pass_time(lambda: kit.state(job_id) == "done")
    assert len(kit.lines(job_id)) == 21


async def test_a_child_past_its_time_limit_is_killed_and_the_job_tried_again(kit, scene):
    job_id = kit.enqueue("wait", using={"timeout": "5s", "backoff": 0}, gate=scene.gate)
    async with scene.running("wait"):
        (pid,) = scene.pids("wait")
        kit.clock.advance(4.9)
        assert kit.state(job_id) == "running"
        await scene.pass_time(lambda: kit.ends(job_id) == ["timeout"])
        assert not psutil.pid_exists(pid)
        scene.open_gate()
        # Time stands still from here on: the second attempt has a limit too.
        await scene.until_state(job_id, "done")
    assert kit.ends(job_id) == ["timeout", "done"]
    assert kit.job(job_id).last_error == "TimeoutError: ran longer than its time limit of 5 s"


async def test_the_start_of_a_child_does_not_count_against_the_time_limit(kit, scene):
    job_id = kit.enqueue("wait", using={"timeout": "5s"}, gate=scene.gate)
    worker = kit.worker(children=1)
    run = asyncio.create_task(worker.run())
    await eventually(lambda: len(worker.executions) == 1)
    (execution,) = worker.executions
    await eventually(lambda: execution.has_begun)
    assert execution.deadline is None
    kit.clock.advance(60)
    await scene.until(lambda: execution.deadline is not None)
    assert execution.deadline == pytest.approx(65)
    scene.open_gate()
    await scene.until_state(job_id, "done")
    worker.stop()
    await run
    (attempt,) = kit.job(job_id).attempts
    assert attempt.ended_at - attempt.started_at < timedelta(seconds=5)


async def test_cancelling_ends_the_child(kit, scene):
    job_id = kit.enqueue("wait", gate=scene.gate)
    async with scene.running("wait"):
        kit.cancel(job_id)
        await scene.until_state(job_id, "cancelled")
        assert not psutil.pid_exists(scene.pids("wait")[0])
    assert kit.ends(job_id) == ["cancelled"]


async def test_a_child_whose_claim_was_lost_is_ended(kit, scene):
    job_id = kit.enqueue("wait", gate=scene.gate)
    async with scene.running("wait") as (worker, _):
        (execution,) = worker.executions
        ref = ClaimRef(job_id, execution.claim.fence)
        now = kit.clock.now()
        beat = Beat(now=now, lost=[ref], cancelling=[], unknown=[], epoch=1, next_lease_end=None, version=0)
        worker._on_beat(replica_info(), beat, kit.clock.monotonic())  # noqa: SLF001
        await scene.until(lambda: not len(worker.executions))
        assert not psutil.pid_exists(scene.pids("wait")[0])


async def test_a_task_that_ends_within_the_drain_is_done(kit, scene):
    job_id = kit.enqueue("look", flag="stopping")
    async with scene.running("look") as (worker, run):
        worker.stop()
        await asyncio.wait_for(run, PATIENCE)
    assert (kit.state(job_id), kit.job(job_id).result) == ("done", b'"saw stopping"')


async def test_a_task_that_outlasts_the_drain_is_killed_and_given_back(kit, scene):
    job_id = kit.enqueue("wait", gate=scene.gate)
    async with scene.running("wait", shutdown_timeout=timedelta(seconds=10)) as (worker, run):
        worker.stop()
        await kit.pass_time(run.done, by=0.5)
    assert (kit.state(job_id), kit.job(job_id).attempt, kit.ends(job_id)) == ("ready", 0, ["released"])


async def test_cancelling_the_worker_leaves_no_child_and_gives_the_job_back(kit, scene):
    job_id = kit.enqueue("wait", gate=scene.gate)
    worker = kit.worker(children=1)
    run = asyncio.create_task(worker.run())
    await scene.until(lambda: scene.pids("wait"))
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (kit.state(job_id), kit.job(job_id).attempt) == ("ready", 0)


async def test_a_worker_that_breaks_down_leaves_no_child(kit, scene, monkeypatch):
    async def break_down() -> bool:
        await scene.until(lambda: scene.pids("wait"))
        raise RuntimeError("broken")

    kit.enqueue("wait", gate=scene.gate)
    worker = kit.worker(children=1)
    monkeypatch.setattr(worker, "_wait_for_stop", break_down)
    with pytest.raises(ExceptionGroup):
        await worker.run()


async def test_children_close_their_lifespan_when_the_worker_stops(kit, scene):
    job_id = kit.enqueue("state_pid")
    async with kit.working(children=1):
        await scene.until_state(job_id, "done")
        assert scene.pids("close") == []
    assert scene.pids("open") == scene.pids("close") == [int(kit.job(job_id).result or b"0")]


async def test_middleware_has_the_value_and_the_error_of_a_task_in_a_child(kit, scene):
    seen: list[Any] = []
    endings: list[Any] = []

    async def watch(context, run):
        try:
            value = await run()
        except Exception as error:
            seen.append(str(error))
            raise
        seen.append((context.task, value))
        return 20 if value == 2 else value

    options = WorkerOptions(name="me", children=1)
    runner = Runner(
        kit.registry,
        kit.executions,
        concurrency=5,
        threads=1,
        clock=kit.clock,
        events=kit.events,
        on_start=lambda _: None,
        close=lambda _, ending: endings.append(ending),
        on_words=lambda _: None,
        around=[watch],
        children=open_children(kit.registry.values(), options),
    )
    calls: list[tuple[str, dict[str, Any]]] = [("count", {"n": 1}), ("count", {"n": 2}), ("odd", {})]
    for task, arguments in [*calls, ("fail", {"how": "plain"}), ("die", {"how": "3"})]:
        before = len(endings)
        runner.start(runner.hold(kit.claim_one(task, **arguments), 0))
        await scene.until(lambda before=before: len(endings) > before)
    assert seen == [
        ("count", 1),
        ("count", 2),
        ("odd", "<class 'object'>"),
        "ValueError: boom",
        "ProcessDied: process died: exit code 3",
    ]
    assert [getattr(ending, "result", None) for ending in endings[:3]] == [b"1", b"20", b"\"<class 'object'>\""]
    assert endings[2].is_repr
    assert [ending.failure.type for ending in endings[3:]] == ["ValueError", "ProcessDied"]
    await runner.close()
