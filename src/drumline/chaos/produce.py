"""The producer of a run: enqueues without end, tries until it is told that it was accepted, and remembers that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count

from drumline import Drumline
from drumline.chaos.program import Tasks
from drumline.clock import Clock, fresh_id, pause
from drumline.errors import StoreError
from drumline.task import Call

__all__ = ["Producer"]

BATCH = 50
# With so many waiting it waits too: a run measures survival, not how much a store can hold.
_MOST_WAITING = 1000
_AGAIN = 0.05


class Producer(threading.Thread):
    """Enqueues so many jobs a second, at most."""

    def __init__(self, drum: Drumline, tasks: Tasks, *, rate: float, lease: float, clock: Clock) -> None:
        super().__init__(name="drumline-producer", daemon=True)
        self.accepted: list[str] = []
        # Batches whose acceptance was in doubt at least once.
        self.doubts = 0
        self._drum = drum
        self._tasks = tasks
        self._pause = BATCH / rate
        self._lease = lease
        self._clock = clock
        self._is_over = threading.Event()

    def run(self) -> None:
        for number in count():
            began = self._clock.monotonic()
            self._enqueue(list(self._calls(number)))
            while not self._is_over.wait(max(began + self._pause - self._clock.monotonic(), 0)) and self._is_ahead():
                began = self._clock.monotonic()
            if self._is_over.is_set():
                return

    def end(self) -> None:
        """Enqueue no more; what is under way is tried until it is accepted."""
        self._is_over.set()
        self.join()

    def _calls(self, number: int) -> Iterator[Call]:
        tasks = self._tasks
        for _ in range(BATCH - 9):
            yield tasks.quick.using(id=fresh_id()).call()
        yield tasks.slow.using(id=fresh_id()).call(0.05 + number % 7 / 10)
        # Longer than its lease, every other time: those that wake up late meet who has taken over, still at work.
        yield tasks.slow.using(id=fresh_id()).call(self._lease * 1.2 if number % 2 else 0.1)
        yield tasks.grinding.using(id=fresh_id()).call(0.02 + number % 3 / 10)
        for times in (1, 1, 1, 2):
            yield tasks.stumbling.using(id=fresh_id()).call(times)
        yield tasks.hopeless.using(id=fresh_id()).call()
        yield tasks.quick.using(id=fresh_id(), delay=0.5).call()

    def _enqueue(self, calls: list[Call]) -> None:
        is_doubted = False
        while True:
            try:
                self.accepted += [handle.id for handle in self._drum.enqueue_many_sync(calls)]
            except StoreError:
                is_doubted = True
                pause(_AGAIN)
            else:
                self.doubts += is_doubted
                return

    def _is_ahead(self) -> bool:
        try:
            return self._drum.sync.counts().unfinished > _MOST_WAITING
        except StoreError:
            return True
