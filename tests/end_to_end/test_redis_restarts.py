"""A server that is killed and started again under real workers, and keeps what it has acknowledged."""

import threading
import time
from pathlib import Path

import pytest

from drumline.errors import StoreUnreachable
from tests.end_to_end.band import play
from tests.end_to_end.fleet import Fleet, fleet, until
from tests.end_to_end.homes import RedisHome
from tests.support.valkey import Valkey, new_server

DURABLE = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


class Producer(threading.Thread):
    """Enqueues without end, and remembers what was acknowledged."""

    def __init__(self, band: Fleet) -> None:
        super().__init__(daemon=True)
        self.band = band
        self.acknowledged: list[str] = []
        self.is_over = threading.Event()
        self.start()

    def run(self) -> None:
        number = 0
        while not self.is_over.wait(0.01):
            calls = [play.call(number + place, seconds=0.01) for place in range(5)]
            number += len(calls)
            try:
                self.acknowledged += [handle.id for handle in self.band.drum.enqueue_many_sync(calls)]
            except StoreUnreachable:
                continue

    def wait_for_more(self, number: int) -> None:
        enough = len(self.acknowledged) + number
        until(lambda: len(self.acknowledged) >= enough, "more was enqueued")

    def end(self) -> None:
        self.is_over.set()
        self.join()


def restart(server: Valkey, band: Fleet) -> float:
    """Kill and start the server; the seconds from its first answer until a worker has ended another job."""
    server.kill()
    server.start()
    began = time.monotonic()
    before = band.counts().done
    until(lambda: band.counts().done > before, "the workers have resumed")
    return time.monotonic() - began


def survive(folder: Path, turns: int) -> list[float]:
    with new_server(*DURABLE) as server, fleet(folder, RedisHome(folder, server.url)) as band:
        band.drum.enqueue_many_sync([play.call(0)])
        workers = [band.start("--concurrency", "20") for _ in range(2)]
        until(lambda: band.counts().done == 1, "the workers have begun")
        producer = Producer(band)
        took = []
        for _ in range(turns):
            producer.wait_for_more(50)
            took.append(restart(server, band))
        producer.end()
        until(lambda: band.counts().unfinished == 0, "every job has ended")
        jobs = {job.id: job for job in band.jobs()}
        assert {job.state for job in jobs.values()} == {"done"}
        assert set(producer.acknowledged) <= set(jobs), "what was acknowledged is lost"
        assert {sum(attempt.ended == "done" for attempt in job.attempts) for job in jobs.values()} == {1}
        assert [worker.poll() for worker in workers] == [None, None]
        return took


@pytest.mark.timeout(120)
def test_what_was_acknowledged_survives_a_server_that_is_killed_under_load(tmp_path):
    survive(tmp_path, turns=3)


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_twenty_kills_of_the_server_lose_nothing_and_workers_resume_at_once(tmp_path):
    took = survive(tmp_path, turns=20)
    assert max(took) < 2, took
