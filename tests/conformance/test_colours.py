import asyncio
import inspect

import pytest

from drumline.model.claim import Share
from drumline.model.query import Command, CommandKind, JobFilter, Keep, PauseKind
from drumline.model.sealed import Resealing
from drumline.stores.base import Op, Store
from tests.support.build import (
    BY,
    REPLICA,
    done,
    line,
    new_job,
    new_schedule,
    note,
    numbered_id,
    replica_info,
    tick_at,
)
from tests.support.promises import promises
from tests.support.rig import new_rig


def play(rig):
    """Every operation of the protocol once or more, one after the other; the driver sends each answer back."""
    store = rig.store
    yield store.migrate()
    yield store.pending()
    yield store.inspect()
    yield store.now()
    job = new_job(id=numbered_id(1), key="k")
    yield store.enqueue([job, new_job(id=numbered_id(2), delay=60)])
    claimed = yield store.claim(REPLICA, [Share("default", 5)], 5, ["job"], "t1")
    (claim,) = claimed.claims
    yield store.stand_by(REPLICA, [Share("empty", 1)], ["job"], "t2", seconds=0.01)
    yield store.report([note(claim, line(claim, 1), progress=0.5)])
    yield store.beat(replica_info(), [claim.ref])
    rig.advance(31)
    yield store.expired(10)
    yield store.declare([new_schedule(), new_schedule("live", in_code=False)], by=BY)
    yield store.withdraw(["live"], by=BY)
    yield store.fire([tick_at(rig.now(), id=numbered_id(3))], by=REPLICA)
    yield store.pause(PauseKind.QUEUE, ["mail"], paused=True, by=BY, token="p1")
    yield store.paused(PauseKind.QUEUE)
    yield store.command(Command(id="c1", kind=CommandKind.CANCEL, ids=(numbered_id(2),), by=BY))
    yield store.reseal([Resealing(job=claim.id, before=b"{}", after=b"[]")])
    yield store.finish([done(claim, ran=31)])
    yield store.schedules()
    yield store.jobs(JobFilter())
    yield store.counts()
    yield store.series(rig.later(-3600), rig.later(3600))
    yield store.ticks()
    yield store.workers()
    yield store.logs(claim.id)
    yield store.audit()
    rig.advance(100 * 86_400)
    yield store.purge(Keep())
    yield store.close()


def drive(script, run):
    answers: list[object] = []
    answer = None
    while True:
        try:
            op = script.send(answer)
        except StopIteration:
            return answers
        answer = run(op)
        answers.append(answer)


@promises("base", "or, for callers without an event loop, by `run()`.")
@promises("Op", "One operation, not yet run: await it, or call `run()` to block this thread.")
def test_every_operation_answers_the_same_by_await_and_by_run(maker, tmp_path):
    folders = [tmp_path / name for name in ("blocking", "awaited")]
    for folder in folders:
        folder.mkdir()
    with new_rig(maker, folders[0]) as rig:
        blocking = drive(play(rig), lambda op: op.run())
    with asyncio.Runner() as runner, new_rig(maker, folders[1]) as rig:

        async def wait_for(op):
            return await op

        awaited = drive(play(rig), lambda op: runner.run(wait_for(op)))
    assert awaited == blocking


def test_the_script_plays_every_operation(rig):
    played = set()

    class Noting:
        def __getattr__(self, name):
            played.add(name)
            return getattr(store, name)

    store, rig.store = rig.store, Noting()
    drive(play(rig), lambda op: op.run())
    rig.store = store
    assert played == {name for name, value in vars(Store).items() if inspect.isfunction(value) and name[0] != "_"} - {
        "wakeups"
    }


@promises("Op", "not yet run")
def test_an_operation_that_nobody_runs_does_nothing(rig):
    op = rig.store.enqueue([new_job()])
    assert isinstance(op, Op)
    assert rig.jobs() == []


@promises("Op.then", "The same operation, with another answer.")
def test_an_operation_may_be_given_another_answer(rig):
    named = rig.store.now().then(lambda instant: f"it is {instant:%Y}")

    async def awaited():
        return await named

    assert (named.run(), asyncio.run(awaited())) == (f"it is {rig.now():%Y}",) * 2


@promises("Op", "Each run is a call of its own.")
def test_each_run_of_an_operation_is_a_call_of_its_own(rig):
    job = new_job()
    op = rig.store.enqueue([job])
    assert [op.run()[0].created, op.run()[0].created] == [True, False]
    counts = rig.store.counts()
    counts.run()
    rig.add()
    assert [count.ready for count in counts.run()] == [2]


@promises(
    "base",
    "An operation is returned as an `Op` and runs when it is awaited",
)
@pytest.mark.asyncio
async def test_many_awaited_operations_share_the_loop(rig):
    jobs = [new_job() for _ in range(50)]
    answers = await asyncio.gather(*(rig.store.enqueue([job]) for job in jobs))
    assert [answer.id for (answer,) in answers] == [job.id for job in jobs]
    claimed = await asyncio.gather(
        *(rig.store.claim(REPLICA, [Share("default", 3)], 3, ["job"], f"t{number}") for number in range(20))
    )
    taken = [claim.id for answer in claimed for claim in answer.claims]
    assert sorted(taken) == sorted(job.id for job in jobs)


@pytest.mark.asyncio
async def test_an_operation_that_is_cancelled_while_awaited_harms_no_later_one(rig):
    for _ in range(20):
        task = asyncio.ensure_future(enqueue(rig))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await rig.store.enqueue([new_job("last")])
    assert len(await asyncio.to_thread(rig.ids, task="last")) == 1


async def enqueue(rig):
    return await rig.store.enqueue([new_job("cancelled")])


def test_a_store_works_from_several_event_loops_one_after_the_other(rig):
    for number in range(3):
        asyncio.run(enqueue(rig))
        assert len(rig.jobs()) == number + 1
