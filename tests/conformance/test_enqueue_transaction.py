import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from drumline.errors import KeyTaken, StoreUnusable
from drumline.model.job import Enqueued, JobState
from tests.support.build import new_job, unique
from tests.support.makers import Maker, chosen
from tests.support.promises import promises
from tests.support.rig import Rig, new_rig

TRANSACTIONAL = [maker for maker in chosen() if maker.connect is not None]


@pytest.fixture
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Rig, Any]]:
    """A store, and a connection of a caller's own to the same place."""
    maker: Maker = request.param
    assert maker.connect is not None
    with new_rig(maker, tmp_path) as rig, closing(maker.connect(rig.address)) as connection:
        yield rig, connection


over_own_connections = pytest.mark.parametrize("own", TRANSACTIONAL, ids=lambda maker: maker.name, indirect=True)


def write_own_data(connection: Any) -> None:
    """Begin the caller's transaction as callers do: by writing to a table of theirs."""
    connection.execute("create table if not exists orders (id integer)")
    connection.commit()
    connection.execute("insert into orders values (1)")


@promises(
    "enqueue",
    "With `tx`, the caller's own connection to this very store",
    "the jobs become real when the caller commits",
)
@over_own_connections
def test_jobs_become_real_when_the_caller_commits(own):
    rig, connection = own
    write_own_data(connection)
    job = new_job(args=b"[1]", tags=("t",), delay=5)
    assert rig.store.enqueue([job], tx=connection).run() == [Enqueued(job.id, JobState.DELAYED)]
    assert rig.jobs() == []
    connection.commit()
    assert [(found.id, found.args, found.tags, found.due_at) for found in rig.jobs()] == [
        (job.id, b"[1]", ("t",), rig.later(5))
    ]
    assert rig.count().delayed == 1


@promises("enqueue", "and leave nothing when it rolls back")
@over_own_connections
def test_jobs_leave_nothing_when_the_caller_rolls_back(own):
    rig, connection = own
    write_own_data(connection)
    job = new_job(key="k")
    rig.store.enqueue([job], tx=connection).run()
    connection.rollback()
    assert (rig.jobs(), rig.count().ready) == ([], 0)
    assert [answer.created for answer in rig.enqueue(new_job(key="k"), job)] == [True, False]


@over_own_connections
def test_several_enqueues_of_one_transaction_see_each_other(own):
    rig, connection = own
    write_own_data(connection)
    job = new_job(key="k")
    rig.store.enqueue([job], tx=connection).run()
    (answer,) = rig.store.enqueue([new_job(key="k")], tx=connection).run()
    assert (answer.id, answer.created) == (job.id, False)
    connection.commit()
    assert rig.ids() == [job.id]


@over_own_connections
def test_a_key_that_is_taken_leaves_the_callers_own_writes_to_the_caller(own):
    rig, connection = own
    rig.add(key="k")
    write_own_data(connection)
    with pytest.raises(KeyTaken):
        rig.store.enqueue([new_job(), new_job(key=unique("k", on_conflict="raise"))], tx=connection).run()
    connection.commit()
    assert connection.execute("select count(*) from orders").fetchone() == (1,)
    assert len(rig.jobs()) == 1


@over_own_connections
@pytest.mark.asyncio
async def test_jobs_become_real_on_commit_for_async_callers_too(own):
    rig, connection = own
    write_own_data(connection)
    job = new_job()
    await rig.store.enqueue([job], tx=connection)
    assert rig.jobs() == []
    connection.commit()
    assert rig.ids() == [job.id]


@promises("enqueue", "A connection to anything else is refused with StoreUnusable.")
def test_a_connection_to_anything_else_is_refused(rig, tmp_path):
    with closing(sqlite3.connect(tmp_path / "elsewhere.db")) as elsewhere:
        for stranger in (elsewhere, object(), "a text"):
            with pytest.raises(StoreUnusable):
                rig.store.enqueue([new_job()], tx=stranger).run()
        assert elsewhere.execute("select count(*) from sqlite_master").fetchone() == (0,)
    assert rig.jobs() == []


def test_a_connection_to_another_store_of_the_same_kind_is_refused(rig, maker, tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    with new_rig(maker, folder) as other:
        stranger = object() if maker.connect is None else maker.connect(other.address)
        try:
            with pytest.raises(StoreUnusable):
                rig.store.enqueue([new_job()], tx=stranger).run()
        finally:
            getattr(stranger, "close", lambda: None)()
        assert (rig.jobs(), other.jobs()) == ([], [])
