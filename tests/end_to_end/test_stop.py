"""A worker that is asked to leave: it takes nothing more, and gives back what it could not end."""

import signal
import time

import pytest

from tests.end_to_end.band import linger, play, sit
from tests.end_to_end.fleet import fleet, until


@pytest.fixture
def band(tmp_path, home):
    with fleet(tmp_path, home) as running:
        yield running


@pytest.mark.timeout(120)
def test_sigterm_under_load_ends_what_runs_and_spends_no_attempt(band):
    jobs = 2_000
    band.drum.enqueue_many_sync([play.call(n, seconds=0.05) for n in range(jobs)])
    worker = band.start()
    until(lambda: len(band.lines("start")) > jobs // 10, "a tenth has been started")
    worker.terminate()
    assert worker.wait(25) == 0
    counts = band.counts()
    assert counts.running == 0
    assert counts.ready == jobs - counts.done
    assert 0 < counts.done < jobs
    # What was started has ended: nothing was thrown away, and nothing waits with an attempt spent.
    assert len(band.lines("start")) == counts.done
    assert {job.attempt for job in band.jobs(state="ready")} == {0}
    assert band.replicas() == []


@pytest.mark.timeout(120)
def test_jobs_that_outlast_the_drain_are_given_back_and_taken_by_another(band):
    handles = band.drum.enqueue_many_sync([linger.call(60), sit.call(60)])
    worker = band.start(WORKER__SHUTDOWN_TIMEOUT="300ms")
    until(lambda: band.lines("linger") and band.lines("sit"), "both run")
    asked = time.monotonic()
    worker.terminate()
    assert worker.wait(25) == 0
    assert time.monotonic() - asked < 15, "it waited for the thread"
    assert band.lines("left"), "the coroutine's finally did not run"
    for handle in handles:
        job = band.job(handle.id)
        assert (job.state, job.attempt) == ("ready", 0)
        assert [attempt.ended for attempt in job.attempts] == ["released"]
    band.start()
    until(lambda: len(band.lines("linger")) == 2 and len(band.lines("sit")) == 2, "another worker has taken them")


@pytest.mark.timeout(120)
def test_a_second_signal_hurries(band):
    band.drum.enqueue_many_sync([linger.call(60)])
    worker = band.start()
    until(lambda: band.lines("linger"), "it runs")
    worker.send_signal(signal.SIGTERM)
    until(lambda: any(r.state == "draining" for r in band.replicas()), "it drains")
    worker.send_signal(signal.SIGTERM)
    # The drain would take 25 s.
    assert worker.wait(15) == 0
    assert band.lines("left")


@pytest.mark.timeout(120)
def test_a_draining_worker_leaves_when_nothing_is_left(band):
    band.drum.enqueue_many_sync([play.call(n) for n in range(50)])
    assert band.start("--drain").wait(30) == 0
    assert band.counts().done == 50
