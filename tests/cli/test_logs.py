import json
import logging
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from drumline.logs import set_up_logging
from drumline.model.context import Context, active


@pytest.fixture(autouse=True)
def root_logger():
    """The root logger as it was before."""
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


def test_a_line_of_text_has_time_level_and_message(capsys):
    set_up_logging("info", "text")
    logging.getLogger("shop").info("open for %s", "business")
    logging.getLogger("shop").debug("not shown")
    line = capsys.readouterr().err
    assert line.endswith("Z INFO     open for business\n")
    assert line.count("\n") == 1


def test_a_line_of_json_has_the_same_facts(capsys):
    set_up_logging("info", "json")
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("shop").exception("closed")
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["logger"], line["message"]) == ("error", "shop", "closed")
    assert line["error"].endswith("ValueError: boom")
    assert "job" not in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_of_a_job_names_it(capsys, form):
    set_up_logging("info", form)
    token = active.set(Context(job_id="job-1"))
    logging.getLogger("shop").info("at work")
    active.reset(token)
    assert "job-1" in capsys.readouterr().err


def test_a_line_of_json_names_attempt_task_queue_schedule_and_tick(capsys):
    set_up_logging("info", "json")
    tick = datetime(2026, 5, 5, 9, tzinfo=timezone(timedelta(hours=2)))
    facts: dict[str, Any] = {"task": "tidy", "queue": "low", "attempt": 2, "schedule": "nightly"}
    token = active.set(Context(job_id="job-1", tick=tick, **facts))
    logging.getLogger("shop").info("at work")
    active.reset(token)
    line = json.loads(capsys.readouterr().err)
    assert {name: line[name] for name in facts} == facts
    assert (line["job"], line["tick"]) == ("job-1", "2026-05-05T07:00:00.000Z")


PROGRAM = """
import asyncio
import logging

from drumline import Drumline

drum = Drumline()
log = logging.getLogger("shop.own")


@drum.task(queue="a")
async def on_the_loop() -> None:
    log.info("loop")
    await asyncio.to_thread(log.info, "helper")


@drum.task(queue="b")
def in_a_thread() -> None:
    log.info("thread")


@drum.task(queue="c", executor="process", max_attempts=2, backoff="1ms")
def in_a_child() -> None:
    log.info("child")
    raise ValueError("once more")


@drum.schedule(every="1d", run_on_startup=True)
async def nightly() -> None:
    log.info("tick")
"""


def test_every_line_of_a_task_names_its_job_wherever_it_runs(shop):
    (shop.folder / "logged.py").write_text(PROGRAM)
    ids = {task: _enqueue(shop, task) for task in ("on_the_loop", "in_a_thread", "in_a_child")}
    ran = _run(shop, "run", "logged:drum", "--drain")
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    said: dict[str, list[Any]] = {}
    for line in lines:
        if line["logger"] == "shop.own":
            said.setdefault(line["message"], []).append(line)
    for message, task, queue in (
        ("loop", "on_the_loop", "a"),
        ("helper", "on_the_loop", "a"),
        ("thread", "in_a_thread", "b"),
    ):
        (line,) = said[message]
        assert (line["job"], line["task"], line["queue"], line["attempt"]) == (ids[task], task, queue, 1)
        assert "schedule" not in line
    assert [(line["job"], line["queue"], line["attempt"]) for line in said["child"]] == [
        (ids["in_a_child"], "c", 1),
        (ids["in_a_child"], "c", 2),
    ]
    (tick,) = said["tick"]
    assert (tick["schedule"], tick["task"]) == ("nightly", "nightly")
    assert tick["tick"].endswith("Z")


def _enqueue(shop, task):
    return json.loads(_run(shop, "enqueue", task, "--app", "logged:drum", "--json").stdout)["id"]


def _run(shop, *words):
    ran = subprocess.run(
        [Path(sys.executable).with_name("drumline"), *words],
        cwd=shop.folder,
        env={**os.environ, "DRUMLINE_LOG__FORMAT": "json"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran
