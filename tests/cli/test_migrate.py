import sqlite3
import threading
from contextlib import closing

import psycopg
import pytest

from drumline.clock import fresh_id
from drumline.stores.sqlite import SqliteStore
from tests.support.ports import free_port
from tests.support.postgres import direct, new_address
from tests.support.valkey import shared_url


def test_check_says_what_is_missing_and_changes_nothing(shop):
    answer = shop.run("migrate", "--check", "--store", shop.store)
    assert answer.code == 1
    assert "missing: 1 (initial)" in answer.err
    assert not (shop.folder / "drumline.db").exists()


def test_check_is_content_with_a_migrated_store(shop):
    shop.run("migrate", "--store", shop.store)
    answer = shop.run("migrate", "--check", "--store", shop.store)
    assert answer.code == 0
    assert "nothing is missing" in answer.out


def test_sql_prints_what_migrates_a_file_by_hand(shop):
    script = shop.run("migrate", "--sql", "--store", shop.store)
    assert script.code == 0
    assert not (shop.folder / "drumline.db").exists()
    with closing(sqlite3.connect(shop.folder / "drumline.db")) as connection:
        connection.executescript(script.out)
    assert shop.run("migrate", "--check", "--store", shop.store).code == 0
    assert shop.enqueue("add", '{"a": 1, "b": 2}')
    assert shop.run("migrate", "--sql", "--store", shop.store).out == ""


def test_sql_prints_what_migrates_a_postgres_by_hand(shop, monkeypatch):
    url, _, namespace = new_address().partition(" ")
    monkeypatch.setenv("DRUMLINE_STORE__NAMESPACE", namespace)
    monkeypatch.setenv("DRUMLINE_STORE__AUTO_MIGRATE", "false")
    script = shop.run("migrate", "--sql", "--store", url)
    assert shop.run("migrate", "--check", "--store", url).code == 1
    with psycopg.connect(direct(url), autocommit=True) as connection:
        connection.execute(script.out.encode())
    assert shop.run("migrate", "--check", "--store", url).code == 0
    assert shop.run("jobs", "list", "--store", url, "--json").json == []


def test_a_store_without_sql_says_so(shop, monkeypatch):
    monkeypatch.setenv("DRUMLINE_STORE__NAMESPACE", f"t{fresh_id()}")
    assert shop.run("migrate", "--check", "--store", shared_url()).code == 1
    answer = shop.run("migrate", "--sql", "--store", shared_url())
    assert answer.code == 2
    assert "has no SQL: run `drumline migrate`" in answer.err


def test_check_waits_until_somebody_has_migrated(shop):
    store = SqliteStore(shop.folder / "drumline.db")
    somebody = threading.Timer(0.3, store.migrate().run)
    somebody.start()
    try:
        assert shop.run("migrate", "--check", "--wait", "20s", "--store", shop.store).code == 0
    finally:
        somebody.join()
        store.close().run()


@pytest.mark.parametrize("words", [(), ("--check",), ("--sql",)])
def test_a_store_that_stays_out_of_reach_is_given_up_after_the_wait(shop, words):
    answer = shop.run("migrate", *words, "--wait", "600ms", "--store", f"postgresql://nobody@127.0.0.1:{free_port()}/x")
    assert answer.code == 75
    assert "out of reach" in answer.err


def test_check_and_sql_together_are_refused(shop):
    assert shop.run("migrate", "--check", "--sql", "--store", shop.store).code == 2


def test_what_is_missing_is_told_as_json_too(shop):
    before = shop.run("migrate", "--check", "--json", "--store", shop.store)
    assert before.code == 1
    assert before.json[0].keys() == {"version", "name"}
    shop.run("migrate", "--store", shop.store)
    after = shop.run("migrate", "--check", "--json", "--store", shop.store)
    assert (after.code, after.json) == (0, [])
    refused = shop.run("migrate", "--json", "--store", shop.store)
    assert (refused.code, refused.err) == (2, "drumline: give --json with --check: the rest is not a read\n")
