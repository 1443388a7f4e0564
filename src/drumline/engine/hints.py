"""Hints: what the store tells a worker at once, and how long to rely on that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from drumline.stores.base import Listener, Store, Topic, topic

__all__ = ["Hints"]

# How often to look while no hints arrive.
POLL_WITHOUT_HINTS = 1.0


class Hints:
    """A worker's ear: for work in its queues, for changes, and for requests to cancel what it runs."""

    def __init__(
        self,
        store: Store,
        *,
        replica: str,
        queues: Sequence[str],
        usual_poll: float,
        on_work: Callable[[], None],
        on_change: Callable[[], None],
        on_cancel: Callable[[], None],
    ) -> None:
        self._store = store
        self._cancel = topic.cancel(replica)
        self._topics = [topic.CHANGES, self._cancel, *(topic.queue(queue) for queue in queues)]
        self._usual_poll = usual_poll
        self._on_work = on_work
        self._on_change = on_change
        self._on_cancel = on_cancel
        self._listener: Listener | None = None

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        async with self._store.wakeups(self._hear) as listener:
            self._listener = listener
            listener.watch(self._topics)
            yield

    @property
    def is_hearing(self) -> bool:
        """Whether hints arrive, as far as is known."""
        return self._listener is None or self._listener.is_hearing

    def poll_interval(self) -> float:
        """How many seconds may pass before the next look without a hint."""
        return self._usual_poll if self.is_hearing else min(self._usual_poll, POLL_WITHOUT_HINTS)

    def _hear(self, heard: Topic) -> None:
        if heard == self._cancel:
            self._on_cancel()
            return
        if heard == topic.CHANGES:
            self._on_change()
        # A change may be the end of a pause.
        self._on_work()
