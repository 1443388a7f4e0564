"""`make scale`: every page of the dashboard with a million waiting and a million finished jobs, on Postgres."""

import argparse
import asyncio
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from drumline import Drumline
from drumline.model.job import Attempt, Failure
from drumline.model.options import JobOptions, encode_options
from drumline.model.query import HISTOGRAM_MILLIS
from drumline.web import allow_anyone
from drumline.web.install import make_own_app
from drumline.web.web import Web
from tests.support.postgres import new_server
from tests.web.browser import Browser

SCHEMA = "drumline"
BASE = "/admin/jobs"
BUDGET = 200.0
TABS = 10
PAGES = {
    "overview": "/",
    "overview, last day": "/?range=day",
    "jobs": "/jobs",
    "jobs, ready": "/jobs?state=ready",
    "jobs, of one task": "/jobs?task=task_3",
    "jobs, dead": "/jobs?state=dead",
    "jobs, by error": "/jobs?error=refused",
    "job": "/jobs/{job}",
    "schedules": "/schedules",
    "schedule": "/schedules/tidy",
    "dead letters": "/dead",
    "queues": "/queues",
    "workers": "/workers",
    "audit": "/audit",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make scale", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="that wait, and as many that have finished")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    with new_server() as server:
        asyncio.run(measure(server.url, given.jobs, given.rounds))


async def measure(url: str, jobs: int, rounds: int) -> None:
    drum = Drumline(url, namespace=SCHEMA)
    drum.task(name="tidy")(lambda: None)
    store = await drum.store()
    await drum.schedules.register("tidy", every="1h", name="tidy")
    with psycopg.connect(url, autocommit=True) as connection:
        begun = time.perf_counter()
        fill(connection, jobs)
        print(f"{jobs:,} waiting and {jobs:,} finished jobs, written in {time.perf_counter() - begun:.0f} s")
        (job_id,) = connection.execute("select id::text from drumline.history limit 1").fetchone() or ("",)
        web = Web(drum)
        browser = Browser(make_own_app(web, allow_anyone, path=BASE, actuator="/actuator", track="/track"))
        slow = await time_pages(web, browser, rounds, job_id, store.now)
        alone, together = await count_statements(web, browser, connection)
    await drum.close()
    print(f"the overview once: {alone} transactions in one tab, {together} in {TABS}")
    if slow:
        sys.exit(f"over {BUDGET:.0f} ms: {', '.join(slow)}")
    if together > alone:
        sys.exit(f"{TABS} tabs cost more than one")


def fill(connection: psycopg.Connection[Any], jobs: int) -> None:
    at = datetime.now(UTC)
    error = Failure(
        "Timeout", "no answer", "Traceback (most recent call last):\n" + "  at some line of the program\n" * 20
    )
    lines = {
        name: msgspec.json.encode(Attempt(1, 1, "web-1:a", "web-1:a", at, at, name, failure)).decode()
        for name, failure in (("done", None), ("failed", error))
    }
    spread = [5] * (len(HISTOGRAM_MILLIS) + 1)
    values = {"count": jobs, "options": encode_options(JobOptions()).decode(), "spread": spread, **lines}
    for name in ("waiting", "finished", "totals", "series", "learn"):
        connection.execute(statement(name), values if "%(" in statement(name) else None)


def statement(name: str) -> str:
    """The statement of that name in the file beside this one."""
    text = Path(__file__).with_suffix(".sql").read_text()
    found = re.search(rf"^-- {name}: .*?\n(.*?);", text, re.DOTALL | re.MULTILINE)
    assert found is not None, name
    return found[1].format(schema=SCHEMA)


async def time_pages(
    web: Web, browser: Browser, rounds: int, job_id: str, look: Callable[[], Awaitable[Any]]
) -> list[str]:
    """Say how long each page takes when nobody has asked before; and which take too long."""
    print(f"{'page':22}{'median':>10}{'slowest':>10}   ms, {rounds} times each; beside one bare statement:")
    slow = []
    for name, path in {"(a bare statement)": "", **PAGES}.items():
        taken = []
        for _ in range(rounds + 1):
            web.glance.forget()
            begun = time.perf_counter()
            if path:
                answer = await browser.get(BASE + path.format(job=job_id))
                assert answer.status == 200, (path, answer.status, answer.text[:500])
            else:
                await look()
            taken.append(1000 * (time.perf_counter() - begun))
        # The first fills the server's memory.
        median, slowest = statistics.median(taken[1:]), max(taken[1:])
        print(f"{name:22}{median:10.1f}{slowest:10.1f}")
        if median > BUDGET:
            slow.append(name)
    return slow


async def count_statements(web: Web, browser: Browser, connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """How many transactions one tab costs, and ten."""
    # The transactions of autovacuum are counted too, and it has much to do after so many rows.
    connection.execute("alter system set autovacuum = off")
    connection.execute("select pg_reload_conf()")
    await asyncio.sleep(5)
    return await count_for(1, web, browser, connection), await count_for(TABS, web, browser, connection)


async def count_for(tabs: int, web: Web, browser: Browser, connection: psycopg.Connection[Any]) -> int:
    web.glance.forget()
    before = await commits(connection)
    await asyncio.gather(*(browser.get(f"{BASE}/") for _ in range(tabs)))
    return await commits(connection) - before


async def commits(connection: psycopg.Connection[Any]) -> int:
    # A backend publishes its numbers when it has been idle for ten seconds.
    await asyncio.sleep(11)
    (number,) = connection.execute(statement("commits")).fetchone() or (0,)
    return int(number)


if __name__ == "__main__":
    main()
