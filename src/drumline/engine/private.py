"""Private queues: a replica's own ticks wait in one, and nobody else may run them when it has left."""

from __future__ import annotations

from collections.abc import Iterable

from drumline.clock import fresh_id
from drumline.model.job import WAITING
from drumline.model.options import PRIVATE
from drumline.model.query import By, Command, CommandKind, JobFilter
from drumline.model.replica import ReplicaState
from drumline.policy.firing import private_queue
from drumline.stores.base import Store

__all__ = ["cancel_left_behind", "cancel_waiting"]

SLICE = 500


async def cancel_left_behind(store: Store, *, by: str) -> None:
    """Cancel what waits in the private queues of replicas that are gone."""
    waiting = {count.queue for count in await store.counts() if count.ready + count.delayed}
    private = {queue for queue in waiting if queue.startswith(PRIVATE)}
    if not private:
        return
    gone = (ReplicaState.GONE, ReplicaState.LOST)
    alive = {private_queue(replica.info.id) for replica in await store.workers() if replica.state not in gone}
    await cancel_waiting(store, sorted(private - alive), by=by)


async def cancel_waiting(store: Store, queues: Iterable[str], *, by: str) -> None:
    """Cancel every job that waits in these queues."""
    for queue in queues:
        where = JobFilter(queue=queue, states=WAITING)
        while ids := tuple(job.id for job in (await store.jobs(where, limit=SLICE)).items):
            why = By(by, "janitor", "its replica is gone")
            await store.command(Command(id=fresh_id(), kind=CommandKind.CANCEL, ids=ids, by=why))
