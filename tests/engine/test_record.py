import asyncio
import threading

import pytest
import pytest_asyncio

from drumline.engine.execution import Reason
from drumline.engine.record import WORDS_EVERY, Recorder
from drumline.errors import StoreUnreachable
from drumline.events import ClaimLost, JobClosed, StaleWrite
from drumline.model.job import Failure, Progress
from drumline.policy.verdict import Lost, Raised, Returned, Wish, verdict
from tests.engine.kit import ME, OTHER
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


async def greet() -> None: ...


class Desk:
    """A recorder that is stepped by hand."""

    def __init__(self, kit):
        self.kit = kit
        self.woken = 0
        self.written = 0
        self.recorder = Recorder(
            kit.store,
            kit.executions,
            by=ME,
            clock=kit.clock,
            events=kit.events,
            on_outcome=self._on_outcome,
            on_written=self._on_written,
        )

    def _on_outcome(self):
        self.woken += 1

    def _on_written(self):
        self.written += 1

    def start(self, **given):
        return self.kit.execution(self.kit.claim_one(self.kit.task(greet), **given), self.recorder.listen)

    def end(self, execution):
        self.recorder.close(execution, Returned(b"1"))

    def take_over(self, execution):
        """The fleet gives up this replica's claim."""
        claim = execution.claim
        lost = verdict(claim, Lost(), by=OTHER, started_at=claim.claimed_at, ended_at=claim.lease_until)
        assert self.kit.memory.finish([lost]).run() == [True]

    def operations(self):
        return [name for name, _ in self.kit.wire.calls]


@pytest_asyncio.fixture
async def desk(kit):
    return Desk(kit)


async def test_with_nothing_to_write_nothing_is_written(desk):
    assert await desk.recorder.step() is None
    assert desk.operations() == []


async def test_what_has_come_together_is_one_batch(desk, kit):
    executions = [desk.start() for _ in range(5)]
    for execution in executions:
        desk.end(execution)
    assert (desk.recorder.backlog, desk.woken) == (5, 5)
    assert await desk.recorder.step() is None
    assert [len(given[0]) for given in kit.wire.asked("finish")] == [5]
    assert {kit.state(execution.claim.id) for execution in executions} == {"done"}
    assert (desk.recorder.backlog, len(kit.executions), desk.written) == (0, 0, 1)


async def test_a_batch_has_a_largest_size_and_the_rest_follows_at_once(desk, kit):
    assert desk.recorder.largest_batch == kit.memory.batch
    desk.recorder.largest_batch = 2
    for _ in range(5):
        desk.end(desk.start())
    assert [await desk.recorder.step() for _ in range(3)] == [0, 0, None]
    assert [len(given[0]) for given in kit.wire.asked("finish")] == [2, 2, 1]


async def test_beside_a_batch_on_its_way_another_is_written_only_if_it_is_a_whole_one(desk, kit):
    desk.recorder.largest_batch = 2
    hold = kit.wire.hold("finish")
    desk.end(desk.start())
    writing = asyncio.create_task(desk.recorder.step())
    await eventually(lambda: hold.waiting)
    desk.end(desk.start())
    assert not desk.recorder.has_whole_batch
    assert await desk.recorder.step_beside() is None
    desk.end(desk.start())
    assert desk.recorder.has_whole_batch
    beside = asyncio.create_task(desk.recorder.step_beside())
    await eventually(lambda: len(kit.wire.asked("finish")) == 2)
    assert desk.recorder.backlog == 3
    hold.let_go()
    assert (await writing, await beside) == (None, 0)
    assert [len(given[0]) for given in kit.wire.asked("finish")] == [1, 2]
    assert (desk.recorder.idle, desk.recorder.stale_writes) == (True, 0)


async def test_no_batch_goes_beside_words_that_have_to_be_written_before_it(desk, kit):
    desk.recorder.largest_batch = 1
    execution = desk.start()
    execution.log("info", "last words", {})
    desk.end(execution)
    assert await desk.recorder.step_beside() is None
    hold = kit.wire.hold("report")
    writing = asyncio.create_task(desk.recorder.step())
    await eventually(lambda: hold.waiting)
    assert await desk.recorder.step_beside() is None
    hold.let_go()
    await writing
    assert desk.operations() == ["report", "finish"]


