"""Promise 6, with real processes: the clock of a server decides, and those of replicas decide nothing."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from drumline.model.job import Job
from drumline.model.schedule import Decision, Tick
from tests.end_to_end.fleet import Fleet, fleet, runs_of, until
from tests.end_to_end.homes import HOMES

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
AHEAD, BEHIND = timedelta(minutes=10), timedelta(minutes=-10)
# Replicas of one file share the clock of its host: there is none to decide between them.
SERVERS = ("postgres", "redis")
HELD = 7.0
DELAY = 2.0
# Two replicas and four commands have to start, on a machine that may have other things to do.
PATIENCE = 120.0


@pytest.fixture(params=SERVERS)
def band(request, tmp_path):
    with fleet(tmp_path, HOMES[request.param](tmp_path), "tests.end_to_end.skewed:drum") as running:
        yield running


def rows_of(band: Fleet) -> list[Tick]:
    rows = [row for row in band.drum.sync.schedules.ticks("pulse") if row.decision is not Decision.CHANGED]
    return sorted(rows, key=lambda row: row.instant)


def play(band: Fleet) -> None:
    """Let one lead whose clock is ahead, then the other, whose clock is behind, and then each alone."""
    ahead = band.start(command="run", skew=AHEAD)
    until(lambda: len(rows_of(band)) >= 1, "the first one fires", PATIENCE)
    band.start(command="run", skew=BEHIND)
    until(lambda: sum(replica.state == "running" for replica in band.replicas()) == 2, "both run", PATIENCE)
    held = [band.drum.stub("hold", lease="6s").enqueue_sync(seconds=HELD) for _ in range(4)]
    delayed = [band.program("tests.end_to_end.skewed", str(DELAY), skew=skew).strip() for skew in (AHEAD, BEHIND)]
    band.drum.sync.jobs.wait(held, timeout=PATIENCE)
    ahead.terminate()
    assert ahead.wait(PATIENCE) == 0
    count = len(rows_of(band))
    until(lambda: len(rows_of(band)) >= count + 3, "the other one goes on alone", PATIENCE)
    until(lambda: all(band.job(job_id).state == "done" for job_id in delayed), "what was delayed is done", PATIENCE)
    for job_id in delayed:
        check_delayed(band.job(job_id))
    for handle in held:
        assert [attempt.ended for attempt in runs_of(band.job(handle.id))] == ["done"]


def check_delayed(job: Job) -> None:
    (attempt,) = runs_of(job)
    assert timedelta(seconds=DELAY) <= attempt.started_at - job.created_at < MINUTE


def check_ticks(band: Fleet) -> None:
    """Every second one row, in time by the server's clock and the test's own, and one run of it."""
    rows = rows_of(band)
    now = datetime.now(UTC)
    assert [row.instant for row in rows] == [rows[0].instant + number * SECOND for number in range(len(rows))]
    assert {row.decision for row in rows} == {Decision.FIRED}
    assert all(timedelta() <= row.recorded_at - row.instant < MINUTE for row in rows)
    assert abs(rows[-1].instant - now) < MINUTE
    assert len({row.by for row in rows}) == 2
    jobs = band.jobs(task="pulse")
    assert {len(runs_of(job)) for job in jobs if job.state == "done"} == {1}
    ticks = Counter(job.tick for job in jobs)
    assert set(ticks.values()) == {1}
    assert ticks.keys() >= {row.instant for row in rows}


@pytest.mark.timeout(300)
def test_replicas_ten_minutes_ahead_and_behind_fire_nothing_early_late_or_twice(band):
    play(band)
    # Both replicas did run, and each saw another time.
    told = [float(line[-1]) - datetime.fromisoformat(" ".join(line[1:-1])).timestamp() for line in band.lines("pulse")]
    assert {round(off / AHEAD.total_seconds()) for off in told} == {-1, 1}
    # No more of them, so that each has somebody who runs it.
    assert band.drum.sync.schedules.pause("pulse")
    until(lambda: band.counts().unfinished == 0, "all have run", PATIENCE)
    band.workers[-1].terminate()
    assert band.workers[-1].wait(PATIENCE) == 0
    check_ticks(band)
    for skew in (AHEAD, BEHIND):
        verified = band.command("ledger", "verify", "pulse", skew=skew)
        assert (verified.returncode, verified.stdout.count(b"missing 0, duplicate 0, late 0")) == (0, 1), verified
