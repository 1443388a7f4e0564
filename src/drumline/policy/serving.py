"""Who takes jobs from a queue now, and why some cannot begin."""

from __future__ import annotations

from collections.abc import Sequence

from drumline.model.options import PRIVATE
from drumline.model.query import Count
from drumline.model.replica import Replica, ReplicaState, Role

__all__ = ["find_unserved", "live_workers", "serves"]

_WORKING = (Role.COMBINED, Role.WORKER)


def live_workers(workers: Sequence[Replica]) -> list[Replica]:
    """The replicas that take jobs now."""
    return [worker for worker in workers if worker.state is ReplicaState.RUNNING and worker.info.role in _WORKING]


def serves(worker: Replica, queue: str) -> bool:
    """Whether it takes jobs from the queue: no queues named means every one, but for others' private ones."""
    return queue in worker.info.queues if worker.info.queues else not queue.startswith(PRIVATE)


def find_unserved(queue: str, rows: Sequence[Count], live: Sequence[Replica]) -> str:
    """Why ready jobs of the queue cannot begin, as the rest of a sentence; empty if they can."""
    if not any(row.ready for row in rows):
        return ""
    if not live:
        return "no worker is alive"
    serving = [worker for worker in live if serves(worker, queue)]
    if not serving:
        return f"no live worker serves queue {queue}"
    known = {task for worker in serving for task in worker.info.tasks}
    unknown = sorted(row.task for row in rows if row.ready and row.task not in known)
    return f"no live worker knows task {unknown[0]}" if unknown else ""
