"""The program itself, in processes of its own."""

import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent

import pytest

from drumline.model.job import JobState
from drumline.model.query import JobFilter
from drumline.model.replica import Role
from drumline.stores.sqlite import SqliteStore
from tests.cli.conftest import APP
from tests.support.waiting import eventually

DRUMLINE = str(Path(sys.executable).with_name("drumline"))
DEADLINE = 50
# What pages say that have nothing to show.
EMPTY = (
    "Nothing has happened",
    "No job",
    "No schedules",
    "No dead letters",
    "No queues",
    "No worker is known",
    "Nobody has",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    return tmp_path


def environment(**more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DRUMLINE_")}
    return {**clean, **more}


def drumline(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DRUMLINE, *words],
        cwd=folder,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


CLOCK = """
from drumline import Drumline

drum = Drumline()


@drum.schedule(every="100ms")
async def tick() -> None: ...
"""


def count_fired(store: SqliteStore) -> int:
    return sum(tick.job_id is not None for tick in store.ticks("tick").run().items)


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_help_takes_less_than_300_ms(folder):
    costs = []
    for _ in range(5):
        before = children_seconds()
        assert drumline(folder, "--help").returncode == 0
        # The work and not the wait: other programs may keep this one waiting.
        costs.append(children_seconds() - before)
    assert min(costs) < 0.3


HEAVY = ("pydantic_settings", "rich", "sqlite3", "psycopg", "redis", "starlette", "jinja2", "uvicorn")


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["--help"], (*HEAVY, "pydantic")),
        # Typer itself loads pydantic for the options of a command.
        (["jobs", "--help"], HEAVY),
        (["worker", "--help"], HEAVY),
        (["top", "--help"], HEAVY),
    ],
)
def test_help_loads_neither_settings_nor_drivers_nor_pages_nor_pictures(folder, words, heavy):
    look = (
        "import atexit, sys; from drumline.cli import main; "
        f"atexit.register(lambda: print('loaded:', sorted(set({heavy!r}) & set(sys.modules)))); "
        f"sys.argv = ['drumline', *{words!r}]; main()"
    )
    answer = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, cwd=folder)
    assert answer.stdout.splitlines()[-1] == "loaded: []"


def test_the_demo_ends_quietly_when_its_reader_has_seen_enough(folder):
    command = f"'{DRUMLINE}' demo --seconds 30 --web 127.0.0.1:0 | head -2 > /dev/null; echo ${{PIPESTATUS[0]}}"
    answer = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(TMPDIR=str(folder)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert (answer.stdout, answer.stderr) == ("0\n", "")
    assert [path.name for path in folder.iterdir() if "demo" in path.name] == []


@pytest.mark.parametrize("words", ["tasks", "config show", "stats", "jobs list", "queues", "top --once", "doctor"])
def test_no_command_complains_of_a_reader_that_has_left(folder, words):
    command = f"'{DRUMLINE}' {words} --app shop:drum | true; echo ${{PIPESTATUS[0]}}"
    answer = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True, check=True
    )
    assert (answer.stdout, answer.stderr) == ("0\n", "")


def test_the_version_is_said(folder):
    assert drumline(folder, "--version").stdout.startswith("drumline ")


def test_alone_it_helps(folder):
    answer = drumline(folder)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "enqueue" in answer.stdout


