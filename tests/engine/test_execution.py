import asyncio
import threading
from datetime import timedelta

import msgspec
import pytest

from drumline.engine.execution import Execution, Executions, Reason
from drumline.model.claim import Note
from drumline.model.job import Progress
from tests.support.waiting import run_together

pytestmark = pytest.mark.asyncio


async def greet() -> None: ...


def count() -> None: ...


@pytest.fixture
def claim(kit):
    return kit.claim_one(kit.task(greet))


async def test_times_are_the_claims_time_and_a_monotonic_offset(kit, claim):
    execution = kit.execution(claim)
    kit.clock.advance(1.5)
    execution.begin()
    kit.clock.advance(2.25)
    assert execution.started_at == claim.claimed_at + timedelta(seconds=1.5)
    assert execution.now() == claim.claimed_at + timedelta(seconds=3.75)


async def test_a_jump_of_the_replicas_own_clock_does_not_enter_the_record(kit, claim):
    execution = kit.execution(claim)
    kit.clock.advance(1)
    kit.clock.set(kit.clock.now() - timedelta(days=1))
    assert execution.now() == claim.claimed_at + timedelta(seconds=1)


async def test_times_are_whole_milliseconds(kit, claim):
    execution = kit.execution(claim)
    kit.clock.advance(0.0019)
    assert execution.now() == claim.claimed_at + timedelta(milliseconds=1)


async def test_the_deadline_counts_from_when_the_task_is_called(kit):
    claim = kit.claim_one(kit.task(greet), using={"timeout": "10s"})
    execution = kit.execution(claim)
    kit.clock.advance(3)
    execution.begin()
    assert execution.deadline == 13


async def test_words_are_taken_once(kit, claim):
    execution = kit.execution(claim)
    execution.log("info", "one", {"rows": 1})
    execution.progress(Progress(0.5, "half"))
    execution.user_error("sorry")
    note = execution.take_words()
    assert isinstance(note, Note)
    assert [(line.number, line.message, line.fields, line.attempt) for line in note.lines] == [
        (1, "one", {"rows": 1}, 1)
    ]
    assert (note.ref, note.progress, note.user_error) == (claim.ref, Progress(0.5, "half"), "sorry")
    assert execution.take_words() is None


async def test_lines_are_numbered_through_all_words_of_a_claim(kit, claim):
    execution = kit.execution(claim)
    execution.log("info", "one", {})
    execution.take_words()
    execution.log("info", "two", {})
    assert [line.number for line in execution.take_words().lines] == [2]


async def test_only_the_newest_progress_is_kept(kit, claim):
    execution = kit.execution(claim)
    execution.progress(Progress(0.1))
    execution.progress(Progress(0.2))
    assert execution.take_words().progress == Progress(0.2)


async def test_every_word_is_told_of(kit, claim):
    told: list[Execution] = []
    execution = kit.execution(claim, told.append)
    execution.log("info", "one", {})
    execution.progress(Progress(0.1))
    execution.user_error("sorry")
    assert told == [execution] * 3


async def test_lines_that_come_from_many_threads_are_all_kept_and_each_once(kit, claim):
    execution = kit.execution(claim)
    taken: list[int] = []
    over = threading.Event()

    def take() -> None:
        while True:
            last = over.is_set()
            note = execution.take_words()
            taken.extend(line.number for line in note.lines) if note else None
            if last:
                return

    def talk() -> None:
        for _ in range(500):
            execution.log("info", "line", {})

    def talk_together() -> None:
        run_together(*[talk] * 4)
        over.set()

    await asyncio.to_thread(run_together, take, talk_together)
    assert sorted(taken) == list(range(1, 2001))


async def test_words_that_no_store_could_write_are_made_plain(kit, claim):
    execution = kit.execution(claim)
    execution.log(
        "info", "a\0b\ud800" + "x" * 100_000, {"thing": {1, 2}, "odd": object, "nan": float("nan"), "\ud800": 1}
    )
    execution.progress(Progress(True, "half\ud800"))
    execution.user_error("sorry\0\ud800")
    note = execution.take_words()
    assert msgspec.json.decode(msgspec.json.encode(note), type=Note) == note
    (line,) = note.lines
    assert len(line.message) <= 16 * 1024
    assert line.message.startswith("a\\x00b\\ud800xxx")
    assert line.fields == {"thing": [1, 2], "odd": "<class 'object'>", "nan": "nan", "\\ud800": 1}
    assert type(note.progress.value) is float


async def test_an_interrupted_coroutine_is_cancelled(kit, claim):
    execution = kit.execution(claim)
    execution.task = asyncio.create_task(asyncio.Event().wait())
    execution.interrupt(Reason.CANCEL)
    with pytest.raises(asyncio.CancelledError):
        await execution.task
    assert (execution.cancelled, execution.held, execution.reason) == (True, True, Reason.CANCEL)


async def test_an_interrupted_thread_can_only_look_at_its_flags(kit):
    execution = kit.execution(kit.claim_one(kit.task(count)))
    execution.task = asyncio.create_task(asyncio.sleep(0))
    execution.interrupt(Reason.TIMEOUT)
    await execution.task
    assert execution.cancelled


@pytest.mark.parametrize(
    ("reason", "cancelled", "held"),
    [
        (Reason.CANCEL, True, True),
        (Reason.TIMEOUT, True, True),
        (Reason.LOST, False, False),
        (Reason.STOP, False, True),
    ],
)
async def test_each_reason_raises_its_own_flag(kit, claim, reason, cancelled, held):
    execution = kit.execution(claim)
    execution.interrupt(reason)
    assert (execution.cancelled, execution.held) == (cancelled, held)


async def test_the_first_reason_stands_but_a_loss_is_known_whenever_it_comes(kit, claim):
    execution = kit.execution(claim)
    execution.interrupt(Reason.TIMEOUT)
    execution.interrupt(Reason.LOST)
    assert (execution.reason, execution.held) == (Reason.TIMEOUT, False)


async def test_all_executions_can_be_walked_through_while_they_change(kit):
    name = kit.task(greet)
    for _ in range(3):
        kit.execution(kit.claim_one(name))
    for execution in kit.executions:
        kit.executions.remove(execution)
    assert len(kit.executions) == 0


async def test_executions_are_found_by_their_claim_and_removing_twice_is_harmless(kit, claim):
    executions = Executions()
    execution = kit.execution(claim)
    executions.add(execution)
    assert executions.get(claim.ref) == execution
    executions.remove(execution)
    executions.remove(execution)
    assert executions.get(claim.ref) is None
