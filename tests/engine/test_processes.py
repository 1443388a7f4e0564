"""Child processes: what comes back from them, and what becomes of the others when one dies."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import psutil
import pytest

from drumline.engine import processes
from drumline.engine.border import Balked, Gave, Threw
from drumline.engine.childrun import Died
from drumline.engine.execution import Reason
from drumline.engine.processes import ProcessPool
from drumline.model.claim import Claim
from drumline.policy.verdict import Wish
from tests.engine import process_tasks
from tests.support.descendants import descendants, direct_children
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

# Starting a child takes a moment, and a busy machine makes that many.
PATIENCE = 40.0
DEATHS = {
    "3": "process died: exit code 3",
    "0": "process died: exit code 0",
    "kill": "process died: signal 9 (SIGKILL)",
    "segfault": "process died: signal 11 (SIGSEGV)",
    "fork": "process died: exit code 5",
}


def is_running(pid):
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


class Stage:
    """A pool, and the executions it is asked to run."""

    def __init__(self, kit, tmp_path, monkeypatch):
        kit.registry.update(process_tasks.drum.tasks)
        self.kit = kit
        self.folder = tmp_path
        self.gate = str(tmp_path / "gate")
        self.ledger = tmp_path / "ledger"
        self.ledger.touch()
        self.begun = []
        self.pools = []
        self._monkeypatch = monkeypatch
        # The servers of other tests.
        self._others = direct_children()
        monkeypatch.setenv(process_tasks.LEDGER, str(self.ledger))

    def children(self):
        """The processes that this test has started."""
        return descendants(self._others)

    def pool(self, **options):
        made = ProcessPool(process_tasks.drum.tasks.values(), **{"size": 2, "jobs_per_child": 1000, **options})
        self.pools.append(made)
        return made

    def execution(self, task, *, using=None, **arguments):
        return self.kit.execution(self.kit.claim_one(task, using=using, **arguments))

    def start(self, pool, task, **given):
        execution = self.execution(task, **given)
        running = asyncio.create_task(pool.run(execution, lambda: self.begun.append(execution)))
        return execution, running

    async def run(self, pool, task, **given):
        return await asyncio.wait_for(self.start(pool, task, **given)[1], PATIENCE)

    async def value(self, pool, task, **given):
        answer = await self.run(pool, task, **given)
        assert isinstance(answer, Gave), answer
        return msgspec.json.decode(answer.result or b"")

    def lines(self, word):
        return [line.split() for line in self.ledger.read_text().splitlines() if line.split()[0] == word]

    async def until(self, condition):
        await eventually(condition, PATIENCE)

    def open_gate(self):
        Path(self.gate).touch()


@pytest.fixture
def stage(kit, tmp_path, monkeypatch):
    made = Stage(kit, tmp_path, monkeypatch)
    yield made
    for pool in made.pools:
        pool.shut()


@pytest.fixture
def pool(stage):
    return stage.pool()


async def test_a_plain_function_runs_in_another_process_and_its_value_comes_back(stage, pool):
    number, pid = await stage.value(pool, "plain", n=7)
    assert number == 7
    assert pid != os.getpid()


async def test_an_async_function_runs_on_the_event_loop_on_which_the_lifespan_was_opened(stage, pool):
    assert await stage.value(pool, "on_loop", n=7) == [7, True, True]


async def test_a_plain_function_may_make_an_event_loop_for_itself(stage, pool):
    assert await stage.value(pool, "own_loop") == 7


async def test_the_context_is_that_of_the_claim(stage, pool):
    using = {"queue": "mail", "max_attempts": 3, "tags": ["b"], "meta": {"c": 1}}
    execution, running = stage.start(pool, "know", using=using)
    claim: Claim = execution.claim
    assert msgspec.json.decode((await running).result or b"") == {
        "ids": [claim.id, claim.id],
        "task": "know",
        "queue": "mail",
        "attempts": [1, 3],
        "fence": claim.fence,
        "meta": {"c": 1},
        "tags": list(claim.tags),
        "state": True,
        "main": True,
    }


async def test_a_task_is_found_that_was_declared_under_another_name(stage, pool):
    assert await stage.value(pool, "renamed") == "here"


async def test_a_job_stored_under_an_alias_is_run(stage, pool, kit):
    kit.registry["older"] = kit.registry["renamed"]
    claim = msgspec.structs.replace(kit.claim_one("renamed"), task="older")
    answer = await pool.run(kit.execution(claim), lambda: None)
    assert isinstance(answer, Gave)


@pytest.mark.parametrize(
    ("how", "kind", "message", "wish"),
    [
        ("plain", "ValueError", "boom", Wish.RETRY),
        ("unprintable", "Unprintable", "(its message cannot be shown: ValueError)", Wish.RETRY),
        ("exit", "SystemExit", "4", Wish.RETRY),
        ("interrupt", "KeyboardInterrupt", "", Wish.RETRY),
        ("stop", "StopIteration", "", Wish.RETRY),
        ("cancel", "CancelledError", "", Wish.RETRY),
        ("listed", "KeyError", "'gone'", Wish.GIVE_UP),
        ("give up", "GiveUp", "no use", Wish.GIVE_UP),
    ],
)
async def test_an_error_comes_back_as_text_with_what_it_asks_for(stage, pool, how, kind, message, wish):
    answer = await stage.run(pool, "fail", how=how)
    assert isinstance(answer, Threw)
    assert (answer.failure.type, answer.failure.message, answer.wish) == (kind, message, wish)
    assert "raise errors[how]" in answer.failure.traceback or how == "unprintable"


async def test_the_time_that_an_error_asks_for_crosses_the_border(stage, pool):
    retry, retry_at, snooze = [await stage.run(pool, "fail", how=how) for how in ("retry", "retry at", "snooze")]
    assert (retry.wish, retry.after) == (Wish.RETRY, timedelta(seconds=5))
    assert (retry_at.wish, retry_at.at) == (Wish.RETRY, datetime(2030, 1, 1, tzinfo=UTC))
    assert (snooze.wish, snooze.after) == (Wish.SNOOZE, timedelta(minutes=1))


async def test_an_exit_raised_in_a_task_ends_neither_its_child_nor_that_ones_event_loop(stage, pool):
    _, pid = await stage.value(pool, "plain", n=1)
    kinds = [(await stage.run(pool, "fail_on_loop", how=how)).failure.type for how in ("exit", "cancel", "plain")]
    assert kinds == ["SystemExit", "CancelledError", "ValueError"]
    assert (await stage.run(pool, "fail", how="exit")).failure.type == "SystemExit"
    assert await stage.value(pool, "on_loop", n=1) == [1, True, True]
    assert (await stage.value(pool, "plain", n=1))[1] == pid


async def test_arguments_that_do_not_fit_are_told_as_such(stage, pool, kit):
    claim = msgspec.structs.replace(kit.claim_one("count", n=1), args=b'{"n":"many"}')
    answer = await pool.run(kit.execution(claim), lambda: stage.begun.append(claim))
    assert isinstance(answer, Balked)
    assert answer.failure.message == "task count: n: expected int, got str"
    assert stage.begun == []


async def test_arguments_that_are_not_even_json_harm_only_their_job(stage, pool, kit):
    claim = msgspec.structs.replace(kit.claim_one("count", n=1), args=b"\xff{")
    assert isinstance(await pool.run(kit.execution(claim), lambda: None), Balked)
    assert await stage.value(pool, "count", n=2) == 2


async def test_a_result_that_cannot_be_stored_comes_back_as_its_repr(stage, pool):
    assert await stage.run(pool, "odd") == Gave(b"\"<class 'object'>\"", is_repr=True)


async def test_ten_megabytes_cross_the_border_both_ways(stage, pool, kit):
    data = os.urandom(10_000_000)
    claim = kit.claim_one("echo", data=b"")
    claim = msgspec.structs.replace(claim, args=msgspec.json.encode({"data": data}))
    answer = await asyncio.wait_for(pool.run(kit.execution(claim), lambda: None), PATIENCE)
    assert isinstance(answer, Gave)
    assert msgspec.json.decode(answer.result or b"", type=bytes) == data


@pytest.mark.parametrize("how", DEATHS)
async def test_a_child_that_dies_fails_its_own_job_and_the_pool_goes_on(stage, pool, how):
    _, neighbour = stage.start(pool, "wait", gate=stage.gate)
    await stage.until(lambda: stage.lines("wait"))
    answer = await stage.run(pool, "die", how=how)
    assert isinstance(answer, Died)
    assert answer.has_begun
    assert (answer.failure.type, answer.failure.message) == ("ProcessDied", DEATHS[how])
    assert await stage.value(pool, "count", n=3) == 3
    stage.open_gate()
    assert isinstance(await neighbour, Gave)


async def test_many_deaths_in_a_row_are_borne(stage, pool):
    for how in ("kill", "3", "kill"):
        dying = [stage.run(pool, "die", how=how) for _ in range(2)]
        assert [answer.failure.message for answer in await asyncio.gather(*dying)] == [DEATHS[how]] * 2
    assert await stage.value(pool, "count", n=1) == 1


async def test_a_child_that_was_killed_while_idle_costs_no_job(stage, pool):
    pids = {pid for _, pid in await asyncio.gather(*(stage.value(pool, "plain", n=n) for n in range(2)))}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    answers = await asyncio.gather(*(stage.value(pool, "plain", n=n) for n in range(2)))
    assert not pids & {pid for _, pid in answers}


async def test_a_child_killed_in_the_midst_of_its_answer_harms_nobody_else(stage, pool, kit):
    data = msgspec.json.encode({"data": os.urandom(10_000_000)})
    for _ in range(3):
        claim = msgspec.structs.replace(kit.claim_one("echo", data=b""), args=data)
        execution = kit.execution(claim)
        begun = asyncio.Event()
        running = asyncio.create_task(pool.run(execution, begun.set))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        # Unless it was quicker, and has no child any more.
        if execution.kill is not None:
            execution.kill()
        answer = await asyncio.wait_for(running, PATIENCE)
        assert isinstance(answer, Died | Gave)
        assert await stage.value(pool, "count", n=1) == 1


async def test_words_reach_the_execution_while_the_task_runs_and_all_of_them_before_its_end(stage, pool):
    execution, running = stage.start(pool, "speak", gate=stage.gate)
    notes = []

    def has_spoken():
        note = execution.take_words()
        notes.extend([note] if note else [])
        return any(note.user_error for note in notes)

    await stage.until(has_spoken)
    assert not running.done()
    (line,) = [line for note in notes for line in note.lines]
    assert (line.message, line.level, line.fields) == ("one", "info", {"rows": 1, "odd": "<class 'object'>"})
    assert [note.progress.value for note in notes if note.progress] == [0.5]
    stage.open_gate()
    await running
    last = execution.take_words()
    assert [line.message for line in last.lines] == [f"more {number}" for number in range(20)]


async def test_a_thread_that_a_task_left_behind_does_not_speak_for_the_next(stage, pool):
    first, running = stage.start(pool, "leave_thread", gate=stage.gate)
    await running
    second, running = stage.start(pool, "wait", gate=str(stage.folder / "other"))
    await stage.until(lambda: stage.lines("wait"))
    stage.open_gate()
    await stage.until(lambda: stage.lines("late"))
    (stage.folder / "other").touch()
    await running
    assert (first.take_words(), second.take_words()) == (None, None)


async def test_a_process_that_a_task_has_forked_cannot_break_into_its_words(stage, pool):
    execution, running = stage.start(pool, "fork_and_speak")
    assert isinstance(await running, Gave)
    assert {line.message for line in execution.take_words().lines} == {"from the task " * 1000}


@pytest.mark.parametrize(("flag", "value"), [("stopping", True), ("cancelled", True), ("held", False)])
async def test_a_running_task_can_see_what_becomes_of_its_job(stage, pool, flag, value):
    execution, running = stage.start(pool, "look", flag=flag)
    await stage.until(lambda: stage.lines("look"))
    setattr(execution, flag, value)
    answer = await asyncio.wait_for(running, PATIENCE)
    assert answer == Gave(msgspec.json.encode(f"saw {flag}"), is_repr=False)


async def test_the_flags_of_one_job_are_not_those_of_the_next(stage, pool):
    execution, running = stage.start(pool, "look", flag="stopping")
    await stage.until(lambda: stage.lines("look"))
    execution.stopping = True
    await running
    _, running = stage.start(pool, "look", flag="stopping")
    await stage.until(lambda: len(stage.lines("look")) == 2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(running), 3 * processes.LOOK_EVERY)
    await pool.close()


async def test_the_start_of_a_task_is_told_once_it_is_called(stage, pool):
    execution, running = stage.start(pool, "wait", gate=stage.gate)
    await stage.until(lambda: stage.begun)
    assert stage.begun == [execution]
    stage.open_gate()
    await running
    assert stage.begun == [execution]


async def test_the_lifespan_is_opened_once_in_each_child_and_closed_when_it_leaves(stage, pool):
    pids = [await stage.value(pool, "state_pid") for _ in range(3)]
    assert len(set(pids)) == 1
    assert stage.lines("open") == [["open", str(pids[0])]]
    assert stage.lines("close") == []
    await pool.close()
    assert stage.lines("close") == [["close", str(pids[0])]]


async def test_a_lifespan_that_fails_fails_the_job_and_is_tried_again(stage, pool, monkeypatch):
    fault = stage.folder / "fault"
    fault.touch()
    monkeypatch.setenv(process_tasks.LIFESPAN, str(fault))
    answer = await stage.run(pool, "state_pid")
    assert (answer.failure.type, answer.failure.message) == ("ConnectionError", "no database")
    assert stage.begun == []
    fault.unlink()
    assert await stage.value(pool, "state_pid") > 0


async def test_a_child_that_does_not_get_ready_in_time_is_killed(stage, pool, monkeypatch):
    monkeypatch.setattr(processes, "START_LIMIT", 1.0)
    monkeypatch.setenv(process_tasks.LIFESPAN, "hang")
    answer = await stage.run(pool, "state_pid")
    assert isinstance(answer, Died)
    assert answer.failure.message == "the child process was not ready within 1 s, and was killed"
    assert not answer.has_begun


async def test_after_so_many_jobs_a_child_gives_way_to_a_fresh_one(stage):
    pool = stage.pool(jobs_per_child=2)
    pids = [await stage.value(pool, "state_pid") for _ in range(6)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4] == pids[5]
    await stage.until(lambda: len(stage.lines("close")) == 3)
    assert [line[1] for line in stage.lines("close")] == [str(pid) for pid in dict.fromkeys(pids)]


async def test_a_child_is_used_again_and_another_is_only_started_when_it_is_busy(stage, pool):
    _, first = await stage.value(pool, "plain", n=1)
    assert (await stage.value(pool, "plain", n=1))[1] == first
    _, running = stage.start(pool, "wait", gate=stage.gate)
    await stage.until(lambda: stage.lines("wait"))
    assert (await stage.value(pool, "plain", n=1))[1] != first
    stage.open_gate()
    await running


async def test_a_smaller_pool_lets_idle_children_go_now_and_busy_ones_when_they_are_through(stage):
    pool = stage.pool(size=3)
    _, running = stage.start(pool, "wait", gate=stage.gate)
    _, others = stage.start(pool, "wait_on_loop", gate=stage.gate)
    await stage.until(lambda: len(stage.lines("wait")) == 2)
    await stage.value(pool, "count", n=1)
    assert len(stage.children()) == 3
    pool.resize(1)
    stage.open_gate()
    await asyncio.gather(running, others)
    await stage.until(lambda: len(stage.children()) == 1)
    assert await stage.value(pool, "count", n=1) == 1


async def test_killing_an_execution_ends_its_child_and_all_that_the_task_has_started(stage, pool):
    execution, running = stage.start(pool, "start_others", gate=stage.gate)
    await stage.until(lambda: stage.lines("others"))
    _, child, other = map(int, [0, *stage.lines("others")[0][1:]])
    execution.kill()
    answer = await asyncio.wait_for(running, PATIENCE)
    assert answer.failure.message == DEATHS["kill"]
    assert execution.kill is None
    await stage.until(lambda: not is_running(child) and not is_running(other))


async def test_one_that_is_killed_before_its_child_is_there_never_begins(stage, pool):
    execution, running = stage.start(pool, "wait", gate=stage.gate)
    await asyncio.sleep(0)
    execution.kill()
    answer = await asyncio.wait_for(running, PATIENCE)
    assert isinstance(answer, Died)
    assert (answer.has_begun, stage.lines("wait")) == (False, [])
    assert await stage.value(pool, "count", n=1) == 1


async def test_for_one_that_was_told_to_stop_before_no_child_is_started(stage, pool):
    execution = stage.execution("wait", gate=stage.gate)
    execution.interrupt(Reason.CANCEL)
    assert isinstance(await pool.run(execution, lambda: None), Died)
    assert stage.children() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_child_does_not_heed_signals_that_are_meant_for_the_worker(stage, pool, number):
    _, running = stage.start(pool, "wait", gate=stage.gate)
    await stage.until(lambda: stage.lines("wait"))
    pid = int(stage.lines("wait")[0][1])
    os.kill(pid, number)
    os.killpg(pid, number)
    stage.open_gate()
    assert isinstance(await running, Gave)
    assert (await stage.value(pool, "plain", n=1))[1] == pid


async def test_close_leaves_no_child_behind_whether_idle_or_busy(stage, pool):
    await stage.value(pool, "count", n=1)
    _, first = stage.start(pool, "wait", gate=stage.gate)
    _, second = stage.start(pool, "wait_on_loop", gate=stage.gate)
    await stage.until(lambda: len(stage.lines("wait")) == 2)
    await pool.close()
    assert not any(is_running(child.pid) for child in stage.children())
    assert [(await running).failure.message for running in (first, second)] == [DEATHS["kill"]] * 2


async def test_shut_leaves_no_child_behind_either(stage, pool):
    await asyncio.gather(*(stage.value(pool, "count", n=1) for _ in range(2)))
    pids = [child.pid for child in stage.children()]
    pool.shut()
    assert not any(map(is_running, pids))


async def test_a_caller_who_is_cancelled_leaves_no_child_running(stage, pool):
    _, running = stage.start(pool, "wait", gate=stage.gate)
    await stage.until(lambda: stage.lines("wait"))
    pid = int(stage.lines("wait")[0][1])
    running.cancel()
    await asyncio.wait([running])
    await stage.until(lambda: not is_running(pid))
    assert await stage.value(pool, "count", n=1) == 1


PARENT = """
import asyncio, sys
from tests.engine import process_tasks
from drumline.engine.processes import ProcessPool
from tests.engine.kit import Kit

async def main():
    kit = Kit()
    kit.registry.update(process_tasks.drum.tasks)
    pool = ProcessPool(process_tasks.drum.tasks.values(), size=2, jobs_per_child=10)
    run = [pool.run(kit.execution(kit.claim_one(t, gate=sys.argv[1])), lambda: None) for t in ("start_others", "wait")]
    await asyncio.gather(*run)

asyncio.run(main())
"""


async def test_children_go_when_their_worker_is_killed(stage, tmp_path):
    words = [sys.executable, "-c", PARENT, stage.gate]
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}) as parent:
        await stage.until(lambda: stage.lines("others") and stage.lines("wait"))
        parent.kill()
    pids = [int(pid) for pid in [*stage.lines("others")[0][1:], stage.lines("wait")[0][1]]]
    assert len(pids) == 3
    await stage.until(lambda: not any(map(is_running, pids)))
