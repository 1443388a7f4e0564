"""`drum.sync`: every verb, blocking."""

import asyncio
import threading

import pytest

from drumline import JobDead, JobState, UnknownTask
from drumline.blocking import BlockingJobs, BlockingQueues, BlockingSchedules
from drumline.client import Jobs, Queues
from drumline.model.query import Answer
from drumline.schedules import Schedules


@pytest.fixture
def drum(any_drum):
    return any_drum


@pytest.fixture
def add(drum):
    @drum.task
    def add(a: int, b: int = 1) -> int:
        return a + b

    return add


@pytest.fixture
def fail(drum):
    @drum.task(max_attempts=1)
    def fail() -> None:
        raise ValueError("boom")

    return fail


@pytest.fixture
def working(drum, add, fail):
    """A worker in a thread of its own, with an event loop of its own."""
    # Ready before worker and caller use it at once; what happens otherwise is a test of its own, in test_life.
    drum.sync.counts()
    begun, stop = threading.Event(), []

    async def run():
        task = asyncio.ensure_future(drum.run())
        stop.append((asyncio.get_running_loop(), task))
        begun.set()
        await asyncio.wait([task])

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert begun.wait(10)
    yield
    loop, task = stop[0]
    loop.call_soon_threadsafe(task.cancel)
    thread.join(20)
    assert not thread.is_alive()


def test_a_job_is_enqueued_waited_for_and_read(drum, add, working):
    job = add.enqueue_sync(2)
    assert drum.sync.wait(job, timeout="20s") == 3
    assert drum.sync.jobs.get(job.id).state is JobState.DONE
    assert drum.sync.counts().done == 1


def test_a_dead_job_raises_in_the_blocking_caller_and_can_be_retried(drum, fail, working):
    job = fail.enqueue_sync()
    with pytest.raises(JobDead, match="boom"):
        drum.sync.wait(job, timeout="20s")
    assert drum.sync.jobs.retry(job.id) == {job.id: Answer.APPLIED}
    (ended,) = drum.sync.jobs.wait([job], timeout="20s")
    assert len(ended.info.attempts) == 2


def test_jobs_are_found_and_acted_on(drum, add):
    jobs = [add.using(queue="mail").enqueue_sync(number) for number in range(3)]
    assert {job.id for job in drum.sync.jobs.find(queue="mail")} == {job.id for job in jobs}
    assert drum.sync.jobs.reschedule(jobs[0].id, delay=100) == {jobs[0].id: Answer.APPLIED}
    assert set(drum.sync.jobs.cancel(queue="mail").values()) == {Answer.APPLIED}
    assert drum.sync.jobs.discard(jobs[0].id) == {jobs[0].id: Answer.APPLIED}
    assert [job.state for job in drum.sync.jobs.as_ended([jobs[1]])] == ["cancelled"]
    assert drum.sync.jobs.logs(jobs[1].id) == []


def test_queues_are_paused_and_resumed(drum):
    assert drum.sync.queues.pause("mail", reason="because") == [True]
    assert list(drum.sync.queues.paused()) == ["mail"]
    assert drum.sync.queues.resume("mail") == [True]


def test_many_are_enqueued_at_once(drum, add):
    assert len(drum.enqueue_many_sync(add.call(number) for number in range(10))) == 10
    assert drum.sync.counts().ready == 10


def test_jobs_are_enqueued_by_the_name_of_their_task_and_run(drum, add):
    job = drum.sync.enqueue("add", 2, b=5)
    others = drum.sync.enqueue_many(add.call(number) for number in range(10))
    drum.sync.run(queues=["default"], concurrency=5, drain=True)
    assert drum.sync.wait(job, timeout="20s") == 7
    assert [handle.result for handle in drum.sync.jobs.wait(others)] == list(range(1, 11))
    with pytest.raises(UnknownTask, match="did you mean 'add'"):
        drum.sync.enqueue("ad", 2)


def names(kind):
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("ours", "blocking", "only_async"),
    [
        # Jobs as stored values, for the pages and commands.
        (Jobs, BlockingJobs, {"read", "select", "walk"}),
        (Queues, BlockingQueues, set()),
        # The Mapping needs no store, and is `drum.schedules` itself.
        (Schedules, BlockingSchedules, {"through"}),
    ],
)
def test_no_verb_is_left_out(ours, blocking, only_async):
    assert names(ours) - names(blocking) == only_async
