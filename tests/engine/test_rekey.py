import msgspec
import pytest

from drumline.clock import ManualClock
from drumline.engine.rekey import SLICE, Rekeyed, rekey
from drumline.model.claim import Share
from drumline.model.job import JobState
from drumline.model.query import JobFilter
from drumline.model.sealed import Resealing, is_sealed, split
from drumline.sealing import KeyRing, generate_key
from drumline.stores.memory import MemoryStore
from drumline.stores.sealed import SealedStore
from tests.support.build import BY, REPLICA, TASK, dead, new_job, new_schedule, unique

pytestmark = pytest.mark.asyncio

OLD, NEW = generate_key(), generate_key()
ARGS = b'{"n":1}'


@pytest.fixture
def memory():
    return MemoryStore(ManualClock())


@pytest.fixture
def before(memory):
    """The store before the new key."""
    return SealedStore(memory, KeyRing(OLD))


@pytest.fixture
def after(memory):
    """The store with the new key, and the old one in the ring."""
    return SealedStore(memory, KeyRing(NEW, [OLD]))


def keys_of(memory):
    return {split(job.args)[0] for job in memory.jobs(JobFilter(), limit=10_000).run().items}


async def test_every_job_that_may_run_again_gets_the_current_key(memory, before, after):
    await before.enqueue([new_job(args=ARGS, queue="q") for _ in range(SLICE + 20)])
    await memory.enqueue([new_job(args=ARGS)])
    claims = (await before.claim(REPLICA, [Share("q", 2)], 2, [TASK], "t")).claims
    await before.finish([dead(claims[0])])
    told = []
    so_far = await rekey(after, lambda now: told.append(msgspec.structs.replace(now)))
    assert so_far == Rekeyed(looked=SLICE + 21, jobs=SLICE + 21)
    assert [one.looked for one in told] == [SLICE, SLICE + 21]
    assert keys_of(memory) == {after.ring.current}
    # The claim that was live all the time is still good, and a worker with the new key alone reads the rest.
    assert await before.finish([dead(claims[1])]) == [True]
    alone = SealedStore(memory, KeyRing(NEW))
    assert {job.args for job in (await alone.jobs(JobFilter(), limit=10_000)).items} == {ARGS}


async def test_a_second_rotation_finds_nothing_to_do(before, after):
    await before.enqueue([new_job(args=ARGS)])
    await rekey(after)
    assert await rekey(after) == Rekeyed(looked=1)


async def test_schedules_get_the_current_key_and_go_on(memory, before, after):
    await before.declare([new_schedule(args=ARGS), new_schedule("bare")], by=BY)
    so_far = await rekey(after)
    assert so_far.schedules == 1
    (status,) = await SealedStore(memory, KeyRing(NEW)).schedules(["tock"])
    assert status.schedule.args == ARGS


async def test_what_has_no_key_here_is_counted_and_left(memory, before):
    await before.enqueue([new_job(args=ARGS)])
    so_far = await rekey(SealedStore(memory, KeyRing(NEW)))
    assert (so_far.missing, so_far.jobs, so_far.left) == (1, 0, 1)
    assert keys_of(memory) == {before.ring.current}


async def test_a_spoiled_body_is_counted_and_left(memory, before, after):
    jobs = [new_job(args=ARGS), new_job(args=ARGS)]
    await before.enqueue(jobs)
    first, second = (memory.jobs(JobFilter(ids=(job.id,))).run().items[0].args for job in jobs)
    await memory.reseal([Resealing(job=jobs[1].id, before=second, after=first)])
    so_far = await rekey(after)
    assert (so_far.spoiled, so_far.jobs) == (1, 1)


class Restless:
    """Replaces the arguments of a job whenever they are about to be sealed anew, so many times."""

    def __init__(self, inner, change, times):
        self._inner, self._change, self._times = inner, change, times

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def reseal(self, resealings):
        if resealings and self._times:
            self._times -= 1
            self._change()
        return self._inner.reseal(resealings)


@pytest.mark.parametrize(("times", "changing"), [(1, 0), (100, 1)])
async def test_arguments_that_are_replaced_meanwhile_are_looked_at_again(memory, before, times, changing):
    job = new_job(args=ARGS, key="k", delay=60)
    await before.enqueue([job])
    later = b'{"n":2}'

    def replace():
        before.enqueue([new_job(args=later, key=unique("k", on_conflict="replace"))]).run()

    so_far = await rekey(SealedStore(Restless(memory, replace, times), KeyRing(NEW, [OLD])))
    assert (so_far.changing, so_far.jobs) == (changing, 1 - changing)
    (found,) = (await SealedStore(memory, KeyRing(NEW, [OLD])).jobs(JobFilter())).items
    assert (found.args, found.state) == (later, JobState.READY)
    assert is_sealed(memory.jobs(JobFilter()).run().items[0].args)
