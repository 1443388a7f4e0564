"""Hot statements find what they look for by an index, and never by going through all jobs."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files

import pytest

from drumline.stores.files import read_statements

PACKAGE = "drumline.stores.sqlite"
SQL = read_statements(
    PACKAGE,
    *(file.name for file in files(PACKAGE).iterdir() if file.name.endswith(".sql") and "connect" not in file.name),
)
# Of these there are few, whatever the backlog; or the clock has gone back.
SMALL = {
    *("drumline_store", "drumline_replica", "drumline_pause", "drumline_schedule", "drumline_hint", "drumline_total"),
    *("lane", "ready", "ledger", "CONSTANT", "(subquery-2)"),
}
MAY_SORT = {"find_replicas", "find_running", "walk_running", "count_running"}
MAY_PASS_ALL_RUNNING = {"find_running", "walk_running", "find_all_running", "count_running"}
MAY_PASS_ALL_READY = {"demote"}


@pytest.fixture
def plan(path, store) -> Iterator[object]:
    with closing(sqlite3.connect(path)) as connection:

        def explain(name: str) -> list[str]:
            params = dict.fromkeys(re.findall(r":(\w+)", SQL[name]))
            return [row[3] for row in connection.execute(f"explain query plan {SQL[name]}", params)]

        yield explain


@pytest.mark.parametrize("name", sorted(SQL))
def test_no_statement_goes_through_a_table_that_grows(plan, name):
    scans = [line for line in plan(name) if line.startswith("SCAN") and "VIRTUAL TABLE" not in line]
    for line in scans:
        table = line.split()[1]
        is_partial = (name in MAY_PASS_ALL_RUNNING and "drumline_job_running" in line) or (
            name in MAY_PASS_ALL_READY and "drumline_job_lane" in line
        )
        assert table in SMALL or is_partial, line


@pytest.mark.parametrize("name", sorted(set(SQL) - MAY_SORT))
def test_no_statement_sorts_what_it_found(plan, name):
    assert [line for line in plan(name) if "TEMP B-TREE" in line or "AUTOMATIC" in line] == []


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("read_lane", "drumline_job_lane (queue=? AND task=? AND (rank,due,id)>(?,?,?))"),
        ("lanes_of", "drumline_job_lane (queue=? AND task>?)"),
        ("promote", "drumline_job_delayed (due<?)"),
        ("next_due", "drumline_job_delayed"),
        ("find_expired", "drumline_job_running (lease<?)"),
        ("let_go", "drumline_job_blocked (waits_for=?)"),
        ("find_old_jobs", "drumline_history_expires (expires<?)"),
        ("forget_old_ticks", "drumline_tick_instant"),
        ("walk_all", "drumline_job_created"),
        ("walk_all", "drumline_history_created"),
        ("walk_dead", "drumline_history_dead"),
        ("walk_cancelled", "drumline_history_cancelled"),
        ("walk_schedule", "drumline_history_schedule (schedule=?"),
        ("walk_key", "drumline_history_key (key=?"),
        ("walk_tag", "PRIMARY KEY (tag=?"),
        ("find_standing", "drumline_history_1 (id=?)"),
        ("find_holders", "PRIMARY KEY (task=? AND key=?)"),
        ("tell_tick", "drumline_tick_job (job=?)"),
    ],
)
def test_a_hot_statement_uses_the_index_made_for_it(plan, name, index):
    assert any(index in line for line in plan(name))


def test_every_statement_says_what_it_is_for():
    for name, sql in SQL.items():
        assert re.match(r"-- \S.*\.\n", sql), name
