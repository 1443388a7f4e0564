"""Parts that several processes play on one store at once; each opens the store for itself, by its address."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from threading import Barrier
from typing import Any

from drumline.clock import ManualClock
from drumline.model.claim import ANY_QUEUE, Claim, Share
from drumline.stores.base import Store
from tests.support.build import TASK, done, new_job, numbered_id, tick_at, unique
from tests.support.makers import named
from tests.support.rig import Rig

SIZE = 3
_DEADLINE = 50.0

Part = Callable[[Store, int, datetime], Any]


class Fleet:
    """So many processes, each of which plays the same part on the rig's store at the same moment."""

    def __init__(self, pool: ProcessPoolExecutor, size: int) -> None:
        self._pool = pool
        self._size = size

    def play(self, part: Part, rig: Rig) -> list[Any]:
        """What each process answered."""
        given = (rig.maker.name, rig.address, rig.now())
        futures = [self._pool.submit(_play, part, place, *given) for place in range(self._size)]
        return [future.result(_DEADLINE) for future in futures]


@contextmanager
def new_fleet(size: int = SIZE) -> Iterator[Fleet]:
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(size)
    with ProcessPoolExecutor(size, mp_context=context, initializer=_stand_ready, initargs=(gate,)) as pool:
        yield Fleet(pool, size)


_gates: list[Barrier] = []


def _stand_ready(gate: Barrier) -> None:
    _gates[:] = [gate]


def _play(part: Part, place: int, maker: str, address: str, now: datetime) -> Any:
    store = named(maker).open(address, ManualClock(now))
    try:
        # All begin together; it also gives each process one part, for none is done before all have begun.
        _gates[0].wait(_DEADLINE)
        return part(store, place, now)
    finally:
        store.close().run()


def take_all(store: Store, replica: str, batch: int = 7) -> list[Claim]:
    """Claim until there is nothing left."""
    claims: list[Claim] = []
    for number in range(100_000):
        given = store.claim(replica, [Share(ANY_QUEUE, batch)], batch, [TASK], f"{replica} {number}").run().claims
        if not given:
            return claims
        claims += given
    raise AssertionError("the queue does not get empty")


def migrate_and_enqueue(store: Store, place: int, now: datetime) -> None:
    store.migrate().run()
    store.enqueue([new_job(id=numbered_id(place))]).run()


def enqueue_one_key(store: Store, place: int, now: datetime) -> list[tuple[str, bool]]:
    answers = [store.enqueue([new_job(key=unique("one"))]).run()[0] for _ in range(34 - (place > 0))]
    return [(answer.id, answer.created) for answer in answers]


def drain(store: Store, place: int, now: datetime) -> list[str]:
    claims = take_all(store, f"r{place}:1")
    assert all(store.finish([done(claim) for claim in claims]).run())
    return [claim.id for claim in claims]


def finish_the_claims_of_r1(store: Store, place: int, now: datetime) -> list[bool]:
    claims = sorted(store.expired(1000).run(), key=lambda claim: claim.id, reverse=bool(place % 2))
    return [answer for claim in claims for answer in store.finish([done(claim, by=f"finisher {place}")]).run()]


def fire_twenty_ticks(store: Store, place: int, now: datetime) -> list[str]:
    firings = [tick_at(now.replace(second=second)) for second in range(20)]
    return [store.fire([firing], by=f"r{place}:1").run()[0].answer.value for firing in firings]
