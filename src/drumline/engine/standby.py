"""Standing by: while slots wait for work, one claim waits in the store, and is made in the moment in which some comes.

Where a store knows of no such thing, the worker looks when a hint or the time tells it to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from drumline.clock import Clock, fresh_id
from drumline.engine.fetch import Fetcher
from drumline.failpoint import failpoint
from drumline.model.claim import Claimed, Share
from drumline.stores.base import Store

__all__ = ["Standby"]

logger = logging.getLogger("drumline.engine")


class Standby:
    """Lets one claim stand by, again and again, while the fetcher is at rest and nobody objects."""

    def __init__(
        self,
        store: Store,
        fetcher: Fetcher,
        *,
        replica: str,
        seconds: Callable[[], float],
        may: Callable[[], bool],
        on_answer: Callable[[], None],
        clock: Clock,
    ) -> None:
        # Whether a claim stands by, or its answer is on its way.
        self.is_out = False
        # Whether one was never answered: what it may have taken is known only to the store.
        self.is_in_doubt = False
        self._store = store
        self._fetcher = fetcher
        self._replica = replica
        self._seconds = seconds
        self._may = may
        self._on_answer = on_answer
        self._clock = clock
        self._shares: Sequence[Share] = ()
        self._tasks: Sequence[str] = ()
        self._token = ""
        # A store that lets nobody wait is not asked again at once.
        self._not_before = float("-inf")
        self._is_over = False
        self._recalling: asyncio.Task[None] | None = None

    async def step(self) -> float | None:
        """Stand by once, if it is time for it; woken again when it is."""
        if self._is_over or self._clock.monotonic() < self._not_before or not self._may():
            return None
        if not self._fetcher.is_at_rest:
            return None
        try:
            claimed = await self._stand_by(self._seconds())
        except BaseException:
            self.is_in_doubt = True
            self._fetcher.hint()
            self._on_answer()
            raise
        finally:
            self.is_out = False
        if claimed is None:
            return None
        self._on_answer()
        return 0.0

    async def _stand_by(self, seconds: float) -> Claimed | None:
        self._shares, self._tasks = self._fetcher.rely_on_standby(seconds)
        self._token = fresh_id()
        self.is_out = True
        failpoint("claim.before")
        claimed = await self._store.stand_by(self._replica, self._shares, self._tasks, self._token, seconds=seconds)
        received = self._clock.monotonic()
        failpoint("claim.answered")
        if claimed is None:
            self._not_before = received + seconds
        self._fetcher.take(claimed, received)
        return claimed

    def recall(self) -> None:
        """Let the claim that stands by be answered: with what it has taken, or with nothing."""
        if self.is_out and self._recalling is None:
            self._recalling = asyncio.get_running_loop().create_task(self._use_up(self._token))

    def end(self) -> None:
        """The same, and let no other one stand by."""
        self._is_over = True
        self.recall()

    async def _use_up(self, token: str) -> None:
        try:
            await self._store.claim(self._replica, self._shares, 0, self._tasks, token)
        except Exception as error:  # noqa: BLE001 - it will be over by itself
            logger.info("could not recall a claim that stands by: %s", error)
        finally:
            self._recalling = None
