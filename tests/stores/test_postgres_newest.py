"""The newest server: what make matrix runs on it in full, raced here once."""

from collections import Counter
from collections.abc import Iterator

import pytest

from drumline.model.schedule import Fired, FiredAnswer
from drumline.stores.postgres import PostgresStore
from tests.support.build import BY, done, new_job, new_schedule, tick_at
from tests.support.players import take_all
from tests.support.postgres import new_server
from tests.support.waiting import run_together

THREADS = 8


@pytest.fixture(scope="module")
def store() -> Iterator[PostgresStore]:
    with new_server("18") as server:
        made = PostgresStore(server.url)
        made.migrate().run()
        yield made
        made.close().run()


def test_eight_claimers_take_and_end_each_job_once(store):
    def work(place: int) -> int:
        return sum(store.finish([done(claim) for claim in take_all(store, f"r{place}:1", 20)]).run())

    store.enqueue([new_job() for _ in range(500)]).run()
    run_together(*(lambda place=place: work(place) for place in range(THREADS)))
    (count,) = store.counts().run()
    assert (count.done, count.ready, count.running, count.total_done) == (500, 0, 0, 500)


def test_a_tick_fired_by_eight_at_once_fires_once(store):
    store.declare([new_schedule()], by=BY).run()
    tick = tick_at(store.now().run())

    def fire(place: int) -> FiredAnswer:
        fired: list[Fired] = store.fire([tick], by=f"r{place}:1").run()
        return fired[0].answer

    answers = Counter(run_together(*(lambda place=place: fire(place) for place in range(THREADS))))
    assert answers == {FiredAnswer.FIRED: 1, FiredAnswer.DUPLICATE: THREADS - 1}
