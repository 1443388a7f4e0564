"""Claims that stand by: the thread that hears of a job makes them, and what it leaves is left to ordinary ones."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from drumline.clock import fresh_id
from drumline.model.claim import ANY_QUEUE, Claimed, Share
from drumline.model.job import JobState
from drumline.model.query import JobFilter, PauseKind
from drumline.stores.base import topic
from drumline.stores.postgres import PostgresStore
from tests.support.build import BY, REPLICA, done, new_job, replica_info
from tests.support.postgres import Server, new_server
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

ALL = [Share(ANY_QUEUE, 1)]
TASKS = ["job"]
# Longer than any of these tests may take: whoever is answered was answered by the job.
LONG = 50.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with new_server() as running:
        yield running


@pytest.fixture
def here(server: Server) -> Iterator[PostgresStore]:
    made = PostgresStore(server.url, namespace=f"t{fresh_id()}")
    made.migrate().run()
    made.beat(replica_info(), []).run()
    yield made
    made.close().run()


@pytest.fixture
def there(server: Server, here: PostgresStore) -> Iterator[PostgresStore]:
    """The same store in another process, as far as hints are concerned."""
    made = PostgresStore(server.url, namespace=here.place.namespace)
    yield made
    made.close().run()


@pytest.fixture
def admin(server: Server) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.url) as connection:
        yield connection


class Place:
    """Where somebody stands by, and hears."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.heard: list[str] = []

    def stand_by(self, token: str = "t", seconds: float = LONG, queues: Sequence[Share] = ALL) -> asyncio.Task[Any]:
        async def standing() -> Claimed | None:
            return await self.store.stand_by(REPLICA, queues, TASKS, token, seconds=seconds)

        return asyncio.create_task(standing())


@asynccontextmanager
async def at_work(store: PostgresStore) -> AsyncIterator[Place]:
    place = Place(store)
    async with store.wakeups(place.heard.append) as listener:
        listener.watch([topic.queue(ANY_QUEUE)])
        yield place


def state_of(store, job):
    (found,) = store.jobs(JobFilter(ids=(job,))).run().items
    return found.state


async def test_a_job_of_another_process_is_taken_by_the_one_that_stands_by(here, there):
    async with at_work(here) as place:
        standing = place.stand_by()
        await asyncio.sleep(0)
        (made,) = await there.enqueue([new_job()])
        answer = await standing
        (claim,) = answer.claims
        assert (claim.id, claim.attempt, claim.replica) == (made.id, 1, REPLICA)
        # Ordinary claims are told of the same news, for there may be more.
        await eventually(lambda: place.heard)
    assert await here.finish([done(claim)]) == [True]
    (count,) = here.counts().run()
    assert (count.ready, count.running, count.done) == (0, 0, 1)


async def test_of_two_processes_that_stand_by_one_has_the_job(here, there):
    there.beat(replica_info(), []).run()
    async with at_work(here) as one, at_work(there) as other:
        standing = [one.stand_by("t1"), other.stand_by("t2")]
        await asyncio.sleep(0)
        producer = PostgresStore(here.place.url, namespace=here.place.namespace)
        (made,) = await producer.enqueue([new_job()])
        await asyncio.wait(standing, return_when=asyncio.FIRST_COMPLETED)
        await eventually(lambda: one.heard and other.heard)
        for token in ("t1", "t2"):
            await here.claim(REPLICA, ALL, 0, TASKS, token)
            await there.claim(REPLICA, ALL, 0, TASKS, token)
        taken = [claim.id for answer in [await each for each in standing] for claim in answer.claims]
        assert taken == [made.id]
        await producer.close()


@pytest.mark.parametrize(
    "why", ["its queue is paused", "it is not due", "its task is another's", "its queue is another's", "it has a key"]
)
async def test_what_is_not_to_be_taken_so_is_left(here, there, why):
    delay = timedelta(hours=1) if why == "it is not due" else None
    job = new_job(
        task="other" if why == "its task is another's" else "job",
        key="k" if why == "it has a key" else None,
        start=delay,
    )
    queues = [Share("elsewhere", 1)] if why == "its queue is another's" else ALL
    if why == "its queue is paused":
        here.pause(PauseKind.QUEUE, ["default"], paused=True, by=BY, token="p").run()
    async with at_work(here) as place:
        standing = place.stand_by(queues=queues)
        await asyncio.sleep(0)
        await there.enqueue([job])
        await eventually(lambda: place.heard)
        assert not standing.done()
        assert state_of(here, job.id) is (JobState.DELAYED if delay else JobState.READY)
        await here.claim(REPLICA, ALL, 0, TASKS, "t")
        assert (await standing).claims == []


