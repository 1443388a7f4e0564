"""A job shares the fate of the caller's own rows, whatever driver the caller's connection is of."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
)
from typing import Any

import asyncpg
import django
import psycopg
import psycopg2
import psycopg2.extras
import pytest
import sqlalchemy
from django.conf import settings
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from drumline.errors import KeyTaken, StoreUnusable
from drumline.model.query import JobFilter
from drumline.stores.base import topic
from drumline.stores.postgres import PostgresStore
from tests.support.build import new_job, unique
from tests.support.postgres import new_address, shared_url
from tests.support.waiting import eventually


class Own:
    """What a caller has: its transaction, and how to run a statement of its own and to end it."""

    def __init__(
        self, tx: Any, run: Callable[[str], Any], commit: Callable[[], Any], rollback: Callable[[], Any]
    ) -> None:
        self.tx = tx
        self.run = run
        self.commit = commit
        self.rollback = rollback


def alchemy(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


@contextmanager
def psycopg_sync(url: str) -> Iterator[Own]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        yield Own(connection, connection.execute, connection.commit, connection.rollback)


@contextmanager
def psycopg2_sync(url: str) -> Iterator[Own]:
    with closing(psycopg2.connect(url, cursor_factory=psycopg2.extras.RealDictCursor)) as connection:
        yield Own(connection, connection.cursor().execute, connection.commit, connection.rollback)


@contextmanager
def sqlalchemy_connection(url: str) -> Iterator[Own]:
    engine = sqlalchemy.create_engine(alchemy(url, "psycopg"))
    with engine.connect() as connection:
        yield Own(connection, connection.exec_driver_sql, connection.commit, connection.rollback)
    engine.dispose()


@contextmanager
def sqlalchemy_session(url: str) -> Iterator[Own]:
    engine = sqlalchemy.create_engine(alchemy(url, "psycopg2"))
    with Session(engine) as session:
        yield Own(session, lambda sql: session.execute(sqlalchemy.text(sql)), session.commit, session.rollback)
    engine.dispose()


@contextmanager
def django_connection(url: str) -> Iterator[Own]:
    from django.db import connections, transaction

    parts = sqlalchemy.make_url(url)
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": parts.database, "USER": parts.username}
    if not settings.configured:
        settings.configure(
            DATABASES={
                "default": {**database, "HOST": parts.host, "PORT": parts.port, "PASSWORD": parts.password or ""}
            }
        )
        django.setup()
    connection = connections["default"]
    atomic = transaction.atomic()

    def leave(*, undone: bool) -> None:
        transaction.set_rollback(undone)
        atomic.__exit__(None, None, None)

    try:
        with connection.cursor() as cursor:
            atomic.__enter__()
            yield Own(connection, cursor.execute, lambda: leave(undone=False), lambda: leave(undone=True))
    finally:
        connection.close()


@asynccontextmanager
async def psycopg_async(url: str) -> AsyncIterator[Own]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield Own(connection, connection.execute, connection.commit, connection.rollback)


@asynccontextmanager
async def asyncpg_connection(url: str) -> AsyncIterator[Own]:
    connection = await asyncpg.connect(url)
    # As many callers do it: then a parameter of type json is encoded once more.
    await connection.set_type_codec("json", encoder=repr, decoder=repr, schema="pg_catalog")
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield Own(connection, connection.execute, transaction.commit, transaction.rollback)
    finally:
        await connection.close()


@asynccontextmanager
async def asyncpg_pool(url: str) -> AsyncIterator[Own]:
    async with asyncpg.create_pool(url, min_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield Own(connection, connection.execute, transaction.commit, transaction.rollback)


@asynccontextmanager
async def sqlalchemy_async_connection(url: str) -> AsyncIterator[Own]:
    engine = create_async_engine(alchemy(url, "asyncpg"))
    async with engine.connect() as connection:
        yield Own(connection, connection.exec_driver_sql, connection.commit, connection.rollback)
    await engine.dispose()


@asynccontextmanager
async def sqlalchemy_async_session(url: str) -> AsyncIterator[Own]:
    engine = create_async_engine(alchemy(url, "psycopg"))
    async with AsyncSession(engine) as session:
        yield Own(session, lambda sql: session.execute(sqlalchemy.text(sql)), session.commit, session.rollback)
    await engine.dispose()


Blocking = Callable[[str], AbstractContextManager[Own]]
Asynchronous = Callable[[str], AbstractAsyncContextManager[Own]]

BLOCKING: list[Blocking] = [
    psycopg_sync,
    psycopg2_sync,
    sqlalchemy_connection,
    sqlalchemy_session,
    django_connection,
]
ASYNC: list[Asynchronous] = [
    psycopg_async,
    asyncpg_connection,
    asyncpg_pool,
    sqlalchemy_async_connection,
    sqlalchemy_async_session,
]
over_blocking = pytest.mark.parametrize("connect", BLOCKING, ids=lambda connect: connect.__name__)
over_async = pytest.mark.parametrize("connect", ASYNC, ids=lambda connect: connect.__name__)
ends = pytest.mark.parametrize("end", ["commit", "rollback"])


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    # In the first database, for Django knows only one.
    namespace = new_address().partition(" ")[2]
    made = PostgresStore(shared_url(), namespace=namespace)
    made.migrate().run()
    yield made
    made.close().run()


@pytest.fixture
def orders(store: PostgresStore) -> str:
    """A table of the caller's own."""
    table = f'"{store.place.namespace}".orders'
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        connection.execute(f"create table {table} (id integer)")
    return table


