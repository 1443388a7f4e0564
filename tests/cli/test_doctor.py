"""Ten prepared troubles, each on the real thing: the doctor names it and says what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drumline.clock import fresh_id
from drumline.model.instant import to_millis
from drumline.model.query import By, PauseKind
from drumline.model.replica import ReplicaInfo
from drumline.stores.base import Store
from drumline.stores.open import open_store
from drumline.stores.sqlite import connect, inspect
from tests.cli.conftest import Answer, Shop
from tests.support import postgres, valkey
from tests.support.build import new_job, new_schedule
from tests.support.makers import chosen
from tests.support.pooler import new_pooler
from tests.support.ports import free_port

BY = By("ann", "test", "the archive is being moved")


def examine(shop: Shop, url: str) -> Answer:
    return shop.run("doctor", "--store", url, "--json")


def findings(answer: Answer, check: str) -> list[dict[str, Any]]:
    """What a check had to say, each with a reason and a remedy."""
    found = [finding for finding in answer.json if finding["check"] == check and finding["level"] != "ok"]
    assert all(finding["why"] and finding["do"] for finding in found)
    return found


@contextmanager
def opened(url: str, namespace: str = "drumline") -> Iterator[Store]:
    store = open_store(url, namespace=namespace)
    store.migrate().run()
    try:
        yield store
    finally:
        store.close().run()


def test_a_store_that_is_well_answers_0(shop):
    with opened(shop.store) as store:
        store.beat(ReplicaInfo(id="a:1", name="a", tasks=("job",)), []).run()
        store.enqueue([new_job()]).run()
    answer = examine(shop, shop.store)
    assert answer.code == 0
    assert {finding["check"] for finding in answer.json} >= {
        "store",
        "durable",
        "schema",
        "clock",
        "queues",
        "schedules",
    }
    assert "wrong" not in {finding["level"] for finding in answer.json}
    assert shop.run("doctor", "--store", shop.store).out.splitlines()[-1].startswith("0 wrong")


def test_a_server_that_is_not_there_answers_75(shop):
    answer = shop.run("doctor", "--store", f"redis://127.0.0.1:{free_port()}/0")
    assert (answer.code, answer.out) == (75, "")
    assert "out of reach" in answer.err


def test_a_redis_without_appendonly(shop):
    with valkey.new_server("--save", "", "--appendonly", "no") as server, opened(server.url):
        answer = examine(shop, server.url)
    (finding,) = findings(answer, "durable")
    assert (answer.code, finding["level"], finding["do"]) == (1, "wrong", "set appendonly yes")


def test_a_redis_that_evicts(shop):
    options = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory", "64mb")
    with valkey.new_server(*options, "--maxmemory-policy", "allkeys-lru") as server, opened(server.url):
        answer = examine(shop, server.url)
    (finding,) = findings(answer, "durable")
    assert (answer.code, finding["level"], finding["do"]) == (1, "wrong", "set maxmemory-policy noeviction")


def test_a_redis_whose_replica_may_lack_what_was_accepted(shop, monkeypatch):
    with ExitStack() as stack:
        server = stack.enter_context(valkey.new_server("--appendonly", "yes", "--appendfsync", "always"))
        stack.enter_context(opened(server.url))
        stack.enter_context(valkey.new_server("--replicaof", f"127.0.0.1 {server.port}"))
        valkey.until(lambda: findings(examine(shop, server.url), "replicas"), "the replica follows")
        (finding,) = findings(examine(shop, server.url), "replicas")
        monkeypatch.setenv("DRUMLINE_STORE__CONFIRM", "replica")
        assert not findings(examine(shop, server.url), "replicas")
    assert (finding["level"], finding["do"]) == ("advice", "set store.confirm = replica if that matters")


def test_an_old_schema(shop):
    sqlite3.connect(shop.folder / "drumline.db").close()
    answer = examine(shop, shop.store)
    (finding,) = findings(answer, "schema")
    assert (answer.code, finding["do"]) == (1, "run `drumline migrate`")


def test_a_new_schema(shop):
    with opened(shop.store):
        pass
    (age,) = [maker.age for maker in chosen() if maker.name == "sqlite"]
    assert age is not None
    age(str(shop.folder / "drumline.db"))
    answer = examine(shop, shop.store)
    (finding,) = findings(answer, "schema")
    assert answer.code == 1
    assert "upgrade Drumline" in finding["found"]


def test_a_pooler_without_a_way_past_it(shop, monkeypatch):
    url = postgres.direct(postgres.shared_url())
    monkeypatch.setenv("DRUMLINE_STORE__NAMESPACE", f"t{fresh_id()}")
    with new_pooler(url) as pooled:
        with opened(pooled, f"t{fresh_id()}"):
            pass
        found = findings(examine(shop, pooled), "pooler")
        monkeypatch.setenv("DRUMLINE_STORE__LISTEN_URL", url)
        found_with_listener = findings(examine(shop, pooled), "pooler")
    assert [finding["do"] for finding in found] == ["set store.listen_url to the server's own address"]
    assert found_with_listener == []


def test_a_postgres_whose_commits_do_not_wait_for_the_disk(shop, monkeypatch):
    url = postgres.direct(postgres.shared_url())
    monkeypatch.setenv("DRUMLINE_STORE__NAMESPACE", f"t{fresh_id()}")
    slack = f"{url}{'&' if '?' in url else '?'}options=-csynchronous_commit%3Doff"
    found = [finding["found"] for finding in findings(examine(shop, slack), "durable")]
    assert "synchronous_commit is off" in found


def test_a_skewed_clock(shop):
    with valkey.new_server("--appendonly", "yes") as server, opened(server.url):
        valkey.follow(f"{server.url} drumline", datetime.now(UTC) + timedelta(minutes=5))
        answer = examine(shop, server.url)
    (finding,) = findings(answer, "clock")
    assert (answer.code, finding["level"]) == (1, "wrong")
    assert "behind the store's" in finding["found"]


def test_a_queue_that_nobody_serves(shop):
    with opened(shop.store) as store:
        store.beat(ReplicaInfo(id="a:1", name="a", queues=("low",), tasks=("job",)), []).run()
        store.enqueue([new_job()]).run()
        due = to_millis(datetime.now(UTC) - timedelta(minutes=1))
    with sqlite3.connect(shop.folder / "drumline.db") as connection:
        connection.execute("update drumline_job set due = ?", (due,))
    connection.close()
    answer = examine(shop, shop.store)
    (finding,) = findings(answer, "queues")
    assert "no live worker serves queue default" in finding["found"]


def test_a_paused_schedule(shop):
    with opened(shop.store) as store:
        store.beat(ReplicaInfo(id="a:1", name="a", schedules=("tick",)), []).run()
        store.declare([new_schedule()], by=BY).run()
        name = store.schedules().run()[0].schedule.name
        store.pause(PauseKind.SCHEDULE, [name], paused=True, by=BY, token=fresh_id()).run()
    answer = examine(shop, shop.store)
    (finding,) = findings(answer, "schedules")
    assert (answer.code, finding["level"]) == (0, "advice")
    assert f"{name} is paused by ann" in finding["found"]
    assert "the archive is being moved" in finding["found"]


def test_an_old_sqlite(shop, monkeypatch):
    with opened(shop.store):
        pass
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    answer = examine(shop, shop.store)
    (finding,) = findings(answer, "sqlite version")
    assert (answer.code, finding["found"]) == (1, "SQLite 3.34.1 is too old")


def test_a_network_file_system(shop, monkeypatch):
    with opened(shop.store):
        pass
    mounts = f"30 22 0:25 / {shop.folder} rw - nfs4 host:/export rw"
    for module in (connect, inspect):
        monkeypatch.setattr(module, "read_mounts", lambda: mounts)
    answer = examine(shop, shop.store)
    (finding,) = findings(answer, "file system")
    assert (answer.code, finding["level"]) == (1, "wrong")
    assert "nfs4" in finding["found"]


@pytest.mark.parametrize("kind", ["memory", "postgres", "redis"])
def test_stats_and_doctor_answer_on_every_store(shop, monkeypatch, kind):
    namespace = f"t{fresh_id()}"
    monkeypatch.setenv("DRUMLINE_STORE__NAMESPACE", namespace)
    url = {"memory": "memory://"}.get(kind) or (postgres if kind == "postgres" else valkey).shared_url()
    with opened(url, namespace) as store:
        store.enqueue([new_job(), new_job()]).run()
    assert shop.run("stats", "--store", url, "--json").json["jobs"]["ready"] == (0 if kind == "memory" else 2)
    assert {finding["check"] for finding in examine(shop, url).json} >= {"durable", "schema", "store", "clock"}
