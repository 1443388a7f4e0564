"""Floors: once looks from the beginning are slow, the next ones begin where the last have ended, for a while."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from drumline.clock import ManualClock, fresh_id
from drumline.model.claim import Claim, Claimed, Share
from drumline.stores.postgres import PostgresStore
from drumline.stores.postgres.claim import Asked, claim
from drumline.stores.postgres.floors import Floors
from drumline.stores.postgres.session import Sessions
from drumline.stores.postgres.step import Step
from tests.support.build import REPLICA, new_job, numbered_id, release
from tests.support.postgres import new_address

SLOW = 0.05


class Looking:
    """A store whose looks take as long as the test says."""

    def __init__(self, store: PostgresStore) -> None:
        self.clock = ManualClock()
        self.floors = Floors(self.clock)
        self.store = store
        self.sessions = Sessions(store.place)

    def add(self, number: int, **given: Any) -> str:
        return self.store.enqueue([new_job(id=numbered_id(number), **given)]).run()[0].id

    def take(self, limit: int = 1) -> Claimed:
        asked = Asked(REPLICA, [Share("*", limit)], limit, ["job"], fresh_id(), fresh_id(), self.floors)
        return self.sessions.run_statement(lambda step: claim(step, asked, 0), Step())

    def slow_down(self, claims: list[Claim]) -> None:
        """A look from the beginning was slow, after many jobs."""
        for _ in range(5_000):
            self.floors.note("*", self.floors.begin(), claims, is_full=True)
        began = self.floors.begin()
        self.clock.advance(SLOW)
        self.floors.note("*", began, claims, is_full=True)


@pytest.fixture
def looking() -> Iterator[Looking]:
    url, _, namespace = new_address().partition(" ")
    store = PostgresStore(url, namespace=namespace)
    store.migrate().run()
    made = Looking(store)
    yield made
    made.sessions.close()
    store.close().run()


def ids(claimed: Claimed) -> list[str]:
    return [claim.id for claim in claimed.claims]


def test_a_quick_look_is_always_from_the_beginning(looking):
    looking.add(1)
    claims = looking.take().claims
    for _ in range(6_000):
        looking.floors.note("*", looking.floors.begin(), claims, is_full=True)
    assert looking.floors.bands("*", ["job"]) is None


def test_a_slow_look_counts_only_after_many_jobs(looking):
    began = looking.floors.begin()
    looking.clock.advance(SLOW)
    looking.floors.note("*", began, [], is_full=True)
    assert looking.floors.bands("*", ["job"]) is None


def test_after_a_slow_look_only_what_lies_behind_the_floors_is_seen_for_ten_times_as_long(looking):
    looking.add(1)
    (early,) = looking.take().claims
    looking.add(2)
    (claim,) = looking.take().claims
    looking.slow_down([claim])
    # Given back with its old due time, it comes before what was taken last.
    assert looking.store.finish([release(early)]).run() == [True]
    newer = looking.add(3)
    assert ids(looking.take(9)) == [newer]
    looking.clock.advance(10 * SLOW)
    assert ids(looking.take(9)) == [early.id]


def test_a_new_priority_is_seen_through_the_bands_and_comes_first(looking):
    looking.add(1)
    (claim,) = looking.take().claims
    looking.slow_down([claim])
    low, high, same = looking.add(2, priority=-5), looking.add(3, priority=7), looking.add(4)
    assert ids(looking.take(9)) == [high, same, low]


def test_a_short_answer_asks_for_another_look_within_a_second(looking):
    looking.add(1)
    (claim,) = looking.take().claims
    looking.slow_down([claim])
    claimed = looking.take(9)
    assert claimed.claims == []
    assert claimed.next_due is not None
    assert timedelta() < claimed.next_due - claimed.now < timedelta(seconds=1)


def test_other_queues_and_tasks_are_not_touched(looking):
    looking.add(1)
    (claim,) = looking.take().claims
    looking.slow_down([claim])
    assert looking.floors.bands("other", ["job"]) is None
    assert looking.floors.bands("*", ["another"]) == []
