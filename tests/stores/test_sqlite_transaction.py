import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from drumline.errors import KeyTaken, StoreUnreachable, StoreUnusable
from drumline.model.query import JobFilter
from drumline.stores.sqlite import SqliteStore
from tests.support.build import new_job, unique


class Pooled:
    """As SQLAlchemy's pool hands out a connection of the driver."""

    def __init__(self, connection: object) -> None:
        self.driver_connection = connection


class Connection:
    """As SQLAlchemy's Connection."""

    def __init__(self, connection: object) -> None:
        self.connection = Pooled(connection)


class Session:
    """As SQLAlchemy's Session."""

    def __init__(self, connection: object) -> None:
        self._connection = connection

    def connection(self) -> Connection:
        return Connection(self._connection)


class AsyncSession:
    """As SQLAlchemy's AsyncSession."""

    async def connection(self) -> Connection:
        raise AssertionError("nobody awaits this")


@pytest.fixture
def own(path: Path, store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """A connection of a caller's own, with a table of its own."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table orders (id integer)")
        yield connection


def stored(store: SqliteStore) -> int:
    return len(store.jobs(JobFilter()).run().items)


@pytest.mark.parametrize(
    "wrap", [lambda own: own, Pooled, Connection, Session], ids=["plain", "pool", "conn", "session"]
)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_jobs_share_the_fate_of_the_callers_own_rows(store, own, wrap, end):
    own.execute("insert into orders values (1)")
    assert store.enqueue([new_job(), new_job()], tx=wrap(own)).run()[0].created
    assert stored(store) == 0
    getattr(own, end)()
    assert stored(store) == (2 if end == "commit" else 0)
    assert own.execute("select count(*) from orders").fetchone() == (1 if end == "commit" else 0,)
    assert sum(count.ready for count in store.counts().run()) == stored(store)


def test_a_transaction_is_begun_where_the_driver_would_begin_one(store, own):
    store.enqueue([new_job()], tx=own).run()
    assert own.in_transaction
    assert stored(store) == 0
    own.commit()
    assert stored(store) == 1


def test_rows_and_texts_as_the_caller_likes_them_do_not_matter(store, own):
    own.row_factory = sqlite3.Row
    own.text_factory = bytes
    holder = new_job(key="k")
    store.enqueue([holder]).run()
    assert store.enqueue([new_job(key="k")], tx=own).run()[0].id == holder.id
    own.commit()
    assert own.text_factory is bytes
    assert own.row_factory is sqlite3.Row


def test_a_refused_batch_leaves_the_callers_own_rows_alone(store, own):
    store.enqueue([new_job(key="k")]).run()
    own.execute("insert into orders values (1)")
    with pytest.raises(KeyTaken):
        store.enqueue([new_job(), new_job(key=unique("k", on_conflict="raise"))], tx=own).run()
    own.commit()
    assert stored(store) == 1
    assert own.execute("select count(*) from orders").fetchone() == (1,)


def test_a_connection_in_autocommit_needs_an_open_transaction(path, store):
    with closing(sqlite3.connect(path, isolation_level=None)) as own:
        with pytest.raises(StoreUnusable, match="autocommit"):
            store.enqueue([new_job()], tx=own).run()
        own.execute("begin")
        store.enqueue([new_job()], tx=own).run()
        own.execute("rollback")
    assert stored(store) == 0


def test_another_database_is_refused_also_if_it_is_a_copy(path, store, tmp_path):
    store.enqueue([new_job()]).run()
    store.close().run()
    shutil.copy(path, tmp_path / "copy.db")
    for other in (tmp_path / "copy.db", tmp_path / "empty.db", ":memory:"):
        with closing(sqlite3.connect(other)) as own, pytest.raises(StoreUnusable, match="the store's own file"):
            store.enqueue([new_job()], tx=own).run()


def test_the_same_file_by_another_name_is_accepted(path, store, tmp_path):
    (tmp_path / "link.db").symlink_to(path)
    with closing(sqlite3.connect(tmp_path / "link.db")) as own:
        store.enqueue([new_job()], tx=own).run()
        own.commit()
    assert stored(store) == 1


@pytest.mark.parametrize(
    "tx", ["a text", 5, object(), AsyncSession()], ids=["text", "number", "object", "async session"]
)
def test_what_is_no_connection_is_refused(store, tx):
    with pytest.raises(StoreUnusable, match="transaction= must be"):
        store.enqueue([new_job()], tx=tx).run()


def test_a_connection_that_must_wait_too_long_says_so(path, store):
    with closing(sqlite3.connect(path, timeout=0)) as own, closing(sqlite3.connect(path)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreUnreachable):
            store.enqueue([new_job()], tx=own).run()
