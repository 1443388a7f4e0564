"""Coroutines, threads and child processes, in real workers on a SQLite file."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import psutil
import pytest

from tests.end_to_end.executors import KINDS, die, overrun, square
from tests.end_to_end.fleet import ROOT, fleet, runs_of, until

pytestmark = pytest.mark.timeout(180)

PROCESSES = ("process", "async_process")


@pytest.fixture
def band(tmp_path, home):
    with fleet(tmp_path, home, "tests.end_to_end.executors:drum") as running:
        yield running


@pytest.fixture
def gate(tmp_path):
    return tmp_path / "gate"


def enqueue(band, *calls):
    return [handle.id for handle in band.drum.enqueue_many_sync(calls)]


def start_all(band, gate, kinds=KINDS, **settings):
    """A worker that runs a job of each kind; the ids of the jobs by kind."""
    ids = enqueue(band, *(KINDS[kind].call(kind, str(gate)) for kind in kinds))
    worker = band.start(WORKER__CHILDREN="2", **settings)
    until(lambda: all(band.lines(kind) for kind in kinds), "every kind has begun")
    return worker, dict(zip(kinds, ids, strict=True))


def pid_of(band, kind):
    return int(band.lines(kind)[-1][1])


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_done(band, job_id):
    return band.job(job_id).state == "done"


def test_the_same_task_works_in_each_executor_and_its_words_are_seen_while_it_runs(band, gate):
    worker, jobs = start_all(band, gate)
    for kind, job_id in jobs.items():

        def has_spoken(kind=kind, job_id=job_id):
            job = band.job(job_id)
            lines = [line.message for line in band.drum.sync.jobs.logs(job_id)]
            return job.state == "running" and job.progress is not None and lines == [f"{kind} has begun"]

        until(has_spoken, f"the words of {kind} are there while it runs")
    gate.touch()
    for kind, job_id in jobs.items():
        until(partial(is_done, band, job_id), f"{kind} is done")
        assert band.job(job_id).result == b'{"same":true,"own":true,"attempt":1}'
    children = {pid_of(band, kind) for kind in PROCESSES}
    assert {pid_of(band, kind) for kind in KINDS} == {worker.pid, *children}
    assert len(children) == 2
    worker.terminate()
    assert worker.wait(30) == 0
    # Once in each process, and each closed what it had opened.
    opened, closed = ([int(line[1]) for line in band.lines(word)] for word in ("open", "close"))
    assert sorted(opened) == sorted(closed) == sorted({worker.pid, *children})


def test_a_child_that_dies_or_runs_too_long_fails_only_its_own_job(band):
    dying = enqueue(band, *(die.call(how) for how in ("kill", "segfault", "exit")), overrun.call())
    others = enqueue(band, *(square.call(n) for n in range(20)))
    band.start(WORKER__CHILDREN="2")
    until(lambda: band.counts().unfinished == 0, "all have ended")
    assert [band.job(job_id).state for job_id in dying] == ["dead"] * 4
    assert [band.job(job_id).result for job_id in others] == [str(n * n).encode() for n in range(20)]
    assert [[attempt.ended for attempt in runs_of(band.job(job_id))] for job_id in others] == [["done"]] * 20
    assert [band.job(job_id).last_error for job_id in dying] == [
        "ProcessDied: process died: signal 9 (SIGKILL)",
        "ProcessDied: process died: signal 11 (SIGSEGV)",
        "ProcessDied: process died: exit code 3",
        "TimeoutError: ran longer than its time limit of 0.3 s",
    ]
    assert [runs_of(band.job(job_id))[0].ended for job_id in dying] == ["failed"] * 3 + ["timeout"]
    assert not is_running(pid_of(band, "overrun"))


def test_cancelling_reaches_every_kind_at_once_from_another_process(band, gate):
    worker, jobs = start_all(band, gate)
    asked = time.monotonic()
    band.drum.sync.jobs.cancel(*jobs.values())
    until(lambda: band.counts().cancelled == len(jobs), "all are cancelled")
    # It came by a hint: a beat is due only every 10 s.
    assert time.monotonic() - asked < 5
    assert {runs_of(band.job(job_id))[0].ended for job_id in jobs.values()} == {"cancelled"}
    # A coroutine's `finally` ran, a thread saw the flag; a child was ended as it was.
    assert {line[1] for line in band.lines("left")} == set(KINDS) - set(PROCESSES)
    assert not any(is_running(pid_of(band, kind)) for kind in PROCESSES)
    assert worker.poll() is None


def test_a_waiting_job_that_is_cancelled_never_starts(band, gate):
    ids = enqueue(band, *(KINDS[kind].call(kind, str(gate)) for kind in KINDS))
    band.drum.sync.jobs.cancel(*ids)
    (last,) = enqueue(band, square.call(3))
    band.start()
    until(lambda: band.job(last).state == "done", "the worker has looked")
    assert band.counts().cancelled == len(ids)
    assert not any(band.lines(kind) for kind in KINDS)


def test_children_outlive_signals_to_the_whole_group_and_end_their_jobs_in_the_drain(band, gate):
    ids = enqueue(band, *(KINDS[kind].call(kind, str(gate)) for kind in PROCESSES))
    words = [sys.executable, "-c", "from drumline.cli import main; main()", "worker", band.app]
    environment = {**os.environ, **band.home.settings, "DRUMLINE_TEST_LEDGER": str(band.ledger)}
    environment |= {"PYTHONPATH": str(ROOT), "DRUMLINE_WORKER__CHILDREN": "2"}
    with subprocess.Popen(words, env=environment, start_new_session=True) as worker:
        until(lambda: all(band.lines(kind) for kind in PROCESSES), "both have begun")
        pids = [pid_of(band, kind) for kind in PROCESSES]
        # As Ctrl-C in a terminal does, or a supervisor that asks each process by itself.
        os.killpg(worker.pid, signal.SIGINT)
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        until(lambda: any(r.state == "draining" for r in band.replicas()), "it drains")
        assert all(map(is_running, pids))
        gate.touch()
        assert worker.wait(30) == 0
    assert [band.job(job_id).state for job_id in ids] == ["done"] * 2
    assert not any(map(is_running, pids))


def test_children_that_outlast_the_drain_are_killed_and_their_jobs_given_back(band, gate):
    worker, jobs = start_all(band, gate, PROCESSES, WORKER__SHUTDOWN_TIMEOUT="300ms")
    family = psutil.Process(worker.pid).children(recursive=True)
    assert {child.pid for child in family} >= {pid_of(band, kind) for kind in PROCESSES}
    worker.terminate()
    assert worker.wait(30) == 0
    assert not any(is_running(child.pid) for child in family)
    for job_id in jobs.values():
        job = band.job(job_id)
        assert (job.state, job.attempt, [attempt.ended for attempt in job.attempts]) == ("ready", 0, ["released"])
    gate.touch()
    band.start()
    until(lambda: band.counts().done == 2, "another worker has taken them")


def test_children_of_a_worker_that_is_killed_go_too(band, gate):
    worker, _ = start_all(band, gate, PROCESSES)
    pids = [pid_of(band, kind) for kind in PROCESSES]
    worker.kill()
    worker.wait()
    until(lambda: not any(map(is_running, pids)), "the children are gone")


SCRIPT = """
import asyncio
import os
import sys

