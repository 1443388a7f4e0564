"""Enqueues that share a commit, when the thread that serves them is interrupted."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from drumline.errors import StoreUnreachable
from drumline.model.job import Enqueued, JobState
from drumline.stores.postgres.group import Group
from tests.support.build import new_job

PATIENCE = 30


class Hands:
    """Each work is done by a thread of its own."""

    def __init__(self) -> None:
        self.hands = self
        self._threads: list[threading.Thread] = []

    def give(self, work: Callable[[], object]) -> None:
        def do() -> None:
            with suppress(KeyboardInterrupt):
                work()

        self._threads.append(threading.Thread(target=do))
        self._threads[-1].start()

    def close(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


class Interrupted:
    """Enqueues, but the first time somebody presses Ctrl-C, once whoever shall come behind has come."""

    def __init__(self) -> None:
        self.begun, self.others_came = threading.Event(), threading.Event()
        self._is_first = True

    def __call__(self, jobs):
        if self._is_first:
            self._is_first = False
            self.begun.set()
            assert self.others_came.wait(PATIENCE)
            raise KeyboardInterrupt
        return [Enqueued(job.id, JobState.READY) for job in jobs]


@pytest.fixture
def hands() -> Iterator[Hands]:
    made = Hands()
    yield made
    made.close()


def test_an_interrupt_leaves_the_way_free_for_those_behind(hands):
    enqueue = Interrupted()
    group = Group(hands, enqueue)
    made: list[Enqueued] = []

    def come_behind() -> None:
        assert enqueue.begun.wait(PATIENCE)
        enqueue.others_came.set()
        made.extend(group.call([new_job()]))

    other = threading.Thread(target=come_behind)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        group.call([new_job()])
    other.join(PATIENCE)
    assert [one.state for one in made] == [JobState.READY]
    assert [one.state for one in group.call([new_job()])] == [JobState.READY]


@pytest.mark.asyncio
async def test_whoever_waits_for_what_was_interrupted_is_told(hands):
    enqueue = Interrupted()
    enqueue.others_came.set()
    group = Group(hands, enqueue)
    with pytest.raises(StoreUnreachable, match="interrupted"):
        await group.wait([new_job()])
    assert [one.state for one in await group.wait([new_job()])] == [JobState.READY]
