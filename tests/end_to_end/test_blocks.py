"""Blocks of settings that people bring along, in real processes: they run, on the store that they name."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from drumline import Drumline
from drumline.clock import fresh_id
from tests.end_to_end.fleet import COMMAND
from tests.support.postgres import new_address
from tests.support.valkey import shared_url

pytestmark = pytest.mark.timeout(120)

APP = """
from drumline import Drumline

drum = Drumline()


@drum.task
async def greet() -> None: ...


@drum.schedule(every="1h")
async def tidy() -> None: ...
"""
LOCAL = """
[jobs]
backend = "local"
workers = 2
max_attempts = 5
initial_backoff_ms = 250
"""
REDIS = """
[jobs]
backend = "redis"
workers = 2
max_attempts = 5
initial_backoff_ms = 250
[jobs.redis]
url = "{url}"
key_prefix = "{prefix}"
visibility_timeout_ms = 20000
"""
SCHEDULER = """
[database]
url = "{url}"

[scheduler]
backend = "postgres"
lease_ttl_secs = 300
key_prefix = "{prefix}"
"""


def run(folder: Path, *words: str, **variables: str) -> str:
    given = {f"DRUMLINE_{name}": value for name, value in variables.items()}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRUMLINE_")}
    ended = subprocess.run(
        [*COMMAND, *words], cwd=folder, env=inherited | given, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def play(folder: Path, toml: str, **variables: str) -> dict[str, str]:
    """Enqueue a job and run it by these settings; the settings as shown."""
    (folder / "drumline.toml").write_text(toml)
    (folder / "shop.py").write_text(APP)
    app = {"APP": "shop:drum", **variables}
    job = json.loads(run(folder, "enqueue", "greet", "--json", **app))
    run(folder, "run", "--drain", **app)
    shown = json.loads(run(folder, "jobs", "show", job["id"], "--json", **app))
    assert shown["state"] == "done"
    return {row["key"]: row["value"] for row in json.loads(run(folder, "config", "show", "--json", **app))}


def done_under(url: str, namespace: str) -> int:
    """How many jobs the store holds under that name."""
    drum = Drumline(url, namespace=namespace)
    try:
        return drum.sync.counts().done
    finally:
        asyncio.run(drum.close())


def fresh_database() -> tuple[str, str]:
    """The address of a server, and a prefix that nobody has used there."""
    return new_address().partition(" ")[0], f"myapp:scheduler:{fresh_id()[-8:]}"


def test_the_block_of_local_jobs_runs_on_a_file(tmp_path):
    shown = play(tmp_path, LOCAL)
    assert (tmp_path / "drumline.db").exists()
    assert shown["worker.concurrency"] == "2"


def test_the_block_of_redis_runs_on_that_server_under_its_prefix(tmp_path):
    prefix = f"autumn:jobs:{fresh_id()[-8:]}"
    shown = play(tmp_path, REDIS.format(url=shared_url(), prefix=prefix))
    assert done_under(shared_url(), prefix) == 1
    assert shown["jobs.lease"] == "20s"
    assert not (tmp_path / "drumline.db").exists()


def test_the_block_of_the_scheduler_runs_all_on_the_database(tmp_path):
    url, prefix = fresh_database()
    play(tmp_path, SCHEDULER.format(url=url, prefix=prefix))
    assert done_under(url, prefix.replace(":", "_")) == 1
    assert not (tmp_path / "drumline.db").exists()


def test_the_variables_of_the_scheduler_do_the_same(tmp_path):
    url, prefix = fresh_database()
    shown = play(
        tmp_path,
        "",
        DATABASE__PRIMARY_URL=url,
        SCHEDULER__BACKEND="postgres",
        SCHEDULER__LEASE_TTL_SECS="300",
        SCHEDULER__KEY_PREFIX=prefix,
        SCHEDULER__REPLICA_ID="web-1",
    )
    assert done_under(url, prefix.replace(":", "_")) == 1
    assert shown["scheduler.replica_id"] == "web-1"