async def test_who_recalls_one_that_is_being_made_hears_what_it_took(here, there, admin):
    async with at_work(here) as place:
        standing = place.stand_by()
        await asyncio.sleep(0)
        # Whoever claims has to wait.
        admin.execute(f'lock table "{here.place.namespace}".token in access exclusive mode')
        (made,) = await there.enqueue([new_job()])
        waiting = "select count(*) from pg_locks where not granted"
        with psycopg.connect(here.place.url, autocommit=True) as look:
            await eventually(lambda: look.execute(waiting).fetchone() == (1,))
        recall = asyncio.create_task(_claim_nothing(here))
        await asyncio.sleep(0.05)
        assert not recall.done()
        admin.rollback()
        assert [claim.id for claim in (await recall).claims] == [made.id]
        assert [claim.id for claim in (await standing).claims] == [made.id]


async def _claim_nothing(store):
    return await store.claim(REPLICA, ALL, 0, TASKS, "t")


async def test_a_claim_whose_answer_was_lost_is_found_again(here, there, monkeypatch):
    run_statement = here._sessions.run_statement  # noqa: SLF001
    lost: list[Claimed] = []

    def lose_first(make, step):
        answer = run_statement(make, step)
        if step.tries == 0 and isinstance(answer, Claimed) and not lost:
            lost.append(answer)
            step.tries += 1
            return run_statement(make, step)
        return answer

    async with at_work(here) as place:
        standing = place.stand_by()
        await asyncio.sleep(0)
        monkeypatch.setattr(here._sessions, "run_statement", lose_first)  # noqa: SLF001
        (made,) = await there.enqueue([new_job()])
        assert [claim.id for claim in (await standing).claims] == [made.id]
    assert [claim.id for answer in lost for claim in answer.claims] == [made.id]


async def test_nobody_stands_by_where_nobody_hears(here, admin):
    assert await here.stand_by(REPLICA, ALL, TASKS, "t1", seconds=LONG) is None
    async with at_work(here) as place:
        standing = place.stand_by()
        await asyncio.sleep(0)
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'"
            " and pid <> pg_backend_pid()"
        )
        assert await standing is None
        # The connection is opened again, and then somebody can wait once more.
        await eventually(lambda: here._standbys._is_open)  # noqa: SLF001
        standing = place.stand_by("t2")
        await asyncio.sleep(0)
        (made,) = await here.enqueue([new_job()])
        assert [claim.id for claim in (await standing).claims] == [made.id]


@pytest.mark.parametrize(
    "said", ["", "new ", "new x default job", "new 1 2 3 4", "\n\n", "queue default\nnew default job"]
)
async def test_whatever_somebody_says_on_the_channel_nobody_goes_deaf(here, there, admin, said):
    async with at_work(here) as place:
        standing = place.stand_by()
        await asyncio.sleep(0)
        for speaker in ("somebody", ""):
            admin.execute("select pg_notify(%s, %s)", [here.place.channel, f"{speaker}\n{said}"])
        admin.commit()
        (made,) = await there.enqueue([new_job()])
        assert [claim.id for claim in (await standing).claims] == [made.id]


async def test_a_hint_arrives_also_while_another_commit_is_about_to_tell_one(here, there, admin):
    async with at_work(here) as place:
        admin.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", [here.place.channel])
        await there.enqueue([new_job()])
        await eventually(lambda: place.heard)
        admin.rollback()


async def test_an_enqueue_in_somebodys_transaction_keeps_nobody_from_telling(here, server):
    with psycopg.connect(server.url) as own:
        here.enqueue([new_job()], tx=own).run()
        locks = own.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone()
        assert locks == (0,)
