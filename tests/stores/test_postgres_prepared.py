"""Statements that the server keeps: what happens when it has forgotten them, or when the schema has changed since."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from drumline.clock import fresh_id
from drumline.model.claim import Share
from drumline.stores.postgres import PostgresStore, finish
from drumline.stores.postgres.claim import Asked, claim
from drumline.stores.postgres.floors import Floors
from drumline.stores.postgres.plain import enqueue_plain
from drumline.stores.postgres.session import Sessions
from drumline.stores.postgres.step import Step
from drumline.stores.postgres.ways import WAYS
from drumline.stores.relational.read import counts
from tests.support.build import REPLICA, done, new_job
from tests.support.postgres import new_address


class Line:
    """The steps of one caller, one after another, on one connection."""

    def __init__(self, address: str) -> None:
        url, _, namespace = address.partition(" ")
        store = PostgresStore(url, namespace=namespace)
        store.migrate().run()
        store.close().run()
        self.place = store.place
        self.sessions = Sessions(self.place)

    def run(self, make: Any) -> Any:
        return self.sessions.run_statement(make, Step())

    def work(self) -> None:
        """Every statement that is prepared, once."""
        self.run(lambda step: enqueue_plain(step, [new_job()]))
        asked = Asked(REPLICA, [Share("*", 1)], 1, ["job"], fresh_id(), fresh_id(), Floors())
        (one,) = self.run(lambda step: claim(step, asked, 0)).claims
        assert self.run(lambda step: finish.finish(step, [done(one)])) == [True]

    def connection(self) -> psycopg.Connection[Any]:
        """The one that was used last."""
        connection, is_new = self.sessions.take()
        assert not is_new
        self.sessions.put_back(connection)
        return connection

    def prepared(self) -> int:
        return len(self.connection().execute("select from pg_prepared_statements").fetchall())


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line(new_address())
    yield made
    made.sessions.close()


def test_the_statements_of_every_batch_are_prepared_and_no_others(line):
    line.work()
    line.run(lambda _: counts(WAYS))
    assert line.prepared() == 3


def test_a_new_column_does_not_disturb_what_was_prepared(line):
    line.work()
    for table in ("job", "history"):
        line.connection().execute(f'alter table "{line.place.namespace}".{table} add column later text')
    line.work()
    assert line.prepared() == 3


def test_where_what_was_prepared_is_gone_nothing_is_prepared_any_more(line):
    line.work()
    # Behind the driver's back, as a pooler does that hands over another connection.
    line.connection().pgconn.exec_(b"deallocate all")
    line.work()
    assert line.prepared() == 0
