import sqlite3
from contextlib import closing

import pytest

from drumline.errors import SchemaMismatch
from drumline.stores.files import (
    Migration,
    MigrationStatements,
    check_schema,
    migrate,
    read_migrations,
    read_statements,
)
from drumline.stores.statements import Many, Statement, in_turn, run

KEEPING = MigrationStatements(
    "create table if not exists applied (version integer, name text, checksum text)",
    "select version, checksum from applied",
    "insert into applied values (:version, :name, :checksum)",
)
FIRST = Migration(1, "first", "create table a (x integer);  -- the first; of two\ncreate table b (x integer);\n")
SECOND = Migration(2, "second", "-- Only an index.\ncreate index a_x on a (x);\n")


@pytest.fixture
def connection():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        yield made


def test_an_operation_gets_rows_for_a_statement_and_a_count_for_many(connection):
    def operation():
        nothing = yield Statement("create table a (x integer)")
        count = yield Many("insert into a values (:x)", [{"x": 1}, {"x": 2}])
        rows = yield Statement("select x from a where x > :x order by x", {"x": 0})
        return nothing, count, rows

    assert run(connection.cursor(), operation()) == ([], 2, [(1,), (2,)])


def test_an_error_of_the_driver_ends_the_operation(connection):
    ended = []

    def operation():
        try:
            yield Statement("select no")
        finally:
            ended.append(True)

    with pytest.raises(sqlite3.OperationalError):
        run(connection.cursor(), operation())
    assert ended == [True]


def test_operations_in_turn_see_what_the_earlier_ones_did(connection):
    def add(number):
        yield Statement("insert into a values (:x)", {"x": number})
        ((count,),) = yield Statement("select count(*) from a")
        return count

    connection.execute("create table a (x integer)")
    assert run(connection.cursor(), in_turn(add(number) for number in "abc")) == [1, 2, 3]


def test_statements_are_found_by_name_with_their_duty(tmp_path, monkeypatch):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/__init__.py").touch()
    (tmp_path / "texts/one.sql").write_text("-- name: a\n-- Do it.\nselect 1\n\n-- name: b\n-- And this.\nselect 2;\n")
    (tmp_path / "texts/two.sql").write_text("-- name: a\n-- Again.\nselect 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert read_statements("texts", "one.sql") == {"a": "-- Do it.\nselect 1", "b": "-- And this.\nselect 2"}
    with pytest.raises(ValueError, match="two statements are named a"):
        read_statements("texts", "one.sql", "two.sql")


def test_migrations_are_read_in_their_order():
    versions = [migration.version for migration in read_migrations("drumline.stores.sqlite")]
    assert versions == sorted(versions)
    assert versions[0] == 1


def test_only_what_is_missing_is_applied(connection):
    cursor = connection.cursor()
    run(cursor, migrate([FIRST], KEEPING, "here", {}))
    run(cursor, migrate([FIRST, SECOND], KEEPING, "here", {}))
    run(cursor, migrate([FIRST, SECOND], KEEPING, "here", {}))
    assert connection.execute("select version, name from applied").fetchall() == [(1, "first"), (2, "second")]


def test_an_older_schema_is_refused_where_nobody_migrates():
    check_schema({1: FIRST.checksum, 2: SECOND.checksum}, [FIRST, SECOND], "here")
    with pytest.raises(SchemaMismatch, match="here has schema version 1, and this Drumline needs 2: run"):
        check_schema({1: FIRST.checksum}, [FIRST, SECOND], "here")