def stored(store: PostgresStore) -> int:
    return len(store.jobs(JobFilter()).run().items)


def ordered(table: str) -> int:
    with psycopg.connect(shared_url()) as connection:
        row = connection.execute(f"select count(*) from {table}").fetchone()
        assert row is not None
        count: int = row[0]
        return count


@over_blocking
@ends
def test_jobs_share_the_fate_of_the_callers_own_rows(store, orders, connect, end):
    with connect(shared_url()) as own:
        own.run(f"insert into {orders} values (1)")
        assert [answer.created for answer in store.enqueue([new_job(), new_job()], tx=own.tx).run()] == [True, True]
        assert stored(store) == 0
        getattr(own, end)()
    assert (stored(store), ordered(orders)) == ((2, 1) if end == "commit" else (0, 0))


@over_async
@ends
@pytest.mark.asyncio
async def test_jobs_share_the_fate_of_an_async_callers_own_rows(store, orders, connect, end):
    async with connect(shared_url()) as own:
        await own.run(f"insert into {orders} values (1)")
        answers = await store.enqueue([new_job(), new_job(key="k", tags=("t",))], tx=own.tx)
        assert [answer.created for answer in answers] == [True, True]
        assert stored(store) == 0
        await getattr(own, end)()
    assert (stored(store), ordered(orders)) == ((2, 1) if end == "commit" else (0, 0))


@over_blocking
def test_a_refused_enqueue_leaves_the_callers_own_rows_to_the_caller(store, orders, connect):
    store.enqueue([new_job(key="k")]).run()
    with connect(shared_url()) as own:
        own.run(f"insert into {orders} values (1)")
        with pytest.raises(KeyTaken):
            store.enqueue([new_job(), new_job(key=unique("k", on_conflict="raise"))], tx=own.tx).run()
        own.commit()
    assert (stored(store), ordered(orders)) == (1, 1)


@over_async
@pytest.mark.asyncio
async def test_keys_are_replaced_inside_an_async_callers_transaction(store, connect):
    (first,) = store.enqueue([new_job(key="k", args=b"[1]")]).run()
    async with connect(shared_url()) as own:
        (answer,) = await store.enqueue(
            [new_job(key=unique("k", on_conflict="replace"), args=b"[2]", queue="q")], tx=own.tx
        )
        assert (answer.id, answer.replaced) == (first.id, True)
        await own.commit()
    (job,) = store.jobs(JobFilter()).run().items
    assert (job.args, job.queue) == (b"[2]", "q")
    assert {count.queue: count.ready for count in store.counts().run()} == {"q": 1}


@over_blocking
def test_a_connection_to_another_database_is_refused_and_stays_usable(orders, connect):
    with rig_elsewhere() as other, connect(shared_url()) as own:
        own.run(f"insert into {orders} values (1)")
        with pytest.raises(StoreUnusable, match="own database"):
            other.enqueue([new_job()], tx=own.tx).run()
        own.commit()
    assert ordered(orders) == 1


@contextmanager
def rig_elsewhere() -> Iterator[PostgresStore]:
    """A store in the other database."""
    addresses = (new_address() for _ in range(2))
    url, _, namespace = next(address for address in addresses if not address.startswith(f"{shared_url()} ")).partition(
        " "
    )
    other = PostgresStore(url, namespace=namespace)
    other.migrate().run()
    try:
        yield other
    finally:
        other.close().run()


def test_a_connection_without_a_transaction_is_refused(store):
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        with pytest.raises(StoreUnusable, match="autocommit"):
            store.enqueue([new_job()], tx=connection).run()
        with connection.transaction():
            store.enqueue([new_job()], tx=connection).run()
    assert stored(store) == 1


def test_an_async_connection_is_refused_by_blocking_callers(store):
    with pytest.raises(StoreUnusable, match="await"):
        store.enqueue([new_job()], tx=psycopg.AsyncConnection.__new__(psycopg.AsyncConnection)).run()


@over_blocking
@pytest.mark.asyncio
async def test_whoever_listens_elsewhere_hears_of_the_commit(store, connect):
    def enqueue_and_commit() -> None:
        with connect(shared_url()) as own:
            store.enqueue([new_job()], tx=own.tx).run()
            own.commit()

    other = PostgresStore(shared_url(), namespace=store.place.namespace)
    heard: list[str] = []
    async with other.wakeups(heard.append) as ear:
        ear.watch([topic.queue("default")])
        await asyncio.to_thread(enqueue_and_commit)
        await eventually(lambda: heard)
    await other.close()