from drumline import Context, Drumline

drum = Drumline("sqlite:///jobs.db")


@drum.task(executor="process", max_attempts=1)
async def work(ctx: Context, n: int) -> list[object]:
    return [n, __name__, os.getpid() != n, sys.argv[1]]


async def main() -> None:
    job = await work.enqueue(os.getpid())
    await drum.run(drain=True)
    print(await job.wait())
"""


@pytest.mark.parametrize("by_name", [False, True])
def test_the_main_program_itself_may_hold_the_tasks(tmp_path, by_name):
    script = tmp_path / "program.py"
    script.write_text(SCRIPT + '\n\nif __name__ == "__main__":\n    asyncio.run(main())\n')
    words = [sys.executable, *(["-m", "program"] if by_name else [str(script)]), "first"]
    answer = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "'__mp_main__', True, 'first'" in answer.stdout


def test_a_main_program_that_would_start_a_worker_in_every_child_is_told_how_not_to(tmp_path):
    (tmp_path / "program.py").write_text(SCRIPT + "\n\nasyncio.run(main())\n")
    words = [sys.executable, "program.py", "first"]
    answer = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 1
    assert 'put what enqueues or runs jobs below `if __name__ == "__main__":`' in answer.stderr


def test_without_tasks_in_it_the_main_program_is_not_loaded_again(tmp_path):
    (tmp_path / "tasks.py").write_text(SCRIPT)
    program = tmp_path / "program.py"
    program.write_text("import asyncio, tasks\nprint('once')\nasyncio.run(tasks.main())\n")
    words = [sys.executable, str(program), "first"]
    answer = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("once") == 1
    assert "'tasks', True" in answer.stdout
