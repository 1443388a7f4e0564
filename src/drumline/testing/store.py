"""The store of a test: the memory store, which remembers a little more and asks for a little less."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from drumline.clock import Clock
from drumline.model.act import Act
from drumline.model.claim import Claimed, Share
from drumline.model.job import Enqueued, NewJob
from drumline.stores.base import Op
from drumline.stores.memory import MemoryStore

__all__ = ["HarnessStore"]


class HarnessStore(MemoryStore):
    """A memory store in which a job of a transaction is there at once: there is no transaction to wait for."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        # When each job that was ever claimed was due first: a retry writes over it.
        self.first_due: dict[str, datetime] = {}

    def enqueue(
        self,
        jobs: Sequence[NewJob],
        *,
        tx: object | None = None,  # noqa: ARG002
        act: Act | None = None,
    ) -> Op[list[Enqueued]]:
        return super().enqueue(jobs, act=act)

    def claim(self, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str) -> Op[Claimed]:
        claiming = super().claim(replica, queues, limit, tasks, token)

        def blocking() -> Claimed:
            claimed = claiming.run()
            for claim in claimed.claims:
                self.first_due.setdefault(claim.id, claim.due_at)
            return claimed

        async def asynchronous() -> Claimed:
            return blocking()

        return Op(blocking, asynchronous)
