"""Draining: whether there is anything left to wait for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from drumline.model.claim import ANY_QUEUE
from drumline.model.options import PRIVATE
from drumline.model.query import PauseKind
from drumline.stores.base import Store

__all__ = ["has_work"]


async def has_work(store: Store, tasks: Collection[str], queues: Sequence[str]) -> bool:
    """Whether any unfinished job is one that a worker of these tasks and queues could run, now or later.

    In a paused queue only those that run are.
    """
    paused = await store.paused(PauseKind.QUEUE)
    return any(
        count.running + (0 if count.queue in paused else count.ready + count.delayed) > 0
        for count in await store.counts()
        if count.task in tasks and _is_served(count.queue, queues)
    )


def _is_served(queue: str, queues: Sequence[str]) -> bool:
    return queue in queues or (ANY_QUEUE in queues and not queue.startswith(PRIVATE))
