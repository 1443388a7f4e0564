"""A server that is reached and says nothing, or cannot write: jobs go on, and what they came to is recorded later."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from drumline import Context, Drumline
from drumline.clock import fresh_id
from drumline.errors import StoreUnreachable
from drumline.stores.postgres import PostgresStore, patience
from drumline.web import health
from tests.support.build import REPLICA, new_job
from tests.support.postgres import Server, new_server
from tests.support.waiting import eventually
from tests.support.wall import Wall, new_wall
from tests.web.browser import Browser
from tests.web.shop import AUTH, serve


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with new_server() as running:
        yield running


@pytest.fixture
def wall(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wall]:
    monkeypatch.setattr(patience, "SILENCE", 0.5)
    with new_wall(server.url) as made:
        yield made


@pytest.fixture
def store(wall: Wall) -> Iterator[PostgresStore]:
    made = PostgresStore(wall.url)
    made.migrate().run()
    yield made
    made.close().run()


class Work:
    """A task that goes on until it is told to end, and what it has seen of its claim."""

    def __init__(self, url: str) -> None:
        # Its own: what one test leaves behind would be rescued, and run, in the next one.
        self.namespace = f"t{fresh_id()}"
        self.drum = Drumline(url, namespace=self.namespace)
        self.started: list[int] = []
        self.held: list[bool] = []
        self.may_end = asyncio.Event()

        @self.drum.task(lease="3s")
        async def work(ctx: Context, number: int) -> int:
            self.started.append(number)
            try:
                await self.may_end.wait()
            finally:
                self.held.append(ctx.held)
            return number

        self.task = work


@asynccontextmanager
async def running(work: Work) -> AsyncIterator[asyncio.Task[None]]:
    run = asyncio.create_task(work.drum.run())
    try:
        yield run
    finally:
        for worker in work.drum.running_here:
            worker.stop()
        await run
        await work.drum.close()


def test_a_step_that_is_never_answered_fails_and_the_next_one_finds_the_server(wall, store):
    store.enqueue([new_job()]).run()
    wall.fall_silent()
    with pytest.raises(StoreUnreachable, match="out of reach"):
        # The first connection is replaced by another, which is as silent.
        store.counts().run()
    wall.open()
    assert store.enqueue([new_job()]).run()[0].created


def test_a_statement_that_is_slow_is_waited_for_but_not_for_ever(store):
    with store.place.connect() as connection:
        connection.execute("select count(*) from (select pg_sleep(0.3)) as one")
        with pytest.raises(psycopg.OperationalError, match="no answer"):
            connection.execute("select pg_sleep(5)")
        assert connection.closed


@pytest.mark.asyncio
async def test_a_running_job_survives_the_silence_and_its_outcome_is_recorded(wall):
    work = Work(wall.url)
    async with running(work) as run:
        job = await work.task.enqueue(1)
        await eventually(lambda: work.started == [1])
        wall.fall_silent()
        with pytest.raises(StoreUnreachable):
            await work.drum.counts()
        # It ends while nobody can be told.
        work.may_end.set()
        await eventually(lambda: work.held == [True])
        assert not run.done()
        wall.open()
        assert await job.wait(timeout=30) == 1
        assert not run.done()
    assert work.started == [1]


@pytest.mark.asyncio
async def test_a_job_that_was_taken_over_during_the_silence_is_told(wall, server):
    work = Work(wall.url)
    async with running(work) as run:
        job = await work.task.enqueue(1)
        await eventually(lambda: work.started == [1])
        wall.fall_silent()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(
                f'update "{work.namespace}".job set fence = fence + 1, replica = %s where id = %s', (REPLICA, job.id)
            )
        wall.open()
        # The first beat that is answered says so: the coroutine is cancelled, and sees why.
        await eventually(lambda: work.held == [False], 30)
        assert not run.done()


def test_a_lock_that_is_never_given_up_is_not_waited_for_beyond_the_servers_patience(server, store):
    with psycopg.connect(server.url, autocommit=True) as admin, psycopg.connect(server.url) as other:
        admin.execute("alter role drumline set statement_timeout = '200ms'")
        try:
            other.execute("lock table drumline.job")
            limited = PostgresStore(server.url)
            with pytest.raises(StoreUnreachable, match="statement timeout"):
                limited.enqueue([new_job()]).run()
            other.rollback()
            assert limited.enqueue([new_job()]).run()[0].created
            limited.close().run()
        finally:
            admin.execute("alter role drumline reset statement_timeout")


@pytest.mark.asyncio
async def test_while_the_server_only_reads_jobs_go_on_and_health_is_degraded(server, monkeypatch):
    monkeypatch.setenv("DRUMLINE_WEB__SECRET", "a secret of the tests")
    monkeypatch.setattr(health, "FRESH_FOR", 0.0)
    work = Work(server.url)
    browser = Browser(serve(work.drum, AUTH))
    async with running(work) as run:
        job = await work.task.enqueue(1)
        await eventually(lambda: work.started == [1])
        server.stop()
        server.start("default_transaction_read_only=on")
        work.may_end.set()
        await eventually(lambda: work.held == [True])
        answer = await browser.get("/actuator/health")
        assert (answer.status, answer.text.strip()) == (503, "degraded")
        assert not run.done()
        server.stop()
        server.start()
        assert await job.wait(timeout=30) == 1
        answer = await browser.get("/actuator/health")
        assert (answer.status, answer.text.strip()) == (200, "healthy")
