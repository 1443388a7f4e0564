"""Dead letters, over real workers."""

import json

import pytest

from tests.end_to_end.band import charge
from tests.end_to_end.fleet import fleet, runs_of

pytestmark = pytest.mark.timeout(120)

ORDERS = 8


@pytest.fixture
def band(tmp_path, home):
    with fleet(tmp_path, home) as running:
        yield running


def drain(band):
    assert band.start("--drain").wait(40) == 0


def tally(band):
    counts = band.counts()
    return counts.ready, counts.dead, counts.done


def test_dead_jobs_are_retried_one_many_and_by_filter_with_fresh_attempts_or_discarded(band, tmp_path):
    gate = tmp_path / "provider"
    calls = [charge.using(tags=["late"] if order > 4 else []).call(order, str(gate)) for order in range(ORDERS)]
    ids = [handle.id for handle in band.drum.enqueue_many_sync(calls)]
    drain(band)
    before = {job.id: job for job in band.jobs(state="dead")}
    assert (set(before), tally(band)) == (set(ids), (0, ORDERS, 0))
    assert {(job.attempt, job.last_error) for job in before.values()} == {(2, "ConnectionError: the provider is away")}

    jobs = band.drum.sync.jobs
    gate.touch()
    # By id, by ids, by filter from the command line; the last is discarded.
    assert set(jobs.retry(ids[0]).values()) == {"applied"}
    assert list(jobs.retry(ids[1], ids[2])) == ids[1:3]
    assert set(jobs.discard(ids[7])) == {ids[7]}
    retried = band.command("jobs", "retry", "--state", "dead", "--tag", "late", "--json")
    assert retried.returncode == 0, retried.stderr
    assert tally(band) == (5, 2, 0)
    assert {job.id for job in band.jobs(state="ready")} == {ids[place] for place in (0, 1, 2, 5, 6)}
    assert {band.job(ids[place]).attempt for place in (0, 1, 2, 5, 6)} == {0}

    drain(band)
    assert tally(band) == (0, 2, 5)
    for place in (0, 1, 2, 5, 6):
        job = band.job(ids[place])
        assert (job.state, job.attempt, json.loads(job.result or b"")) == ("done", 1, place)
        assert (job.args, job.options, job.tags) == (
            before[job.id].args,
            before[job.id].options,
            before[job.id].tags,
        )
        assert [attempt.ended for attempt in runs_of(job)] == ["failed", "failed", "done"]
    assert {job.id for job in band.jobs(state="dead")} == {ids[3], ids[4]}
    runs = sorted(int(line[1]) for line in band.lines("charge"))
    assert runs == sorted([*range(ORDERS), *range(ORDERS), 0, 1, 2, 5, 6])
