"""Promises 1, 2, 5 and 7, with real processes: nothing is lost, nothing counts twice."""

import json
import signal

import pytest

from tests.end_to_end.fleet import Fleet, fleet, runs_of, until
from tests.end_to_end.homes import HOMES

JOBS = 1_000


@pytest.fixture
def band(tmp_path, home):
    with fleet(tmp_path, home) as running:
        yield running


def kill_one_of_two_in_the_middle(band: Fleet) -> None:
    from tests.end_to_end.band import play

    ids = [h.id for h in band.drum.enqueue_many_sync([play.call(n, seconds=0.02) for n in range(JOBS)])]
    victim, _ = band.start("--concurrency", "20"), band.start("--concurrency", "20")
    until(lambda: sum(line[3] == str(victim.pid) for line in band.lines("start")) > 20, "the victim has begun")
    victim.kill()
    victim.wait()
    until(lambda: band.counts().unfinished == 0, "every job has ended")
    jobs = {job.id: job for job in band.jobs()}
    assert set(jobs) == set(ids)
    assert {job.state for job in jobs.values()} == {"done"}
    assert [sum(attempt.ended == "done" for attempt in job.attempts) for job in jobs.values()] == [1] * JOBS
    lost = [job for job in jobs.values() if len(runs_of(job)) > 1]
    assert lost, "the victim held nothing when it was killed"
    assert all("WorkerLost: worker " in (job.last_error or "") for job in lost)
    # A start without a counted attempt, or an attempt without a start, would be a lie.
    starts = [int(line[1]) for line in band.lines("start")]
    assert len(starts) <= JOBS + len(lost)
    assert set(starts) == set(range(JOBS))
    band.home.check()


@pytest.mark.timeout(120)
def test_jobs_of_a_killed_worker_run_again_and_none_is_lost_or_counted_twice(band):
    kill_one_of_two_in_the_middle(band)


@pytest.mark.prove
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", HOMES)
def test_twenty_killed_workers_lose_nothing(tmp_path, kind):
    for turn in range(20):
        folder = tmp_path / str(turn)
        folder.mkdir()
        with fleet(folder, HOMES[kind](folder)) as band:
            kill_one_of_two_in_the_middle(band)


@pytest.mark.timeout(120)
def test_a_worker_that_sleeps_past_its_lease_is_refused_when_it_wakes(band, tmp_path):
    from tests.end_to_end.band import hold

    gate = tmp_path / "gate"
    handle = band.drum.enqueue_many_sync([hold.call(str(gate))])[0]
    sleeper = band.start()
    until(lambda: band.lines("hold"), "the first attempt has begun")
    band.put_to_sleep(sleeper)
    band.start()
    until(lambda: band.job(handle.id).state == "done", "the other worker has finished the job")
    before = band.command("jobs", "show", handle.id, "--json")
    assert json.loads(before.stdout)["result"] == "attempt 2"
    gate.touch()
    sleeper.send_signal(signal.SIGCONT)
    until(lambda: any(r.info.pid == sleeper.pid and r.info.stale_writes for r in band.replicas()), "a refused write")
    sleeper.terminate()
    assert sleeper.wait(20) == 0
    after = band.command("jobs", "show", handle.id, "--json")
    assert after.stdout == before.stdout
    assert len(band.lines("hold")) == 2


@pytest.mark.timeout(120)
def test_jobs_that_come_while_an_idle_worker_sleeps_are_run_by_another(band):
    """Where a claim stands by in the store, the sleeper may be given one of them, and gets none again."""
    from tests.end_to_end.band import play

    sleeper, other = band.start(), band.start()
    until(lambda: sum(replica.state == "running" for replica in band.replicas()) == 2, "both are at work")
    band.put_to_sleep(sleeper)
    handles = [band.drum.enqueue_many_sync([play.call(beat)])[0] for beat in range(10)]
    until(lambda: band.counts().unfinished == 0, "every job has ended")
    jobs = [band.job(handle.id) for handle in handles]
    assert [job.state for job in jobs] == ["done"] * 10
    assert sum(len(runs_of(job)) for job in jobs) <= 11
    assert {int(pid) for _, _, _, pid in band.lines("start")} == {other.pid}
    sleeper.send_signal(signal.SIGCONT)
    sleeper.terminate()
    assert sleeper.wait(20) == 0
    assert [band.job(handle.id).state for handle in handles] == ["done"] * 10


@pytest.mark.timeout(120)
@pytest.mark.parametrize("task", ["freeze", "burn"])
def test_a_task_that_blocks_the_event_loop_for_three_leases_runs_once(band, task):
    from tests.end_to_end import band as program

    handle = band.drum.enqueue_many_sync([getattr(program, task).call(6.2)])[0]
    band.start()
    band.start()
    until(lambda: band.job(handle.id).state == "done", "the job is done")
    assert band.ledger.read_text() == f"{task}\n"
    assert [attempt.ended for attempt in runs_of(band.job(handle.id))] == ["done"]


@pytest.mark.timeout(120)
def test_a_job_that_kills_its_worker_is_dead_after_its_last_attempt(band):
    from tests.end_to_end.band import poison

    handle = band.drum.enqueue_many_sync([poison.call()])[0]
    for _ in range(3):
        assert band.start().wait(30) == 1
    band.start()
    until(lambda: band.job(handle.id).state == "dead", "the job is dead")
    assert [attempt.ended for attempt in runs_of(band.job(handle.id))] == ["lost"] * 3
    assert len(band.lines("poison")) == 3
