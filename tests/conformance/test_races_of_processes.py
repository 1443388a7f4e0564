from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from drumline.clock import ManualClock
from tests.support.build import new_job, new_schedule
from tests.support.makers import Maker, racing
from tests.support.players import (
    Fleet,
    drain,
    enqueue_one_key,
    finish_the_claims_of_r1,
    fire_twenty_ticks,
    migrate_and_enqueue,
    new_fleet,
)
from tests.support.promises import promises
from tests.support.rig import Rig, new_rig

SHARED = [maker for maker in racing() if maker.is_shared]

pytestmark = pytest.mark.parametrize("maker", SHARED, ids=lambda maker: maker.name)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Three processes that wait for their parts."""
    with new_fleet() as made:
        yield made


@pytest.fixture(scope="module")
def crowd() -> Iterator[Fleet]:
    """Ten of them."""
    with new_fleet(10) as made:
        yield made


@pytest.fixture
def rig(maker: Maker, tmp_path: Path) -> Iterator[Rig]:
    """A store that other processes can open."""
    with new_rig(maker, tmp_path) as made:
        yield made


def test_a_hundred_enqueues_of_one_key_from_three_processes_make_one_job(rig, fleet):
    answers = [answer for part in fleet.play(enqueue_one_key, rig) for answer in part]
    assert len(answers) == 100
    assert sum(created for _, created in answers) == 1
    assert {job_id for job_id, _ in answers} == set(rig.ids())


@promises("claim", "for this replica only")
def test_three_processes_drain_a_queue_each_job_exactly_once(rig, fleet):
    rig.enqueue(*(new_job() for _ in range(900)))
    taken = Counter(job_id for part in fleet.play(drain, rig) for job_id in part)
    assert (len(taken), set(taken.values())) == (900, {1})
    assert (rig.count().done, rig.count().total_done) == (900, 900)


def test_of_three_processes_that_finish_one_claim_one_is_accepted(rig, fleet):
    rig.enqueue(*(new_job(lease=1) for _ in range(150)))
    rig.take(150)
    rig.advance(2)
    assert sum(answer for part in fleet.play(finish_the_claims_of_r1, rig) for answer in part) == 150
    assert (rig.count().done, {len(job.attempts) for job in rig.jobs()}) == (150, {1})


@promises("fire", "at most once")
def test_twenty_ticks_fired_by_three_processes_fire_once_each(rig, fleet):
    rig.declare(new_schedule())
    rig.clock.set(rig.now().replace(second=30) + timedelta(minutes=1))
    rig.follow()
    answers = Counter(answer for part in fleet.play(fire_twenty_ticks, rig) for answer in part)
    assert answers == {"fired": 20, "duplicate": 40}
    assert len(rig.jobs()) == 20


@promises("migrate", "of many processes at once, one migrates")
def test_ten_processes_migrate_one_new_store(maker, tmp_path, crowd):
    rig = Rig(maker, maker.address(tmp_path), ManualClock())
    try:
        crowd.play(migrate_and_enqueue, rig)
        assert len(rig.jobs()) == 10
    finally:
        rig.close()
