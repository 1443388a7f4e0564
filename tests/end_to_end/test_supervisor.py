"""`--processes N`: a supervisor and its children, as real processes."""

import os
import signal
import subprocess

import psutil
import pytest

from tests.end_to_end.band import play
from tests.end_to_end.fleet import COMMAND, Fleet, fleet, until

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def band(tmp_path, home):
    with fleet(tmp_path, home) as running:
        yield running


def children(supervisor: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(supervisor.pid).children()


def names(band: Fleet) -> set[str]:
    return {replica.info.name for replica in band.replicas() if replica.state == "running"}


def start(band: Fleet, *options: str) -> subprocess.Popen[bytes]:
    return band.start("--processes", "2", *options, SCHEDULER__REPLICA_ID="box")


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
