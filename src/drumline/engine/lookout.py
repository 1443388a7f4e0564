"""The lookout: one replica of the fleet looks for what a person should know, and tells it to its subscribers once.

Which one follows from what the store says of the replicas: nobody is elected, and nothing is written. When another
takes over, it tells what it finds under the same ids as the one before.
"""

from __future__ import annotations

from drumline.events import Alert, Events, QueueUnserved, ScheduleLate
from drumline.model.query import PauseKind
from drumline.policy.alerting import find_late, find_lookout, find_unserved_queues, recovered
from drumline.stores.base import Store

__all__ = ["Lookout"]

LOOK_EVERY = 15.0


class Lookout:
    """Looks while somebody listens, and while this replica is the one to do so."""

    def __init__(self, store: Store, *, replica: str, events: Events) -> None:
        self._store = store
        self._replica = replica
        self._events = events
        # Nothing is amiss in the moment in which a fleet begins.
        self._has_waited = False
        # What was told and is not over, by kind and subject.
        self._told: dict[tuple[type[Alert], str], Alert] = {}

    async def step(self) -> float:
        if self._has_waited and self._events:
            await self._look()
        self._has_waited = True
        return LOOK_EVERY

    async def _look(self) -> None:
        replicas = await self._store.workers()
        if find_lookout(replicas) != self._replica:
            # Whoever it is tells when it is over.
            self._told.clear()
            return
        now = await self._store.now()
        paused = await self._store.paused(PauseKind.QUEUE)
        late = find_late(await self._store.schedules(), now)
        unserved = find_unserved_queues(await self._store.counts(), replicas, paused, now)
        found: dict[tuple[type[Alert], str], Alert] = {}
        found.update({(ScheduleLate, alert.schedule): alert for alert in late})
        found.update({(QueueUnserved, alert.queue): alert for alert in unserved})
        for place in self._told.keys() - found.keys():
            self._events.emit(recovered(self._told.pop(place)))
        for place in found.keys() - self._told.keys():
            self._told[place] = found[place]
            self._events.emit(found[place])
