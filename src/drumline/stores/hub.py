"""Hints inside one process: who listens, for which topics, on which event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from drumline.model.claim import ANY_QUEUE
from drumline.model.options import PRIVATE
from drumline.stores.base import Hear, Topic, topic

__all__ = ["Ear", "Hub"]

_ANY = topic.queue(ANY_QUEUE)
_PUBLIC = topic.queue("")
_PRIVATE = topic.queue(PRIVATE)


class Ear:
    """One listener. Watched and told from any thread; `hear` runs on the loop that opened it."""

    def __init__(self, hub: Hub, hear: Hear, loop: asyncio.AbstractEventLoop) -> None:
        self._hub = hub
        self._hear = hear
        self._loop = loop
        self._topics: frozenset[Topic] = frozenset()

    @property
    def topics(self) -> frozenset[Topic]:
        return self._topics

    @property
    def is_hearing(self) -> bool:
        return self._hub.is_hearing

    def watch(self, topics: Iterable[Topic]) -> None:
        self._topics |= frozenset(topics)

    def unwatch(self, topics: Iterable[Topic]) -> None:
        self._topics -= frozenset(topics)

    def tell(self, topics: Iterable[Topic]) -> None:
        """Pass on what is watched."""
        for heard in self._topics.intersection(topics):
            try:
                self._loop.call_soon_threadsafe(self._hear, heard)
            except RuntimeError:
                # Its loop has closed: nobody is there to hear, and the hint is only a hint.
                return


class Hub:
    """All listeners of one store in this process."""

    def __init__(self) -> None:
        self.is_hearing = True
        self._ears: tuple[Ear, ...] = ()
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._ears)

    @property
    def topics(self) -> frozenset[Topic]:
        """Everything that is watched."""
        return frozenset().union(*(ear.topics for ear in self._ears))

    @asynccontextmanager
    async def listen(self, hear: Hear) -> AsyncIterator[Ear]:
        ear = Ear(self, hear, asyncio.get_running_loop())
        with self._lock:
            self._ears += (ear,)
        try:
            yield ear
        finally:
            with self._lock:
                self._ears = tuple(other for other in self._ears if other is not ear)

    def go_deaf(self) -> None:
        """No hints arrive. Everybody is told, once, so that those who sleep take to looking."""
        if self.is_hearing:
            self.is_hearing = False
            self.tell(self.topics)

    def hear_again(self) -> None:
        """Hints arrive."""
        self.is_hearing = True

    def tell(self, topics: Iterable[Topic]) -> None:
        """Tell every listener that watches one of the topics, or, of a public queue, any queue."""
        ears = self._ears
        if not ears:
            return
        news = set(topics)
        if any(item.startswith(_PUBLIC) and not item.startswith(_PRIVATE) for item in news):
            news.add(_ANY)
        for ear in ears:
            ear.tell(news)
