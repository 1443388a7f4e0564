"""Promise 3, with real processes: each tick makes one job, whoever is killed or comes meanwhile."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from drumline.model.schedule import Decision, Tick
from tests.end_to_end.fleet import Fleet, fleet, runs_of, until

SECOND = timedelta(seconds=1)
EACH_SECOND = ("quick", "middle", "slow")


@pytest.fixture
def beats(tmp_path, home):
    with fleet(tmp_path, home, "tests.end_to_end.beats:drum") as running:
        yield running


@pytest.fixture
def openings(tmp_path, home):
    with fleet(tmp_path, home, "tests.end_to_end.openings:drum") as running:
        yield running


def rows_of(band: Fleet, name: str) -> list[Tick]:
    """The ledger's rows of a schedule's ticks, by instant."""
    told = (Decision.CHANGED, Decision.PAUSED, Decision.ORPHANED)
    rows = [row for row in band.drum.sync.schedules.ticks(name) if row.decision not in told]
    return sorted(rows, key=lambda row: row.instant)


def newest(band: Fleet, name: str = "quick") -> datetime | None:
    """The newest instant that was fired."""
    row = next(iter(band.drum.sync.schedules.ticks(name, limit=1)), None)
    return None if row is None or row.decision is not Decision.FIRED else row.instant


def start_three(band: Fleet) -> None:
    for _ in range(3):
        band.start(command="run")
    until(lambda: sum(replica.state == "running" for replica in band.replicas()) == 3, "three replicas run")


def stop_all(band: Fleet) -> None:
    for worker in band.workers:
        worker.terminate()
    for worker in band.workers:
        worker.wait(40)
    band.workers.clear()


def wait_for(band: Fleet, instant: datetime, name: str = "quick") -> None:
    until(lambda: (newest(band, name) or instant - SECOND) >= instant, f"{name} of {instant} is fired", 120)


def play_with_one_killed_and_one_started(band: Fleet, seconds: int, *, kill_at: int, start_at: int) -> None:
    start_three(band)
    until(lambda: all(newest(band, name) for name in EACH_SECOND), "all have begun")
    begin = newest(band)
    assert begin is not None
    wait_for(band, begin + kill_at * SECOND)
    # One that holds something: one of the three may be the first to take every job, so none can be named beforehand.
    busy = until(lambda: {replica.info.pid for replica in band.replicas() if replica.running}, "somebody runs a job")
    victim = next(worker for worker in band.workers if worker.pid in busy)
    victim.kill()
    victim.wait()
    wait_for(band, begin + start_at * SECOND)
    band.start(command="run")
    wait_for(band, begin + seconds * SECOND)
    for name in EACH_SECOND:
        check_ticks(band, name, [begin + number * SECOND for number in range(1, seconds + 1)], victim.pid)
    band.home.check()
    verified = band.command("ledger", "verify", *EACH_SECOND)
    assert (verified.returncode, verified.stdout.count(b"missing 0, duplicate 0")) == (0, 1), verified


def check_ticks(band: Fleet, name: str, instants: list[datetime], victim: int) -> None:
    """Of each instant one row, one job, one accepted completion, and no start too many."""

    def jobs_of_the_time():
        return {job.tick: job for job in band.jobs(task=name) if job.tick in wanted}

    wanted = set(instants)
    until(lambda: [job.state for job in jobs_of_the_time().values()] == ["done"] * len(wanted), "all are done")
    rows = [row for row in rows_of(band, name) if row.instant in wanted]
    assert [row.instant for row in rows] == instants
    assert {row.decision for row in rows} == {Decision.FIRED}
    ids = Counter(job.tick for job in band.jobs(task=name) if job.tick in wanted)
    assert ids == dict.fromkeys(instants, 1)
    starts = Counter(int(second) for _, schedule, second, *_ in band.lines("start") if schedule == name)
    victims = {replica.info.id for replica in band.replicas() if replica.info.pid == victim}
    for tick, job in jobs_of_the_time().items():
        assert tick is not None
        assert [attempt.ended for attempt in job.attempts].count("done") == 1
        others = [attempt for attempt in runs_of(job) if attempt.ended != "done"]
        assert {attempt.replica for attempt in others} <= victims, f"{name}: {job.attempts}"
        assert 1 <= starts[int(tick.timestamp())] <= len(runs_of(job))


@pytest.mark.timeout(180)
def test_each_tick_runs_once_though_one_replica_is_killed_and_one_is_started(beats):
    play_with_one_killed_and_one_started(beats, 10, kill_at=3, start_at=6)


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_each_tick_of_a_minute_runs_once_though_one_replica_is_killed_and_one_is_started(beats):
    play_with_one_killed_and_one_started(beats, 60, kill_at=20, start_at=35)


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_three_replicas_run_a_schedule_of_ten_seconds_six_times_in_a_minute(beats):
    start_three(beats)
    until(lambda: newest(beats, "tenth"), "the first one is fired")
    begin = newest(beats, "tenth")
    assert begin is not None
    wait_for(beats, begin + 60 * SECOND, "tenth")
    ticks = {int((begin + number * 10 * SECOND).timestamp()) for number in range(1, 7)}
    until(lambda: beats.counts().by_task["tenth"].unfinished == 0, "they have run")
    starts = [int(line[2]) for line in beats.lines("start") if line[1] == "tenth"]
    assert sorted(second for second in starts if second in ticks) == sorted(ticks)


@pytest.mark.timeout(180)
def test_a_pause_stops_every_replica_and_survives_the_restart_of_all(beats):
    start_three(beats)
    until(lambda: newest(beats, "quick") and newest(beats, "middle"), "both have begun")
    assert beats.drum.sync.schedules.pause("quick", "enough")
    before = rows_of(beats, "quick")
    # The other one tells the time: the replicas are at work, and leave the paused one alone.
    wait_for(beats, now_of(beats) + 2 * SECOND, "middle")
    stop_all(beats)
    start_three(beats)
    wait_for(beats, now_of(beats) + 2 * SECOND, "middle")
    assert rows_of(beats, "quick") == settled(before, rows_of(beats, "quick"))
    assert beats.drum.sync.schedules.resume("quick")
    wait_for(beats, before[-1].instant + 2 * SECOND, "quick")
    fired = rows_of(beats, "quick")[len(before) :]
    assert fired[0].instant > before[-1].instant + 4 * SECOND


def now_of(band: Fleet) -> datetime:
    instant = newest(band, "middle")
    assert instant is not None
    return instant


def settled(before: list[Tick], after: list[Tick]) -> list[Tick]:
    """The same rows: only how their jobs ended may have been added."""
    assert [row.mark for row in before] == [row.mark for row in after]
    return after


@pytest.mark.timeout(180)
def test_three_replicas_that_start_together_run_the_fleets_start_once_and_each_its_own(openings):
    start_three(openings)
    pids = {worker.pid for worker in openings.workers}
    # Each replica tries the fleet's start in the step in which it makes its own.
    until(lambda: len(openings.lines("tuning")) >= 3, "each has run its own start")
    until(lambda: openings.counts().unfinished == 0, "nothing is left to run")
    assert sorted(int(pid) for _, pid in openings.lines("tuning")) == sorted(pids)
    assert len(openings.lines("opening")) == 1
