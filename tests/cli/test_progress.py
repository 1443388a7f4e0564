"""Long work on a terminal: a bar with counts while it goes on, and nothing where nobody watches."""

import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta

from drumline.clock import fresh_id
from drumline.model.claim import ANY_QUEUE, Share
from drumline.policy.verdict import Returned, verdict
from drumline.stores.sqlite import SqliteStore
from tests.support.build import BY, new_job, new_schedule

COMMAND = (sys.executable, "-c", "from drumline.cli import main; main()")
JOBS = 1_200


def watch(shop, *words):
    """Run a command whose errors go to a terminal; its exit code, its answer, and what the terminal showed."""
    terminal, errors = pty.openpty()
    program = subprocess.Popen(
        [*COMMAND, *words, "--store", shop.store],
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(errors)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:
        # The other end of a terminal that was closed.
        pass
    os.close(terminal)
    out, _ = program.communicate(timeout=60)
    return program.returncode, out, shown.decode()


def open_store(shop):
    store = SqliteStore(shop.folder / "drumline.db")
    store.migrate().run()
    return store


def end_jobs(store):
    store.enqueue([new_job() for _ in range(JOBS)]).run()
    claims = store.claim("r:1", [Share(ANY_QUEUE, JOBS)], JOBS, ["job"], fresh_id()).run().claims
    ended = [
        verdict(claim, Returned(b"null"), by="r:1", started_at=claim.claimed_at, ended_at=claim.claimed_at)
        for claim in claims
    ]
    assert all(store.finish(ended).run())


def test_a_bulk_retry_tells_how_many_of_how_many(shop):
    with_jobs = open_store(shop)
    end_jobs(with_jobs)
    code, out, shown = watch(shop, "jobs", "retry", "--state", "done")
    assert (code, out) == (0, f"{JOBS} jobs: retried\n")
    assert f"{JOBS}/{JOBS}" in shown
    assert f"500/{JOBS}" in shown


def test_a_purge_tells_how_many_so_far(shop):
    store = open_store(shop)
    end_jobs(store)
    with closing(sqlite3.connect(shop.folder / "drumline.db", isolation_level=None)) as connection:
        connection.execute("update drumline_history set expires = 0")
    code, out, shown = watch(shop, "jobs", "purge")
    assert (code, out) == (0, f"forgotten: {JOBS:,}\n")
    assert "1000/?" in shown
    assert sum(count.done for count in store.counts().run()) == 0


def test_a_backfill_tells_how_many_instants_are_decided(shop):
    store = open_store(shop)
    store.declare([new_schedule()], by=BY).run()
    now = store.now().run()
    span = [(now - timedelta(minutes=minutes)).isoformat() for minutes in (700, 1)]
    code, _, shown = watch(shop, "schedules", "backfill", new_schedule().name, "--from", span[0], "--to", span[1])
    assert code == 0
    assert "700/700" in shown or "699/699" in shown


def test_a_migration_tells_how_many_are_missing(shop):
    missing = len(shop.run("migrate", "--check", "--json", "--store", shop.store).json)
    assert missing > 0
    code, _, shown = watch(shop, "migrate")
    assert code == 0
    assert f"0/{missing}" in shown
    assert f"{missing}/{missing}" in shown


def test_where_nobody_watches_there_is_no_bar(shop):
    store = open_store(shop)
    end_jobs(store)
    answer = shop.run("jobs", "retry", "--state", "done", "--store", shop.store)
    assert (answer.code, answer.err) == (0, "")
    answer = shop.run("jobs", "purge", "--store", shop.store, "--json")
    assert (answer.json, answer.err) == ({"forgotten": 0}, "")