async def test_of_two_batches_on_their_way_the_one_that_fails_is_kept(desk, kit):
    desk.recorder.largest_batch = 2
    hold = kit.wire.hold("finish")
    executions = [desk.start() for _ in range(4)]
    for execution in executions[:2]:
        desk.end(execution)
    writing = asyncio.create_task(desk.recorder.step())
    await eventually(lambda: hold.waiting)
    for execution in executions[2:]:
        desk.end(execution)
    kit.wire.fail("finish", times=1)
    with pytest.raises(StoreUnreachable):
        await desk.recorder.step_beside()
    hold.let_go()
    assert await writing == 0
    assert desk.recorder.backlog == 2
    assert await desk.recorder.step() is None
    assert {kit.state(execution.claim.id) for execution in executions} == {"done"}
    assert desk.recorder.stale_writes == 0


async def test_a_claim_that_is_given_back_twice_is_written_once(desk, kit):
    claim = kit.claim_one(kit.task(greet))
    hold = kit.wire.hold("finish")
    desk.recorder.give_back(claim)
    writing = asyncio.create_task(desk.recorder.step())
    await eventually(lambda: hold.waiting)
    desk.recorder.give_back(claim)
    hold.let_go()
    assert await writing is None
    assert await desk.recorder.step() is None
    assert len(kit.wire.asked("finish")) == 1
    assert (desk.recorder.idle, desk.recorder.stale_writes) == (True, 0)


async def test_an_execution_is_held_until_its_outcome_is_written(desk, kit):
    execution = desk.start()
    desk.end(execution)
    assert kit.executions.get(execution.claim.ref) is execution
    await desk.recorder.step()
    assert kit.executions.get(execution.claim.ref) is None


async def test_the_attempt_has_the_stores_times_and_names_its_finisher(desk, kit):
    execution = desk.start()
    kit.clock.advance(2)
    desk.end(execution)
    kit.clock.advance(60)
    await desk.recorder.step()
    (attempt,) = kit.job(execution.claim.id).attempts
    assert (attempt.by, attempt.replica, attempt.number) == (ME, ME, 1)
    assert attempt.started_at == execution.claim.claimed_at
    assert (attempt.ended_at - attempt.started_at).total_seconds() == 2


async def test_words_are_written_before_the_outcome_of_the_job_that_said_them(desk, kit):
    execution = desk.start()
    execution.log("info", "last words", {})
    desk.end(execution)
    await desk.recorder.step()
    assert desk.operations() == ["report", "finish"]
    assert [line.message for line in kit.lines(execution.claim.id)] == ["last words"]
    assert kit.heard(StaleWrite) == []


async def test_words_of_a_running_job_are_written_while_it_runs(desk, kit):
    execution = desk.start()
    execution.progress(Progress(0.5, "half"))
    assert await desk.recorder.step() is None
    assert kit.job(execution.claim.id).progress == Progress(0.5, "half")


async def test_words_alone_are_written_at_most_every_so_often(desk, kit):
    execution = desk.start()
    execution.log("info", "one", {})
    await desk.recorder.step()
    execution.log("info", "two", {})
    assert await desk.recorder.step() == pytest.approx(WORDS_EVERY)
    assert len(kit.lines(execution.claim.id)) == 1
    kit.clock.advance(WORDS_EVERY)
    assert await desk.recorder.step() is None
    assert len(kit.lines(execution.claim.id)) == 2


async def test_an_outcome_does_not_wait_for_the_time_of_words(desk, kit):
    talker, worker = desk.start(), desk.start()
    talker.log("info", "one", {})
    await desk.recorder.step()
    talker.log("info", "two", {})
    desk.end(worker)
    await desk.recorder.step()
    assert kit.state(worker.claim.id) == "done"
    assert len(kit.lines(talker.claim.id)) == 2


