"""Promises 1 to 3 while the server is killed and comes back, under load: nothing is lost, nothing counts twice."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

from drumline.clock import fresh_id
from drumline.errors import StoreUnreachable
from drumline.model.schedule import Decision
from tests.end_to_end import clockwork
from tests.end_to_end.fleet import Fleet, fleet, until
from tests.end_to_end.homes import ServerHome
from tests.support.postgres import Server, new_server

APP = "tests.end_to_end.clockwork:drum"
BATCH = 20


@pytest.fixture
def server() -> Iterator[Server]:
    with new_server() as running:
        yield running


def enqueue(band: Fleet, first: int) -> list[str]:
    """Enqueue a batch, as a caller does who tries until it is accepted."""
    calls = [clockwork.strike.using(id=fresh_id()).call(number) for number in range(first, first + BATCH)]
    end = time.monotonic() + 30
    while True:
        try:
            return [job.id for job in band.drum.enqueue_many_sync(calls)]
        except StoreUnreachable:
            assert time.monotonic() < end
            time.sleep(0.02)


def has_begun(band: Fleet, number: int) -> bool:
    return any(int(line[1]) >= number for line in band.lines("strike"))


def kill_under_load(band: Fleet, server: Server, times: int) -> list[float]:
    """Kill the server so often; after how many seconds work went on, each time that it was back."""
    pauses: list[float] = []
    ids = enqueue(band, 0)
    workers = [band.start("--concurrency", "20", command="run"), band.start("--concurrency", "20", command="run")]
    until(lambda: band.lines("strike") and len(band.replicas()) == len(workers), "the workers have begun")
    for turn in range(1, times + 1):
        server.kill()
        server.start()
        began = time.monotonic()
        ids += enqueue(band, turn * BATCH)
        until(partial(has_begun, band, turn * BATCH), "work goes on")
        pauses.append(time.monotonic() - began)
    until(lambda: all(band.job(job_id).state == "done" for job_id in ids), "every accepted job is done")
    assert [worker.poll() for worker in workers] == [None, None]
    for worker in workers:
        worker.terminate()
    assert [worker.wait(30) for worker in workers] == [0, 0]
    jobs = [band.job(job_id) for job_id in ids]
    assert [sum(attempt.ended == "done" for attempt in job.attempts) for job in jobs] == [1] * len(ids)
    check_ledger(band)
    return pauses


def check_ledger(band: Fleet) -> None:
    """Every tick has one row, and every row that was fired has its own job, which is done."""
    ticks = [tick for tick in band.drum.sync.schedules.ticks("tick") if tick.decision is Decision.FIRED]
    assert ticks, "no tick was fired"
    assert len({tick.mark for tick in ticks}) == len({tick.job_id for tick in ticks}) == len(ticks)
    ended = [tick for tick in ticks if tick.outcome is not None]
    assert {tick.outcome for tick in ended} == {"done"}


@pytest.mark.timeout(180)
def test_a_server_that_is_killed_twice_under_load_loses_nothing(tmp_path, server):
    with fleet(tmp_path, ServerHome(server.url), APP) as band:
        kill_under_load(band, server, 2)


@pytest.mark.prove
@pytest.mark.timeout(1200)
def test_a_server_that_is_killed_twenty_times_under_load_loses_nothing(tmp_path, server):
    with fleet(tmp_path, ServerHome(server.url), APP) as band:
        pauses = kill_under_load(band, server, 20)
    print("resumed after", ", ".join(f"{pause:.2f}" for pause in pauses), "s")
    assert max(pauses) < 2
