"""The janitor: expired claims through the verdict back into the store, and old records out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from drumline.clock import Clock
from drumline.engine.closing import tell_closed
from drumline.engine.execution import Executions
from drumline.engine.private import cancel_left_behind
from drumline.events import Events
from drumline.failpoint import failpoint
from drumline.model.claim import Claim
from drumline.model.query import Keep
from drumline.policy.verdict import Lost, verdict
from drumline.stores.base import Store

__all__ = ["Janitor"]

SLICE = 100
PURGE_SLICE = 1000
PURGE_EVERY = 60.0
# While claims are past their lease, but it is too early to take them over.
SOON = 0.1


class Janitor:
    """Rescues what dead workers held, cancels what they kept for themselves, and purges."""

    def __init__(
        self,
        store: Store,
        executions: Executions,
        *,
        by: str,
        steady_since: Callable[[], float],
        clock: Clock,
        events: Events,
        keep: Keep,
    ) -> None:
        self._store = store
        self._executions = executions
        self._by = by
        self._steady_since = steady_since
        self._clock = clock
        self._events = events
        self._keep = keep
        self._look_at = 0.0
        self._purge_at = float("-inf")

    def hear(self, now: datetime, next_lease_end: datetime | None) -> bool:
        """Learn when the earliest lease ends; say whether that is earlier than the next look was planned for."""
        planned = self._look_at
        self._look_at = float("inf")
        if next_lease_end is not None:
            # A millisecond more: at its very end a lease still holds.
            self._look_at = self._clock.monotonic() + (next_lease_end - now).total_seconds() + 0.001
        return self._look_at < planned

    async def step(self) -> float | None:
        now = self._clock.monotonic()
        if now >= self._look_at:
            await self._look(now)
        if now >= self._purge_at:
            has_more = await self._store.purge(self._keep, PURGE_SLICE)
            failpoint("purge.answered")
            if not has_more:
                await cancel_left_behind(self._store, by=self._by)
            self._purge_at = now if has_more else now + PURGE_EVERY
        return max(min(self._look_at, self._purge_at) - now, 0)

    async def _look(self, now: float) -> None:
        # Before the calls, so that a lease end that is heard of during them is not forgotten.
        self._look_at = float("inf")
        try:
            again_in = await self._rescue()
        except BaseException:
            self._look_at = float("-inf")
            raise
        self._look_at = min(self._look_at, now + again_in)

    async def _rescue(self) -> float:
        """Take over what nobody renews; say in how many seconds there may be more."""
        expired = await self._store.expired(SLICE)
        ripe = [claim for claim in expired if self._is_ripe(claim)]
        if ripe:
            await self._take_over(ripe)
        if not expired:
            return float("inf")
        return 0 if len(ripe) == SLICE else SOON

    async def _take_over(self, claims: Sequence[Claim]) -> None:
        lost = [verdict(c, Lost(), by=self._by, started_at=c.claimed_at, ended_at=c.lease_until) for c in claims]
        failpoint("reclaim.before")
        answers = await self._store.finish(lost)
        failpoint("reclaim.answered")
        # Of a claim that a rival took over the rival tells.
        for outcome, applied in zip(lost, answers, strict=True):
            if applied and self._events:
                for event in tell_closed(outcome):
                    self._events.emit(event)

    def _is_ripe(self, claim: Claim) -> bool:
        if self._executions.get(claim.ref) is not None:
            return False
        return self._clock.monotonic() - self._steady_since() >= claim.options.lease.total_seconds() / 3