async def test_when_the_store_fails_all_outcomes_are_kept_and_written_later(desk, kit):
    executions = [desk.start() for _ in range(3)]
    for execution in executions:
        desk.end(execution)
    kit.wire.fail("finish", times=2)
    for _ in range(2):
        with pytest.raises(StoreUnreachable):
            await desk.recorder.step()
        assert (desk.recorder.backlog, len(kit.executions), desk.written) == (3, 3, 0)
    await desk.recorder.step()
    assert {kit.state(execution.claim.id) for execution in executions} == {"done"}


async def test_when_the_store_fails_on_words_both_words_and_outcomes_are_kept(desk, kit):
    execution = desk.start()
    execution.log("info", "one", {})
    desk.end(execution)
    kit.wire.fail("report", times=1)
    with pytest.raises(StoreUnreachable):
        await desk.recorder.step()
    assert not desk.recorder.idle
    execution.log("info", "two", {})
    await desk.recorder.step()
    assert [line.message for line in kit.lines(execution.claim.id)] == ["one", "two"]
    assert kit.state(execution.claim.id) == "done"


async def test_an_outcome_whose_reply_was_lost_is_written_again_and_counts_once(desk, kit):
    execution = desk.start()
    desk.end(execution)
    kit.wire.lose_reply("finish")
    with pytest.raises(StoreUnreachable):
        await desk.recorder.step()
    await desk.recorder.step()
    assert kit.ends(execution.claim.id) == ["done"]
    assert (desk.recorder.stale_writes, desk.recorder.idle) == (0, True)


async def test_what_ends_while_a_batch_is_being_written_is_in_the_next_one(desk, kit):
    first, second = desk.start(), desk.start()
    hold = kit.wire.hold("finish")
    desk.end(first)
    writing = asyncio.create_task(desk.recorder.step())
    await eventually(lambda: hold.waiting)
    desk.end(second)
    hold.let_go()
    assert await writing == 0
    assert (kit.state(first.claim.id), kit.state(second.claim.id)) == ("done", "running")
    assert await desk.recorder.step() is None
    assert kit.state(second.claim.id) == "done"


async def test_a_refused_outcome_is_counted_and_told(desk, kit):
    execution = desk.start()
    desk.take_over(execution)
    desk.end(execution)
    await desk.recorder.step()
    ref = execution.claim.ref
    assert desk.recorder.stale_writes == 1
    assert kit.heard(StaleWrite) == [StaleWrite(ref.id, ref.fence, "finish")]
    assert kit.heard(ClaimLost) == [ClaimLost(ref.id, ref.fence)]
    assert kit.heard(JobClosed) == []
    assert (len(kit.executions), desk.recorder.idle, desk.written) == (0, True, 1)
    assert kit.ends(ref.id) == ["lost"]


async def test_refused_words_are_counted_and_told_and_not_tried_again(desk, kit):
    execution = desk.start()
    desk.take_over(execution)
    execution.log("info", "one", {})
    await desk.recorder.step()
    assert [event.operation for event in kit.heard(StaleWrite)] == ["report"]
    assert kit.heard(ClaimLost) == []
    assert desk.recorder.idle


async def test_of_a_claim_that_is_known_to_be_lost_nothing_is_written(desk, kit):
    execution = desk.start()
    execution.interrupt(Reason.LOST)
    desk.end(execution)
    await desk.recorder.step()
    assert desk.operations() == []
    assert (len(kit.executions), desk.written) == (0, 1)


async def test_a_closed_attempt_is_told(desk, kit):
    execution = desk.start()
    kit.clock.advance(1)
    desk.recorder.close(execution, Raised(Failure("ValueError", "no"), Wish.GIVE_UP))
    await desk.recorder.step()
    (event,) = kit.heard(JobClosed)
    assert (event.job_id, event.ended, event.outcome, event.error) == (
        execution.claim.id,
        "failed",
        "dead",
        "ValueError: no",
    )
    assert event.ran.total_seconds() == 1


