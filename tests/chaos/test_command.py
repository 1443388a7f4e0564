"""`drumline chaos`, as a person runs it before they trust a store."""

import subprocess

import pytest

from tests.end_to_end.fleet import COMMAND
from tests.support.postgres import shared_url as postgres_url
from tests.support.valkey import shared_url as redis_url


def run(*words: str, timeout: float = 110) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, "chaos", *words], capture_output=True, text=True, check=False, timeout=timeout)


@pytest.mark.timeout(120)
def test_a_run_ends_with_a_table_and_a_verdict_and_leaves_nothing(tmp_path):
    file = tmp_path / "mine.db"
    done = run("--store", f"sqlite:///{file}", "--minutes", "0.1", "--seed", "5", "--workers", "2")
    # On a busy machine rescue may be slow, and the verdict says so.
    is_held = "verdict: every promise held (seed 5, 6 s)" in done.stdout
    assert is_held or "verdict: SLOW" in done.stdout, done.stdout + done.stderr
    assert done.returncode == (0 if is_held else 1)
    assert "unexplained double                             0" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "shop.db"
    file.write_text("dear to somebody")
    done = run("--store", f"sqlite:///{file}")
    assert done.returncode == 2
    assert f"the file {file} exists" in done.stderr
    assert file.read_text() == "dear to somebody"


def test_a_schema_that_exists_is_refused():
    done = run("--store", postgres_url(), "--namespace", "public")
    assert done.returncode == 2
    assert "the schema public exists" in done.stderr


def test_keys_that_exist_are_refused():
    from redis import Redis

    with Redis.from_url(redis_url()) as client:
        client.set("{mine}:thing", 1)
        done = run("--store", redis_url(), "--namespace", "mine")
        assert done.returncode == 2
        assert "there are keys that begin with {mine}" in done.stderr
        assert client.get("{mine}:thing") == b"1"


def test_a_store_that_no_fleet_can_share_is_refused():
    done = run("--store", "memory://")
    assert done.returncode == 2
    assert "chaos needs" in done.stderr


def test_a_server_that_is_away_is_said_to_be():
    done = run("--store", "redis://127.0.0.1:1/0")
    assert done.returncode == 75, done.stderr
