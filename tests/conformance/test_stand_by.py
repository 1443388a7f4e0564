import asyncio
from contextlib import suppress

import pytest
import pytest_asyncio

from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.job import JobState
from tests.support.build import OTHER_REPLICA, REPLICA, replica_info
from tests.support.promises import promises

pytestmark = pytest.mark.asyncio

ALL = [Share(ANY_QUEUE, 1)]
TASKS = ["job"]


@pytest_asyncio.fixture(autouse=True)
async def _at_work(rig):
    """The replica has said that it is alive, and listens."""
    rig.store.beat(replica_info(), []).run()
    async with rig.store.wakeups(lambda _: None):
        yield


def stand_by(rig, token="t", seconds=20.0, replica=REPLICA):
    async def standing():
        return await rig.store.stand_by(replica, ALL, TASKS, token, seconds=seconds)

    return asyncio.create_task(standing())


def claimed_by(rig, answer, token="t"):
    """What the one that stood by has taken; what a look with its token takes, where nobody can wait."""
    given = rig.store.claim(REPLICA, ALL, 1, TASKS, token).run() if answer is None else answer
    return given.claims


@promises("stand_by", "Stand by until there is work, for so many seconds at most, and take one job then")
@promises("stand_by", "It is a claim with this token, made in the moment in which a job comes")
@promises("stand_by", "None if nobody can wait.", "what was due before may be left to `claim`.")
async def test_one_that_stands_by_takes_the_first_job_that_comes(rig):
    standing = stand_by(rig)
    await asyncio.sleep(0)
    first, second = rig.add(), rig.add()
    (claim,) = claimed_by(rig, await standing)
    assert claim.id in (first, second)
    assert (claim.replica, rig.job(claim.id).state, rig.job(claim.id).attempt) == (REPLICA, JobState.RUNNING, 1)
    (again,) = rig.store.claim(REPLICA, ALL, 1, TASKS, "t").run().claims
    assert (again.id, again.fence) == (claim.id, claim.fence)
    assert [job.id for job in rig.take(5)] == [second if claim.id == first else first]


async def test_one_that_stands_by_is_answered_when_the_time_is_over(rig):
    answer = await stand_by(rig, seconds=0.05)
    assert answer is None or answer.claims == []


async def test_one_that_stands_by_hears_when_the_next_delayed_job_is_due(rig):
    rig.add(delay=60)
    answer = await stand_by(rig, seconds=0.05)
    assert answer is None or answer.next_due == rig.later(60)


@promises(
    "claim",
    "With a limit of 0 nothing is taken, and one that stands by with this token is answered and takes nothing more.",
)
@pytest.mark.parametrize("is_early", [True, False], ids=["before it stands by", "while it stands by"])
async def test_one_that_is_recalled_is_answered_and_takes_nothing(rig, is_early):
    standing = stand_by(rig)
    if not is_early:
        # No store tells that somebody waits in it. On a slow machine it is the other case once more, which holds too.
        await asyncio.sleep(0.05)
    recalled = await rig.store.claim(REPLICA, ALL, 0, TASKS, "t")
    answer = await standing
    assert (recalled.claims, answer is None or answer.claims == []) == ([], True)
    job = rig.add()
    assert rig.job(job).state is JobState.READY
    assert [claim.id for claim in rig.take(1)] == [job]


async def test_one_that_is_recalled_after_it_has_taken_a_job_has_that_job(rig):
    standing = stand_by(rig)
    await asyncio.sleep(0)
    job = rig.add()
    claims = claimed_by(rig, await standing)
    recalled = rig.store.claim(REPLICA, ALL, 0, TASKS, "t").run()
    assert [claim.ref for claim in recalled.claims] == [claim.ref for claim in claims]
    assert [claim.id for claim in claims] == [job]


@promises("stand_by", "A caller that is cancelled takes nothing from then on.")
@pytest.mark.parametrize("is_early", [True, False], ids=["before it stands by", "while it stands by"])
async def test_one_that_is_cancelled_takes_nothing_from_then_on(rig, is_early):
    standing = stand_by(rig)
    await asyncio.sleep(0 if is_early else 0.05)
    standing.cancel()
    with suppress(asyncio.CancelledError):
        await standing
    job = rig.add()
    assert rig.job(job).state is JobState.READY
    assert [claim.id for claim in rig.take(1)] == [job]


@promises("stand_by", "A replica whose beat is overdue is given nothing: it may be frozen.")
async def test_a_replica_that_does_not_beat_is_given_nothing_where_it_stands_by(rig):
    standing = stand_by(rig, replica=OTHER_REPLICA)
    await asyncio.sleep(0)
    job = rig.add()
    answer = await standing
    assert answer is None or answer.claims == []
    assert rig.job(job).state is JobState.READY


async def test_of_two_that_stand_by_none_gets_the_job_of_the_other(rig):
    standing = [stand_by(rig, token) for token in ("t1", "t2")]
    await asyncio.sleep(0)
    jobs = {rig.add()}
    first, *_ = await asyncio.wait(standing, return_when=asyncio.FIRST_COMPLETED)
    jobs.add(rig.add())
    answers = [await one for one in standing]
    claims = [
        claim for answer, token in zip(answers, ("t1", "t2"), strict=True) for claim in claimed_by(rig, answer, token)
    ]
    taken = {claim.id for claim in claims} | {claim.id for claim in rig.take(5)}
    assert (taken, len({claim.id for claim in claims}), len(first) >= 1) == (jobs, len(claims), True)