async def test_a_subscriber_that_fails_harms_nothing(desk, kit, caplog):
    def fail(_event):
        raise ValueError

    kit.events.subscribe(fail)
    execution = desk.start()
    desk.end(execution)
    await desk.recorder.step()
    assert (kit.state(execution.claim.id), desk.recorder.idle) == ("done", True)


async def test_a_claim_that_never_came_to_run_is_given_back_without_spending_an_attempt(desk, kit):
    claim = kit.claim_one(kit.task(greet))
    desk.recorder.give_back(claim)
    await desk.recorder.step()
    assert (kit.state(claim.id), kit.job(claim.id).attempt, kit.ends(claim.id)) == ("ready", 0, ["released"])


async def test_words_from_a_thread_wake_the_event_loop(desk, kit):
    execution = desk.start()
    thread = threading.Thread(target=lambda: execution.log("info", "from afar", {}))
    thread.start()
    await eventually(lambda: desk.woken)
    thread.join()
    await desk.recorder.step()
    assert len(kit.lines(execution.claim.id)) == 1


async def test_a_thread_that_was_left_to_itself_may_talk_on_but_nobody_writes_it(desk, kit):
    execution = desk.start()
    desk.end(execution)
    await desk.recorder.step()
    execution.log("info", "still here", {})
    assert desk.recorder.idle
    assert kit.wire.asked("report") == []


async def test_a_thread_that_talks_after_the_event_loop_has_gone_is_not_harmed(kit):
    said = []

    async def leave():
        desk = Desk(kit)
        said.append(desk.start())

    await asyncio.to_thread(lambda: asyncio.run(leave()))
    said[0].log("info", "anybody?", {})
    said[0].progress(Progress(0.5))


async def test_an_outcome_that_can_never_be_written_does_not_hold_up_the_others(desk, kit, monkeypatch, caplog):
    good, bad, last = (desk.start() for _ in range(3))
    for execution in (good, bad, last):
        desk.end(execution)
    finish = kit.memory.finish

    def refuse_bad(outcomes):
        if any(outcome.claim.id == bad.claim.id for outcome in outcomes):
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no")
        return finish(outcomes)

    monkeypatch.setattr(kit.memory, "finish", refuse_bad)
    await desk.recorder.step()
    assert [kit.state(execution.claim.id) for execution in (good, bad, last)] == ["done", "running", "done"]
    assert desk.recorder.idle
    assert len(kit.executions) == 0
    assert f"job {bad.claim.id}: its outcome cannot be written" in caplog.text


async def test_an_outcome_that_can_never_be_written_spends_its_attempt(desk, kit, monkeypatch):
    bad = kit.execution(kit.claim_one(kit.task(greet, max_attempts=1)), desk.recorder.listen)
    desk.recorder.close(bad, Returned(b'"bad"'))
    finish = kit.memory.finish

    def refuse_bad(outcomes):
        if any(outcome.result == b'"bad"' for outcome in outcomes):
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no")
        return finish(outcomes)

    monkeypatch.setattr(kit.memory, "finish", refuse_bad)
    await desk.recorder.step()
    job = kit.job(bad.claim.id)
    assert (job.state, job.attempts[-1].error.type) == ("dead", "OutcomeUnwritable")
    assert desk.recorder.idle


async def test_words_that_can_never_be_written_do_not_hold_up_the_others(desk, kit, monkeypatch, caplog):
    good, bad = desk.start(), desk.start()
    for execution in (good, bad):
        execution.log("info", "words", {})
        desk.end(execution)
    report = kit.memory.report

    def refuse_bad(notes):
        if any(note.ref.id == bad.claim.id for note in notes):
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no")
        return report(notes)

    monkeypatch.setattr(kit.memory, "report", refuse_bad)
    await desk.recorder.step()
    assert [kit.state(execution.claim.id) for execution in (good, bad)] == ["done", "done"]
    assert [line.message for line in kit.lines(good.claim.id)] == ["words"]
    assert desk.recorder.idle
    assert f"job {bad.claim.id}: what it said cannot be written" in caplog.text