def test_a_worker_drains_and_ends(folder):
    job = json.loads(drumline(folder, "enqueue", "add", '{"a": 1, "b": 2}', "--app", "shop:drum", "--json").stdout)
    worker = drumline(folder, "worker", "shop:drum", "--queues", "default", "--concurrency", "3", "--drain")
    assert worker.returncode == 0
    assert "serving 3 tasks of queues default on sqlite:///drumline.db, 3 at once" in worker.stderr
    shown = json.loads(drumline(folder, "jobs", "show", job["id"], "--json").stdout)
    assert (shown["state"], shown["result"]) == ("done", 3)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "shell", [(), ("sh", "-c", 'trap "" INT; exec "$@"', "sh")], ids=["alone", "in the background"]
)
def test_a_signal_ends_a_worker_in_good_order(folder, number, shell):
    words = [*shell, DRUMLINE, "run", "shop:drum"]
    env = environment(DRUMLINE_LOG__FORMAT="json")
    with subprocess.Popen(words, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        said = next(line for line in worker.stderr if "serving" in line)
        worker.send_signal(number)
        rest = worker.stderr.read()
        assert worker.wait(DEADLINE) == 0
    assert json.loads(said)["level"] == "info"
    assert "Traceback" not in rest


def test_a_scheduler_fires_and_runs_nothing(folder):
    (folder / "clock_shop.py").write_text(CLOCK)
    words = [DRUMLINE, "scheduler", "clock_shop:drum"]
    store = SqliteStore(folder / "drumline.db")
    store.migrate().run()
    with subprocess.Popen(words, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as scheduler:
        assert scheduler.stderr is not None
        said = next(line for line in scheduler.stderr if "firing" in line)
        asyncio.run(eventually(lambda: count_fired(store) >= 3, DEADLINE))
        (replica,) = store.workers().run()
        scheduler.terminate()
        scheduler.stderr.read()
        assert scheduler.wait(DEADLINE) == 0
    assert "firing schedules, 1 of them declared here, on sqlite:///drumline.db" in said
    assert replica.info.role is Role.SCHEDULER
    jobs = store.jobs(JobFilter()).run().items
    store.close().run()
    assert len(jobs) >= 3
    assert {(job.state, job.attempt) for job in jobs} == {(JobState.READY, 0)}


# Says that it is being imported, and takes its time.
SLOW = f"print('here', flush=True)\nimport time\ntime.sleep({DEADLINE})\n"


@contextmanager
def starting(folder: Path, module: str) -> Iterator[subprocess.Popen[str]]:
    """A worker that is importing this module, and gets no further."""
    (folder / "slow_shop.py").write_text(module)
    words = [DRUMLINE, "run", "slow_shop:drum"]
    with subprocess.Popen(words, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        yield worker


def test_a_signal_before_the_start_is_no_failure(folder):
    with starting(folder, SLOW + APP) as worker:
        worker.terminate()
        assert worker.wait(DEADLINE) == 0


def test_many_signals_before_the_start_are_no_failure(folder):
    with starting(folder, SLOW + APP) as worker:
        while worker.poll() is None:
            worker.terminate()
        assert worker.returncode == 0


def test_a_signal_that_an_import_has_swallowed_is_heeded_all_the_same(folder):
    swallowing = f"try:\n{indent(SLOW, '    ')}except KeyboardInterrupt:\n    pass\n"
    with starting(folder, swallowing + APP) as worker:
        worker.terminate()
        assert worker.wait(DEADLINE) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["run", "nowhere:drum"],
        ["worker", "shop:drum", "--concurrency", "0"],
        ["worker", "shop:drum", "--queues", "mail,no such name"],
    ],
)
def test_a_worker_that_cannot_start_says_why_in_one_sentence(folder, words):
    answer = drumline(folder, *words)
    assert answer.returncode == 2
    assert answer.stderr.startswith("drumline: ")
    assert answer.stderr.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_failure(folder):
    for _ in range(3):
        drumline(folder, "enqueue", "fail", json.dumps({"words": "x" * 90_000}), "--app", "shop:drum")
    command = f"'{DRUMLINE}' jobs list --json | head -c 10; echo ${{PIPESTATUS[0]}}"
    answer = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True, check=True
    )
    assert answer.stderr == ""
    assert answer.stdout.splitlines()[-1].strip() == "0"


def test_a_terminal_that_knows_only_ascii_gets_escapes(folder):
    drumline(folder, "enqueue", "fail", '{"words": "Grüße"}', "--app", "shop:drum")
    (job,) = json.loads(drumline(folder, "jobs", "list", "--json").stdout)
    answer = drumline(folder, "jobs", "show", job["id"], PYTHONIOENCODING="ascii")
    assert answer.returncode == 0
    assert "Gr\\xfc\\xdfe" in answer.stdout


def test_the_demo_plays_for_two_seconds_and_leaves_nothing(folder):
    answer = drumline(folder, "demo", "--seconds", "2", TMPDIR=str(folder))
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    assert "jobs list --state dead --store sqlite:///" in answer.stdout
    assert answer.stdout.splitlines()[-1].startswith("the demo is over: ")
    assert [path.name for path in folder.iterdir() if "demo" in path.name] == []


def test_the_demo_prints_a_private_address_and_every_page_of_it_shows_something(folder):
    words = [DRUMLINE, "demo", "--seconds", "40", "--web", "127.0.0.1:0"]
    with subprocess.Popen(
        words, cwd=folder, env=environment(TMPDIR=str(folder)), stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        said = ""
        # The first line of numbers follows when the worker has begun.
        while not (found := re.search(r"dashboard: (http://\S+)/\?token=(\S+).* ready ", said, re.DOTALL)):
            said += demo.stdout.readline()
        for page in ("", "jobs", "schedules", "dead", "queues", "workers", "audit"):
            asked = urllib.request.Request(f"{found[1]}/{page}", headers={"Authorization": f"Bearer {found[2]}"})
            with urllib.request.urlopen(asked, timeout=10) as answer:
                text = answer.read().decode()
            assert [empty for empty in EMPTY if empty in text] == [], page
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(found[1] + "/", timeout=10)
        # How it ends is for others to tell: a report under way would be waited for.
        demo.kill()
