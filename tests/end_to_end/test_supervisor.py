"""`--processes N`: a supervisor and its children, as real processes."""

import asyncio
import os
import signal
import subprocess

import psutil
import pytest

from drumline.cli.supervise import Supervisor
from drumline.clock import SystemClock
from tests.end_to_end.band import linger, play
from tests.end_to_end.fleet import COMMAND, Fleet, fleet, until
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def band(tmp_path, home):
    with fleet(tmp_path, home) as running:
        yield running


def children(supervisor: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(supervisor.pid).children()


def names(band: Fleet) -> set[str]:
    return {replica.info.name for replica in band.replicas() if replica.state == "running"}


def start(band: Fleet, *options: str, command: str = "worker", patience: str = "25s") -> subprocess.Popen[bytes]:
    settings = {"SCHEDULER__REPLICA_ID": "box", "WORKER__SHUTDOWN_TIMEOUT": patience}
    return band.launch([*COMMAND, command, band.app, "--processes", "2", *options], **settings)


def test_a_killed_child_is_replaced_under_its_name(band):
    supervisor = start(band)
    until(lambda: names(band) == {"box-1", "box-2"}, "both have registered")
    victim = children(supervisor)[0]
    victim.kill()
    until(
        lambda: len([c for c in children(supervisor) if c.pid != victim.pid and c.is_running()]) == 2, "it is replaced"
    )
    supervisor.terminate()
    assert supervisor.wait(40) == 0


def test_one_sigterm_ends_all_in_good_order_and_leaves_nobody_behind(band):
    supervisor = start(band)
    until(lambda: names(band) == {"box-1", "box-2"}, "both have registered")
    family = children(supervisor)
    supervisor.terminate()
    assert supervisor.wait(40) == 0
    assert [child for child in family if child.is_running()] == []
    assert band.replicas() == []


def test_a_drain_ends_with_0_when_all_children_have_nothing_left(band):
    band.drum.enqueue_many_sync([play.call(n, seconds=0.01) for n in range(50)])
    assert start(band, "--drain").wait(60) == 0
    assert band.counts().done == 50


def test_children_of_a_killed_supervisor_leave_too(band):
    supervisor = start(band)
    until(lambda: names(band) == {"box-1", "box-2"}, "both have registered")
    family = children(supervisor)
    os.kill(supervisor.pid, signal.SIGKILL)
    until(lambda: not any(child.is_running() for child in family), "the children have left")
    assert band.replicas() == []


def test_settings_that_no_start_mends_end_it_at_once(band):
    supervisor = band.launch([*COMMAND, "worker", "no.such.module:drum", "--processes", "2"])
    assert supervisor.wait(40) == 2


def test_a_second_signal_hurries_all_children_and_their_jobs_are_given_back(band):
    supervisor = start(band, patience="100s")
    band.drum.enqueue_many_sync([linger.call(300) for _ in range(4)])
    until(lambda: len(band.lines("linger")) == 4, "all jobs run")
    supervisor.terminate()
    until(lambda: {replica.state for replica in band.replicas()} == {"draining"}, "both drain")
    supervisor.terminate()
    assert supervisor.wait(40) == 0
    assert (band.counts().ready, band.counts().running) == (4, 0)
    assert [job.attempt for job in band.jobs()] == [0, 0, 0, 0]


def test_ctrl_c_at_the_terminal_reaches_each_child_once(band):
    supervisor = start(band)
    until(lambda: names(band) == {"box-1", "box-2"}, "both have registered")
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(40) == 0
    assert band.replicas() == []


def test_run_has_many_processes_too_and_each_fires_schedules(band):
    supervisor = start(band, command="run")
    until(lambda: names(band) == {"box-1", "box-2"}, "both have registered")
    assert {replica.info.role for replica in band.replicas()} == {"combined"}
    supervisor.terminate()
    assert supervisor.wait(40) == 0


def test_an_address_is_served_by_one_process_and_not_by_many(band):
    ended = band.command("run", band.app, "--processes", "2", "--web", "127.0.0.1:0")
    assert ended.returncode == 2
    assert ended.stderr == b"drumline: --processes must be 1 with --web: an address is served by one process, got 2\n"


def test_a_child_that_ends_while_it_is_asked_to_stop_has_ended_well(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alone.py").write_text("from drumline import Drumline\n\ndrum = Drumline('sqlite:///alone.db')\n")
    # Those of other tests: servers that they share.
    others = set(psutil.Process().children())

    async def supervise() -> int:
        supervisor = Supervisor(["worker", "alone:drum"], 2, "box", drain=False, clock=SystemClock())
        running = asyncio.create_task(supervisor.run())
        await eventually(lambda: len(set(psutil.Process().children()) - others) == 2)
        while not running.done():
            supervisor.stop()
            await asyncio.sleep(0)
        return running.result()

    assert [asyncio.run(supervise()) for _ in range(5)] == [0] * 5


class Impatient(SystemClock):
    """Waits for nothing, and remembers how long it should have waited."""

    def __init__(self, most: int) -> None:
        self.waits: list[float] = []
        self._most = most

    async def wait(self, event: asyncio.Event, timeout: float | None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        if len(self.waits) >= self._most:
            event.set()
        return event.is_set()


def test_a_child_that_dies_at_once_is_replaced_ever_more_slowly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clock = Impatient(4)
    # No job of that kind is there: each child ends at once with 1.
    words = ["jobs", "retry", "--state", "dead", "--store", f"sqlite:///{tmp_path / 'jobs.db'}"]

    async def supervise() -> int:
        return await Supervisor(words, 1, "box", drain=False, clock=clock).run()

    assert asyncio.run(supervise()) == 0
    # Half a second, doubled each time, and up to a quarter more.
    assert [0.5 * 2**n <= wait <= 0.625 * 2**n for n, wait in enumerate(clock.waits)] == [True] * 4
